//! What must never leave the rules, whatever came in: said without them, for any JSON, by the default profile's numbers.

use cofferdam_model::quantity::Quantity;
use serde_json::{Value, json};

/// Looks a hardened pod through.
///
/// # Panics
/// It could do what no session may.
pub fn check(pod: &Value) {
    let spec = &pod["spec"];
    assert_eq!(spec["automountServiceAccountToken"], json!(false));
    for shared in ["hostNetwork", "hostPID", "hostIPC", "shareProcessNamespace"] {
        assert_ne!(spec[shared], json!(true), "{shared}");
    }
    assert!(spec["activeDeadlineSeconds"].as_i64().is_some_and(|seconds| seconds <= 3600));
    assert!(spec["nodeName"].as_str().is_none_or(str::is_empty));
    assert_eq!(spec["securityContext"]["runAsNonRoot"], json!(true));
    assert_eq!(spec["securityContext"]["seccompProfile"]["type"], json!("RuntimeDefault"));
    assert!(spec["securityContext"]["runAsUser"].as_i64().is_some_and(|user| user != 0));
    for list in ["containers", "initContainers", "ephemeralContainers"] {
        for container in items(&spec[list]) {
            check_container(container);
            if list != "ephemeralContainers" && spec["resources"]["limits"]["memory"].is_null() {
                assert_at_most("512Mi", &container["resources"]["limits"]["memory"]);
            }
        }
    }
    if !spec["resources"]["limits"]["memory"].is_null() {
        assert_at_most("2Gi", &spec["resources"]["limits"]["memory"]);
    }
    for volume in items(&spec["volumes"]) {
        assert_eq!(volume["hostPath"], Value::Null);
        for source in items(&volume["projected"]["sources"]) {
            let audience = source["serviceAccountToken"]["audience"].as_str();
            assert!(source["serviceAccountToken"].is_null() || audience.is_some_and(|name| !name.is_empty()));
        }
    }
}

fn check_container(container: &Value) {
    let security = &container["securityContext"];
    assert_eq!(security["privileged"], json!(false));
    assert_eq!(security["allowPrivilegeEscalation"], json!(false));
    assert_eq!(security["readOnlyRootFilesystem"], json!(true));
    assert_eq!(security["capabilities"]["drop"], json!(["ALL"]));
    assert_eq!(items(&security["capabilities"]["add"]).count(), 0);
    assert!(security["runAsUser"].is_null() || security["runAsUser"].as_i64().is_some_and(|user| user != 0));
    assert_ne!(security["runAsNonRoot"], json!(false));
    assert!(matches!(security["seccompProfile"]["type"].as_str(), None | Some("RuntimeDefault")));
    assert!(matches!(security["procMount"].as_str(), None | Some("Default")));
    assert!(items(&container["ports"]).all(|port| matches!(port["hostPort"].as_i64(), None | Some(0))));
    assert_eq!(items(&container["volumeDevices"]).count(), 0);
}

fn assert_at_most(ceiling: &str, limit: &Value) {
    let (amount, ceiling) = (Quantity::from_json(limit).ok(), Quantity::parse(ceiling).ok());
    assert!(amount > Some(Quantity::ZERO) && amount <= ceiling, "{limit}");
}

fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}
