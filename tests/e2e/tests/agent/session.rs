//! Sessions of these tests, and what is asked about them.

use anyhow::{Result, ensure};
use cofferdam_cluster::addon::ENVOY_GATEWAY;
use cofferdam_e2e::images::FIXTURE;
use cofferdam_e2e::namespace::{PATIENCE, TestNamespace};
use cofferdam_e2e::routing::{condition, told};
use cofferdam_e2e::stage::{Setup, Stage};
use cofferdam_e2e::wait::until;

/// What holds of a session that works.
const WORKS: [(&str, &str); 4] = [
    ("Hardened", "True/Hardened"),
    ("PortsReachable", "True/AllReachable"),
    ("RouteProgrammed", "True/Programmed"),
    ("RouteReachable", "True/Reachable"),
];

/// A cluster of one node with Envoy Gateway, and Cofferdam with that policy.
pub(crate) fn stage(name: &str, policy: &str) -> Stage {
    Stage::set_up(&Setup { name, nodes: 1, addons: &[ENVOY_GATEWAY], policy, not_ready_after: None }).unwrap()
}

/// Makes a pod that serves HTTP at its port 3000.
pub(crate) fn create(namespace: &TestNamespace, pod: &str) {
    let image = format!("--image={FIXTURE}");
    let program = ["listen", "--port", "3000", "--http"];
    namespace.run([&["run", pod, &image, "--port=3000", "--"], &program[..]].concat()).unwrap();
}

/// Waits until it is told of a pod that it works, in every respect, and its kubelet knows that too.
pub(crate) fn works(namespace: &TestNamespace, pod: &str) {
    until(&format!("{pod} works"), PATIENCE, || -> Result<()> {
        let found = namespace.json(["get", "pod", pod])?;
        for (name, wanted) in WORKS {
            let is = condition(&found, name);
            ensure!(is == wanted, "{name} is {is:?}");
        }
        let conditions = found["status"]["conditions"].as_array().into_iter().flatten();
        let is_ready = conditions.into_iter().any(|found| found["type"] == "Ready" && found["status"] == "True");
        ensure!(is_ready, "it is not Ready");
        Ok(())
    })
    .unwrap();
}

/// Makes a pod, from the first word to the last: agents do all of their work.
pub(crate) fn goes_all_the_way(namespace: &TestNamespace, pod: &str) {
    create(namespace, pod);
    works(namespace, pod);
}

/// Waits until the message of a condition that is `status/reason` holds a text.
pub(crate) fn says(namespace: &TestNamespace, pod: &str, name: &str, wanted: &str, text: &str) {
    until(&format!("{name} of {pod} says {text:?}"), PATIENCE, || {
        let found = told(namespace, pod, name, wanted)?;
        let message = cofferdam_e2e::routing::message(&found, name);
        ensure!(message.contains(text), "it says {message:?}");
        Ok(())
    })
    .unwrap();
}
