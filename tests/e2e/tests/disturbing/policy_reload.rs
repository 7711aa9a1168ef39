//! The policy changes under running replicas: a good change holds, a broken one keeps the last good one and says so. A
//! cluster of its own.

use std::time::Duration;

use anyhow::ensure;
use cofferdam_e2e::images::{FIXTURE, NAMED_USER};
use cofferdam_e2e::install::REPLICAS;
use cofferdam_e2e::namespace::Sessions;
use cofferdam_e2e::stage::Stage;
use cofferdam_e2e::wait::until;

/// A kubelet takes up to 90 s to follow a ConfigMap, the program 10 s more.
const RELOAD: Duration = Duration::from_mins(5);

/// Only the fixture, and nothing else.
const STRICT: &str = "profiles:\n  default:\n    images:\n      allowed: [\"cofferdam.test/fixture:*\"]\n";

/// Waits until every replica says that of its policy.
fn every_replica_says(stage: &Stage, sample: &str, wanted: &str) {
    until(&format!("{sample} is {wanted} at every replica"), RELOAD, || {
        let values = stage.metrics(sample)?;
        ensure!(values.iter().all(|value| value == wanted), "{values:?}");
        Ok(())
    })
    .unwrap();
}

#[test]
fn a_changed_policy_holds_without_a_rollout_and_a_broken_one_changes_nothing() {
    let stage = Stage::start("e2e-policy", 1).unwrap();
    let namespace = stage.namespace("policy", Sessions::Enforced);
    let replicas = || stage.system(&["get", "pods", REPLICAS, "--output=jsonpath={.items[*].metadata.uid}"]).unwrap();
    let before = replicas();
    let run = |name: &str, image: &str| {
        let image = format!("--image={image}");
        namespace.ask(["run", name, &image, "--", "listen", "--port", "9000"], "").unwrap()
    };
    assert!(run("early", FIXTURE).success && run("other", NAMED_USER).success);

    stage.change_policy(STRICT, REPLICAS).unwrap();
    let swapped = "cofferdam_webhook_policy_reloads_total{outcome=\"swapped\"}";
    every_replica_says(&stage, swapped, "1");
    let late = run("late", NAMED_USER);
    assert!(!late.success && late.stderr.contains("spec.containers[0].image"), "{late:?}");
    let image = format!("early={NAMED_USER}");
    let set = namespace.ask(["set", "image", "pod/early", &image], "").unwrap();
    assert!(!set.success && set.stderr.contains("spec.containers[0].image"), "{set:?}");
    // What runs goes on: its labels, its owner's finalizers, and in the end its deletion.
    namespace.run(["label", "pod", "other", "team=blue"]).unwrap();
    namespace.run(["delete", "pod", "other", "--grace-period=1"]).unwrap();
    assert!(run("later", FIXTURE).success);

    stage.change_policy("profiles:\n  default:\n    imags: {}\n", REPLICAS).unwrap();
    every_replica_says(&stage, "cofferdam_webhook_policy_last_reload_successful", "0");
    for answer in stage.replicas("/readyz").unwrap() {
        assert_eq!(answer, "ok; degraded: policy\n");
    }
    let log = stage.system(&["logs", REPLICAS, "--tail=100"]).unwrap();
    assert!(log.contains("policy.yaml:3") && log.contains("imags"), "{log}");
    // The last good one, not the one that is compiled in.
    let still = run("still", NAMED_USER);
    assert!(!still.success && still.stderr.contains("spec.containers[0].image"), "{still:?}");
    assert!(run("good", FIXTURE).success);

    stage.change_policy("profiles: {default: {}}\n", REPLICAS).unwrap();
    every_replica_says(&stage, swapped, "2");
    assert!(run("again", NAMED_USER).success);
    for answer in stage.replicas("/readyz").unwrap() {
        assert_eq!(answer, "ok\n");
    }
    assert_eq!(replicas(), before, "nobody was restarted");
}
