//! What belongs to nobody.

use super::*;

#[tokio::test(start_paused = true)]
async fn b111_what_belongs_to_nobody_is_swept_and_nothing_else() {
    let api = cluster(2);
    for id in ["owned", "orphan", "elsewhere", "unlabelled", "nowhere", "nobodys", "stripped"] {
        add_session(&api, id, 1);
    }
    // What says no node, or none that could be, is judged by its owner; and an owner that could not be is none.
    for (name, node, owner) in [("nowhere", "", "nowhere"), ("nobodys", "../pods", "../nodes/node-1")] {
        let mut slice = api.get("endpointslices", "team-a", &format!("s-{name}")).unwrap();
        slice["metadata"]["annotations"]["cofferdam.dev/node"] = json!(node);
        slice["metadata"]["ownerReferences"][0]["name"] = json!(owner);
        api.put("endpointslices", &slice);
    }
    let mut slice = api.get("endpointslices", "team-a", "s-stripped").unwrap();
    slice["metadata"]["ownerReferences"] = json!([]);
    api.put("endpointslices", &slice);
    api.remove("pods", "team-a", "nobodys");
    api.remove("pods", "team-a", "stripped");
    // A pod of the same name is not the same pod.
    let renewed = |name: &str, change: &dyn Fn(&mut Value)| {
        let mut pod = api.get("pods", "team-a", name).unwrap();
        change(&mut pod);
        api.put("pods", &pod);
    };
    renewed("orphan", &|pod| pod["metadata"]["uid"] = json!("another"));
    renewed("unlabelled", &|pod| pod["metadata"]["labels"] = json!({}));
    let mut slice = api.get("endpointslices", "team-a", "s-elsewhere").unwrap();
    slice["metadata"]["annotations"]["cofferdam.dev/node"] = json!("node-9");
    api.put("endpointslices", &slice);
    // Two objects of one pod: it is asked for once, and both are judged.
    let mut service = api.get("endpointslices", "team-a", "s-unlabelled").unwrap();
    service["metadata"]["uid"] = Value::Null;
    api.put("services", &service);
    let foreign = json!({"metadata": {"name": "theirs", "namespace": "team-a", "labels": {}}});
    api.put("services", &foreign);
    let agent = Agent::start(&api, "agent-1");
    until("swept", || agent.metric("swept_objects_total{resource=\"endpointslices\"}") == 4).await;
    for (name, is_there) in [
        ("s-owned", true),
        ("s-orphan", false),
        ("s-elsewhere", false),
        ("s-unlabelled", true),
        ("s-nowhere", true),
        ("s-nobodys", false),
        ("s-stripped", false),
    ] {
        assert_eq!(api.get("endpointslices", "team-a", name).is_some(), is_there, "{name}");
    }
    for name in ["theirs", "s-unlabelled"] {
        assert!(api.get("services", "team-a", name).is_some(), "{name}");
    }
    sleep(Duration::from_mins(20)).await;
    assert_eq!(api.writes().len(), 4);
    agent.ends().await;
}

#[tokio::test(start_paused = true)]
async fn b111_what_lost_its_owner_stays_for_a_pod_of_its_own_node_and_for_no_other() {
    let api = cluster(2);
    for (id, node) in [("here", 1), ("there", 2), ("anywhere", 1)] {
        add_session(&api, id, 1);
        let mut slice = api.get("endpointslices", "team-a", &format!("s-{id}")).unwrap();
        slice["metadata"]["ownerReferences"] = json!([]);
        if id == "anywhere" {
            slice["metadata"]["annotations"] = json!({});
        }
        api.put("endpointslices", &slice);
        // One that agents of both nodes have made for sessions of that id, so each is asked for by itself.
        slice["metadata"]["name"] = json!(format!("t-{id}"));
        slice["metadata"]["annotations"]["cofferdam.dev/node"] = json!("node-2");
        slice["metadata"]["uid"] = Value::Null;
        api.put("endpointslices", &slice);
        let mut pod = api.get("pods", "team-a", id).unwrap();
        pod["spec"]["nodeName"] = json!(format!("node-{node}"));
        api.put("pods", &pod);
    }
    let agent = Agent::start(&api, "agent-1");
    until("swept", || agent.metric("swept_objects_total{resource=\"endpointslices\"}") == 3).await;
    sleep(Duration::from_mins(20)).await;
    for (name, is_there) in [
        ("s-here", true),
        ("t-here", false),
        ("s-there", false),
        ("t-there", true),
        ("s-anywhere", true),
        ("t-anywhere", false),
    ] {
        assert_eq!(api.get("endpointslices", "team-a", name).is_some(), is_there, "{name}");
    }
    agent.ends().await;
}

#[tokio::test(start_paused = true)]
async fn b111_what_is_made_anew_during_a_sweep_is_not_swept_with_what_was_there_before() {
    let api = cluster(1);
    add_session(&api, "again", 1);
    // Of a pod of that name that is gone a Service is left, and nothing else.
    let mut service = api.get("endpointslices", "team-a", "s-again").unwrap();
    service["metadata"]["uid"] = Value::Null;
    service["metadata"]["ownerReferences"][0]["uid"] = json!("uid-of-before");
    api.put("services", &service);
    api.remove("endpointslices", "team-a", "s-again");
    api.remove("pods", "team-a", "again");
    api.hold("services");
    let agent = Agent::start(&api, "agent-1");
    until("its owner has been asked for", || api.waiting() == 1).await;
    add_session(&api, "again", 1);
    api.release();
    until("swept", || agent.metric("swept_objects_total{resource=\"services\"}") == 1).await;
    sleep(Duration::from_mins(4)).await;
    assert!(serves(&api, "again"));
    assert_eq!(api.writes(), ["DELETE services/s-again"]);
    agent.ends().await;
}

#[tokio::test(start_paused = true)]
async fn a_new_term_does_not_begin_with_another_sweep() {
    let api = cluster(1);
    let agent = Agent::start(&api, "agent-1");
    let orphan = |id: &str| {
        add_session(&api, id, 1);
        api.remove("pods", "team-a", id);
    };
    orphan("first");
    let is_swept = |id: &str| api.get("endpointslices", "team-a", &format!("s-{id}")).is_none();
    until("the first term begins with one", || is_swept("first")).await;
    let swept = Instant::now();
    orphan("second");
    let mut lease = api.get("leases", SYSTEM, "cofferdam-agent").unwrap();
    lease["spec"]["holderIdentity"] = json!("thief");
    api.put("leases", &lease);
    until("it gives up", || !agent.leads()).await;
    until("it leads again", || agent.leads()).await;
    until("it is time", || is_swept("second")).await;
    assert!(swept.elapsed() >= Duration::from_mins(4), "{:?}", swept.elapsed());
    agent.ends().await;
}

#[tokio::test(start_paused = true)]
async fn what_stays_refused_makes_sweeps_no_more_frequent_than_ever() {
    let api = cluster(1);
    add_session(&api, "orphan", 1);
    api.remove("pods", "team-a", "orphan");
    api.refuse(Some("endpointslices"));
    let agent = Agent::start(&api, "agent-1");
    until("it is tried", || !api.writes().is_empty()).await;
    sleep(Duration::from_hours(1)).await;
    // After half a minute, one, two, four, and five minutes from then on; of each pause up to half is left out by chance.
    let tries = api.writes().len();
    assert!((13..=27).contains(&tries), "{tries}");
    api.refuse(None);
    until("swept", || api.get("endpointslices", "team-a", "s-orphan").is_none()).await;
    agent.ends().await;
}
