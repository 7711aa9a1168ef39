//! What becomes of the duties when the elected agent is asked to stop.

use super::*;

/// An agent whose first write for a lost node has begun and gets no answer.
async fn writing(api: &Api) -> Agent {
    add_session(api, "there", 2);
    add_session(api, "also", 2);
    let agent = Agent::start(api, "agent-1");
    until("it leads", || agent.leads()).await;
    api.hold("endpointslices");
    set_node(api, 2, "Unknown");
    until("it writes", || api.waiting() == 2).await;
    agent
}

#[tokio::test(start_paused = true)]
async fn a_write_that_has_begun_is_finished_before_the_lease_is_given_away_and_nothing_new_begins() {
    let api = cluster(2);
    let agent = writing(&api).await;
    agent.stop.drain();
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    assert!(!agent.task.is_finished(), "what is on its way is waited for");
    assert_eq!(holder(&api), "agent-1");
    api.release();
    agent.ends().await;
    assert_eq!(holder(&api), Value::Null);
    assert!(!serves(&api, "there") && !serves(&api, "also"));
    let mut writes = api.writes();
    writes.sort();
    assert_eq!(writes, ["APPLY endpointslices/s-also", "APPLY endpointslices/s-there"]);
}

#[tokio::test(start_paused = true)]
async fn a_write_that_never_ends_does_not_keep_the_lease() {
    let api = cluster(2);
    let agent = writing(&api).await;
    let asked = Instant::now();
    agent.ends().await;
    assert_eq!(holder(&api), Value::Null);
    assert!(asked.elapsed() <= ENDING);
}
