//! Who leads.

use super::*;

#[tokio::test(start_paused = true)]
async fn one_agent_leads_and_hands_over_when_it_is_asked_to_stop() {
    let api = cluster(2);
    let one = Agent::start(&api, "agent-1");
    until("one leads", || one.leads()).await;
    let two = Agent::start(&api, "agent-2");
    sleep(Duration::from_mins(10)).await;
    assert!(one.leads() && !two.leads());
    assert_eq!(holder(&api), "agent-1");
    one.ends().await;
    assert_eq!(holder(&api), Value::Null, "the lease is free at once");
    assert!(until("two leads", || two.leads()).await < lease::DURATION / 2);
    let lease = api.get("leases", SYSTEM, "cofferdam-agent").unwrap();
    assert_eq!((&lease["spec"]["holderIdentity"], &lease["spec"]["leaseTransitions"]), (&json!("agent-2"), &json!(1)));
    two.ends().await;
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_is_cut_off_gives_up_before_another_takes_over() {
    let api = cluster(2);
    let one = Agent::start(&api, "agent-1");
    until("one leads", || one.leads()).await;
    let two = Agent::start(&api, "agent-2");
    sleep(Duration::from_secs(42)).await;
    one.line.cut();
    assert!(
        until("one gives up", || {
            assert!(!two.leads());
            !one.leads()
        })
        .await
            <= lease::TERM
    );
    until("two leads", || two.leads()).await;
    assert!(!one.leads());
    // It cannot release what it does not hold, and ends all the same.
    one.ends().await;
    assert_eq!(holder(&api), "agent-2");
    two.ends().await;
}

#[tokio::test(start_paused = true)]
async fn a_leader_whose_renewals_are_slow_goes_on_leading() {
    let api = cluster(1);
    let agent = Agent::start(&api, "agent-1");
    until("it leads", || agent.leads()).await;
    api.slow("leases", lease::PATIENCE.checked_sub(Duration::from_millis(100)).unwrap());
    let end = Instant::now() + Duration::from_mins(10);
    until("ten minutes have passed", || {
        assert!(agent.leads());
        Instant::now() >= end
    })
    .await;
    agent.ends().await;
}

#[tokio::test(start_paused = true)]
async fn a_leader_whose_renewals_arrive_and_are_answered_too_late_leaves_the_lease_to_another() {
    let api = cluster(2);
    let one = Agent::start(&api, "agent-1");
    until("one leads", || one.leads()).await;
    let two = Agent::start(&api, "agent-2");
    one.line.answers_writes_after(lease::PATIENCE + Duration::from_secs(1));
    until("one gives up", || !one.leads()).await;
    until("two leads", || two.leads()).await;
    assert!(!one.leads());
    one.ends().await;
    assert_eq!(holder(&api), "agent-2");
    two.ends().await;
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_is_started_again_goes_on_leading_and_a_thief_is_believed() {
    let api = cluster(1);
    let one = Agent::start(&api, "agent-1");
    until("one leads", || one.leads()).await;
    one.task.abort();
    let again = Agent::start(&api, "agent-1");
    assert!(until("it leads again", || again.leads()).await < Duration::from_secs(1));
    let mut lease = api.get("leases", SYSTEM, "cofferdam-agent").unwrap();
    lease["spec"]["holderIdentity"] = json!("thief");
    api.put("leases", &lease);
    assert!(until("it gives up", || !again.leads()).await <= lease::TERM);
    again.ends().await;
    assert_eq!(holder(&api), "thief");
}

#[tokio::test(start_paused = true)]
async fn a_leader_whose_renewals_failed_goes_on_with_the_lease_that_nobody_took() {
    for is_forbidden in [true, false] {
        let api = cluster(1);
        let agent = Agent::start(&api, "agent-1");
        until("it leads", || agent.leads()).await;
        let fails =
            |fails: bool| if is_forbidden { api.refuse(fails.then_some("leases")) } else { agent.line.breaks(fails) };
        fails(true);
        until("it gives up", || !agent.leads()).await;
        fails(false);
        until("it leads again", || agent.leads()).await;
        let lease = api.get("leases", SYSTEM, "cofferdam-agent").unwrap();
        assert_eq!(lease["spec"]["leaseTransitions"], 0, "it was not given away, forbidden: {is_forbidden}");
        agent.ends().await;
    }
}

#[tokio::test(start_paused = true)]
async fn who_is_asked_to_stop_gives_a_lease_away_that_it_does_not_know_to_have() {
    let api = cluster(1);
    let agent = Agent::start(&api, "agent-1");
    agent.line.answers_writes_after(lease::PATIENCE);
    until("it has arrived", || holder(&api) == "agent-1").await;
    assert!(!agent.leads(), "it is not answered");
    agent.line.answers_writes_after(Duration::ZERO);
    agent.ends().await;
    assert_eq!(holder(&api), Value::Null);
}
