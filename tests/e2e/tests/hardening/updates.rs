//! What becomes of a session after its creation: what loosens it is refused, all else goes on.

use cofferdam_e2e::images::FIXTURE;
use cofferdam_e2e::kubectl::Answer;
use cofferdam_e2e::namespace::{Sessions, TestNamespace};
use serde_json::json;

use crate::session::{assert_hardened, namespace};

fn resize(namespace: &TestNamespace, pod: &str, cpu: &str) -> Answer {
    let container = json!({"name": pod, "resources": {"limits": {"cpu": cpu}}});
    let patch = json!({"spec": {"containers": [container]}}).to_string();
    namespace.ask(["patch", "pod", pod, "--subresource=resize", "--type=strategic", "--patch", &patch], "").unwrap()
}

#[test]
fn b32_a_resize_within_the_ceiling_is_done_and_one_above_it_refused() {
    for (name, sessions, label) in
        [("resized", Sessions::Enforced, "app=x"), ("resized-labelled", Sessions::None, "cofferdam.dev/session=")]
    {
        let namespace = namespace(name, sessions);
        let image = format!("--image={FIXTURE}");
        namespace.run(["run", "pod", &image, "--labels", label, "--", "listen", "--port", "9000"]).unwrap();
        namespace.ready("pod").unwrap();

        let below = resize(&namespace, "pod", "400m");
        assert!(below.success, "{}", below.stderr);
        let above = resize(&namespace, "pod", "2");
        assert!(!above.success, "{}", above.stdout);
        assert!(above.stderr.contains("spec.containers[0].resources.limits") && above.stderr.contains("(resources)"));

        let pod = namespace.json(["get", "pod", "pod"]).unwrap();
        assert_eq!(pod["spec"]["containers"][0]["resources"]["limits"]["cpu"], "400m");
        assert_hardened(&pod);
    }
}

#[test]
fn a_pod_that_asks_for_nothing_is_resized_as_its_owner_likes() {
    let namespace = namespace("resized-ordinary", Sessions::None);
    namespace.run(["run", "pod", &format!("--image={FIXTURE}"), "--", "listen", "--port", "9000"]).unwrap();
    namespace.ready("pod").unwrap();
    let above = resize(&namespace, "pod", "900m");
    assert!(above.success || !above.stderr.contains("Cofferdam"), "{}", above.stderr);
}

#[test]
fn b26_an_update_that_loosens_nothing_passes_and_one_that_does_is_refused() {
    let namespace = namespace("updated", Sessions::Enforced);
    let image = format!("--image={FIXTURE}");
    namespace.run(["run", "pod", &image, "--", "listen", "--port", "9000"]).unwrap();
    namespace.run(["label", "pod", "pod", "team=blue"]).unwrap();
    let finalizer = r#"{"metadata":{"finalizers":["cofferdam.test/held"]}}"#;
    namespace.run(["patch", "pod", "pod", "--type=merge", "--patch", finalizer]).unwrap();
    namespace.run(["patch", "pod", "pod", "--type=merge", "--patch", r#"{"metadata":{"finalizers":null}}"#]).unwrap();
    namespace.run(["set", "image", "pod/pod", "pod=cofferdam.test/fixture-app:1"]).unwrap();
    let pod = namespace.json(["get", "pod", "pod"]).unwrap();
    assert_eq!(pod["spec"]["containers"][0]["image"], "cofferdam.test/fixture-app:1");

    // The image is nobody's business here, but the toleration of every taint is.
    let everywhere = r#"[{"op":"add","path":"/spec/tolerations/-","value":{"operator":"Exists"}}]"#;
    let answer = namespace.ask(["patch", "pod", "pod", "--type=json", "--patch", everywhere], "").unwrap();
    assert!(!answer.success && answer.stderr.contains("spec.tolerations"), "{answer:?}");
    namespace.run(["delete", "pod", "pod", "--grace-period=0", "--force"]).unwrap();
}
