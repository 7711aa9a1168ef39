//! A session with an address, and what is said of it until it works.

use std::net::SocketAddr;

use anstream::println;
use anyhow::{Context, Result, ensure};
use cofferdam_cluster::cluster::Cluster;
use serde_json::Value;

use super::say::{BOLD, DIM, GOOD, command, heading, indent, speak};
use crate::images::FIXTURE;
use crate::install::SESSIONS;
use crate::kubectl::Kubectl;
use crate::namespace::PATIENCE;
use crate::routing::{Door, condition, endpoints, events, message};
use crate::wait::until;

/// The port of this machine that leads to the gateway, unless somebody has it.
const PORT: u16 = 8088;

/// The session's port.
const LISTENS: u16 = 3000;

/// What the agent says of a pod with an address.
const CONDITIONS: [&str; 4] = ["Hardened", "PortsReachable", "RouteProgrammed", "RouteReachable"];

/// Offers the cluster's gateway on a port of this machine, which browsers find under every host below `localhost`.
pub(super) fn door(cluster: &Cluster, kubectl: &Kubectl) -> Result<Door> {
    let of = ["--namespace=gateway", "get", "gateway/sessions", "--output=jsonpath={.status.addresses[0].value}"];
    let address = kubectl.run(of)?;
    let address = address.parse().with_context(|| format!("the gateway's address is {address:?}"))?;
    // Any other will do: the policy tells people which.
    Ok(Door::of_port(super::offer(cluster, SocketAddr::new(address, 80), PORT)?))
}

/// The policy of the demo: the profiles as shipped, and addresses that open on this machine.
pub(super) fn policy(port: u16) -> String {
    format!(
        "profiles:
  default: {{command: [sh, $(ENTRY)]}}
  app: {{lifetime: {{deadlineSeconds: 21600}}}}
  workspace: {{pod: {{containers: 8, sum: 8}}}}
routing:
  baseDomain: localhost
  gateway: {{name: sessions, namespace: gateway}}
  publicURL: {{scheme: http, port: {port}}}
network:
  dataPlaneNamespaces: [envoy-gateway-system]
"
    )
}

/// Makes a session with a port, shows how it comes to its address, and returns the URL.
pub(super) fn show(kubectl: &Kubectl, door: Door, policy: &str) -> Result<String> {
    heading("5. A pod with a port: it gets an address, and is Ready when that works");
    println!("  {DIM}a Gateway is there already; this much of the policy names it:{DIM:#}");
    indent(policy.find("routing:").map_or(policy, |routing| &policy[routing..]));
    kubectl.run(["delete", "pod", "web", "--namespace", SESSIONS, "--ignore-not-found"])?;
    let (image, port) = (format!("--image={FIXTURE}"), format!("{LISTENS}"));
    let exposed = format!("--port={port}");
    let run = ["run", "web", &image, &exposed, "--namespace", SESSIONS, "--", "listen", "--port", &port, "--http"];
    for words in [&run[..], &["wait", "pod/web", "--for=condition=Ready", "--timeout=120s", "--namespace", SESSIONS]] {
        command(words);
        let answer = kubectl.ask(words, "")?;
        speak(&answer);
        ensure!(answer.success, "kubectl {} failed", words[0]);
    }
    let pod = settled(kubectl)?;

    let describe = ["describe", "pod", "web", "--namespace", SESSIONS];
    command(&describe);
    for line in concerning(&kubectl.run(describe)?) {
        println!("  {line}");
    }
    println!("\n  Reasons and messages of the conditions that are Cofferdam's:\n");
    for name in CONDITIONS {
        let (status, reason) = condition(&pod, name).split_once('/').map(owned).unwrap_or_default();
        println!(
            "  {GOOD}✓{GOOD:#} {name:<16} {BOLD}{status} {reason:<13}{BOLD:#} {DIM}{}{DIM:#}",
            message(&pod, name)
        );
    }

    let url = endpoints(&pod)?["ports"][0]["url"].as_str().context("the session has no URL")?.to_owned();
    println!("\n  The address, as the annotation cofferdam.dev/endpoints has it, asked from this machine:");
    println!("\n  {BOLD}$ curl --include {url}{BOLD:#}");
    let host = url.trim_start_matches("http://").trim_end_matches('/');
    let answer = door.get(host)?;
    indent(&format!("{}\n\n{}", answer.head, answer.body));
    ensure!(answer.status == 200, "the address answered {}", answer.status);
    Ok(url)
}

fn owned((status, reason): (&str, &str)) -> (String, String) {
    (status.to_owned(), reason.to_owned())
}

/// The pod, once everything is said of it: Ready waits for one condition, and the others may follow a moment later.
fn settled(kubectl: &Kubectl) -> Result<Value> {
    until("all that is said of the session", PATIENCE, || {
        let pod = kubectl.json(["get", "pod", "web", "--namespace", SESSIONS])?;
        for name in CONDITIONS {
            let is = condition(&pod, name);
            ensure!(is.starts_with("True/"), "{name} is {is:?}: {}", message(&pod, name));
        }
        let events = events(kubectl, SESSIONS, "web")?;
        ensure!(events.iter().any(|event| event == "Reachable"), "the events so far: {events:?}");
        Ok(pod)
    })
}

/// Of what `kubectl describe pod` prints: gates, conditions and events.
fn concerning(description: &str) -> Vec<&str> {
    let mut is_wanted = false;
    let lines = description.lines().filter(|line| {
        if !line.starts_with(' ') {
            is_wanted = ["Readiness Gates:", "Conditions:", "Events:"].iter().any(|head| line.starts_with(head));
        }
        is_wanted
    });
    lines.collect()
}

#[cfg(test)]
mod tests {
    use cofferdam_model::policy::Policy;

    use super::*;

    #[test]
    fn a_session_is_where_a_browser_on_this_machine_looks() {
        let policy = Policy::parse("policy.yaml", &policy(PORT)).unwrap();
        let routing = policy.routing();
        assert!(routing.is_on() && routing.base_domain.as_deref() == Some("localhost"));
        assert_eq!(routing.public_url.of("3000-abc.localhost"), "http://3000-abc.localhost:8088/");
    }

    #[test]
    fn of_a_description_only_what_concerns_the_address_is_shown() {
        let text = "Name:   web\nConditions:\n  Type   Status\n  Ready  True\nVolumes:\n  tmp:\nEvents:\n  Type\n";
        assert_eq!(concerning(text), ["Conditions:", "  Type   Status", "  Ready  True", "Events:", "  Type"]);
    }
}
