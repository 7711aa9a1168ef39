//! Nodes that are lost, and agents that are silent.

use super::*;

#[tokio::test(start_paused = true)]
async fn b143_the_sessions_of_a_lost_node_go_out_of_service_once() {
    let api = cluster(2);
    add_session(&api, "here", 1);
    add_session(&api, "there", 2);
    let agent = Agent::start(&api, "agent-1");
    until("it leads", || agent.leads()).await;
    sleep(Duration::from_mins(10)).await;
    assert_eq!(api.writes(), [""; 0], "nothing is wrong");
    set_node(&api, 2, "Unknown");
    until("seen", || agent.metric("lost_nodes") == 1).await;
    let took = until("out of service", || !serves(&api, "there")).await;
    assert!(took.abs_diff(LOST_NODE) < Duration::from_secs(1), "nothing else happens: {took:?}");
    until("marked", || reason(&api, "there") == "NodeLost").await;
    assert_eq!((serves(&api, "here"), reason(&api, "here").as_str()), (true, "Reachable"));
    assert_eq!(api.writes(), ["APPLY endpointslices/s-there", "PATCH pods/there"]);
    assert_eq!(agent.metric("lost_nodes"), 1);
    sleep(Duration::from_mins(10)).await;
    assert_eq!(api.writes(), [""; 0], "it is so already");
    // What is new there is found.
    add_session(&api, "late", 2);
    until("marked", || reason(&api, "late") == "NodeLost").await;
    assert!(!serves(&api, "late"));
    // Its own agent writes all of it anew, and nobody undoes that.
    set_node(&api, 2, "True");
    until("seen", || agent.metric("lost_nodes") == 0).await;
    add_session(&api, "there", 2);
    api.writes();
    sleep(Duration::from_mins(10)).await;
    assert_eq!((serves(&api, "there"), api.writes()), (true, vec![]));
    agent.ends().await;
}

#[tokio::test(start_paused = true)]
async fn of_many_sessions_none_is_missed_and_never_are_all_of_them_asked_for_at_once() {
    let api = cluster(2);
    let ids: Vec<_> = (0..60).map(|number| format!("many-{number}")).collect();
    for id in &ids {
        add_session(&api, id, 2);
    }
    // Belongs to nobody, and is on the last page.
    add_session(&api, "zz", 1);
    api.remove("pods", "team-a", "zz");
    let agent = Agent::start(&api, "agent-1");
    until("swept", || api.get("endpointslices", "team-a", "s-zz").is_none()).await;
    set_node(&api, 2, "Unknown");
    until("marked", || ids.iter().all(|id| reason(&api, id) == "NodeLost")).await;
    assert!(!ids.iter().any(|id| serves(&api, id)));
    assert!(api.unpaged().is_empty(), "{:?}", api.unpaged());
    let read: Vec<_> = api.whole().into_keys().collect();
    assert_eq!(
        read,
        ["endpointslices", "leases", "networkpolicies", "nodes", "pods"],
        "of no others more than metadata"
    );
    agent.ends().await;
}

#[tokio::test(start_paused = true)]
async fn b143_where_too_many_nodes_seem_lost_nothing_is_done_and_that_is_told_once() {
    let api = cluster(3);
    add_session(&api, "there", 3);
    let agent = Agent::start(&api, "agent-1");
    until("it leads", || agent.leads()).await;
    sleep(Duration::from_secs(5)).await;
    // Both at once, as far as anybody can see.
    set_node(&api, 2, "Unknown");
    set_node(&api, 3, "Unknown");
    until("the brake is on", || agent.metric("lost_node_brake") == 1).await;
    sleep(Duration::from_mins(10)).await;
    assert!(serves(&api, "there"));
    assert_eq!(api.writes().iter().map(|write| write.split('/').next().unwrap()).collect::<Vec<_>>(), ["POST events"]);
    assert_eq!(agent.metric("lost_nodes"), 2);
    set_node(&api, 2, "True");
    until("seen", || agent.metric("lost_nodes") == 1).await;
    let took = until("out of service", || !serves(&api, "there")).await;
    assert!(took.abs_diff(LOST_NODE) < Duration::from_secs(1), "nothing else happens: {took:?}");
    assert_eq!(agent.metric("lost_node_brake"), 0);
    agent.ends().await;
}

#[tokio::test(start_paused = true)]
async fn b143_nothing_is_taken_from_a_node_that_is_back_and_is_not_seen_to_be() {
    let api = cluster(2);
    add_session(&api, "there", 2);
    let agent = Agent::start(&api, "agent-1");
    until("it leads", || agent.leads()).await;
    set_node(&api, 2, "Unknown");
    until("seen", || agent.metric("lost_nodes") == 1).await;
    api.blind("nodes");
    set_node(&api, 2, "True");
    sleep(Duration::from_mins(10)).await;
    assert_eq!(agent.metric("lost_nodes"), 1, "it sees the node");
    assert_eq!((serves(&api, "there"), api.writes()), (true, vec![]));
    // What it can ask for it goes by.
    set_node(&api, 2, "Unknown");
    until("out of service", || !serves(&api, "there")).await;
    agent.ends().await;
}

#[tokio::test(start_paused = true)]
async fn b143_a_node_that_joined_and_was_ready_for_a_moment_is_lost() {
    let api = cluster(2);
    let agent = Agent::start(&api, "agent-1");
    until("it leads", || agent.leads()).await;
    api.put("nodes", &json!({"metadata": {"name": "node-3"}}));
    sleep(Duration::from_secs(5)).await;
    // Told at once, and looked at once.
    set_node(&api, 3, "True");
    add_session(&api, "there", 3);
    set_node(&api, 3, "Unknown");
    until("out of service", || !serves(&api, "there")).await;
    agent.ends().await;
}

#[tokio::test(start_paused = true)]
async fn b143_a_silent_agents_sessions_are_marked_and_stay_in_service() {
    let api = cluster(2);
    add_session(&api, "there", 2);
    let agent = Agent::start(&api, "agent-1");
    until("it leads", || agent.leads()).await;
    set_agent(&api, 2, "False");
    let took = until("marked", || reason(&api, "there") == "AgentSilent").await;
    assert!(took >= Duration::from_mins(1), "{took:?}");
    assert!(serves(&api, "there"));
    assert_eq!((agent.metric("silent_agents"), api.writes().len()), (1, 1));
    sleep(Duration::from_mins(10)).await;
    assert_eq!(api.writes(), [""; 0]);
    agent.ends().await;
}

#[tokio::test(start_paused = true)]
async fn b143_no_session_is_marked_whose_agent_works_and_is_not_seen_to() {
    let api = cluster(2);
    add_session(&api, "there", 2);
    let agent = Agent::start(&api, "agent-1");
    until("it leads", || agent.leads()).await;
    set_agent(&api, 2, "False");
    sleep(Duration::from_secs(1)).await;
    api.blind("pods");
    set_agent(&api, 2, "True");
    sleep(Duration::from_mins(10)).await;
    assert_eq!(agent.metric("silent_agents"), 1, "it sees the agent");
    assert_eq!((reason(&api, "there").as_str(), api.writes()), ("Reachable", vec![]));
    // What it can ask for it goes by.
    set_agent(&api, 2, "False");
    until("marked", || reason(&api, "there") == "AgentSilent").await;
    agent.ends().await;
}

#[tokio::test(start_paused = true)]
async fn b143_what_ends_while_its_agent_is_silent_goes_out_of_service() {
    let api = cluster(2);
    for id in ["lives", "ends"] {
        add_session(&api, id, 2);
    }
    let agent = Agent::start(&api, "agent-1");
    set_agent(&api, 2, "False");
    until("marked", || reason(&api, "lives") == "AgentSilent" && reason(&api, "ends") == "AgentSilent").await;
    api.writes();
    let mut pod = api.get("pods", "team-a", "ends").unwrap();
    pod["status"]["phase"] = json!("Failed");
    api.put("pods", &pod);
    until("out of service", || !serves(&api, "ends")).await;
    sleep(Duration::from_mins(10)).await;
    assert_eq!((serves(&api, "lives"), api.writes()), (true, vec!["APPLY endpointslices/s-ends".to_owned()]));
    agent.ends().await;
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_is_called_silent_and_works_has_the_last_word_until_it_is_silent_again() {
    let api = cluster(2);
    add_session(&api, "there", 2);
    let agent = Agent::start(&api, "agent-1");
    for _ in 0..2 {
        set_agent(&api, 2, "False");
        until("marked", || reason(&api, "there") == "AgentSilent").await;
        // Its own agent writes what it knows.
        add_session(&api, "there", 2);
        api.writes();
        sleep(Duration::from_mins(10)).await;
        assert_eq!((reason(&api, "there").as_str(), api.writes()), ("Reachable", vec![]));
        set_agent(&api, 2, "True");
        until("heard", || agent.metric("silent_agents") == 0).await;
    }
    agent.ends().await;
}

#[tokio::test(start_paused = true)]
async fn what_its_agent_writes_while_it_is_called_silent_is_not_judged_by_what_was_listed_before() {
    for (plural, selector) in [("pods", "spec.nodeName=node-2,cofferdam.dev/session"), ("endpointslices", "node-hash")]
    {
        let api = cluster(2);
        add_session(&api, "there", 2);
        // Its pod got another address, and its agent publishes that.
        api.meanwhile(plural, selector, |api| {
            let mut pod = api.get("pods", "team-a", "there").unwrap();
            pod["status"]["podIP"] = json!("10.0.0.2");
            api.put("pods", &pod);
            let mut slice = api.get("endpointslices", "team-a", "s-there").unwrap();
            slice["endpoints"][0]["addresses"] = json!(["10.0.0.2"]);
            api.put("endpointslices", &slice);
        });
        let agent = Agent::start(&api, "agent-1");
        set_agent(&api, 2, "False");
        until("marked", || reason(&api, "there") == "AgentSilent").await;
        sleep(Duration::from_mins(1)).await;
        let slice = api.get("endpointslices", "team-a", "s-there").unwrap();
        assert_eq!(slice["endpoints"][0]["addresses"], json!(["10.0.0.2"]), "{plural}");
        agent.ends().await;
    }
}

/// How often outages were looked at: nobody else reads whole slices.
fn looks(api: &Api) -> usize {
    api.whole().get("endpointslices").copied().unwrap_or_default()
}

#[tokio::test(start_paused = true)]
async fn a_lost_node_is_looked_at_no_more_often_where_others_come_and_go() {
    let api = cluster(6);
    add_session(&api, "there", 2);
    let agent = Agent::start(&api, "agent-1");
    set_node(&api, 2, "Unknown");
    until("marked", || reason(&api, "there") == "NodeLost").await;
    let before = looks(&api);
    for count in 0..60 {
        set_node(&api, 3, if count % 2 == 0 { "False" } else { "True" });
        until("seen", || agent.metric("lost_nodes") == 2 - count % 2).await;
        sleep(Duration::from_secs(1)).await;
    }
    let looks = looks(&api) - before;
    assert!((5..=8).contains(&looks), "one in ten seconds: {looks}");
    agent.ends().await;
}

#[tokio::test(start_paused = true)]
async fn a_node_that_is_lost_makes_no_other_be_looked_at() {
    let api = cluster(20);
    let ids: Vec<_> = (2..10).map(|node| (node, format!("on-{node}"))).collect();
    for (node, id) in &ids {
        add_session(&api, id, *node);
    }
    let agent = Agent::start(&api, "agent-1");
    until("it leads", || agent.leads()).await;
    for (node, _) in &ids {
        set_node(&api, *node, "Unknown");
        sleep(Duration::from_secs(1)).await;
    }
    until("marked", || ids.iter().all(|(_, id)| reason(&api, id) == "NodeLost")).await;
    assert_eq!(looks(&api), ids.len());
    agent.ends().await;
}

#[tokio::test(start_paused = true)]
async fn b143_a_deleted_node_is_looked_at_until_nothing_is_left_there() {
    let api = cluster(2);
    add_session(&api, "there", 2);
    let agent = Agent::start(&api, "agent-1");
    until("it leads", || agent.leads()).await;
    sleep(Duration::from_secs(5)).await;
    api.remove("nodes", "", "node-2");
    until("marked", || reason(&api, "there") == "NodeLost").await;
    assert!(!serves(&api, "there"));
    let before = looks(&api);
    until("it is looked at while something is left", || looks(&api) > before).await;
    api.remove("pods", "team-a", "there");
    api.remove("endpointslices", "team-a", "s-there");
    // The round after the last look finds nothing.
    sleep(Duration::from_secs(21)).await;
    let before = looks(&api);
    sleep(Duration::from_mins(5)).await;
    assert_eq!(looks(&api), before);
    // Whoever comes under its name is another.
    set_node(&api, 2, "True");
    add_session(&api, "again", 2);
    sleep(Duration::from_mins(1)).await;
    assert!(serves(&api, "again"));
    set_node(&api, 2, "Unknown");
    until("marked", || reason(&api, "again") == "NodeLost").await;
    agent.ends().await;
}

#[tokio::test(start_paused = true)]
async fn b143_a_node_that_comes_and_goes_while_another_is_looked_at_is_lost_anew() {
    let api = cluster(4);
    add_session(&api, "slow", 2);
    let agent = Agent::start(&api, "agent-1");
    until("it leads", || agent.leads()).await;
    sleep(Duration::from_secs(5)).await;
    api.remove("nodes", "", "node-3");
    until("nothing is there", || looks(&api) == 1).await;
    api.hold("endpointslices");
    set_node(&api, 2, "Unknown");
    until("it looks at another", || api.waiting() == 1).await;
    set_node(&api, 3, "True");
    add_session(&api, "there", 3);
    sleep(Duration::from_secs(1)).await;
    api.remove("nodes", "", "node-3");
    sleep(Duration::from_secs(1)).await;
    api.release();
    until("out of service", || !serves(&api, "there")).await;
    agent.ends().await;
}

#[tokio::test(start_paused = true)]
async fn a_node_that_is_lost_does_not_wait_for_those_that_were_lost_before() {
    let api = cluster(4);
    for number in 0..60 {
        add_session(&api, &format!("many-{number}"), 2);
    }
    add_session(&api, "there", 3);
    let agent = Agent::start(&api, "agent-1");
    until("it leads", || agent.leads()).await;
    // Each of these writes takes as long as the agent waits for one.
    api.hold("pods");
    set_node(&api, 2, "Unknown");
    until("its sessions are being marked", || api.waiting() > 0).await;
    set_node(&api, 3, "Unknown");
    until("out of service", || !serves(&api, "there")).await;
    assert!(api.waiting() < 20, "most sessions of the first node still wait for their turn: {}", api.waiting());
    api.release();
    until("marked", || (0..60).all(|number| reason(&api, &format!("many-{number}")) == "NodeLost")).await;
    agent.ends().await;
}

/// A Service and a route of a session, beside its slice.
fn add_claim(api: &Api, id: &str) {
    let mut object = api.get("endpointslices", "team-a", &format!("s-{id}")).unwrap();
    object["metadata"]["uid"] = Value::Null;
    for (plural, name) in [("services", format!("s-{id}")), ("ingresses", format!("s-{id}"))] {
        object["metadata"]["name"] = json!(name);
        api.put(plural, &object);
    }
}

/// Marks a session's pod for deletion, or lets it end.
fn end(api: &Api, id: &str, is_leaving: bool) {
    let mut pod = api.get("pods", "team-a", id).unwrap();
    if is_leaving {
        pod["metadata"]["deletionTimestamp"] = json!("2026-01-03T00:00:00Z");
    } else {
        pod["status"]["phase"] = json!("Failed");
    }
    api.put("pods", &pod);
}

#[tokio::test(start_paused = true)]
async fn an_id_is_given_up_that_a_pod_has_which_is_over_on_a_lost_node() {
    let api = cluster(3);
    for (id, node) in [("leaves", 2), ("ended", 2), ("lives", 2), ("elsewhere", 3)] {
        add_session(&api, id, node);
        add_claim(&api, id);
    }
    end(&api, "leaves", true);
    end(&api, "ended", false);
    end(&api, "elsewhere", true);
    let agent = Agent::start(&api, "agent-1");
    until("it leads", || agent.leads()).await;
    sleep(Duration::from_mins(10)).await;
    assert_eq!(api.writes(), [""; 0], "its own agent does it");
    api.refuse(Some("ingresses"));
    set_node(&api, 2, "Unknown");
    let has = |plural: &str, id: &str| api.get(plural, "team-a", &format!("s-{id}")).is_some();
    until("what may go goes", || !has("endpointslices", "leaves") && !has("endpointslices", "ended")).await;
    sleep(Duration::from_mins(1)).await;
    assert!(
        has("services", "leaves") && has("services", "ended"),
        "a route is left, and who claims the id may not write it"
    );
    api.refuse(None);
    until("the ids are free", || !has("services", "leaves") && !has("services", "ended")).await;
    for (plural, count) in [("services", 2), ("endpointslices", 2), ("ingresses", 2)] {
        assert!(!has(plural, "leaves") && !has(plural, "ended"), "{plural}");
        assert!(has(plural, "lives") && has(plural, "elsewhere"), "{plural}");
        assert_eq!(agent.metric(&format!("swept_objects_total{{resource=\"{plural}\"}}")), count);
    }
    api.writes();
    let looks = || api.lists("services", "node-hash");
    let before = looks();
    sleep(Duration::from_mins(2)).await;
    assert_eq!((api.writes(), looks()), (vec![], before), "nothing is left to look for");
    end(&api, "lives", true);
    until("that one, too", || !has("services", "lives")).await;
    agent.ends().await;
}
