use std::sync::Arc;

use cofferdam_kubernetes::Class;
use cofferdam_model::policy::Policy;
use serde_json::json;

use super::*;
use crate::desired::testing::{NODE, gateway, ingress, objects, routing, session};
use crate::layer::LayerError;
use crate::session::{Phase, Session};
use crate::work::testing::{Api, seen};

mod lost;
mod protected;

/// A session whose objects are written to an API server of the test's.
struct Scene {
    api: Api,
    crew: Crew,
    publisher: Publisher,
    session: Session,
    wanted: Vec<Wanted>,
}

impl Scene {
    fn new(ports: &str, layer: &Layer) -> Self {
        let (api, session) = (Api::default(), session(ports));
        let wanted = objects(&session, layer);
        Self { crew: api.crew(), api, publisher: Publisher::default(), session, wanted }
    }

    /// One whose objects are there.
    async fn published(ports: &str, layer: &Layer) -> Self {
        let mut scene = Self::new(ports, layer);
        assert_eq!(scene.attempt().await, Attempt::Done);
        scene.api.asked();
        scene
    }

    async fn attempt(&mut self) -> Attempt {
        let live = self.api.snapshot(&self.session).live;
        self.attempt_with(&live).await
    }

    /// With what the agent knows of what is there.
    async fn attempt_with(&mut self, live: &[Live]) -> Attempt {
        let Due { plan, rest, .. } = self.publisher.due(&self.crew, &self.session, live, &self.wanted, false);
        let task = Task { plan, version: "v1".to_owned() };
        rest.or(self.publisher.make_so(&self.crew, &self.session, task).await)
    }

    /// Looks, does what there is to do, and looks again; gives when to look once more.
    async fn works(&mut self, snapshot: &Snapshot, ground: &Ground) -> Option<Instant> {
        let mut stages = Stages::default();
        if let (Some(task), _) = self.publisher.look(&self.crew, snapshot, ground, &mut stages) {
            self.publisher.carry_out(&self.crew, &self.session, task).await;
        }
        let (task, next) = self.publisher.look(&self.crew, snapshot, ground, &mut stages);
        // The snapshot is as old as before, so what was written seems missing.
        if task.is_some() { None } else { next }
    }

    async fn hindrance(&mut self) -> Option<Hindrance> {
        match self.attempt().await {
            Attempt::Hindered(hindrance, _) => Some(hindrance),
            Attempt::Done | Attempt::Taken(_) | Attempt::Resting(_) | Attempt::Failed(..) => None,
        }
    }
}

/// Where a Gateway routes.
fn routed() -> Ground {
    let text = "{profiles: {default: {}}, routing: {baseDomain: sessions.example.test, gateway: {name: sessions, namespace: gateway}}}";
    let policy = Arc::new(Policy::parse("policy.yaml", text).unwrap());
    let mut ground = Ground::default();
    (ground.is_known, ground.policy, ground.layer) = (true, policy, Ok(gateway(true)));
    ground
}

fn order(object: &mut serde_json::Value) {
    object["metadata"]["annotations"]["nginx.ingress.kubernetes.io/permanent-redirect"] = json!("https://x.test");
}

#[tokio::test]
async fn an_order_that_others_give_to_a_controller_means_making_the_route_anew_at_once() {
    let mut scene = Scene::published("3000", &ingress()).await;
    scene.api.edit("ingresses/s-2abc", order);
    assert_eq!(scene.attempt().await, Attempt::Done);
    assert_eq!(
        scene.api.asked(),
        ["PATCH ingresses/s-2abc", "DELETE ingresses/s-2abc", "PATCH ingresses/s-2abc"],
        "what an apply cannot take away is made anew without waiting for somebody to wake us"
    );
    assert_eq!(scene.attempt().await, Attempt::Done);
    assert_eq!(scene.api.asked(), [""; 0]);
}

#[tokio::test]
async fn what_the_cluster_itself_writes_into_a_new_route_is_named() {
    let mut scene = Scene::new("3000", &ingress());
    scene.api.annotate("example.com/cost");
    let hindrance = scene.hindrance().await;
    let Some(Hindrance::PublishFailed(why)) = hindrance else { panic!("{hindrance:?}") };
    assert!(why.starts_with("ingresses/s-2abc: ") && why.contains("metadata.annotations.example.com/cost"), "{why}");
}

#[tokio::test]
async fn what_a_finalizer_keeps_is_told_and_holds_up_nothing_else() {
    let mut scene = Scene::published("3000,3001", &gateway(true)).await;
    let keep = |object: &mut serde_json::Value| object["metadata"]["finalizers"] = json!(["example.com/keep"]);
    scene.api.edit("httproutes/s-2abc-3000", keep);
    scene.api.edit("httproutes/s-2abc-3000", order);
    scene.api.edit("httproutes/s-2abc-3001", |object| object["spec"]["hostnames"] = json!([]));
    let told = Hindrance::Terminating {
        object: "httproutes/s-2abc-3000".to_owned(),
        finalizers: vec!["example.com/keep".to_owned()],
    };
    assert_eq!(scene.hindrance().await, Some(told.clone()));
    assert!(scene.api.asked().contains(&"PATCH httproutes/s-2abc-3001".to_owned()));
    // It is told as long as it is so, and nothing is done about it.
    scene.api.edit("endpointslices/s-2abc", |object| object["endpoints"] = json!([]));
    assert_eq!(scene.hindrance().await, Some(told));
    assert_eq!(scene.api.asked(), ["PATCH endpointslices/s-2abc"]);
    scene.api.remove("httproutes/s-2abc-3000");
    assert_eq!(scene.attempt().await, Attempt::Done);
    assert_eq!(scene.api.asked(), ["PATCH httproutes/s-2abc-3000"]);
}

#[tokio::test]
async fn another_pods_claim_that_does_not_go_is_told_with_what_keeps_it() {
    let mut scene = Scene::published("3000", &gateway(true)).await;
    scene.session.uid = "other".to_owned();
    scene.wanted = objects(&scene.session, &gateway(true));
    scene.api.edit("services/s-2abc", |service| {
        service["metadata"]["finalizers"] = json!(["example.com/keep"]);
        service["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    });
    let finalizers = vec!["example.com/keep".to_owned()];
    let told = Some(Hindrance::Terminating { object: "services/s-2abc".to_owned(), finalizers });
    assert_eq!(scene.hindrance().await, told);
    assert_eq!(scene.api.asked(), [""; 0]);
    // The same where the agent did not know of the Service.
    let mut blind = scene.api.snapshot(&scene.session);
    blind.live.clear();
    let attempt = scene.attempt_with(&blind.live).await;
    assert!(matches!(attempt, Attempt::Hindered(hindrance, _) if Some(&hindrance) == told.as_ref()));
}

#[tokio::test]
async fn a_delete_that_fails_stops_no_write_and_keeps_the_claim() {
    let mut scene = Scene::published("3000,3001", &gateway(true)).await;
    scene.api.refuse("DELETE httproutes/s-2abc-3001");
    scene.session = session("3000");
    scene.wanted = objects(&scene.session, &gateway(true));
    assert!(matches!(scene.attempt().await, Attempt::Failed((Kind::HttpRoute, _), _)));
    let asked = scene.api.asked();
    assert!(asked.contains(&"PATCH endpointslices/s-2abc".to_owned()), "{asked:?}");

    scene.publisher.resting.clear();
    scene.wanted.clear();
    assert!(matches!(scene.attempt().await, Attempt::Failed((Kind::HttpRoute, _), _)));
    let asked = scene.api.asked();
    assert!(asked.contains(&"DELETE endpointslices/s-2abc".to_owned()), "{asked:?}");
    assert!(!asked.contains(&"DELETE services/s-2abc".to_owned()), "{asked:?}");
}

#[tokio::test]
async fn corrections_of_every_object_come_slower_and_are_told_then() {
    for object in ["httproutes/s-2abc-3000", "services/s-2abc"] {
        let mut scene = Scene::published("3000", &gateway(true)).await;
        let mut corrected = 0;
        let told = loop {
            match object {
                "services/s-2abc" => scene.api.remove(object),
                _ => scene.api.edit(object, order),
            }
            match scene.attempt().await {
                Attempt::Done => corrected += 1,
                Attempt::Hindered(told, _) => break told,
                other => panic!("{other:?}"),
            }
            assert!(corrected < 100, "{object} is corrected as often as somebody likes");
        };
        assert!(corrected >= 3, "{object} was corrected {corrected} times");
        assert!(matches!(&told, Hindrance::PublishDelayed(what) if what.starts_with(object)), "{told:?}");
    }
}

#[tokio::test]
async fn what_was_refused_rests_whatever_wakes_us_and_all_else_goes_on() {
    let mut scene = Scene::new("3000,3001", &gateway(true));
    scene.api.refuse("PATCH httproutes/s-2abc-3000");
    scene.api.refuse("DELETE httproutes/s-2abc-3001");
    assert!(matches!(scene.attempt().await, Attempt::Failed((Kind::HttpRoute, _), _)));
    scene.api.asked();
    assert!(matches!(scene.attempt().await, Attempt::Resting(_)));
    assert_eq!(scene.api.asked(), [""; 0]);
    scene.api.edit("endpointslices/s-2abc", |object| object["endpoints"] = json!([]));
    assert!(matches!(scene.attempt().await, Attempt::Resting(_)));
    assert_eq!(scene.api.asked(), ["PATCH endpointslices/s-2abc"]);
    scene.wanted.clear();
    assert!(matches!(scene.attempt().await, Attempt::Failed((Kind::HttpRoute, _), _)));
    assert_eq!(scene.api.asked(), ["DELETE httproutes/s-2abc-3001", "DELETE endpointslices/s-2abc"]);
    assert!(matches!(scene.attempt().await, Attempt::Resting(_)));
    assert_eq!(scene.api.asked(), [""; 0], "neither is the claim given up while a route is left");
    scene.publisher.resting.clear();
    assert!(matches!(scene.attempt().await, Attempt::Failed((Kind::HttpRoute, _), _)));
    assert_eq!(scene.api.asked(), ["DELETE httproutes/s-2abc-3001"]);
}

#[tokio::test]
async fn a_name_that_a_stranger_has_is_not_asked_for_each_time_that_somebody_touches_the_pod() {
    let mut scene = Scene::new("3000", &gateway(true));
    scene.api.put("services/s-2abc", json!({"metadata": {"uid": "theirs"}}));
    let mut blind = scene.api.snapshot(&scene.session);
    blind.live.clear();
    let ground = routed();
    for _ in 0..3 {
        scene.works(&blind, &ground).await;
        assert_eq!(scene.publisher.hindrance(), Some(Hindrance::NameTaken));
    }
    assert_eq!((scene.api.asked(), scene.api.reads()), (vec!["POST services/s-2abc".to_owned()], 1));
}

#[tokio::test]
async fn of_a_session_that_is_released_nothing_stays() {
    let layer = gateway(true);
    let mut scene = Scene::published("3000", &layer).await;
    scene.session.phase = Phase::Released;
    scene.wanted = objects(&scene.session, &layer);
    assert_eq!(scene.attempt().await, Attempt::Done);
    assert_eq!(
        scene.api.asked(),
        ["DELETE httproutes/s-2abc-3000", "DELETE endpointslices/s-2abc", "DELETE services/s-2abc"]
    );
}

#[tokio::test]
async fn routes_that_are_left_when_routing_is_off_are_deleted_at_the_version_that_is_served() {
    let mut scene = Scene::published("3000", &gateway(true)).await;
    scene.api.unserve("/apis/gateway.networking.k8s.io/v1/");
    let mut snapshot = scene.api.snapshot(&scene.session);
    snapshot.route_version = Some("v1beta1".into());
    scene.works(&snapshot, &Ground::default()).await;
    assert_eq!(scene.api.asked(), ["DELETE httproutes/s-2abc-3000"], "and once, though no watch has told of it");
}

#[tokio::test]
async fn an_owner_that_no_pod_can_be_is_not_asked_for() {
    for name in ["", "..", "a/b", "A"] {
        let mut scene = Scene::published("3000", &gateway(true)).await;
        scene.api.edit("services/s-2abc", |service| {
            service["metadata"]["ownerReferences"] = json!([{"kind": "Pod", "name": name, "uid": "other"}]);
        });
        assert_eq!(scene.hindrance().await, Some(Hindrance::NameTaken), "{name}");
        assert_eq!(scene.api.asked(), ["POST services/s-2abc"], "{name}");
    }
}

#[tokio::test]
async fn where_the_layer_cannot_be_told_the_session_is_followed_and_its_routes_stay() {
    let mut scene = Scene::published("3000,3001", &gateway(true)).await;
    let mut ground = Ground::default();
    ground.layer = Err(LayerError::Ambiguous(String::new()));
    scene.session = Session { address: Some([10, 244, 1, 9].into()), ..session("3000") };
    let snapshot = scene.api.snapshot(&scene.session);
    assert_eq!(scene.works(&snapshot, &ground).await, None);
    assert_eq!(
        scene.api.asked(),
        ["DELETE httproutes/s-2abc-3001", "PATCH services/s-2abc", "PATCH endpointslices/s-2abc"]
    );
    let snapshot = Snapshot { live: Vec::new(), ..snapshot };
    assert_eq!(scene.works(&snapshot, &ground).await, None);
    assert_eq!(scene.api.asked(), [""; 0], "what is not published yet waits");
}

#[tokio::test]
async fn no_answer_waits_for_one_that_is_late() {
    let mut scene = Scene::new("3000", &gateway(true));
    scene.api.hold("PATCH endpointslices/s-2abc");
    let world = Arc::clone(&scene.crew.world);
    let wake = world.pod(seen(&scene.session)).unwrap();
    let knows_the_route = async {
        while !world.snapshot("pod-uid").unwrap().live.iter().any(|live| live.kind == Kind::HttpRoute) {
            wake.notified().await;
        }
    };
    let patience = tokio::time::timeout(Duration::from_mins(1), knows_the_route);
    tokio::select! {
        attempt = scene.attempt() => panic!("{attempt:?}"),
        known = patience => known.unwrap(),
    }
}

#[tokio::test]
async fn what_passes_by_itself_is_told_only_when_it_lasts() {
    let mut scene = Scene::new("3000", &gateway(true));
    let slot = (Kind::Service, "s-2abc".to_owned());
    let mut classes = [Class::Throttled, Class::Conflict].into_iter().cycle();
    let mut fails = |scene: &mut Scene| {
        let failed = Failed { class: classes.next().unwrap(), detail: String::new() };
        scene.publisher.noted(slot.clone(), Attempt::Failed(slot.clone(), failed));
    };
    for _ in 0..10 {
        fails(&mut scene);
        assert_eq!(scene.publisher.hindrance(), None, "however often it failed");
    }
    let rest = scene.publisher.resting.values_mut().next().unwrap();
    rest.failing_since = Instant::now().checked_sub(PATIENCE);
    fails(&mut scene);
    assert!(matches!(scene.publisher.hindrance(), Some(Hindrance::PublishFailed(_))));
}

#[tokio::test]
async fn that_all_is_made_is_told_when_it_is_and_once() {
    let (mut scene, ground) = (Scene::new("3000", &gateway(true)), routed());
    scene.api.refuse("PATCH httproutes/s-2abc-3000");
    for _ in 0..2 {
        scene.works(&scene.api.snapshot(&scene.session), &ground).await;
        assert!(scene.publisher.claimed != Claimed::Told, "a route is missing");
    }
    scene.api.allow("PATCH httproutes/s-2abc-3000");
    scene.publisher.resting.clear();
    for _ in 0..2 {
        scene.works(&scene.api.snapshot(&scene.session), &ground).await;
    }
    assert!(scene.publisher.claimed == Claimed::Told);
    // Another agent finds it made.
    scene.publisher.claimed = Claimed::No;
    scene.api.remove("httproutes/s-2abc-3000");
    for _ in 0..2 {
        scene.works(&scene.api.snapshot(&scene.session), &ground).await;
    }
    assert!(scene.publisher.claimed != Claimed::Told);
}

#[tokio::test]
async fn what_is_gone_at_last_is_made_anew_at_once() {
    let mut scene = Scene::published("3000", &ingress()).await;
    scene.api.edit("ingresses/s-2abc", |ingress| {
        order(ingress);
        ingress["metadata"]["finalizers"] = json!(["example.com/keep"]);
    });
    assert!(matches!(scene.hindrance().await, Some(Hindrance::Terminating { .. })));
    scene.api.remove("ingresses/s-2abc");
    scene.api.asked();
    assert_eq!(scene.attempt().await, Attempt::Done);
    assert_eq!(scene.api.asked(), ["PATCH ingresses/s-2abc"]);
}

#[tokio::test]
async fn each_object_rests_for_itself_and_the_first_that_may_be_tried_again_is() {
    let mut scene = Scene::new("3000", &ingress());
    scene.api.annotate("example.com/cost");
    scene.api.refuse("PATCH endpointslices/s-2abc");
    let live = scene.api.snapshot(&scene.session).live;
    let Due { plan, .. } = scene.publisher.due(&scene.crew, &scene.session, &live, &scene.wanted, false);
    scene.publisher.carry_out(&scene.crew, &scene.session, Task { plan, version: "v1".to_owned() }).await;
    let live = scene.api.snapshot(&scene.session).live;
    let Due { plan, next, .. } = scene.publisher.due(&scene.crew, &scene.session, &live, &scene.wanted, false);
    assert_eq!(plan, Plan::default());
    assert!(next.is_some_and(|next| next <= Instant::now() + SHORTEST_PAUSE), "{next:?}");
}

/// Whether the session is to claim its id now.
fn claims(scene: &mut Scene, live: &[Live]) -> bool {
    scene.publisher.due(&scene.crew, &scene.session, live, &scene.wanted, false).plan.claim.is_some()
}

/// A session whose id another pod of this node has, which the agent sees, and which it was told.
async fn waits_for_another() -> (Scene, Session) {
    let mut scene = Scene::published("3000", &gateway(true)).await;
    let holder = scene.session.clone();
    scene.crew.world.pod(seen(&holder));
    (scene.session.name, scene.session.uid) = ("run-other".to_owned(), "uid-other".to_owned());
    scene.wanted = objects(&scene.session, &gateway(true));
    let attempt = scene.attempt_with(&[]).await;
    assert!(matches!(attempt, Attempt::Taken(_)), "{attempt:?}");
    (scene, holder)
}

#[tokio::test]
async fn the_id_of_a_pod_that_lives_is_not_asked_for_while_its_service_is_made_anew() {
    let (mut scene, mut holder) = waits_for_another().await;
    let live = scene.api.snapshot(&scene.session).live;
    for live in [&live[..], &[], &live[..], &[]] {
        assert!(!claims(&mut scene, live), "its holder makes it anew");
    }
    holder.phase = Phase::Finished;
    let mut ended = seen(&holder);
    ended.resource_version = 1;
    scene.crew.world.pod(ended);
    assert!(claims(&mut scene, &live));
}

#[tokio::test]
async fn what_was_there_is_read_again_and_not_made_in_vain() {
    let (mut scene, holder) = waits_for_another().await;
    assert_eq!(scene.api.asked(), ["POST services/s-2abc"]);
    for _ in 0..3 {
        scene.publisher.resting.clear();
        let attempt = scene.attempt_with(&[]).await;
        assert!(matches!(attempt, Attempt::Taken(_)), "{attempt:?}");
    }
    assert_eq!(scene.api.asked(), [""; 0], "a ResourceQuota would count each of them");
    scene.crew.world.pod_gone(&holder.uid);
    scene.api.remove("services/s-2abc");
    assert_eq!(scene.attempt().await, Attempt::Done);
    assert!(scene.api.asked().contains(&"POST services/s-2abc".to_owned()));
}

#[tokio::test]
async fn what_is_made_under_anothers_claim_is_not_waited_for() {
    let (mut scene, _) = waits_for_another().await;
    scene.api.edit("httproutes/s-2abc-3000", |route| {
        route["metadata"]["finalizers"] = json!(["example.com/keep"]);
        route["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    });
    let live = scene.api.snapshot(&scene.session).live;
    assert!(matches!(scene.attempt_with(&live).await, Attempt::Resting(_)));
}

#[tokio::test]
async fn an_object_that_fails_for_the_first_time_rests_shortly_however_long_others_have_failed() {
    let mut scene = Scene::new("3000", &gateway(true));
    let mut fails = |kind: Kind| {
        let slot = (kind, "s-2abc".to_owned());
        let failed = Failed { class: Class::Server, detail: String::new() };
        scene.publisher.noted(slot.clone(), Attempt::Failed(slot.clone(), failed));
        scene.publisher.resting[&slot].until
    };
    let long = (0..10).map(|_| fails(Kind::Service)).last().unwrap();
    assert!(long > Instant::now() + SHORTEST_PAUSE * 4);
    assert!(fails(Kind::EndpointSlice) <= Instant::now() + SHORTEST_PAUSE);
    // However long it waits for its turn, it is not forgotten that it failed.
    for rest in scene.publisher.resting.values_mut() {
        rest.until = Instant::now().checked_sub(LONGEST_PAUSE * 2).unwrap();
    }
    assert!(claims(&mut scene, &[]));
    assert_eq!(scene.publisher.resting.len(), 2);
    scene.wanted.clear();
    claims(&mut scene, &[]);
    assert!(scene.publisher.resting.is_empty(), "nobody wants them");
}

#[tokio::test]
async fn what_is_told_to_have_failed_is_not_once_it_is_there() {
    let mut scene = Scene::new("3000", &gateway(true));
    fails(&mut scene, Kind::EndpointSlice, Class::Invalid);
    scene.publisher.noted((Kind::Service, "s-2abc".to_owned()), Attempt::Done);
    assert!(scene.publisher.hindrance().is_some());
    scene.publisher.noted((Kind::EndpointSlice, "s-2abc".to_owned()), Attempt::Done);
    assert_eq!(scene.publisher.hindrance(), None);
}

/// A write of the session's object of that kind fails.
fn fails(scene: &mut Scene, kind: Kind, class: Class) {
    let slot = (kind, "s-2abc".to_owned());
    let failed = Failed { class, detail: String::new() };
    scene.publisher.noted(slot.clone(), Attempt::Failed(slot, failed));
}

#[tokio::test]
async fn of_several_that_fail_the_same_one_is_told_as_long_as_it_does_and_then_the_others() {
    let mut scene = Scene::new("3000", &ingress());
    let told = |scene: &Scene| match scene.publisher.hindrance() {
        Some(Hindrance::PublishFailed(why)) => why.split(':').next().unwrap().to_owned(),
        other => panic!("{other:?}"),
    };
    for _ in 0..10 {
        fails(&mut scene, Kind::Ingress, Class::Quota);
        fails(&mut scene, Kind::EndpointSlice, Class::Quota);
        assert_eq!(told(&scene), "endpointslices/s-2abc");
    }
    // Also while one is tried alone, and one has to wait for another reason.
    let rest = scene.publisher.resting.get_mut(&(Kind::Ingress, "s-2abc".to_owned())).unwrap();
    rest.until = Instant::now();
    claims(&mut scene, &[]);
    assert_eq!(told(&scene), "endpointslices/s-2abc");
    scene.publisher.noted((Kind::EndpointSlice, "s-2abc".to_owned()), Attempt::Done);
    assert_eq!(told(&scene), "ingresses/s-2abc", "it fails as well");
    let finalizers = Vec::new();
    scene.publisher.obstacle = Some(Hindrance::Terminating { object: "endpointslices/s-2abc".to_owned(), finalizers });
    assert_eq!(told(&scene), "ingresses/s-2abc", "that is worse");
    scene.publisher.noted((Kind::Ingress, "s-2abc".to_owned()), Attempt::Done);
    assert!(matches!(scene.publisher.hindrance(), Some(Hindrance::Terminating { .. })));
}

#[tokio::test]
async fn what_was_in_the_way_is_told_again_after_something_else_was() {
    let (mut scene, ground) = (Scene::new("3000", &gateway(true)), routed());
    scene.api.put("services/s-2abc", json!({"metadata": {"uid": "theirs"}}));
    let mut snapshot = scene.api.snapshot(&scene.session);
    snapshot.live.clear();
    scene.works(&snapshot, &ground).await;
    assert_eq!(scene.publisher.hindrance(), Some(Hindrance::NameTaken));
    snapshot.is_protected = false;
    scene.works(&snapshot, &ground).await;
    assert_eq!(scene.publisher.hindrance(), Some(Hindrance::WaitingForNetworkPolicy));
    snapshot.is_protected = true;
    for _ in 0..2 {
        scene.works(&snapshot, &ground).await;
        assert_eq!(scene.publisher.hindrance(), Some(Hindrance::NameTaken));
    }
}

#[tokio::test]
async fn a_session_is_published_as_long_as_nothing_is_wrong_and_no_longer() {
    async fn works(scene: &mut Scene, ground: &Ground) -> bool {
        for _ in 0..2 {
            scene.publisher.resting.clear();
            scene.works(&scene.api.snapshot(&scene.session), ground).await;
        }
        scene.publisher.is_published()
    }
    let (mut scene, ground) = (Scene::new("3000", &gateway(true)), routed());
    assert!(works(&mut scene, &ground).await);
    for refused in ["PATCH httproutes/s-2abc-3000", "PATCH endpointslices/s-2abc", "POST services/s-2abc"] {
        let object = refused.split_once(' ').unwrap().1;
        scene.api.remove(object);
        scene.api.refuse(refused);
        assert!(!works(&mut scene, &ground).await, "{refused}");
        scene.api.allow(refused);
        assert!(works(&mut scene, &ground).await, "{refused} is allowed again");
    }
}

#[tokio::test]
async fn a_claim_that_says_of_nobody_is_taken_and_not_asked_for_in_vain() {
    let mut scene = Scene::new("3000", &gateway(true));
    let labels = json!({"app.kubernetes.io/managed-by": "cofferdam-agent"});
    scene.api.put("services/s-2abc", json!({"metadata": {"uid": "bare", "labels": labels}}));
    scene.api.refuse("DELETE services/s-2abc");
    assert_eq!(scene.attempt_with(&[]).await, Attempt::Done);
    assert!(scene.api.asked().starts_with(&["POST services/s-2abc".to_owned(), "PATCH services/s-2abc".to_owned()]));
}

#[tokio::test]
async fn of_two_that_take_what_is_said_of_nobody_one_has_it() {
    let mut scene = Scene::new("3000", &gateway(true));
    let labels = json!({"app.kubernetes.io/managed-by": "cofferdam-agent"});
    let bare = json!({"metadata": {"uid": "bare", "resourceVersion": "0", "labels": labels}});
    for (is_there, holder) in [(true, Some("run-other".to_owned())), (false, None)] {
        scene.api.put("services/s-2abc", bare.clone());
        scene.api.meanwhile(move |service| {
            let owner = json!([{"kind": "Pod", "name": "run-other", "uid": "uid-other"}]);
            let annotations = json!({"cofferdam.dev/node": if is_there { NODE } else { "node-9" }});
            service["metadata"]["annotations"] = annotations;
            if is_there {
                service["metadata"]["ownerReferences"] = owner;
            }
        });
        scene.api.put("pods/run-other", json!({"metadata": {"uid": "uid-other"}, "status": {"phase": "Running"}}));
        scene.publisher.resting.clear();
        let attempt = scene.attempt_with(&[]).await;
        let Attempt::Taken(taken) = attempt else { panic!("{attempt:?}") };
        assert_eq!(taken.name, holder);
    }
}

#[tokio::test]
async fn what_the_elected_agent_withdrew_is_put_back_at_once_however_often_a_node_is_lost() {
    let (mut scene, ground) = (Scene::published("53/udp", &Layer::Off).await, Ground::default());
    scene.wanted = objects(&scene.session, &Layer::Off);
    for times in 1..20 {
        scene.api.edit("endpointslices/s-2abc", |slice| slice["endpoints"] = json!([]));
        let mut snapshot = scene.api.snapshot(&scene.session);
        // It may be back before anybody looks.
        snapshot.outages = times;
        scene.works(&snapshot, &ground).await;
        assert_eq!(scene.api.asked(), ["PATCH endpointslices/s-2abc"], "after {times} times");
    }
}

#[tokio::test]
async fn an_id_that_is_given_up_is_asked_for_at_once_and_no_proof_of_its_holder_is_anybody_elses() {
    let mut scene = Scene::new("3000", &gateway(true));
    let ports = scene.session.ports.clone().unwrap();
    let of_holder = |_| Proof { probe: "0".repeat(32), proof: "1".repeat(32) };
    scene.wanted = desired(&scene.session, &ports, &gateway(true), &routing(), NODE, &of_holder);
    assert_eq!(scene.attempt().await, Attempt::Done);
    let holder = json!({"metadata": {"uid": scene.session.uid}, "status": {"phase": "Running"}});
    scene.api.put(&format!("pods/{}", scene.session.name), holder);
    (scene.session.name, scene.session.uid) = ("run-other".to_owned(), "uid-other".to_owned());
    scene.wanted = objects(&scene.session, &gateway(true));
    let live = scene.api.snapshot(&scene.session).live;
    let attempt = scene.attempt().await;
    assert!(matches!(attempt, Attempt::Taken(_)), "{attempt:?}");
    assert!(!claims(&mut scene, &live), "it waits");
    assert!(claims(&mut scene, &[]), "the holder has no Service any more");

    let its = live.iter().find(|live| live.kind == Kind::HttpRoute).and_then(|route| proof_of(&route.object));
    assert!(scene.publisher.prepare_proofs(&scene.session, &ports, &live));
    assert!(its.is_some() && scene.publisher.proof(3000) != its.as_ref());
    assert!(route(&scene.session, &gateway(true), &live, 3000).is_none(), "it leads to another");
}
