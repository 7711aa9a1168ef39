//! Sessions on nodes of the test's choice.

use cofferdam_e2e::namespace::TestNamespace;
use cofferdam_e2e::stage::Stage;

use crate::session::create;

/// Makes a pod that serves HTTP at its port 3000, and returns once it has its node. Nobody who makes a session may choose
/// one, so all others are closed for that long.
pub(crate) fn create_on(stage: &Stage, namespace: &TestNamespace, pod: &str, node: &str) {
    let nodes = stage.cluster.nodes();
    let others: Vec<&str> = nodes.into_iter().filter(|other| *other != node).collect();
    let close = |order: &'static str| stage.kubectl.run([&[order], &others[..]].concat()).unwrap();
    close("cordon");
    create(namespace, pod);
    namespace.run(["wait", "--for=jsonpath={.spec.nodeName}", "pod", pod, "--timeout=60s"]).unwrap();
    close("uncordon");
    let is_on = namespace.run(["get", "pod", pod, "--output=jsonpath={.spec.nodeName}"]).unwrap();
    assert_eq!(is_on, node);
}
