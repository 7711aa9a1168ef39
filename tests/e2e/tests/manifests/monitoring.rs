//! Alerts and dashboard: each alert has its page and its trial, and nothing asks for a metric that nobody has.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::path::Path;

use cofferdam_cluster::addon::prometheus::promtool;
use cofferdam_e2e::monitoring::{
    OF_AGENTS, OF_THE_API, OF_THE_WEBHOOK, alert_rules, component, family, metrics, panel_queries, rules_file,
};
use serde_json::{Value, json};

use crate::objects::{Objects, labels_of, overlay_with, selects, text};

fn known() -> BTreeSet<String> {
    let of_agents = OF_AGENTS.iter().map(|name| format!("cofferdam_agent_{name}"));
    let of_the_api = OF_THE_API.iter().map(|name| format!("cofferdam_api_{name}"));
    let of_the_webhook = OF_THE_WEBHOOK.iter().map(|name| format!("cofferdam_webhook_{name}"));
    of_agents.chain(of_the_api).chain(of_the_webhook).collect()
}

#[test]
fn alerts_and_panels_read_metrics_that_exist() {
    let known = known();
    let mut read = BTreeSet::new();
    let alerts = alert_rules().expect("the alerts are shipped").into_iter().map(|rule| (rule.alert, rule.expr));
    let panels = panel_queries().expect("the dashboard is shipped").into_iter().map(|query| (query.panel, query.expr));
    for (name, expression) in alerts.chain(panels) {
        let asked = metrics(&expression);
        assert!(!asked.is_empty() || expression.starts_with("up{"), "{name}: {expression}");
        assert!(asked.is_subset(&known), "{name}: {expression}");
        read.extend(asked);
    }
    assert!(read.len() > 30, "{read:?}");
    assert_eq!(family("cofferdam_agent_startup_seconds_bucket"), "cofferdam_agent_startup_seconds");
}

#[test]
fn every_alert_has_its_runbook_and_every_runbook_its_alert() {
    let root = component().join("../../..");
    let mut alerts = BTreeSet::new();
    for rule in alert_rules().expect("the alerts are shipped") {
        assert_eq!(rule.runbook, format!("docs/runbooks/{}.md", rule.alert));
        let page =
            fs::read_to_string(root.join(&rule.runbook)).unwrap_or_else(|error| panic!("{}: {error}", rule.alert));
        for part in [format!("# {}\n", rule.alert).as_str(), "**What users see.**", "## Look at", "## Do"] {
            assert!(page.contains(part), "{}: {part}", rule.alert);
        }
        assert!(["critical", "warning"].contains(&rule.severity.as_str()), "{}", rule.alert);
        assert!(rule.texts.iter().all(|text| text.ends_with('.')), "{:?}", rule.texts);
        assert!(alerts.insert(rule.alert.clone()), "{} is there twice", rule.alert);
    }
    let pages = fs::read_dir(root.join("docs/runbooks")).expect("the runbooks are in the checkout");
    let pages: BTreeSet<_> = pages
        .map(|page| page.expect("it is readable").file_name().to_string_lossy().trim_end_matches(".md").to_owned())
        .collect();
    assert_eq!(pages, alerts);
}

#[test]
fn every_alert_is_tried() {
    let tests = fs::read_to_string(component().join("tests/alerts.yaml")).expect("the tests are shipped");
    for rule in alert_rules().expect("the alerts are shipped") {
        let fires = format!("labels: 'ALERTS{{alertname=\"{}\", alertstate=\"firing\"", rule.alert);
        assert!(tests.contains(&fires), "{}", rule.alert);
    }
    let rules: Value = serde_json::from_str(&rules_file().expect("the alerts are shipped")).expect("it is JSON");
    assert!(rules["groups"].as_array().is_some_and(|groups| groups.len() > 2));
}

/// The base with the component.
fn monitored(name: &str, settings: &str) -> Objects {
    Objects::render(&overlay_with(name, settings, &["cert-manager", "api", "monitoring"]))
}

#[test]
fn every_program_is_scraped_at_the_port_that_it_has() {
    let renamed = "namespace: guard\nnamePrefix: acme-\ntransformers: [NAMES]\n";
    for (name, settings) in [("monitored", ""), ("monitored-renamed", renamed)] {
        let objects = monitored(name, settings);
        let spec = &objects.only("PodMonitor")["spec"];
        for workload in objects.workloads() {
            let template = &workload["spec"]["template"];
            assert!(selects(&spec["selector"], &labels_of(&template["metadata"]["labels"])), "{workload}");
            let port = &spec["podMetricsEndpoints"][0]["port"];
            let ports = template["spec"]["containers"][0]["ports"].as_array().expect("it has ports");
            assert!(ports.iter().any(|declared| declared["name"] == *port), "{workload}");
        }
        let namespace = &objects.only("DaemonSet")["metadata"]["namespace"];
        for kind in ["PodMonitor", "PrometheusRule"] {
            assert_eq!(objects.only(kind)["metadata"]["namespace"], *namespace);
        }
        let down = alert_rules().expect("they are shipped").into_iter().find(|rule| rule.alert == "CofferdamAgentDown");
        let pods = format!("{}-", text(&objects.only("DaemonSet")["metadata"]["name"]));
        assert!(down.expect("it ships").expr.contains("\".*cofferdam-agent-.*\"") && pods.contains("cofferdam-agent-"));
    }
}

#[test]
fn grafana_finds_the_dashboard() {
    let objects = monitored("dashboard", "");
    let map = objects.named("ConfigMap", "cofferdam-dashboard").expect("it ships");
    assert_eq!(map["metadata"]["labels"]["grafana_dashboard"], "1");
    let file = fs::read_to_string(component().join("dashboard.json")).expect("it ships");
    assert_eq!(map["data"], json!({"cofferdam.json": file}));
    let dashboard: Value = serde_json::from_str(&file).expect("it is JSON");
    let ids: Vec<_> = dashboard["panels"].as_array().expect("it has panels").iter().map(|panel| &panel["id"]).collect();
    assert_eq!(ids.iter().map(ToString::to_string).collect::<BTreeSet<_>>().len(), ids.len(), "{ids:?}");
}

/// Prometheus' own tool runs `tests/alerts.yaml`: each alert fires when it should, and none where all is well.
#[test]
fn alerts_fire_when_they_should() {
    let directory = tempfile::tempdir().expect("there is room");
    let (rules, tests) = (directory.path().join("rules.yaml"), directory.path().join("alerts.yaml"));
    let shipped = rules_file().expect("the alerts are shipped");
    fs::write(&rules, &shipped).expect("there is room");
    fs::copy(component().join("tests/alerts.yaml"), &tests).expect("the tests are shipped");
    let judge = |words: [&str; 2], file: &Path| {
        promtool(words.iter().map(|word| OsString::from(*word)).chain([file.as_os_str().to_owned()]), "")
    };
    judge(["check", "rules"], &rules).unwrap_or_else(|error| panic!("{error}"));
    judge(["test", "rules"], &tests).unwrap_or_else(|error| panic!("{error}"));
    // An alert that never fires is seen.
    let never = shipped.replace("max(cofferdam_agent_lost_nodes) > 0", "max(cofferdam_agent_lost_nodes) > 9");
    assert_ne!(never, shipped);
    fs::write(&rules, never).expect("there is room");
    assert!(judge(["test", "rules"], &tests).is_err());
}
