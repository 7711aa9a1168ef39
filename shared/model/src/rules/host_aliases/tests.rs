use serde_json::json;

use super::RULE;
use crate::{
    policy::Profile,
    testing::{apply, apply_with, fields, pod},
};

#[test]
fn a_profile_may_forbid_them() {
    let profile = Profile { host_aliases: false, ..Profile::default() };
    let aliases = json!([{ "ip": "10.0.0.1", "hostnames": ["hunter2-xyz"] }]);
    let pod_with = |aliases| pod(json!({ "hostAliases": aliases }));
    let refusal = apply_with(&RULE, &pod_with(aliases.clone()), &profile).err().unwrap();
    assert_eq!(fields(&refusal), ["spec.hostAliases"]);
    assert!(!refusal.to_string().contains("hunter2-xyz"));
    for none in [json!([]), json!(null)] {
        assert!(apply_with(&RULE, &pod_with(none), &profile).is_ok());
    }
    assert_eq!(fields(&apply_with(&RULE, &pod_with(json!({})), &profile).err().unwrap()), ["spec.hostAliases"]);
    assert!(apply(&RULE, &pod_with(aliases)).is_ok());
}
