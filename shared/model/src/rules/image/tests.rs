use serde_json::{Value, json};

use super::RULE;
use crate::{
    policy::{Images, Policy, Profile},
    rules::Occasion,
    testing::{Applied, apply, apply_on, apply_with, fields, pod},
};

const DIGEST: &str = "@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

fn allowing(patterns: &[&str]) -> Profile {
    let allowed = patterns.iter().map(|&pattern| pattern.to_owned()).collect();
    Profile { images: Images { allowed, digest_only: false, always_pull: false }, ..Profile::default() }
}

fn of(image: &Value) -> Value {
    pod(json!({ "containers": [{ "name": "a", "image": image }] }))
}

fn is_allowed(image: &str, profile: &Profile) -> bool {
    match apply_with(&RULE, &of(&json!(image)), profile) {
        Ok(applied) => {
            assert!(applied.changes.is_empty());
            true
        }
        Err(refusal) => {
            assert_eq!(fields(&refusal), ["spec.containers[0].image"]);
            false
        }
    }
}

#[test]
fn the_shipped_profile_allows_any_image() {
    for image in ["python", "registry.example.com:5000/a/b:1", "sha256:01", "not: an image", "a@b"] {
        assert!(is_allowed(image, &Profile::default()), "{image}");
    }
}

#[test]
fn an_image_is_judged_in_full_however_it_is_spelled() {
    let profile = allowing(&["docker.io/library/python", "registry.example.com:5000/team/*"]);
    for image in [
        "python",
        "python:3.12",
        "library/python",
        "docker.io/python",
        "docker.io/library/python:3",
        "index.docker.io/library/python",
        &format!("python{DIGEST}"),
        &format!("python:3.12{DIGEST}"),
        "registry.example.com:5000/team/app:1",
    ] {
        assert!(is_allowed(image, &profile), "{image}");
    }
    for image in [
        "python3",
        "team/python",
        "docker.io.example.com/library/python",
        "example.com/docker.io/library/python",
        "Docker.io/library/python",
        "registry.example.com/team/app",
        "registry.example.com:5000/team/app/part",
        "registry.example.com:5000/other/app",
        " python",
    ] {
        assert!(!is_allowed(image, &profile), "{image}");
    }
}

#[test]
fn no_tag_is_the_tag_latest() {
    assert!(is_allowed("python", &allowing(&["docker.io/library/python:latest"])));
    assert!(!is_allowed("python", &allowing(&["docker.io/library/python:3.*"])));
}

#[test]
fn the_id_of_an_image_on_the_node_is_no_name_of_the_default_registry() {
    for id in ["sha256:01", &format!("sha256:{}", &DIGEST[8..])] {
        assert!(!is_allowed(id, &allowing(&["docker.io/**"])), "{id}");
    }
}

#[test]
fn every_list_and_image_volumes_are_judged() {
    let spec = json!({
        "containers": [{ "name": "a", "image": "x.example/a" }],
        "initContainers": [{ "name": "i", "image": "x.example/a" }, { "name": "s", "image": "python" }],
        "ephemeralContainers": [{ "name": "e", "image": "x.example/a" }],
        "volumes": [
            { "name": "m", "image": { "reference": "x.example/a" } },
            { "name": "n", "image": { "reference": "python" } },
            { "name": "o", "emptyDir": {} },
        ],
    });
    assert_eq!(
        fields(&apply_with(&RULE, &pod(spec), &allowing(&["docker.io/**"])).err().unwrap()),
        [
            "spec.containers[0].image",
            "spec.initContainers[0].image",
            "spec.ephemeralContainers[0].image",
            "spec.volumes[0].image.reference",
        ]
    );
}

#[test]
fn a_profile_may_ask_for_digests() {
    let mut profile = allowing(&["**"]);
    profile.images.digest_only = true;
    assert!(is_allowed(&format!("python:3{DIGEST}"), &profile));
    for image in ["python", "python:3", "sha256:01"] {
        assert!(!is_allowed(image, &profile), "{image}");
    }
    let volume = json!({ "volumes": [{ "name": "m", "image": { "reference": "python" } }] });
    assert_eq!(fields(&apply_with(&RULE, &pod(volume), &profile).err().unwrap()), ["spec.volumes[0].image.reference"]);
}

#[test]
fn an_empty_list_allows_none_and_a_missing_image_is_the_api_servers_business() {
    assert!(!is_allowed("python", &allowing(&[])));
    for image in [json!(null), json!("")] {
        assert!(apply_with(&RULE, &of(&image), &allowing(&[])).is_ok(), "{image}");
    }
    assert_eq!(fields(&apply(&RULE, &of(&json!(5))).err().unwrap()), ["spec.containers[0].image"]);
}

#[test]
fn a_refusal_spells_out_a_few_patterns_and_never_the_image() {
    let patterns: Vec<String> = ('a'..='k').map(|letter| format!("{letter}.example/**")).collect();
    let patterns: Vec<&str> = patterns.iter().map(String::as_str).collect();
    let text = |patterns: &[&str]| {
        apply_with(&RULE, &of(&json!("hunter2-xyz")), &allowing(patterns)).err().unwrap().to_string()
    };
    assert!(text(&patterns[..2]).contains("it allows a.example/**, b.example/** (image)"));
    assert!(text(&patterns).contains("j.example/** and 1 more"));
    assert!(text(&[]).contains("it allows none"));
    assert!(!text(&patterns).contains("hunter2-xyz"));
}

#[test]
fn where_images_are_always_pulled_a_default_is_replaced_silently_and_never_with_a_warning() {
    let mut profile = allowing(&["**"]);
    let spec = json!({
        "containers": [
            { "name": "a", "image": "x" },
            { "name": "b", "image": "x", "imagePullPolicy": "IfNotPresent" },
            { "name": "c", "image": "x", "imagePullPolicy": "Never" },
            { "name": "d", "image": "x", "imagePullPolicy": "Always" },
        ],
        "ephemeralContainers": [{ "name": "e", "image": "x", "imagePullPolicy": "Never" }],
        "volumes": [{ "name": "m", "image": { "reference": "x" } }, { "name": "o", "emptyDir": {} }],
    });
    let unchanged = apply_with(&RULE, &pod(spec.clone()), &profile).unwrap();
    assert!(unchanged.changes.is_empty());
    profile.images.always_pull = true;
    let applied = apply_with(&RULE, &pod(spec), &profile).unwrap();
    for pointer in ["/containers/0", "/containers/1", "/containers/2", "/containers/3", "/ephemeralContainers/0"] {
        assert_eq!(applied.spec(&format!("{pointer}/imagePullPolicy")), "Always", "{pointer}");
    }
    assert_eq!(applied.spec("/volumes/0/image/pullPolicy"), "Always");
    assert_eq!(applied.spec("/volumes/1"), &json!({ "name": "o", "emptyDir": {} }));
    assert_eq!(
        applied.warnings,
        [
            "spec.containers[2].imagePullPolicy: Never, now Always (image)",
            "spec.ephemeralContainers[0].imagePullPolicy: Never, now Always (image)",
        ]
    );
}

#[test]
fn our_own_init_container_needs_no_pattern_but_only_with_our_image_in_its_place() {
    let ours = Policy::built_in().bodies().image.clone();
    let with = |list: &str, name: &str, image: &str| {
        let spec = json!({ list: [{ "name": name, "image": image }] });
        apply_with(&RULE, &pod(spec), &allowing(&["a.example/**"])).map(|Applied { pod, .. }| pod)
    };
    assert!(with("initContainers", "cofferdam-fetch", &ours).is_ok());
    assert!(with("initContainers", "cofferdam-fetch", "evil").is_err());
    assert!(with("initContainers", "fetch", &ours).is_err());
    assert!(with("containers", "cofferdam-fetch", &ours).is_err());
    // Cofferdam was upgraded since.
    let live = |list: &str| {
        let live = pod(json!({ list: [{ "name": "cofferdam-fetch", "image": "cofferdam:before" }] }));
        apply_on(Occasion::Audit, &RULE, &live, &allowing(&["a.example/**"]))
    };
    assert!(live("initContainers").is_ok());
    assert!(live("containers").is_err());
}
