use serde_json::{Value, json};

use super::RULE;
use crate::{
    policy::Profile,
    rules::read_only_root,
    testing::{Applied, apply_all, fields, pod},
};

fn apply(spec: Value) -> Applied {
    apply_all(&[read_only_root::RULE, RULE], &pod(spec), &Profile::default()).unwrap()
}

/// The mounts of the container of this name.
fn mounts(container: &str) -> Value {
    json!([
        { "name": "cofferdam-tmp", "mountPath": "/tmp", "subPath": container },
        { "name": "cofferdam-home", "mountPath": "/home/session" },
    ])
}

#[test]
fn b63_every_container_that_is_made_read_only_gets_tmp_and_home() {
    let applied = apply(json!({
        "containers": [{ "name": "a" }, { "name": "b", "securityContext": { "readOnlyRootFilesystem": false } }],
        "initContainers": [{ "name": "i" }, { "name": "s", "restartPolicy": "Always" }],
        "ephemeralContainers": [{ "name": "e" }],
    }));
    for (container, name) in
        [("containers/0", "a"), ("containers/1", "b"), ("initContainers/0", "i"), ("initContainers/1", "s")]
    {
        assert_eq!(applied.spec(&format!("/{container}/volumeMounts")), &mounts(name), "{container}");
        let env = json!([
            { "name": "TMPDIR", "value": "/tmp" },
            { "name": "CARGO_HOME", "value": "/home/session/.cargo" },
            { "name": "GOPATH", "value": "/home/session/go" },
            { "name": "HOME", "value": "/home/session" },
            { "name": "XDG_CACHE_HOME", "value": "/home/session/.cache" },
            { "name": "npm_config_cache", "value": "/home/session/.npm" },
        ]);
        assert_eq!(applied.spec(&format!("/{container}/env")), &env, "{container}");
    }
    assert_eq!(applied.spec("/ephemeralContainers/0/volumeMounts"), &Value::Null);
    assert_eq!(
        applied.spec("/volumes"),
        &json!([
            { "name": "cofferdam-tmp", "emptyDir": { "sizeLimit": "256Mi" } },
            { "name": "cofferdam-home", "emptyDir": { "sizeLimit": "256Mi" } },
        ])
    );
}

#[test]
fn b61_a_path_that_a_container_mounts_itself_is_not_mounted_again() {
    for mounted in ["/tmp", "/tmp/", "//tmp", "/tmp/.", "/var/../tmp"] {
        let own = json!({ "name": "t", "mountPath": mounted });
        let applied = apply(json!({
            "volumes": [{ "name": "t", "emptyDir": {} }],
            "containers": [{ "name": "a", "volumeMounts": [own] }, { "name": "b" }],
        }));
        let home = &mounts("a")[1];
        assert_eq!(applied.spec("/containers/0/volumeMounts"), &json!([own, home]), "{mounted}");
        assert_eq!(applied.spec("/containers/1/volumeMounts"), &mounts("b"));
    }
}

#[test]
fn nothing_is_mounted_into_a_folder_that_a_container_mounts_itself() {
    let own = json!({ "name": "t", "mountPath": "/home" });
    let applied = apply(json!({ "containers": [{ "name": "a", "volumeMounts": [own] }] }));
    assert_eq!(applied.spec("/containers/0/volumeMounts"), &json!([own, mounts("a")[0]]));
    assert_eq!(applied.spec("/containers/0/env"), &json!([{ "name": "TMPDIR", "value": "/tmp" }]));
    assert_eq!(applied.spec("/volumes").as_array().map(Vec::len), Some(1));
}

#[test]
fn a_path_below_or_beside_ours_is_no_reason_to_leave_it_out() {
    for mounted in ["/tmp/cache", "/tmpfs", "/"] {
        let own = json!({ "name": "t", "mountPath": mounted });
        let applied = apply(json!({ "containers": [{ "name": "a", "volumeMounts": [own] }] }));
        assert_eq!(applied.spec("/containers/0/volumeMounts").as_array().map(Vec::len), Some(3), "{mounted}");
    }
}

#[test]
fn a_home_that_the_author_set_stays() {
    let env = json!([{ "name": "HOME", "value": "/srv" }, { "name": "PASSWORD", "value": "hunter2-xyz" }]);
    let applied = apply(json!({ "containers": [{ "name": "a", "env": env }] }));
    let hardened = applied.spec("/containers/0/env").as_array().unwrap();
    assert_eq!(json!(hardened[..2]), env);
    assert_eq!(hardened.iter().filter(|variable| variable["name"] == "HOME").count(), 1);
    assert_eq!(applied.spec("/containers/0/volumeMounts"), &mounts("a"));
}

#[test]
fn who_asked_for_a_read_only_root_has_said_where_to_write() {
    let spec = json!({ "containers": [{ "name": "a", "securityContext": { "readOnlyRootFilesystem": true } }] });
    assert!(apply(spec).changes.is_empty());
}

#[test]
fn a_variable_that_the_author_set_stays_wherever_its_value_comes_from() {
    let reference = json!({ "name": "HOME", "valueFrom": { "secretKeyRef": { "name": "s", "key": "k" } } });
    let from = json!([{ "configMapRef": { "name": "settings" } }]);
    let applied = apply(json!({
        "containers": [{ "name": "a", "env": [reference] }, { "name": "b", "envFrom": from }],
    }));
    let home = |container: &str| -> Vec<Value> {
        let env = applied.spec(&format!("/containers/{container}/env")).as_array().cloned().unwrap();
        env.into_iter().filter(|variable| variable["name"] == "HOME").collect()
    };
    assert_eq!(home("0"), std::slice::from_ref(&reference));
    // Nobody knows here what the map holds.
    assert_eq!(home("1"), [json!({ "name": "HOME", "value": "/home/session" })]);
    assert_eq!(applied.spec("/containers/1/envFrom"), &from);
}

#[test]
fn a_directory_may_be_each_containers_own_and_name_places_in_it() {
    let mut profile = Profile::default();
    profile.scratch.truncate(1);
    profile.scratch[0].per_container = true;
    profile.scratch[0].env = vec![("TMPDIR".to_owned(), String::new()), ("PIP_CACHE_DIR".to_owned(), "pip".to_owned())];
    let spec = json!({ "containers": [{ "name": "a" }, { "name": "b" }], "initContainers": [{ "name": "i" }] });
    let applied = apply_all(&[read_only_root::RULE, RULE], &pod(spec), &profile).unwrap();
    for (container, name) in [("containers/0", "a"), ("containers/1", "b"), ("initContainers/0", "i")] {
        let own = json!([{ "name": "cofferdam-tmp", "mountPath": "/tmp", "subPath": name }]);
        assert_eq!(applied.spec(&format!("/{container}/volumeMounts")), &own);
        let env = json!([{ "name": "TMPDIR", "value": "/tmp" }, { "name": "PIP_CACHE_DIR", "value": "/tmp/pip" }]);
        assert_eq!(applied.spec(&format!("/{container}/env")), &env);
    }
    assert_eq!(applied.spec("/volumes").as_array().map(Vec::len), Some(1));
    assert!(apply_all(&[read_only_root::RULE, RULE], &applied.pod, &profile).unwrap().changes.is_empty());
}

#[test]
fn a_name_that_would_lead_out_of_the_volume_makes_no_path() {
    let mut profile = Profile::default();
    profile.scratch[0].per_container = true;
    for name in ["..", "/", "a/../..", "A", ""] {
        let pod = pod(json!({ "containers": [{ "name": name }] }));
        let refusal = apply_all(&[read_only_root::RULE, RULE], &pod, &profile).err().unwrap();
        assert_eq!(fields(&refusal), ["spec.containers[0].name"], "{name}");
    }
}
