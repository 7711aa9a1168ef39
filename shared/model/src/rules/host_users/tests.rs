use serde_json::json;

use super::RULE;
use crate::{
    policy::{HostUsers, Profile},
    testing::{apply, apply_with, fields, pod},
};

#[test]
fn a_profile_may_take_the_nodes_users_away() {
    let profile = Profile { host_users: HostUsers::Never, ..Profile::default() };
    for (before, injected, warnings) in [
        (json!(null), &["spec.hostUsers"][..], &[][..]),
        (json!(true), &[], &["spec.hostUsers: true, now false (host-users)"]),
        (json!(false), &[], &[]),
    ] {
        let applied = apply_with(&RULE, &pod(json!({ "hostUsers": before })), &profile).unwrap();
        assert_eq!(applied.spec("/hostUsers"), false);
        assert_eq!(applied.injected(), injected);
        assert_eq!(applied.warnings, warnings);
    }
    let refusal = apply_with(&RULE, &pod(json!({ "hostUsers": "no" })), &profile).err().unwrap();
    assert_eq!(fields(&refusal), ["spec.hostUsers"]);
}

#[test]
fn the_shipped_profile_leaves_it_alone() {
    for before in [json!(null), json!(true), json!(false)] {
        let pod = pod(json!({ "hostUsers": before }));
        assert_eq!(apply(&RULE, &pod).unwrap().pod, pod);
    }
}
