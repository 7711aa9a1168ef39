//! What becomes of a pod that somebody creates: hardened silently, repaired with warnings, or refused.

use cofferdam_e2e::images::{FIXTURE, NAMED_USER};
use cofferdam_e2e::namespace::Sessions;
use serde_json::json;

use crate::session::{assert_confined, assert_hardened, namespace, status};

#[test]
fn a_plain_pod_in_an_enforced_namespace_is_hardened_without_a_word() {
    let namespace = namespace("plain", Sessions::Enforced);
    let image = format!("--image={FIXTURE}");
    let answer = namespace.ask(["run", "plain", &image, "--", "status"], "").unwrap();
    assert!(answer.success, "{}", answer.stderr);
    assert_eq!(answer.warnings(), Vec::<&str>::new(), "nothing was asked for, so there is nothing to warn of");
    namespace.succeeded("plain").unwrap();
    let pod = namespace.json(["get", "pod", "plain"]).unwrap();
    assert_hardened(&pod);
    assert_eq!(pod["spec"]["restartPolicy"], "Never");
    assert_eq!(pod["spec"]["activeDeadlineSeconds"], 3600);
    assert_confined(&status(&namespace, "plain", "plain"));
}

#[test]
fn a_labelled_pod_elsewhere_keeps_its_id_and_its_neighbour_stays_as_it_was() {
    let namespace = namespace("labelled", Sessions::None);
    let image = format!("--image={FIXTURE}");
    namespace
        .run(["run", "session", &image, "--labels=cofferdam.dev/session=mine", "--restart=Never", "--", "status"])
        .unwrap();
    namespace.run(["run", "ordinary", &image, "--restart=Never", "--", "status"]).unwrap();
    namespace.succeeded("session").unwrap();
    namespace.succeeded("ordinary").unwrap();
    let session = namespace.json(["get", "pod", "session"]).unwrap();
    assert_hardened(&session);
    assert_eq!(session["metadata"]["labels"]["cofferdam.dev/session"], "mine");
    assert_confined(&status(&namespace, "session", "session"));

    let ordinary = namespace.json(["get", "pod", "ordinary"]).unwrap();
    assert_eq!(ordinary["spec"]["securityContext"], json!({}));
    assert!(ordinary["metadata"]["annotations"].is_null());
    let ordinary = status(&namespace, "ordinary", "ordinary");
    assert_eq!((&ordinary["uid"], &ordinary["serviceAccountToken"]), (&json!(0), &json!(true)));
}

#[test]
fn two_containers_and_a_native_sidecar_are_hardened_in_their_order() {
    let namespace = namespace("sidecar", Sessions::Enforced);
    let created = namespace
        .create_object(&format!(
            r#"
apiVersion: v1
kind: Pod
metadata: {{name: many}}
spec:
  initContainers:
  - {{name: proxy, image: "{FIXTURE}", restartPolicy: Always, args: [status, then, listen, --port, "9000"],
      startupProbe: {{tcpSocket: {{port: 9000}}, periodSeconds: 1}}}}
  - {{name: prepare, image: "{FIXTURE}", args: [status]}}
  containers:
  - {{name: one, image: "{FIXTURE}", args: [status, then, connect, "127.0.0.1:9000"]}}
  - {{name: two, image: "{FIXTURE}", args: [status]}}
"#
        ))
        .unwrap();
    assert_hardened(&created.pod);
    let names = |list: &str| -> Vec<String> {
        let containers = created.pod["spec"][list].as_array().unwrap();
        containers.iter().map(|container| container["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(
        (names("initContainers"), names("containers")),
        (vec!["proxy".to_owned(), "prepare".to_owned()], vec!["one".to_owned(), "two".to_owned()],)
    );
    assert_eq!(created.pod["spec"]["initContainers"][0]["restartPolicy"], "Always");
    namespace.succeeded("many").unwrap();
    for container in ["proxy", "prepare", "one", "two"] {
        assert_confined(&status(&namespace, "many", container));
    }
}

#[test]
fn what_is_too_much_is_repaired_with_one_warning_per_field() {
    let namespace = namespace("tightened", Sessions::Enforced);
    let created = namespace
        .create_object(&format!(
            r#"
apiVersion: v1
kind: Pod
metadata: {{name: greedy}}
spec:
  containers:
  - name: app
    image: "{FIXTURE}"
    args: [status]
    resources: {{limits: {{memory: 64Gi}}}}
    securityContext:
      privileged: true
      runAsUser: 0
      capabilities: {{add: [SYS_ADMIN]}}
"#
        ))
        .unwrap();
    let expected = [
        ("spec.containers[0].resources.limits.memory", "64Gi", "512Mi"),
        ("spec.containers[0].securityContext.privileged", "true", "false"),
        ("spec.containers[0].securityContext.runAsUser", "0", "1000"),
        ("spec.containers[0].securityContext.capabilities.add", "SYS_ADMIN", ""),
    ];
    for (field, old, new) in expected {
        let warnings: Vec<_> = created.warnings.iter().filter(|warning| warning.contains(field)).collect();
        assert_eq!(warnings.len(), 1, "{field} in {:?}", created.warnings);
        assert!(warnings[0].contains(old) && warnings[0].contains(new), "{}", warnings[0]);
    }
    assert_hardened(&created.pod);
    namespace.succeeded("greedy").unwrap();
    assert_confined(&status(&namespace, "greedy", "app"));
}

#[test]
fn what_cannot_be_repaired_is_refused_with_all_reasons_in_one_answer() {
    let namespace = namespace("refused", Sessions::Enforced);
    let words = namespace
        .refused(&format!(
            r#"
apiVersion: v1
kind: Pod
metadata: {{name: host}}
spec:
  hostNetwork: true
  volumes: [{{name: root, hostPath: {{path: /}}}}]
  containers: [{{name: app, image: "{FIXTURE}", ports: [{{containerPort: 80, hostPort: 80}}]}}]
"#
        ))
        .unwrap();
    for field in ["spec.hostNetwork", "spec.volumes[0].hostPath", "spec.containers[0].ports[0].hostPort"] {
        assert!(words.contains(field), "{field} is not in {words}");
    }
}

#[test]
fn a_user_that_the_image_gives_by_name_gets_a_number() {
    let namespace = namespace("named-user", Sessions::Enforced);
    let image = format!("--image={NAMED_USER}");
    namespace.run(["run", "named", &image, "--", "status"]).unwrap();
    namespace.succeeded("named").unwrap();
    assert_confined(&status(&namespace, "named", "named"));
}

#[test]
fn a_quota_on_every_resource_admits_a_pod_that_names_none() {
    let namespace = namespace("quota", Sessions::Enforced);
    let hard = "--hard=limits.cpu=4,limits.memory=4Gi,requests.cpu=4,requests.memory=4Gi,\
                limits.ephemeral-storage=8Gi,requests.ephemeral-storage=8Gi";
    namespace.run(["create", "quota", "all", hard]).unwrap();
    let image = format!("--image={FIXTURE}");
    namespace.run(["run", "counted", &image, "--", "status"]).unwrap();
    namespace.succeeded("counted").unwrap();
}
