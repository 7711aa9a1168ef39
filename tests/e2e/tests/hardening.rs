//! Pods that disturb nobody, on one cluster: what is admitted, and what the process in the container really has.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::BTreeMap;

use cofferdam_e2e::images::{FIXTURE, NAMED_USER, NGINX, PYTHON, SHELL};
use cofferdam_e2e::namespace::{Sessions, TestNamespace};
use cofferdam_e2e::stage::Stage;
use serde_json::{Value, json};

const MIB: u64 = 1024 * 1024;

fn namespace(name: &str, sessions: Sessions) -> TestNamespace {
    Stage::shared().namespace(name, sessions)
}

/// What the fixture's first step, `status`, says about its process.
fn status(namespace: &TestNamespace, pod: &str, container: &str) -> Value {
    let logs = namespace.logs(pod, container).unwrap();
    serde_json::from_str(logs.lines().next().unwrap()).unwrap()
}

/// Holds for every container of every session: read inside the container, from the kernel.
fn assert_confined(status: &Value) {
    assert_eq!(status["uid"], 1000);
    assert_eq!(status["gid"], 1000);
    for set in ["effective", "permitted", "inheritable", "bounding", "ambient"] {
        assert_eq!(status["capabilities"][set], "0000000000000000", "{set} capabilities");
    }
    assert_eq!(status["seccomp"], 2, "a filter");
    assert_eq!(status["noNewPrivileges"], true);
    assert_eq!(status["rootReadOnly"], true);
    assert_eq!(status["serviceAccountToken"], false);
    assert_eq!(status["memoryLimit"], 512 * MIB);
    let home = status["home"].as_str().unwrap();
    for (path, writable) in [("/", false), ("/tmp", true), (home, true)] {
        assert_eq!(status["writes"][path]["ok"], writable, "writing to {path}: {}", status["writes"][path]);
    }
}

/// Holds for every session as an object.
fn assert_hardened(pod: &Value) {
    let spec = &pod["spec"];
    assert_eq!(spec["automountServiceAccountToken"], false);
    assert_eq!(spec["enableServiceLinks"], false);
    assert_eq!(spec["securityContext"]["runAsNonRoot"], true);
    assert_eq!(spec["securityContext"]["seccompProfile"]["type"], "RuntimeDefault");
    for list in ["containers", "initContainers"] {
        for container in spec[list].as_array().into_iter().flatten() {
            let context = &container["securityContext"];
            assert_eq!(context["allowPrivilegeEscalation"], false, "{container}");
            assert_eq!(context["readOnlyRootFilesystem"], true, "{container}");
            assert_eq!(context["capabilities"]["drop"], json!(["ALL"]), "{container}");
            for resource in ["cpu", "memory", "ephemeral-storage"] {
                assert!(container["resources"]["limits"][resource].is_string(), "{container}");
                assert!(container["resources"]["requests"][resource].is_string(), "{container}");
            }
        }
    }
    assert!(pod["metadata"]["labels"]["cofferdam.dev/session"].is_string());
    assert!(pod["metadata"]["annotations"]["cofferdam.dev/hardened"].is_string());
}

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
fn pods_of_a_deployment_and_of_a_job_are_hardened_and_run() {
    let namespace = namespace("controllers", Sessions::Enforced);
    namespace
        .create_object(&format!(
            r#"
apiVersion: apps/v1
kind: Deployment
metadata: {{name: web}}
spec:
  selector: {{matchLabels: {{app: web}}}}
  template:
    metadata: {{labels: {{app: web}}}}
    spec:
      containers: [{{name: app, image: "{FIXTURE}", args: [status, then, listen, --port, "8080", --http]}}]
"#
        ))
        .unwrap();
    namespace
        .create_object(&format!(
            r#"
apiVersion: batch/v1
kind: Job
metadata: {{name: once}}
spec:
  template:
    metadata: {{labels: {{app: once}}}}
    spec:
      restartPolicy: OnFailure
      containers: [{{name: app, image: "{FIXTURE}", args: [status]}}]
"#
        ))
        .unwrap();
    namespace.run(["rollout", "status", "deployment/web", "--timeout=120s"]).unwrap();
    namespace.run(["wait", "job/once", "--for=condition=Complete", "--timeout=120s"]).unwrap();
    let web = namespace.pod_with("app=web").unwrap();
    let once = namespace.pod_with("app=once").unwrap();
    assert_eq!(web["spec"]["restartPolicy"], "Always", "the controller decides");
    assert_eq!(once["spec"]["restartPolicy"], "OnFailure", "the controller decides");
    for pod in [web, once] {
        assert_hardened(&pod);
        assert_confined(&status(&namespace, pod["metadata"]["name"].as_str().unwrap(), "app"));
    }
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
fn a_controller_that_would_never_find_its_sessions_is_refused() {
    let namespace = namespace("selector", Sessions::None);
    let deployment = |selector: &str| {
        format!(
            r#"
apiVersion: apps/v1
kind: Deployment
metadata: {{name: sessions}}
spec:
  selector: {{matchLabels: {{{selector}}}}}
  template:
    metadata: {{labels: {{app: sessions, cofferdam.dev/session: ""}}}}
    spec:
      containers: [{{name: app, image: "{FIXTURE}", args: [status, then, listen, --port, "8080"]}}]
"#
        )
    };
    let words = namespace.refused(&deployment(r#"cofferdam.dev/session: """#)).unwrap();
    assert!(words.contains("select by another"), "{words}");
    namespace.create_object(&deployment("app: sessions")).unwrap();
    namespace.run(["rollout", "status", "deployment/sessions", "--timeout=120s"]).unwrap();
    assert_hardened(&namespace.pod_with("app=sessions").unwrap());
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

/// What changes when somebody changes an object: its generation, or where it has none its version. (kubectl's own
/// word will not do: it says `configured` of a disruption budget whose patch changes nothing.)
fn versions(stage: &Stage) -> BTreeMap<String, String> {
    let arguments = ["get", "--filename=-", "--output=json"];
    let list: Value = serde_json::from_str(&stage.kubectl.run_with(arguments, &stage.manifests).unwrap()).unwrap();
    let objects = list["items"].as_array().unwrap().iter();
    objects
        .map(|object| {
            let metadata = &object["metadata"];
            let version = metadata.get("generation").unwrap_or(&metadata["resourceVersion"]);
            (format!("{} {}", object["kind"], metadata["name"]), version.to_string())
        })
        .collect()
}

#[test]
fn applying_the_manifests_again_changes_nothing() {
    let stage = Stage::shared();
    let before = versions(stage);
    assert!(before.len() > 10, "{before:?}");
    stage.kubectl.run_with(["apply", "--filename=-"], &stage.manifests).unwrap();
    assert_eq!(versions(stage), before);
}

#[test]
fn nginx_serves_from_a_read_only_root() {
    let namespace = namespace("nginx", Sessions::Enforced);
    namespace.run(["run", "web", &format!("--image={NGINX}"), "--port=8080"]).unwrap();
    namespace.ready("web").unwrap();
    assert_hardened(&namespace.json(["get", "pod", "web"]).unwrap());
    let page = namespace.run(["get", "--raw", "/api/v1/namespaces/nginx/pods/web:8080/proxy/"]).unwrap();
    assert!(page.contains("nginx"), "{page}");
}

#[test]
fn python_runs_and_keeps_its_files_in_tmp_and_home() {
    let namespace = namespace("python", Sessions::Enforced);
    let script = "import pathlib, sqlite3, tempfile\n\
                  tempfile.NamedTemporaryFile().write(b'x')\n\
                  (pathlib.Path.home() / 'notes').write_text('kept')\n\
                  sqlite3.connect(pathlib.Path.home() / 'db').execute('create table t (a)')\n\
                  print((pathlib.Path.home() / 'notes').read_text())";
    namespace.run(["run", "script", &format!("--image={PYTHON}"), "--", "python3", "-c", script]).unwrap();
    namespace.succeeded("script").unwrap();
    assert_eq!(namespace.logs("script", "script").unwrap().trim(), "kept");
}

#[test]
fn a_shell_works_in_its_home_and_cannot_write_elsewhere() {
    let namespace = namespace("shell", Sessions::Enforced);
    let script =
        "cd; echo mine > file; cat file > /tmp/copy; cat /tmp/copy; touch /etc/other 2> /dev/null || echo refused";
    namespace.run(["run", "script", &format!("--image={SHELL}"), "--", "sh", "-c", script]).unwrap();
    namespace.succeeded("script").unwrap();
    let said = namespace.logs("script", "script").unwrap();
    assert_eq!(said, "mine\nrefused\n");
}
