use serde_json::{Value, json};

use super::*;

/// The two objects, as Kubernetes reads them.
fn objects(policy: &str, sessions: u32) -> (Value, Value) {
    let yaml = render(&Policy::parse("policy.yaml", policy).unwrap(), sessions);
    let objects: Vec<Value> = serde_saphyr::from_multiple(&yaml).unwrap();
    let [quota, limits] = <[Value; 2]>::try_from(objects).unwrap();
    (quota, limits)
}

#[test]
fn d24_every_session_has_room_for_the_largest_pod_that_may_be() {
    let policy = "profiles:\n  default: {}\n  big:\n    resources: {limits: {cpu: '1.5', memory: 100Mi}}\n    \
                  pod: {containers: 2, sum: 3}\n";
    let (quota, limits) = objects(policy, 10);
    // cpu: 1500m × 3 is more than 500m × 4; memory and storage: 512Mi × 4 and 1Gi × 4 are more than the other's.
    let hard = json!({"pods": "10", "limits.cpu": "45", "limits.memory": "20Gi", "limits.ephemeral-storage": "40Gi"});
    assert_eq!(quota["spec"]["hard"], hard);
    let max = json!({"cpu": "4500m", "memory": "2Gi", "ephemeral-storage": "4Gi"});
    assert_eq!(limits["spec"]["limits"], json!([{"type": "Pod", "max": max}]));
}

#[test]
fn what_may_not_be_used_in_the_namespace_does_not_count() {
    let policy = |namespaces: &str| {
        format!(
            "profiles:\n  default: {{}}\n  big: {{allow: {{namespaces: [{namespaces}]}}, pod: {{containers: 8, sum: 8}}}}\n"
        )
    };
    assert_eq!(objects(&policy("other"), 1).0["spec"]["hard"]["limits.cpu"], "2");
    assert_eq!(objects(&policy("cofferdam-*"), 1).0["spec"]["hard"]["limits.cpu"], "4");
}

#[test]
fn it_is_for_the_home_namespace() {
    for (routing, namespace) in [
        ("", "cofferdam-sessions"),
        ("routing: {homeNamespace: play}\n", "play"),
        ("routing: {homeNamespace: ''}\n", "cofferdam-sessions"),
    ] {
        let (quota, limits) = objects(&format!("{routing}profiles: {{default: {{}}}}"), 1);
        assert_eq!(
            (&quota["metadata"]["namespace"], &limits["metadata"]["namespace"]),
            (&json!(namespace), &json!(namespace))
        );
    }
}

#[test]
fn l03_the_arithmetic_stands_beside_the_numbers() {
    let yaml = render(&Policy::built_in(), 32);
    for row in [
        "#                       cpu               memory              ephemeral-storage\n",
        "#   default             500m × 4 = 2      512Mi × 4 = 2Gi     1Gi × 4 = 4Gi\n",
        "#   workspace           500m × 8 = 4      512Mi × 8 = 4Gi     1Gi × 8 = 8Gi\n",
        "#   the largest pod     4                 4Gi                 8Gi\n",
        "#   32 of them          128               128Gi               256Gi\n",
    ] {
        assert!(yaml.contains(row), "{row}{yaml}");
    }
}
