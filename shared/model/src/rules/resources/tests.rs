use serde_json::{Value, json};

use super::RULE;
use crate::{
    policy::{DefaultRequest, Profile, Requests},
    quantity::Quantity,
    testing::{Applied, apply, apply_with, fields, pod},
};

fn full() -> Value {
    json!({
        "limits": { "cpu": "500m", "memory": "512Mi", "ephemeral-storage": "1Gi" },
        "requests": { "cpu": "50m", "memory": "512Mi", "ephemeral-storage": "64Mi" },
    })
}

fn with(resources: &Value) -> Value {
    pod(json!({ "containers": [{ "name": "a", "resources": resources }] }))
}

fn of(resources: &Value) -> Applied {
    apply(&RULE, &with(resources)).unwrap()
}

/// Two amounts of one container: `limits.memory` and `requests.memory`, say.
fn amounts<'a>(applied: &'a Applied, resource: &str) -> (&'a Value, &'a Value) {
    let resources = applied.spec("/containers/0/resources");
    (&resources["limits"][resource], &resources["requests"][resource])
}

#[test]
fn b74_every_container_and_init_container_gets_all_limits_and_requests() {
    let applied = apply(
        &RULE,
        &pod(json!({
            "containers": [{ "name": "a" }],
            "initContainers": [{ "name": "i" }, { "name": "s", "restartPolicy": "Always" }],
            "ephemeralContainers": [{ "name": "e" }],
        })),
    )
    .unwrap();
    for container in ["containers/0", "initContainers/0", "initContainers/1"] {
        assert_eq!(applied.spec(&format!("/{container}/resources")), &full(), "{container}");
    }
    // The API forbids them there.
    assert_eq!(applied.spec("/ephemeralContainers/0"), &json!({ "name": "e" }));
    assert!(applied.warnings.is_empty());
}

#[test]
fn a_limit_above_the_ceiling_is_lowered_and_a_request_that_the_server_made_of_it_follows_silently() {
    let applied = of(&json!({ "limits": { "memory": "64Gi" }, "requests": { "memory": "64Gi" } }));
    assert_eq!(amounts(&applied, "memory"), (&json!("512Mi"), &json!("512Mi")));
    assert_eq!(applied.warnings, ["spec.containers[0].resources.limits.memory: 64Gi, now 512Mi (resources)"]);
}

#[test]
fn b72_a_request_above_its_limit_never_leaves_us() {
    let applied = of(&json!({ "requests": { "memory": "2Gi", "cpu": 3, "ephemeral-storage": "1Mi" } }));
    assert_eq!(amounts(&applied, "memory"), (&json!("512Mi"), &json!("512Mi")));
    assert_eq!(amounts(&applied, "cpu"), (&json!("500m"), &json!("500m")));
    assert_eq!(amounts(&applied, "ephemeral-storage"), (&json!("1Gi"), &json!("1Mi")));
    assert_eq!(
        applied.warnings,
        [
            "spec.containers[0].resources.requests.cpu: 3, now 500m (resources)",
            "spec.containers[0].resources.requests.memory: 2Gi, now 512Mi (resources)",
        ]
    );
}

#[test]
fn a_default_request_follows_a_limit_below_it() {
    let applied = of(&json!({ "limits": { "cpu": "20m", "memory": "100Mi", "ephemeral-storage": "32Mi" } }));
    assert_eq!(amounts(&applied, "cpu"), (&json!("20m"), &json!("20m")));
    assert_eq!(amounts(&applied, "memory"), (&json!("100Mi"), &json!("100Mi")));
    assert_eq!(amounts(&applied, "ephemeral-storage"), (&json!("32Mi"), &json!("32Mi")));
    assert!(applied.warnings.is_empty());
}

#[test]
fn a_profile_may_request_as_much_as_the_limits() {
    let mut profile = Profile::default();
    profile.resources.requests = Requests {
        cpu: DefaultRequest::Limit,
        memory: DefaultRequest::Limit,
        ephemeral_storage: DefaultRequest::Limit,
    };
    let applied = apply_with(&RULE, &with(&json!({})), &profile).unwrap();
    let resources = applied.spec("/containers/0/resources");
    assert_eq!(resources["limits"], resources["requests"]);
}

#[test]
fn b68_odd_but_legal_spellings_within_the_ceiling_stay_as_they_are() {
    for memory in [json!("500k"), json!("268435456000m"), json!("1e8"), json!(1_000_000), json!("0.25Gi")] {
        let resources = json!({ "limits": { "memory": memory }, "requests": { "memory": memory } });
        let applied = of(&resources);
        assert_eq!(amounts(&applied, "memory"), (&memory, &memory));
    }
}

#[test]
fn b70_thousandths_of_a_byte_are_compared_exactly() {
    let pod = with(&json!({ "limits": { "memory": "2254857830400m" } }));
    for (ceiling, warnings) in [
        ("3Gi", &[][..]),
        ("2Gi", &["spec.containers[0].resources.limits.memory: 2254857830400m, now 2Gi (resources)"]),
    ] {
        let mut profile = Profile::default();
        profile.resources.limits.memory = Quantity::parse(ceiling).unwrap();
        assert_eq!(apply_with(&RULE, &pod, &profile).unwrap().warnings, warnings);
    }
}

#[test]
fn zero_means_unlimited_to_a_kubelet_and_counts_as_missing() {
    for zero in [json!("0"), json!(0), json!("0Mi"), json!(null)] {
        let resources = json!({ "limits": { "cpu": zero, "memory": zero }, "requests": { "cpu": zero } });
        let applied = of(&resources);
        assert_eq!(applied.spec("/containers/0/resources"), &full(), "{zero}");
        assert!(applied.warnings.is_empty());
    }
}

#[test]
fn garbage_and_negative_amounts_are_refused_by_their_path() {
    for bad in ["lots", "-1", "1K", "", "-0.5Gi", "1 Gi"] {
        for kind in ["limits", "requests"] {
            let resources = json!({ kind: { "cpu": bad } });
            let refusal = apply(&RULE, &with(&resources)).err().unwrap();
            assert_eq!(fields(&refusal), [format!("spec.containers[0].resources.{kind}.cpu")], "{bad}");
        }
    }
    let refusal = apply(&RULE, &with(&json!({ "limits": [] }))).err().unwrap();
    assert_eq!(fields(&refusal), ["spec.containers[0].resources.limits"]);
}

#[test]
fn other_resources_are_refused_unless_the_profile_lists_them() {
    let resources = json!({
        "limits": { "example.com/gpu": "1", "hugepages-2Mi": "4Mi" }, "claims": [{ "name": "c" }],
    });
    let mut pod = with(&resources);
    pod["spec"]["resourceClaims"] = json!([{ "name": "c" }]);
    assert_eq!(
        fields(&apply(&RULE, &pod).err().unwrap()),
        [
            "spec.resourceClaims",
            "spec.containers[0].resources.limits[example.com/gpu]",
            "spec.containers[0].resources.limits.hugepages-2Mi",
            "spec.containers[0].resources.claims",
        ]
    );
    let mut profile = Profile::default();
    profile.resources.extended = vec!["example.com/gpu".to_owned(), "hugepages-2Mi".to_owned()];
    profile.resources.claims = true;
    assert!(apply_with(&RULE, &pod, &profile).is_ok());
    pod["spec"]["containers"][0]["resources"]["limits"]["example.com/gpu"] = json!("some");
    assert_eq!(
        fields(&apply_with(&RULE, &pod, &profile).err().unwrap()),
        ["spec.containers[0].resources.limits[example.com/gpu]"]
    );
}

#[test]
fn what_the_pod_sets_for_all_is_not_injected_into_each() {
    let applied = apply(
        &RULE,
        &pod(json!({
            "resources": { "limits": { "memory": "64Gi" }, "requests": { "cpu": "1" } },
            "containers": [{ "name": "a" }, { "name": "b", "resources": { "limits": { "cpu": "4" } } }],
        })),
    )
    .unwrap();
    assert_eq!(
        applied.spec("/resources"),
        &json!({ "limits": { "memory": "2Gi", "cpu": "1" }, "requests": { "cpu": "1" } })
    );
    let storage = json!({ "limits": { "ephemeral-storage": "1Gi" }, "requests": { "ephemeral-storage": "64Mi" } });
    assert_eq!(applied.spec("/containers/0/resources"), &storage);
    assert_eq!(applied.spec("/containers/1/resources/limits/cpu"), &json!("500m"));
    assert_eq!(
        applied.warnings,
        [
            "spec.containers[1].resources.limits.cpu: 4, now 500m (resources)",
            "spec.resources.limits.memory: 64Gi, now 2Gi (resources)",
        ]
    );
}

#[test]
fn more_containers_than_may_run_together_are_refused() {
    let containers = |count: usize| vec![json!({ "name": "c" }); count];
    let sidecar = json!({ "name": "s", "restartPolicy": "Always" });
    let init = json!({ "name": "i" });
    for (own, init, is_allowed) in [
        (4, json!([init, init]), true),
        (3, json!([init, sidecar]), true),
        (5, json!([]), false),
        (4, json!([sidecar]), false),
    ] {
        let verdict = apply(&RULE, &pod(json!({ "containers": containers(own), "initContainers": init })));
        assert_eq!(verdict.is_ok(), is_allowed, "{own} {init}");
        if let Err(refusal) = verdict {
            assert_eq!(fields(&refusal), ["spec.containers"]);
        }
    }
}

#[test]
fn a_resource_that_the_pod_only_requests_is_limited_to_what_its_containers_would_get() {
    let plain = json!({ "name": "c" });
    for (containers, request, limit) in [
        (vec![plain.clone()], "10m", "500m"),
        (vec![plain.clone()], "1", "1"),
        (vec![plain.clone(); 3], "10m", "1500m"),
        (vec![plain.clone(); 3], "64", "2"),
        (vec![plain.clone()], "0", "500m"),
    ] {
        let spec = json!({ "containers": containers, "resources": { "requests": { "cpu": request } } });
        let applied = apply(&RULE, &pod(spec)).unwrap();
        assert_eq!(applied.spec("/resources/limits/cpu"), limit, "{request}");
        assert_eq!(applied.spec("/containers/0/resources/limits/cpu"), &json!(null));
        assert!(apply(&RULE, &applied.pod).unwrap().changes.is_empty());
    }
}

#[test]
fn what_the_api_server_makes_of_the_containers_requests_is_nothing_that_the_pod_asked_for() {
    let spec =
        json!({ "containers": [{ "name": "a" }, { "name": "b" }], "resources": { "limits": { "memory": "1Gi" } } });
    let mut hardened = apply(&RULE, &pod(spec)).unwrap().pod;
    hardened["spec"]["resources"]["requests"] = json!({ "cpu": "100m", "memory": "1Gi" });
    assert!(apply(&RULE, &hardened).unwrap().changes.is_empty());
    // Since 1.36 the limits come to be in the same way.
    hardened["spec"]["resources"]["limits"]["cpu"] = json!("1");
    assert!(apply(&RULE, &hardened).unwrap().changes.is_empty());
    // Another webhook's container has nothing of its own.
    hardened["spec"]["resources"]["limits"]["cpu"] = json!(null);
    hardened["spec"]["containers"].as_array_mut().unwrap().push(json!({ "name": "c" }));
    let changed = apply(&RULE, &hardened).unwrap();
    assert_eq!(changed.spec("/resources/limits/cpu"), "1500m");
    assert_eq!(changed.spec("/containers/2/resources/limits"), &json!({ "ephemeral-storage": "1Gi" }));
}

#[test]
fn a_zero_at_pod_level_is_no_limit_there_either() {
    for kind in ["limits", "requests"] {
        let spec = json!({ "containers": [{ "name": "a" }], "resources": { kind: { "memory": 0 } } });
        assert_eq!(apply(&RULE, &pod(spec)).unwrap().spec("/resources/limits/memory"), "512Mi", "{kind}");
    }
}

#[test]
fn a_pod_without_containers_is_limited_as_if_it_had_one() {
    let applied = apply(&RULE, &pod(json!({ "resources": { "limits": { "memory": "0" } } }))).unwrap();
    assert_eq!(applied.spec("/resources/limits/memory"), "512Mi");
}

#[test]
fn other_resources_at_pod_level_are_refused_unless_listed() {
    let spec = json!({ "resources": { "limits": { "hugepages-2Mi": "4Mi" }, "claims": [{ "name": "c" }] } });
    let pod = pod(spec);
    assert_eq!(
        fields(&apply(&RULE, &pod).err().unwrap()),
        ["spec.resources.limits.hugepages-2Mi", "spec.resources.claims"]
    );
    let mut profile = Profile::default();
    profile.resources.extended = vec!["hugepages-2Mi".to_owned()];
    profile.resources.claims = true;
    assert!(apply_with(&RULE, &pod, &profile).is_ok());
}
