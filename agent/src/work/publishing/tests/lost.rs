//! While the node is lost nothing is put right, so what is wrong stays so, and is told.

use super::*;

/// A session whose objects are there.
async fn published() -> (Scene, Ground) {
    let (mut scene, ground) = (Scene::new("3000", &gateway(true)), routed());
    looks(&mut scene, &ground, false).await;
    assert_eq!(looks(&mut scene, &ground, false).await, None);
    assert!(scene.publisher.is_published());
    scene.api.asked();
    (scene, ground)
}

/// What is in the way after a look at all that is there, and after what there is to do.
async fn looks(scene: &mut Scene, ground: &Ground, is_node_lost: bool) -> Option<Hindrance> {
    let snapshot = Snapshot { is_node_lost, ..scene.api.snapshot(&scene.session) };
    scene.works(&snapshot, ground).await;
    scene.publisher.hindrance()
}

#[tokio::test]
async fn what_could_not_be_put_right_is_told_until_it_is_right() {
    let (mut scene, ground) = published().await;
    let right = scene.api.snapshot(&scene.session).live.swap_remove(2);
    assert_eq!(right.kind, Kind::Service);
    scene.api.edit("services/s-2abc", |service| service["spec"]["ports"] = json!([]));
    scene.api.refuse("PATCH services/s-2abc");
    let told = looks(&mut scene, &ground, false).await;
    assert!(matches!(told, Some(Hindrance::PublishFailed(_))), "{told:?}");
    scene.api.asked();
    for is_node_lost in [true, true, false] {
        // However long it takes.
        scene.publisher.resting.values_mut().for_each(|rest| rest.until = Instant::now());
        assert_eq!(looks(&mut scene, &ground, is_node_lost).await, told, "{is_node_lost}");
        assert_eq!(scene.api.asked().is_empty(), is_node_lost);
        assert!(!scene.publisher.is_published());
    }
    assert_eq!(looks(&mut scene, &ground, true).await, told);
    scene.api.put("services/s-2abc", right.object);
    assert_eq!(looks(&mut scene, &ground, true).await, None, "somebody has put it right");
    assert!(!scene.publisher.is_published(), "that is said once the node is back");
    assert_eq!(looks(&mut scene, &ground, false).await, None);
    assert!(scene.publisher.is_published());
}

#[tokio::test]
async fn what_others_undo_again_and_again_is_told_until_it_is_right() {
    let (mut scene, ground) = published().await;
    let route = "httproutes/s-2abc-3000";
    let right = scene.api.snapshot(&scene.session).live.swap_remove(1);
    assert_eq!(right.kind, Kind::HttpRoute);
    let breaks = |scene: &Scene| scene.api.edit(route, |route| route["spec"]["hostnames"] = json!([]));
    while scene.publisher.hindrance().is_none() {
        breaks(&scene);
        looks(&mut scene, &ground, false).await;
    }
    breaks(&scene);
    let told = looks(&mut scene, &ground, false).await;
    assert!(matches!(&told, Some(Hindrance::PublishDelayed(what)) if what.starts_with(route)), "{told:?}");
    // By now it would be its turn.
    scene.publisher.written.values_mut().for_each(|written| written.corrections = Pace::new(1, PATIENCE));
    scene.api.asked();
    for _ in 0..2 {
        assert_eq!(looks(&mut scene, &ground, true).await, told);
    }
    assert_eq!(scene.api.asked(), [""; 0]);
    scene.api.put(route, right.object);
    assert_eq!(looks(&mut scene, &ground, true).await, None);
}

#[tokio::test]
async fn what_is_being_deleted_is_told_as_long_as_it_is_there() {
    let (mut scene, ground) = published().await;
    scene.api.edit("services/s-2abc", |service| {
        service["metadata"]["finalizers"] = json!(["example.com/keep"]);
        service["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    });
    for _ in 0..2 {
        let told = looks(&mut scene, &ground, true).await;
        assert!(matches!(told, Some(Hindrance::Terminating { .. })), "{told:?}");
    }
    scene.api.remove("services/s-2abc");
    assert_eq!(looks(&mut scene, &ground, true).await, None, "without it nothing leads anywhere");
    assert_eq!(scene.api.asked(), [""; 0]);
}

#[tokio::test]
async fn an_id_that_another_has_stays_the_others() {
    let ((mut scene, holder), ground) = (waits_for_another().await, routed());
    let live = scene.api.snapshot(&scene.session).live;
    scene.api.asked();
    for live in [&live[..], &[]] {
        let lost = Snapshot { is_node_lost: true, live: live.to_vec(), ..scene.api.snapshot(&scene.session) };
        scene.works(&lost, &ground).await;
        let told = scene.publisher.hindrance();
        assert_eq!(told, Some(Hindrance::HostTaken { pod: Some(holder.name.clone()) }));
    }
    assert_eq!(scene.api.asked(), [""; 0]);
}

#[tokio::test]
async fn what_no_longer_keeps_a_session_from_being_made_is_not_told_any_more() {
    let (mut scene, ground) = (Scene::new("3000", &gateway(true)), routed());
    for (is_protected, told) in [(false, Some(Hindrance::WaitingForNetworkPolicy)), (true, None)] {
        let lost = Snapshot { is_node_lost: true, is_protected, ..scene.api.snapshot(&scene.session) };
        scene.works(&lost, &ground).await;
        assert_eq!(scene.publisher.hindrance(), told);
        assert_eq!(scene.api.asked(), [""; 0]);
    }
}
