use serde_json::{Value, json};

use super::RULE;
use crate::{
    policy::Profile,
    testing::{apply, apply_with, fields, pod},
};

fn with_volumes(volumes: &Value) -> Value {
    pod(json!({ "containers": [], "volumes": volumes }))
}

#[test]
fn b52_only_listed_types_pass_and_every_other_is_named() {
    let listed = json!([
        { "name": "a", "emptyDir": {} },
        { "name": "b", "configMap": { "name": "c" } },
        { "name": "c", "ephemeral": {} },
        { "name": "d", "image": { "reference": "r" } },
        { "name": "e" },
        { "name": "f", "hostPath": null },
    ]);
    assert!(apply(&RULE, &with_volumes(&listed)).is_ok());
    let other = json!([
        { "name": "h", "hostPath": { "path": "/" } },
        { "name": "n", "nfs": { "server": "s" } },
        { "name": "x", "invented": {} },
        { "name": "y", "emptyDir": {}, "hostPath": { "path": "/" } },
    ]);
    let refusal = apply(&RULE, &with_volumes(&other)).err().unwrap();
    assert_eq!(
        fields(&refusal),
        ["spec.volumes[0].hostPath", "spec.volumes[1].nfs", "spec.volumes[2].invented", "spec.volumes[3].hostPath"]
    );
}

#[test]
fn a_profile_may_list_fewer() {
    let profile = Profile { volume_types: vec!["emptyDir".to_owned()], ..Profile::default() };
    let volumes = json!([{ "name": "c", "csi": { "driver": "d" } }]);
    let refusal = apply_with(&RULE, &with_volumes(&volumes), &profile).err().unwrap();
    let expected = "spec.volumes[0].csi: is no volume type of the profile; it allows emptyDir (volume-types)";
    assert!(refusal.to_string().ends_with(expected), "{refusal}");
    let nothing = Profile { volume_types: Vec::new(), ..profile };
    let refusal = apply_with(&RULE, &with_volumes(&volumes), &nothing).err().unwrap();
    assert!(refusal.to_string().contains("; it allows none ("), "{refusal}");
}

#[test]
fn volumes_that_are_no_list_of_objects_are_refused() {
    for (volumes, field) in [(json!({}), "spec.volumes"), (json!(["a"]), "spec.volumes[0]")] {
        assert_eq!(fields(&apply(&RULE, &with_volumes(&volumes)).err().unwrap()), [field]);
    }
}
