use serde_json::{Value, json};

use super::RULE;
use crate::{
    policy::{Allow, Profile},
    testing::{apply_with, pod},
};

fn allow(namespaces: &[&str], users: &[&str], groups: &[&str]) -> Profile {
    let owned = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect();
    let allow = Allow { namespaces: owned(namespaces), users: owned(users), groups: owned(groups) };
    Profile { allow, ..Profile::default() }
}

fn says(profile: &Profile, pod: &Value) -> Option<String> {
    apply_with(&RULE, pod, profile).err().map(|refusal| refusal.to_string())
}

#[test]
fn a_namespace_or_a_user_that_is_not_listed_is_refused_in_those_words() {
    let bare = pod(json!({ "containers": [] }));
    assert_eq!(says(&Profile::default(), &bare), None);
    assert_eq!(says(&allow(&["cofferdam-*"], &[], &[]), &bare), None);
    assert!(says(&allow(&["team-*", "other"], &[], &[]), &bare).unwrap().contains("in this namespace"));
    assert_eq!(says(&allow(&[], &["jane"], &[]), &bare), None);
    assert!(says(&allow(&[], &["joe"], &["admins"]), &bare).unwrap().contains("by you"));
    assert!(says(&allow(&["*"], &["joe"], &[]), &bare).unwrap().contains("by you"));
}

#[test]
fn for_a_controllers_pod_only_the_namespace_counts() {
    let mut owned = pod(json!({ "containers": [] }));
    owned["metadata"]["ownerReferences"] =
        json!([{ "apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "u", "controller": true }]);
    assert_eq!(says(&allow(&["cofferdam-sessions"], &[], &[]), &owned), None);
    let words = says(&allow(&[], &["jane"], &[]), &owned).unwrap();
    assert!(words.contains("a pod that a controller makes"), "{words}");
}
