use serde_json::json;

use super::RULE;
use crate::{
    policy::Profile,
    request::Template,
    rules::Occasion,
    testing::{apply, apply_on, apply_with, fields, pod},
};

fn profile() -> Profile {
    let mut profile = Profile::default();
    profile.scheduling.image_pull_secrets = vec!["one".to_owned(), "two".to_owned()];
    profile
}

#[test]
fn the_profiles_secrets_join_the_authors_once() {
    for (before, after) in [
        (json!(null), json!([{ "name": "one" }, { "name": "two" }])),
        (json!([]), json!([{ "name": "one" }, { "name": "two" }])),
        (json!([{ "name": "mine" }]), json!([{ "name": "mine" }, { "name": "one" }, { "name": "two" }])),
        (
            json!([{ "name": "two" }, { "name": "" }, {}]),
            json!([{ "name": "two" }, { "name": "" }, {}, { "name": "one" }]),
        ),
        (json!([{ "name": "two" }, { "name": "one" }]), json!([{ "name": "two" }, { "name": "one" }])),
    ] {
        let applied = apply_with(&RULE, &pod(json!({ "imagePullSecrets": before })), &profile()).unwrap();
        assert_eq!(applied.spec("/imagePullSecrets"), &after);
        assert!(applied.warnings.is_empty());
        let again = apply_with(&RULE, &applied.pod, &profile()).unwrap();
        assert!(again.changes.is_empty());
    }
}

#[test]
fn without_secrets_of_the_profile_nothing_is_added() {
    let pod = pod(json!({}));
    assert_eq!(apply(&RULE, &pod).unwrap().pod, pod);
}

#[test]
fn a_template_keeps_its_pods_service_accounts_secrets() {
    let pod = pod(json!({}));
    for occasion in [Occasion::Template(Template::RunsForever), Occasion::Template(Template::RunsToCompletion)] {
        assert!(apply_on(occasion, &RULE, &pod, &profile()).unwrap().changes.is_empty());
    }
}

#[test]
fn what_is_no_list_of_secrets_is_refused() {
    let spec = json!({ "imagePullSecrets": { "name": "one" } });
    assert_eq!(fields(&apply_with(&RULE, &pod(spec), &profile()).err().unwrap()), ["spec.imagePullSecrets"]);
}
