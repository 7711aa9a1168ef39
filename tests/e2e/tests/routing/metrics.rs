//! Prometheus sees what the agents do, and can be asked everything that the alerts and the dashboard ask.

use std::collections::BTreeSet;
use std::fs;

use anyhow::{Context as _, Result, ensure};
use cofferdam_cluster::addon::prometheus::{promtool, query};
use cofferdam_e2e::monitoring::{
    OF_AGENTS, OF_LISTENERS, OF_THE_WEBHOOK, alert_rules, component, family, panel_queries,
};
use cofferdam_e2e::namespace::PATIENCE;
use cofferdam_e2e::routing::endpoints;
use cofferdam_e2e::wait::until;
use serde_json::Value;

use crate::shared::{create, metrics_of_agents, reachable, sessions, stage, unpublished, web};

/// What Prometheus answers now.
fn ask(expression: &str) -> Result<Vec<Value>> {
    let mut result = query(&stage().cluster, expression)?;
    match result.take() {
        Value::Array(series) => Ok(series),
        other => anyhow::bail!("{expression}: {other}"),
    }
}

/// The only value that Prometheus answers.
fn value(expression: &str) -> Result<f64> {
    let series = ask(expression)?;
    let value = series.first().with_context(|| format!("{expression}: nothing"))?;
    ensure!(series.len() == 1, "{expression}: {series:?}");
    Ok(value["value"][1].as_str().context("a sample has a value")?.parse()?)
}

/// Waits until an expression is true.
fn holds(expression: &str) {
    until(expression, PATIENCE, || {
        let series = ask(expression)?;
        ensure!(!series.is_empty(), "{:?}", ask(expression.split(['<', '>', '=']).next().unwrap_or_default()));
        Ok(())
    })
    .unwrap();
}

/// How many addresses work, by what is told of each pod.
fn told_reachable() -> Result<usize> {
    let pods = stage().kubectl.json(["get", "pods", "--all-namespaces"])?;
    let pods = pods["items"].as_array().into_iter().flatten();
    let works = |pod: &Value| {
        let ports =
            endpoints(pod).ok().and_then(|endpoints| endpoints["ports"].as_array().cloned()).unwrap_or_default();
        ports.iter().filter(|port| port["address"]["state"] == "reachable").count()
    };
    Ok(pods.map(works).sum())
}

/// Waits until Prometheus says the same of addresses as the pods do; other tests have sessions too.
fn agrees() {
    until("Prometheus and the pods agree", PATIENCE, || {
        let before = told_reachable()?;
        let counted = value("sum(cofferdam_agent_addresses{state=\"reachable\"})")?;
        let after = told_reachable()?;
        ensure!(before == after && format!("{counted}") == after.to_string(), "{before}, {counted}, {after}");
        Ok(())
    })
    .unwrap();
}

#[test]
fn b154_b158_prometheus_sees_a_session_from_its_start_to_its_end_and_no_series_is_named_for_it() {
    holds("count(up{job=\"agent\"} == 1) == 2");
    holds("count(cofferdam_agent_build_info{version!=\"\"} == 1) == 2");
    holds("count(count by (digest) (cofferdam_agent_policy_info or cofferdam_webhook_policy_info)) == 1");
    holds("sum(cofferdam_agent_leader) == 1");
    // Every resource is watched, and every watch hears a bookmark each minute.
    for resource in ["pods", "services", "endpointslices", "httproutes", "networkpolicies", "namespaces"] {
        let last = format!("cofferdam_agent_watch_last_event_timestamp_seconds{{resource=\"{resource}\"}}");
        holds(&format!("count(time() - {last} < 300) == 2"));
    }
    for watch in ["nodes", "agents", "namespaces", "sessions", "networkpolicies"] {
        let last = format!("cofferdam_agent_watch_last_event_timestamp_seconds{{resource=\"elected_{watch}\"}}");
        holds(&format!("count(time() - {last} < 300) == 1"));
    }
    let grows = [
        "cofferdam_agent_startup_seconds_count{stage=\"scheduled\"}",
        "cofferdam_agent_startup_seconds_count{stage=\"running\"}",
        "cofferdam_agent_startup_seconds_count{stage=\"published\"}",
        "cofferdam_agent_startup_seconds_count{stage=\"programmed\"}",
        "cofferdam_agent_startup_seconds_count{stage=\"reachable\"}",
        "cofferdam_agent_publish_seconds_count",
        "cofferdam_agent_applies_total{resource=\"services\",verb=\"create\"}",
        "cofferdam_agent_applies_total{resource=\"endpointslices\",verb=\"apply\"}",
        "cofferdam_agent_applies_total{resource=\"httproutes\",verb=\"apply\"}",
        "cofferdam_agent_pod_status_patches_total",
        "cofferdam_agent_events_total{outcome=\"sent\"}",
        "cofferdam_agent_probes_total{probe=\"port\",result=\"ok\"}",
        "cofferdam_agent_probes_total{probe=\"address\",result=\"ok\"}",
    ]
    .map(|sample| format!("sum({sample})"));
    let before = grows.each_ref().map(|sum| value(sum).unwrap());
    let series = "count({__name__=~\"cofferdam_agent_.*\"})";
    let count = value(series).unwrap();

    let namespace = sessions("metrics");
    create(&namespace, [web("seen-by-prometheus")]);
    reachable(&namespace, "seen-by-prometheus");
    for (sum, before) in grows.iter().zip(before) {
        holds(&format!("{sum} > {before}"));
    }
    for sum in ["sessions{state=\"published\"}", "routes{state=\"programmed\"}", "ports{state=\"reachable\"}"] {
        holds(&format!("sum(cofferdam_agent_{sum}) > 0"));
    }
    agrees();
    let all = ask("{__name__=~\"cofferdam_.*\"}").unwrap();
    assert!(all.len() > 100, "{}", all.len());
    for of in ["seen-by-prometheus", "metrics\""] {
        let named: Vec<_> = all.iter().filter(|series| series["metric"].to_string().contains(of)).collect();
        assert!(named.is_empty(), "{named:?}");
    }

    namespace.run(["delete", "pod", "seen-by-prometheus", "--grace-period=1"]).unwrap();
    unpublished(&namespace, "seen-by-prometheus");
    agrees();
    holds(&format!("{series} == {count}"));
}

#[test]
fn what_alerts_and_dashboard_ask_is_understood_and_answered() {
    for rule in alert_rules().unwrap() {
        // Whether it fires is another question.
        ask(&rule.expr).unwrap_or_else(|error| panic!("{}: {error:#}", rule.alert));
    }
    for panel in panel_queries().unwrap() {
        until(&panel.panel, PATIENCE, || {
            ensure!(!ask(&panel.expr)?.is_empty(), "{}: nothing", panel.expr);
            Ok(())
        })
        .unwrap();
    }
}

#[test]
fn every_metric_that_is_known_is_there_and_no_other() {
    // Switched on by a flag.
    let on_request = "session_address_reachable";
    for (program, known) in [("agent", OF_AGENTS), ("webhook", OF_THE_WEBHOOK)] {
        let prefix = format!("cofferdam_{program}_");
        let wanted: BTreeSet<&str> = known.iter().copied().filter(|name| *name != on_request).collect();
        until(&format!("what is known of the {program}"), PATIENCE, || {
            let found = ask(&format!("count by (__name__) ({{__name__=~\"{prefix}.*\"}})"))?;
            let names = found.iter().filter_map(|series| series["metric"]["__name__"].as_str());
            let found: BTreeSet<&str> = names.filter_map(|name| family(name).strip_prefix(&prefix)).collect();
            let missing: Vec<_> = wanted.difference(&found).collect();
            ensure!(missing.is_empty(), "missing: {missing:?}");
            let strange: Vec<_> = found.difference(&wanted).filter(|name| !is_of_a_listener(name)).collect();
            ensure!(strange.is_empty(), "not known: {strange:?}");
            Ok(())
        })
        .unwrap();
    }
}

fn is_of_a_listener(name: &str) -> bool {
    OF_LISTENERS.contains(&name) || name == "build_info"
}

#[test]
fn promtool_finds_nothing_to_say_about_what_is_exposed() {
    let texts = [metrics_of_agents().unwrap(), stage().replicas("/metrics").unwrap()].concat();
    assert_eq!(texts.len(), 4);
    for text in texts {
        assert_eq!(promtool(["check", "metrics"], &text).unwrap(), "", "{text}");
    }
}

#[test]
fn the_kinds_of_the_prometheus_operator_take_what_is_shipped() {
    for file in ["pod-monitor.yaml", "alerts.yaml"] {
        let manifest = fs::read_to_string(component().join(file)).unwrap();
        let how = ["create", "--dry-run=server", "--validate=strict", "--filename=-"];
        stage().kubectl.run_with(how, &manifest).unwrap();
    }
}
