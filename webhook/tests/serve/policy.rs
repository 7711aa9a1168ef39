//! The policy changes while the program serves.

use cofferdam_certs::testing::Volume;
use serde_json::Value;

use crate::client::{Secure, plain_review};
use crate::program::Program;

const FILE: &str = "policy.yaml";

fn policy(deadline: u32) -> String {
    format!("profiles:\n  default:\n    lifetime:\n      deadlineSeconds: {deadline}\n")
}

async fn start(volume: &Volume) -> Program {
    let path = volume.path(FILE);
    Program::start(&["--policy", path.to_str().unwrap(), "--policy-poll-interval=10ms"]).await
}

/// The digest of the policy that a pod is hardened by, over a connection that was there all along.
async fn digest(connection: &mut Secure) -> String {
    let answer = connection.post("/mutate/enforced", "application/json", plain_review().as_bytes()).await;
    let response: Value = answer.response();
    assert_eq!(response["allowed"], true, "{response}");
    response["auditAnnotations"]["policy"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_changed_policy_holds_for_the_next_request_and_a_broken_one_changes_nothing() {
    let mut volume = Volume::mount(&[(FILE, &policy(600))]).unwrap();
    let mut program = start(&volume).await;
    let mut connection = program.connect().await;
    let mut before = digest(&mut connection).await;
    for deadline in [700, 800] {
        volume.update(&[(FILE, &policy(deadline))]).unwrap();
        let line = program.logged("a new policy is in force").await;
        let now = digest(&mut connection).await;
        assert_ne!(now, before);
        assert_eq!(line["policy_digest"], now.as_str());
        before = now;
    }
    assert!((program.metric("policy_reloads_total{outcome=\"swapped\"}").await - 2.0).abs() < 0.5);

    volume.update(&[(FILE, "profiles:\n  default:\n    lifetme: {}\n")]).unwrap();
    let line = program.logged("the policy does not load, the last good one stays in force").await;
    let error = line["error"].as_str().unwrap();
    assert!(error.contains("policy.yaml:3") && error.contains("lifetme"), "{error}");
    assert_eq!(digest(&mut connection).await, before);
    assert!(program.metric("policy_reloads_total{outcome=\"failed\"}").await > 0.5);
    assert!(program.metric("policy_last_reload_successful").await < 0.5);
    assert!(program.metric(&format!("policy_info{{digest=\"{before}\"}}")).await > 0.5);
    let ready = program.admin("/readyz").await;
    assert_eq!((ready.status, ready.body.as_str()), (200, "ok; degraded: policy\n"));

    volume.update(&[(FILE, &policy(900))]).unwrap();
    program.logged("a new policy is in force").await;
    let after = digest(&mut connection).await;
    assert_ne!(after, before);
    assert_eq!(program.admin("/readyz").await.body, "ok\n");
    assert!(program.metric("policy_last_reload_successful").await > 0.5);
    // One digest at a time.
    let metrics = program.admin("/metrics").await.body;
    assert_eq!(metrics.lines().filter(|line| line.starts_with("cofferdam_webhook_policy_info{")).count(), 1);
}

#[tokio::test]
async fn a_policy_that_vanishes_keeps_the_last_one_and_may_come_back() {
    let mut volume = Volume::mount(&[(FILE, &policy(600))]).unwrap();
    let mut program = start(&volume).await;
    let mut connection = program.connect().await;
    let before = digest(&mut connection).await;
    // What is left of a volume whose ConfigMap lost its key: a link that leads nowhere.
    volume.update(&[]).unwrap();
    let line = program.logged("the policy does not load, the last good one stays in force").await;
    assert!(line["error"].as_str().unwrap().starts_with("cannot read the policy from "), "{line}");
    assert_eq!(digest(&mut connection).await, before);
    volume.update(&[(FILE, &policy(700))]).unwrap();
    program.logged("a new policy is in force").await;
    assert_ne!(digest(&mut connection).await, before);
}
