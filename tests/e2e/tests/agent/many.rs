//! Many sessions at once: all of them work, all that was made for them goes with them, and nothing is told twice. A cluster
//! of its own.

use std::collections::BTreeMap;

use anyhow::{Result, ensure};
use cofferdam_cluster::addon::ENVOY_GATEWAY;
use cofferdam_e2e::images::FIXTURE;
use cofferdam_e2e::namespace::{PATIENCE, Sessions, TestNamespace};
use cofferdam_e2e::routing::{ENVOY_GATEWAY_NETWORK, policy, through_gateway};
use cofferdam_e2e::stage::{Setup, Stage};
use cofferdam_e2e::wait::until;
use serde_json::{Value, json};

use crate::agents::samples;
use crate::permissions::what_is_asked_for_is_documented;

/// How many. Two nodes hold 220 pods, by their kubelets' default, and a busy machine starts some of them in a second.
const MANY: usize = 200;

/// What counts sessions as they are now.
const GAUGES: [&str; 4] = ["sessions", "routes", "ports", "addresses"];

#[test]
fn many_sessions_at_once_all_work_and_leave_nothing_behind() {
    let policy = policy(&through_gateway(), ENVOY_GATEWAY_NETWORK);
    let setup = Setup { name: "e2e-many", nodes: 2, addons: &[ENVOY_GATEWAY], policy: &policy, not_ready_after: None };
    let stage = Stage::set_up(&setup).unwrap();
    let namespace = stage.namespace("many", Sessions::Enforced);
    let pods: Vec<Value> = (0..MANY).map(|number| pod(&format!("session-{number}"))).collect();
    let list = json!({"apiVersion": "v1", "kind": "List", "items": pods}).to_string();
    let answer = namespace.ask(["create", "--filename=-"], &list).unwrap();
    assert!(answer.success, "{}", answer.stderr);
    namespace.run(["wait", "pods", "--all", "--for=condition=Ready", "--timeout=600s"]).unwrap();

    let working = [
        r#"sessions{state="published"}"#,
        r#"routes{state="programmed"}"#,
        r#"ports{state="reachable"}"#,
        r#"addresses{identity="proved",state="reachable"}"#,
    ];
    let working = working.map(|sample| (format!("cofferdam_agent_{sample}"), MANY));
    counts(&stage, &BTreeMap::from(working));
    each_step_of_each_session_is_told_once(&namespace);

    namespace.run(["delete", "pods", "--all", "--timeout=600s"]).unwrap();
    counts(&stage, &BTreeMap::new());
    until("all that was made is gone", PATIENCE, || {
        let ours = "--selector=app.kubernetes.io/managed-by=cofferdam-agent";
        let left = namespace.json(["get", "services,endpointslices,httproutes", ours])?;
        let left = left["items"].as_array().map_or(0, Vec::len);
        ensure!(left == 0, "{left} objects are left");
        Ok(())
    })
    .unwrap();
    what_is_asked_for_is_documented(&stage, "many");
}

/// As small as a session can be.
fn pod(name: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": [{
            "name": "main",
            "image": FIXTURE,
            "args": ["listen", "--port", "3000", "--http"],
            "ports": [{"containerPort": 3000}],
            "resources": {"requests": {"cpu": "5m", "memory": "16Mi"}, "limits": {"memory": "32Mi"}},
        }]},
    })
}

/// Waits until the gauges of all agents together are these, and zero where nothing is said.
fn counts(stage: &Stage, wanted: &BTreeMap<String, usize>) {
    until("what agents count", PATIENCE, || {
        let mut all = BTreeMap::<String, usize>::new();
        for gauge in GAUGES {
            for (sample, value) in samples(stage, gauge)? {
                *all.entry(sample).or_default() += value;
            }
        }
        ensure!(all.len() >= 16, "samples are missing: {all:?}");
        all.retain(|_, value| *value > 0);
        ensure!(all == *wanted, "it is {all:?}");
        Ok(())
    })
    .unwrap();
}

fn each_step_of_each_session_is_told_once(namespace: &TestNamespace) {
    // An address that works says that the steps before it are done.
    let steps = ["Published", "Reachable"];
    let told = || -> Result<BTreeMap<(String, String), usize>> {
        let ours = "--field-selector=reportingComponent=cofferdam-agent";
        let list = namespace.json(["get", "events", ours])?;
        let mut told = BTreeMap::new();
        for event in list["items"].as_array().into_iter().flatten() {
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            *told.entry((text(&event["involvedObject"]["name"]), text(&event["reason"]))).or_default() += 1;
        }
        Ok(told)
    };
    until("the events of every start", PATIENCE, || {
        let told = told()?;
        let missing = (0..MANY).flat_map(|number| steps.map(|step| (format!("session-{number}"), step.to_owned())));
        let missing: Vec<_> = missing.filter(|step| !told.contains_key(step)).collect();
        ensure!(missing.is_empty(), "{} are missing, as {:?}", missing.len(), missing.first());
        let twice: Vec<_> = told.iter().filter(|(_, count)| **count > 1).collect();
        ensure!(twice.is_empty(), "told more than once: {twice:?}");
        Ok(())
    })
    .unwrap();
}
