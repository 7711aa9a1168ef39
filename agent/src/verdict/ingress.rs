//! What the status of an Ingress says: whether it has an address, and nothing else. It has no refusal and no generation.

use cofferdam_kubernetes::json::{each, text};
use serde_json::Value;

use super::Finding;
use crate::reason::Reason;

pub(super) fn judge(class: &str, ingress: &Value) -> Finding {
    let addresses = each(&ingress["status"]["loadBalancer"]["ingress"]);
    let mut given = addresses.flat_map(|address| [&address["ip"], &address["hostname"]]);
    if given.any(|address| !text(address).is_empty()) {
        return Finding::Taken;
    }
    let unclaimed = format!(
        "No controller has given the Ingress an address within `routing.deadlineSeconds`. Check that the controller of \
         IngressClass {class} runs, and that it is told which address to publish: some write none otherwise."
    );
    Finding::Waiting {
        told: format!("The controller of IngressClass {class} has not given the Ingress an address yet."),
        overdue: Some((Reason::Unclaimed, unclaimed)),
    }
}
