//! What the manifests ask of our metrics: the alerts, and the panels of the dashboard.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::Value;

/// What agents count, by the names of its families, without `cofferdam_agent_`.
pub const OF_AGENTS: &[&str] = &[
    "addresses",
    "api_errors_total",
    "applies_total",
    "build_info",
    "deleted_pods_total",
    "events_total",
    "leader",
    "lost_node_brake",
    "lost_nodes",
    "pod_status_patches_total",
    "policy_info",
    "policy_last_reload_successful",
    "policy_reloads_total",
    "ports",
    "probe_wait_seconds",
    "probes_per_second_limit",
    "probes_total",
    "publish_seconds",
    "queue_depth",
    "replaced_objects_total",
    "routes",
    "session_address_reachable",
    "sessions",
    "silent_agents",
    "slipped_through_deletions_held_total",
    "slipped_through_pods_total",
    "startup_seconds",
    "swept_objects_total",
    "watch_last_event_timestamp_seconds",
    "watch_restarts_total",
];

/// What the webhook counts, without `cofferdam_webhook_`.
pub const OF_THE_WEBHOOK: &[&str] = &[
    "certificate_expiry_timestamp_seconds",
    "certificate_reloads_total",
    "in_flight_requests",
    "patch_bytes",
    "policy_info",
    "policy_last_reload_successful",
    "policy_reloads_total",
    "request_duration_seconds",
    "requests_total",
];

/// What the API counts and somebody is asked to watch, without `cofferdam_api_`.
pub const OF_THE_API: &[&str] =
    &["policy_last_reload_successful", "requests_total", "watch_last_event_timestamp_seconds"];

/// What every program of ours counts about its listeners, without the program's prefix.
pub const OF_LISTENERS: &[&str] = &[
    "accept_errors_total",
    "connection_errors_total",
    "connections_total",
    "displaced_connections_total",
    "open_connections",
    "panics_total",
    "tls_handshake_failures_total",
];

/// An alert, as `alerts.yaml` has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AlertRule {
    /// Its name.
    pub alert: String,
    /// Its expression.
    pub expr: String,
    /// Its severity, `critical` or `warning`.
    pub severity: String,
    /// Where its runbook is, from the root of the checkout.
    pub runbook: String,
    /// Its summary and its description.
    pub texts: [String; 2],
}

/// A query of the dashboard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PanelQuery {
    /// The panel's title.
    pub panel: String,
    /// The expression.
    pub expr: String,
}

/// The folder of the component.
#[must_use]
pub fn component() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../manifests/components/monitoring")
}

/// The rules as Prometheus itself reads them, without the operator's resource around them.
///
/// # Errors
/// When the file is missing or no YAML.
pub fn rules_file() -> Result<String> {
    Ok(rules()?.to_string())
}

fn rules() -> Result<Value> {
    let path = component().join("alerts.yaml");
    let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let resource: Value = serde_saphyr::from_str(&text)?;
    Ok(resource["spec"].clone())
}

/// Every alert.
///
/// # Errors
/// When the file is missing, or an alert lacks something.
pub fn alert_rules() -> Result<Vec<AlertRule>> {
    let rules = rules()?;
    let groups = rules["groups"].as_array().context("it has groups")?;
    groups.iter().flat_map(|group| group["rules"].as_array().into_iter().flatten()).map(alert_rule).collect()
}

fn alert_rule(rule: &Value) -> Result<AlertRule> {
    let text = |pointer: &str| {
        let text = rule.pointer(pointer).and_then(Value::as_str);
        text.map(str::to_owned).with_context(|| format!("{} has no {pointer}", rule["alert"]))
    };
    Ok(AlertRule {
        alert: text("/alert")?,
        expr: text("/expr")?,
        severity: text("/labels/severity")?,
        runbook: text("/annotations/runbook_url")?,
        texts: [text("/annotations/summary")?, text("/annotations/description")?],
    })
}

/// Every query of the dashboard.
///
/// # Errors
/// When the file is missing, or a panel that is no heading asks nothing.
pub fn panel_queries() -> Result<Vec<PanelQuery>> {
    let path = component().join("dashboard.json");
    let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let dashboard: Value = serde_json::from_str(&text)?;
    let mut queries = Vec::new();
    for panel in dashboard["panels"].as_array().context("it has panels")? {
        if panel["type"] == "row" {
            continue;
        }
        let title = panel["title"].as_str().context("a panel has a title")?;
        for target in panel["targets"].as_array().with_context(|| format!("{title} asks nothing"))? {
            let expr = target["expr"].as_str().with_context(|| format!("{title} asks nothing"))?;
            queries.push(PanelQuery { panel: title.to_owned(), expr: expr.to_owned() });
        }
    }
    Ok(queries)
}

/// Our metrics that an expression reads, by the names of their families: `x_seconds` for `x_seconds_bucket`.
#[must_use]
pub fn metrics(expression: &str) -> BTreeSet<String> {
    let words = expression.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words.filter(|word| word.starts_with("cofferdam_")).map(|word| family(word).to_owned()).collect()
}

/// The family of a sample: a histogram's samples have three endings.
#[must_use]
pub fn family(sample: &str) -> &str {
    ["_bucket", "_sum", "_count"].iter().find_map(|ending| sample.strip_suffix(ending)).unwrap_or(sample)
}
