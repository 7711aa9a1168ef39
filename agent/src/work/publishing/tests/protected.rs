//! Nothing is published in a namespace before it has its `NetworkPolicy`.

use super::*;

/// Where nothing routes, and the network is as this says.
fn unrouted(network: &str) -> Ground {
    let text = format!("{{profiles: {{default: {{}}}}, network: {{mode: {network}}}}}");
    let mut ground = Ground::default();
    (ground.is_known, ground.policy) = (true, Arc::new(Policy::parse("policy.yaml", &text).unwrap()));
    ground
}

#[tokio::test]
async fn nothing_is_made_before_the_namespace_has_its_network_policy() {
    for (layer, ground) in [(gateway(true), routed()), (Layer::Off, unrouted("managed"))] {
        let mut scene = Scene::new("3000", &layer);
        let mut snapshot = Snapshot { is_protected: false, ..scene.api.snapshot(&scene.session) };
        assert_eq!(scene.works(&snapshot, &ground).await, None, "its work is woken when the policy comes");
        assert_eq!(scene.publisher.hindrance(), Some(Hindrance::WaitingForNetworkPolicy));
        assert_eq!(scene.api.asked(), [""; 0], "{layer:?}");
        assert!(!scene.publisher.is_published());
        snapshot.is_protected = true;
        scene.works(&snapshot, &ground).await;
        let asked = scene.api.asked();
        assert!(asked.starts_with(&["POST services/s-2abc".to_owned()]) && asked.len() > 1, "{asked:?}");
        assert_eq!(scene.publisher.hindrance(), None);
    }
}

#[tokio::test]
async fn what_was_published_is_kept_as_it_ought_to_be_while_the_network_policy_is_missing() {
    let mut scene = Scene::published("53/udp", &Layer::Off).await;
    scene.api.edit("endpointslices/s-2abc", |slice| slice["endpoints"] = json!([]));
    let snapshot = Snapshot { is_protected: false, ..scene.api.snapshot(&scene.session) };
    scene.works(&snapshot, &unrouted("managed")).await;
    assert_eq!(scene.api.asked(), ["PATCH endpointslices/s-2abc"]);
    assert_ne!(scene.publisher.hindrance(), Some(Hindrance::WaitingForNetworkPolicy));
}

#[tokio::test]
async fn a_network_policy_that_is_somebody_elses_duty_is_not_waited_for() {
    let mut scene = Scene::new("53/udp", &Layer::Off);
    let snapshot = Snapshot { is_protected: false, ..scene.api.snapshot(&scene.session) };
    scene.works(&snapshot, &unrouted("manual")).await;
    assert_eq!(scene.api.asked(), ["POST services/s-2abc", "PATCH endpointslices/s-2abc"]);
}
