//! What happens to creations while the webhook is replaced, killed, or gone. A cluster of its own, one fault at a time.

use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use anyhow::ensure;
use cofferdam_e2e::creations::Creations;
use cofferdam_e2e::images::FIXTURE;
use cofferdam_e2e::install::REPLICAS;
use cofferdam_e2e::namespace::{PATIENCE, Sessions};
use cofferdam_e2e::stage::Stage;
use cofferdam_e2e::wait::until;

/// The stage, and the turn: faults do not mix.
fn stage() -> (&'static Stage, MutexGuard<'static, ()>) {
    static STAGE: OnceLock<Stage> = OnceLock::new();
    static TURN: Mutex<()> = Mutex::new(());
    let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    (STAGE.get_or_init(|| Stage::start("e2e-faults", 1).unwrap()), turn)
}

fn system(stage: &Stage, arguments: &[&str]) -> String {
    stage.system(arguments).unwrap()
}

/// The replicas, each as its name and its uid.
fn replicas(stage: &Stage) -> Vec<String> {
    let list = system(
        stage,
        &["get", "pods", REPLICAS, "--output=jsonpath={range .items[*]}{.metadata.name} {.metadata.uid}{\"\\n\"}{end}"],
    );
    list.lines().map(str::to_owned).collect()
}

fn both_replicas_serve(stage: &Stage) {
    system(stage, &["rollout", "status", "deployment/cofferdam-webhook", "--timeout=120s"]);
}

/// Does something while no replica is there.
fn without_webhook<T>(stage: &Stage, work: impl FnOnce() -> T) -> T {
    system(stage, &["scale", "deployment/cofferdam-webhook", "--replicas=0"]);
    system(stage, &["wait", "--for=delete", "pod", REPLICAS, "--timeout=120s"]);
    let result = work();
    system(stage, &["scale", "deployment/cofferdam-webhook", "--replicas=2"]);
    both_replicas_serve(stage);
    result
}

#[test]
fn without_a_webhook_sessions_are_refused_and_other_namespaces_go_on() {
    let (stage, _turn) = stage();
    let sessions = stage.namespace("down-enforced", Sessions::Enforced);
    let ordinary = stage.namespace("down-ordinary", Sessions::None);
    let warned = stage.namespace("down-warn", Sessions::Warn);
    let image = format!("--image={FIXTURE}");
    let run = ["run", "late", &image, "--restart=Never", "--", "status"];
    let (refused, labelled, others, workload) = without_webhook(stage, || {
        let refused = sessions.ask(run, "").unwrap();
        let labelled = ordinary.ask(["run", "labelled", &image, "--labels=cofferdam.dev/session="], "").unwrap();
        // Who is only told something is not held up by nobody telling it.
        let workload = sessions.ask(["create", "deployment", "late", &image, "--replicas=0"], "").unwrap();
        (refused, labelled, [ordinary.ask(run, "").unwrap(), warned.ask(run, "").unwrap()], workload)
    });
    for answer in [refused, labelled] {
        assert!(!answer.success && answer.stderr.contains("failed calling webhook"), "{answer:?}");
    }
    for answer in others {
        assert!(answer.success, "{answer:?}");
    }
    assert!(workload.success, "{workload:?}");
    ordinary.succeeded("late").unwrap();
    warned.succeeded("late").unwrap();
    until("sessions are admitted again", PATIENCE, || sessions.run(run)).unwrap();
    sessions.succeeded("late").unwrap();
}

#[test]
fn b26_without_a_webhook_running_sessions_go_on_and_end() {
    let (stage, _turn) = stage();
    let sessions = stage.namespace("down-running", Sessions::Enforced);
    let image = format!("--image={FIXTURE}");
    for name in ["kept", "ended"] {
        sessions.run(["run", name, &image, "--", "listen", "--port", "9000"]).unwrap();
        sessions.ready(name).unwrap();
    }
    let finalizers = |value: &str| format!("{{\"metadata\":{{\"finalizers\":{value}}}}}");
    let (held, freed) = (finalizers("[\"cofferdam.test/held\"]"), finalizers("null"));
    let condition = r#"{"status":{"conditions":[{"type":"cofferdam.test/Seen","status":"True"}]}}"#;
    let deadline = r#"{"spec":{"activeDeadlineSeconds":600}}"#;
    let everywhere = r#"[{"op":"add","path":"/spec/tolerations/-","value":{"operator":"Exists"}}]"#;
    let cpu = r#"{"spec":{"containers":[{"name":"kept","resources":{"limits":{"cpu":"400m"}}}]}}"#;
    let (harmless, loosening) = without_webhook(stage, || {
        let harmless: [&[&str]; 6] = [
            &["label", "pod", "kept", "team=blue"],
            &["patch", "pod", "kept", "--patch", &held],
            &["patch", "pod", "kept", "--patch", &freed],
            &["patch", "pod", "kept", "--subresource=status", "--patch", condition],
            &["patch", "pod", "kept", "--patch", deadline],
            &["delete", "pod", "ended", "--timeout=120s"],
        ];
        let loosening: [&[&str]; 4] = [
            &["set", "image", "pod/kept", "kept=cofferdam.test/other:1"],
            &["patch", "pod", "kept", "--type=json", "--patch", everywhere],
            &["patch", "pod", "kept", "--subresource=resize", "--patch", cpu],
            &["debug", "kept", &image, "--", "status"],
        ];
        let ask = |words: &&[&str]| sessions.ask(words.iter().copied(), "").unwrap();
        (harmless.iter().map(ask).collect::<Vec<_>>(), loosening.iter().map(ask).collect::<Vec<_>>())
    });
    for answer in harmless {
        assert!(answer.success, "{answer:?}");
    }
    for answer in loosening {
        assert!(!answer.success && answer.stderr.contains("failed calling webhook"), "{answer:?}");
    }
}

#[test]
fn no_creation_fails_while_a_replica_is_deleted() {
    let (stage, _turn) = stage();
    both_replicas_serve(stage);
    let namespace = stage.namespace("deleted", Sessions::Enforced);
    let creations = Creations::start(stage, namespace.name()).unwrap();
    // Both, one after the other: whichever the API server has its connections to is among them.
    for replica in replicas(stage) {
        let name = replica.split_once(' ').unwrap().0.to_owned();
        system(stage, &["delete", "pod", &name, "--timeout=120s"]);
        both_replicas_serve(stage);
    }
    let report = creations.stop().unwrap();
    assert_eq!((&report.failures, report.unhardened), (&Vec::new(), 0));
    assert!(report.created > 20, "{report:?}");
    println!("{} creations while both replicas were replaced, none failed", report.created);
}

#[test]
fn a_replica_that_is_killed_costs_refusals_for_seconds_and_no_hardening() {
    let (stage, _turn) = stage();
    both_replicas_serve(stage);
    let namespace = stage.namespace("killed", Sessions::Enforced);
    for replica in replicas(stage) {
        let (name, uid) = replica.split_once(' ').unwrap();
        let restarts =
            || system(stage, &["get", "pod", name, "--output=jsonpath={.status.containerStatuses[0].restartCount}"]);
        let before = restarts();
        let creations = Creations::start(stage, namespace.name()).unwrap();
        kill(stage, uid);
        until("the kubelet starts it again", PATIENCE, || {
            ensure!(restarts() != before, "it has not noticed");
            Ok(())
        })
        .unwrap();
        both_replicas_serve(stage);
        assert!(creations.running(), "the client gave up");
        let report = creations.stop().unwrap();
        assert_eq!(report.unhardened, 0);
        for (_, words) in &report.failures {
            assert!(words.contains("failed calling webhook"), "{words}");
        }
        println!(
            "{} creations while one replica of two was killed: {} failed, over {:?}",
            report.created,
            report.failures.len(),
            report.outage()
        );
    }
}

/// Kills the program of a replica with SIGKILL: no drain, no word to anyone.
fn kill(stage: &Stage, uid: &str) {
    // The container's processes are those in a cgroup that carries the pod's uid; the pause program is left alone.
    let script = format!(
        "for p in /proc/[0-9]*; do \
           if grep -qs {uid} $p/cgroup && [ \"$(cat $p/comm)\" = cofferdam-webho ]; then kill -9 ${{p#/proc/}}; found=1; fi; \
         done; [ $found = 1 ]"
    );
    let status = stage.cluster.inside("node-1").unwrap().all("sh").args(["-c", &script]).status().unwrap();
    assert!(status.success(), "no program of replica {uid} was found");
}
