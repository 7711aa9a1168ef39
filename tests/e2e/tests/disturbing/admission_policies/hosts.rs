//! Which hosts are those of sessions: the policy says, and where it says none, or nothing is known of it, all are anybody's.

use anyhow::{Result, ensure};
use cofferdam_e2e::kubectl::Answer;
use cofferdam_e2e::namespace::PATIENCE;
use cofferdam_e2e::wait::until;
use cofferdam_model::policy::{Policy, params};
use serde_json::{Value, json};

use super::{refused_by, stage};

/// What the API server says of an Ingress for such a host.
fn asked_for(host: &str) -> Answer {
    let backend = json!({"service": {"name": "any", "port": {"number": 80}}});
    let paths = json!([{"path": "/", "pathType": "Prefix", "backend": backend}]);
    let ingress = json!({"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": {"name": "any"},
        "spec": {"rules": [{"host": "web.example.test"}, {"host": host, "http": {"paths": paths}}]}});
    let create = ["create", "--namespace=default", "--filename=-", "--dry-run=server"];
    stage().kubectl.ask(create, &ingress.to_string()).unwrap()
}

fn say(hosts: &Value) {
    let patch = json!({"data": {"routing.hosts": hosts}}).to_string();
    stage().system(&["patch", "configmap/cofferdam-policy-params", "--type=merge", "--patch", &patch]).unwrap();
}

fn passes() -> Result<()> {
    let answer = asked_for("3000-any.example.test");
    ensure!(answer.success, "{}", answer.stderr);
    Ok(())
}

#[test]
fn hosts_are_anybodys_unless_the_policy_gives_sessions_theirs() {
    passes().unwrap();
    let text = "profiles: {default: {}}\nrouting: {baseDomain: example.test}";
    let of_sessions = &params(&Policy::parse("policy.yaml", text).unwrap())["routing.hosts"];
    say(&json!(of_sessions));
    until("the API server knows the parameters", PATIENCE, || refused_by("hosts", &asked_for("3000-any.example.test")))
        .unwrap();
    let other = asked_for("3000-any.sub.example.test");
    assert!(other.success, "{}", other.stderr);
    // Of a version that did not know it.
    say(&Value::Null);
    until("nothing is refused", PATIENCE, passes).unwrap();
}
