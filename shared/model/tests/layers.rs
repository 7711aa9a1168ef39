//! The model decides; it does no I/O. What it may be linked with is read from the resolved dependency graph.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::{
    collections::{BTreeMap, BTreeSet},
    process::Command,
};

use serde_json::Value;

const MODEL: &str = "cofferdam-model";

/// Crates that would let the model reach the network, a runtime or a cluster.
const OUT_OF_REACH: [&str; 8] =
    ["tokio", "hyper", "hyper-util", "kube", "kube-client", "kube-runtime", "rustls", "cofferdam-runtime"];

/// The names of all crates that a build of `of` links, itself left out: normal dependencies, on every platform.
fn reached(metadata: &Value, of: &str) -> BTreeSet<String> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let names: BTreeMap<String, String> =
        list(&metadata["packages"]).iter().map(|package| (text(&package["id"]), text(&package["name"]))).collect();
    let edges: BTreeMap<String, Vec<String>> = list(&metadata["resolve"]["nodes"])
        .iter()
        .map(|node| {
            let is_normal = |dep: &&Value| list(&dep["dep_kinds"]).iter().any(|kind| kind["kind"].is_null());
            let deps = list(&node["deps"]);
            (text(&node["id"]), deps.iter().filter(is_normal).map(|dep| text(&dep["pkg"])).collect())
        })
        .collect();
    let mut reached = BTreeSet::new();
    let mut ahead: Vec<&String> = names.iter().filter(|(_, name)| *name == of).map(|(id, _)| id).collect();
    assert_eq!(ahead.len(), 1, "{of} is in the workspace once");
    while let Some(id) = ahead.pop() {
        for next in &edges[id] {
            if reached.insert(names[next].clone()) {
                ahead.push(next);
            }
        }
    }
    reached
}

fn metadata() -> Value {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--locked", "--all-features"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn the_model_reaches_neither_a_runtime_nor_the_network_nor_a_cluster() {
    let reached = reached(&metadata(), MODEL);
    // The walk works: these are really there.
    assert!(reached.contains("serde_json") && reached.contains("json-patch"), "{reached:?}");
    let wrong: Vec<&str> = OUT_OF_REACH.into_iter().filter(|name| reached.contains(*name)).collect();
    assert!(wrong.is_empty(), "{MODEL} reaches {wrong:?}");
}

#[test]
fn the_walk_sees_what_is_reached_through_others() {
    // A crate that does reach them, so that an empty answer above means something.
    let reached = reached(&metadata(), "cofferdam-webhook");
    assert!(reached.contains("tokio") && reached.contains("hyper") && reached.contains(MODEL), "{reached:?}");
}
