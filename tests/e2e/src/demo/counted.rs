//! The same facts, as Prometheus has them.

use anstream::println;
use anyhow::{Context, Result, ensure};
use cofferdam_cluster::addon::prometheus;
use cofferdam_cluster::cluster::Cluster;
use serde_json::Value;

use super::say::{BOLD, DIM, GOOD, heading};
use crate::namespace::PATIENCE;
use crate::wait::until;

/// What is asked: what it means, and the expression.
const QUESTIONS: [(&str, &str); 5] = [
    ("sessions; who has no port is not published", "sum by (state) (cofferdam_agent_sessions) > 0"),
    ("routes", "sum by (state) (cofferdam_agent_routes) > 0"),
    ("addresses", "sum by (state, identity) (cofferdam_agent_addresses) > 0"),
    (
        "seconds in each stage of a start, on average",
        "sum by (stage) (cofferdam_agent_startup_seconds_sum) / sum by (stage) (cofferdam_agent_startup_seconds_count) \
         >= 0",
    ),
    (
        "the webhook's answers, one for each time that it was asked",
        "sum by (outcome) (cofferdam_webhook_requests_total) > 0",
    ),
];

/// What says that all has been counted.
const LAST: &str = "sum(cofferdam_agent_addresses{state=\"reachable\"}) > 0";

/// Asks Prometheus for what the demo has shown.
pub(super) fn show(cluster: &Cluster) -> Result<()> {
    heading("7. What Prometheus counted meanwhile");
    println!("  {DIM}no series is named for a session: they do not grow with the number of sessions{DIM:#}");
    until("a reachable address in Prometheus", PATIENCE, || {
        ensure!(!ask(cluster, LAST)?.is_empty(), "there is none");
        Ok(())
    })?;
    for (what, expression) in QUESTIONS {
        println!("\n  {BOLD}{what}{BOLD:#}  {DIM}{expression}{DIM:#}");
        for (labels, value) in ask(cluster, expression)? {
            println!("  {GOOD}{value:>8}{GOOD:#}  {labels}");
        }
    }
    Ok(())
}

/// The series that an expression gives: values of its labels, and its value.
fn ask(cluster: &Cluster, expression: &str) -> Result<Vec<(String, String)>> {
    let answer = prometheus::query(cluster, expression)?;
    answer.as_array().context("Prometheus gave no series")?.iter().map(series).collect()
}

fn series(series: &Value) -> Result<(String, String)> {
    let labels = series["metric"].as_object().into_iter().flat_map(|labels| labels.values());
    let labels: Vec<&str> = labels.filter_map(Value::as_str).collect();
    let value: f64 = series["value"][1].as_str().context("a series has no value")?.parse()?;
    let value = if value.fract() == 0.0 { format!("{value}") } else { format!("{value:.3}") };
    Ok((labels.join(", "), value))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_series_is_its_labels_and_a_short_number() {
        let one = |value: &str| {
            series(&json!({"metric": {"state": "reachable", "identity": "proved"}, "value": [0, value]})).unwrap()
        };
        assert_eq!(one("1"), ("proved, reachable".to_owned(), "1".to_owned()));
        assert_eq!(one("0.01234").1, "0.012");
    }
}
