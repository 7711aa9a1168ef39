//! What a pod holds is told to nobody, and every decision leaves one line.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::client::{Secure, plain_pod, review_of, review_of_update};
use crate::program::Program;

const SECRET: &str = "hunter2-xyz";

/// A pod with the secret wherever an author may put one; what it asks for is given.
fn secretive_pod() -> Value {
    let container = json!({
        "name": "c",
        "image": "i",
        "command": ["sh", "-c", SECRET],
        "args": [SECRET],
        "env": [{"name": "PASSWORD", "value": SECRET}],
        "securityContext": {"privileged": true, "capabilities": {"add": ["SYS_ADMIN"]}},
        "livenessProbe": {"httpGet": {"port": 80, "host": SECRET, "httpHeaders": [{"name": "a", "value": SECRET}]}},
    });
    json!({
        "metadata": {
            "name": "p",
            "annotations": {"token": SECRET, "cofferdam.dev/hardened": SECRET, "cofferdam.dev/changes": SECRET},
        },
        "spec": {"containers": [container], "initContainers": [container]},
    })
}

async fn ask(connection: &mut Secure, body: &str) -> String {
    let answer = connection.post("/mutate/enforced", "application/json", body.as_bytes()).await;
    if answer.status != 200 {
        return answer.body;
    }
    let mut response = answer.response();
    // The patch goes to the API server, which has the secret already; everything else is shown to people.
    response.as_object_mut().unwrap().remove("patch");
    response.to_string()
}

#[tokio::test]
async fn b101_no_secret_of_a_pod_is_in_a_log_line_an_answer_or_a_metric() {
    let mut program = Program::start(&["--log-filter=trace", "--drain-delay=0s"]).await;
    let mut connection = program.connect().await;
    let good = review_of(&secretive_pod());
    let mut bodies = vec![
        good.clone(),
        good[..good.len() / 2].to_owned(),
        good.replace("\"dryRun\":false", &format!("\"dryRun\":\"{SECRET}\"")),
        good.replace("AdmissionReview", SECRET),
        good.replace("\"CREATE\"", &format!("\"{SECRET}\"")),
        good.replace("\"privileged\":true", &format!("\"privileged\":\"{SECRET}\"")),
        good.replace("\"command\":[", &format!("\"command\":[{}\"{SECRET}\"{},", "[".repeat(200), "]".repeat(200))),
    ];
    // The secret in the place of every member, one after the other: wrong types, wrong values, refusals.
    let pod = secretive_pod();
    let mut places = Vec::new();
    collect(&pod, String::new(), &mut places);
    for place in places {
        for wrong in [json!(SECRET), json!([SECRET]), json!({"k": SECRET})] {
            let mut pod = pod.clone();
            *pod.pointer_mut(&place).unwrap() = wrong;
            bodies.push(review_of(&pod));
        }
    }
    for member in ["hostNetwork", "volumes", "securityContext", "restartPolicy", "activeDeadlineSeconds", "hostPID"] {
        let mut pod = secretive_pod();
        pod["spec"][member] = json!(SECRET);
        bodies.push(review_of(&pod));
    }
    // As an update, and as what was there before it.
    bodies.push(review_of_update("ephemeralcontainers", &secretive_pod(), &plain_pod()));
    bodies.push(review_of_update("resize", &secretive_pod(), &plain_pod()));
    bodies.push(review_of_update("resize", &plain_pod(), &secretive_pod()));
    let mut told = String::new();
    for body in &bodies {
        told.push_str(&ask(&mut connection, body).await);
    }
    told.push_str(&program.admin("/metrics").await.body);
    drop(connection);
    program.terminate().await;
    program.end().await;
    told.push_str(&program.lines.join("\n"));

    // A name is no secret: where the secret stands in for one, that one place may show it.
    let names = [format!("\"name\":\"{SECRET}\""), format!("\"profile\":\"{SECRET}\"")];
    let told = names.iter().fold(told, |told, name| told.replace(name, ""));
    let context = told.find(SECRET).map(|at| &told[at.saturating_sub(400)..(at + 100).min(told.len())]);
    assert_eq!(context, None);
}

/// The JSON pointers of everything in `value`.
fn collect(value: &Value, at: String, places: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            for (key, value) in members {
                collect(value, format!("{at}/{}", key.replace('/', "~1")), places);
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                collect(item, format!("{at}/{index}"), places);
            }
        }
        _ => {}
    }
    places.push(at);
}

#[tokio::test]
async fn b103_every_decision_leaves_one_line_that_says_who_asked_for_what() {
    let mut program = Program::start(&[]).await;
    let mut connection = program.connect().await;
    let mut pod = plain_pod();
    pod["metadata"]["name"].take();
    pod["metadata"]["generateName"] = json!("job-");
    pod["spec"]["containers"][0]["securityContext"] = json!({"privileged": true});
    let answer = connection.post("/mutate/enforced", "application/json", review_of(&pod).as_bytes()).await;
    let line = program.logged("decided").await;
    for (field, value) in [
        ("uid", "u-1"),
        ("namespace", "sessions"),
        ("name", "job-*****"),
        ("user", "ann"),
        ("webhook", "mutating"),
        ("scope", "enforced"),
        ("operation", "CREATE"),
        ("resource", "pods"),
        ("outcome", "hardened"),
        ("profile", "default"),
        ("session", answer.response()["auditAnnotations"]["session"].as_str().unwrap()),
    ] {
        assert_eq!(line[field], value, "{line}");
    }
    let paths = line["paths"].as_str().unwrap();
    assert!(paths.contains("spec.containers[0].securityContext.privileged"), "{line}");

    connection.post("/mutate/labelled", "application/json", review_of(&plain_pod()).as_bytes()).await;
    assert_eq!(program.logged("decided").await["outcome"], "not-a-session");

    let resized = review_of_update("resize", &plain_pod(), &plain_pod());
    connection.post("/mutate/enforced", "application/json", resized.as_bytes()).await;
    let line = program.logged("decided").await;
    assert_eq!((&line["operation"], &line["resource"]), (&json!("UPDATE"), &json!("pods/resize")), "{line}");

    connection.post("/mutate/warn", "application/json", review_of(&pod).as_bytes()).await;
    let line = program.logged("decided").await;
    assert_eq!((&line["outcome"], line["rules"].as_str().unwrap().contains("privilege")), (&json!("advised"), true));
}

#[tokio::test]
async fn the_patch_that_goes_out_turns_the_pod_into_a_hardened_one() {
    let program = Program::start(&[]).await;
    let mut pod = plain_pod();
    pod["spec"]["containers"][0]["securityContext"] = json!({"privileged": true});
    let body = review_of(&pod);
    let answer = program.connect().await.post("/mutate/enforced", "application/json", body.as_bytes()).await;
    let response = answer.response();
    let patch = STANDARD.decode(response["patch"].as_str().unwrap()).unwrap();
    let patch: json_patch::Patch = serde_json::from_slice(&patch).unwrap();
    json_patch::patch(&mut pod, &patch).unwrap();
    assert_eq!(pod["spec"]["containers"][0]["securityContext"]["privileged"], false);
    assert_eq!(response["warnings"].as_array().unwrap().len(), 1, "{response}");
}
