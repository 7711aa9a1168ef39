//! Pods that a controller makes.

use cofferdam_e2e::images::FIXTURE;
use cofferdam_e2e::namespace::Sessions;

use crate::session::{assert_confined, assert_hardened, namespace, status};

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
    // Its selector is a map itself, and, left out, the labels of its template.
    let controller = |selector: &str| {
        format!(
            r#"
apiVersion: v1
kind: ReplicationController
metadata: {{name: old-fashioned}}
spec:
  replicas: 0
  {selector}
  template:
    metadata: {{labels: {{app: old-fashioned, cofferdam.dev/session: ""}}}}
    spec: {{containers: [{{name: app, image: "{FIXTURE}"}}]}}
"#
        )
    };
    for selector in ["", r#"selector: {cofferdam.dev/session: ""}"#] {
        let words = namespace.refused(&controller(selector)).unwrap();
        assert!(words.contains("select by another"), "{words}");
    }
    namespace.create_object(&controller("selector: {app: old-fashioned}")).unwrap();
    namespace.create_object(&deployment("app: sessions")).unwrap();
    namespace.run(["rollout", "status", "deployment/sessions", "--timeout=120s"]).unwrap();
    assert_hardened(&namespace.pod_with("app=sessions").unwrap());
}
