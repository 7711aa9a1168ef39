//! The add-on Prometheus sees Cofferdam's pods and evaluates the rules that it is given.

use std::time::{Duration, Instant};

use cofferdam_cluster::addon::{PROMETHEUS, PROMETHEUS_OPERATOR_CRDS, prometheus};
use cofferdam_cluster::cluster::{Cluster, Options};
use cofferdam_cluster::parts;
use cofferdam_cluster::progress::Progress;
use serde_json::Value;

/// A pod as Cofferdam's are; the metrics are those of another Prometheus.
const POD: &str = "
apiVersion: v1
kind: Namespace
metadata: {name: cofferdam-system}
---
apiVersion: v1
kind: Pod
metadata:
  name: agent-x
  namespace: cofferdam-system
  labels: {app.kubernetes.io/component: agent}
spec:
  containers:
  - name: agent
    image: cofferdam.test/prometheus:1
    args: [--config.file=/dev/null, --storage.tsdb.path=/tmp, --web.listen-address=:8080]
    ports: [{name: metrics, containerPort: 8080}, {name: other, containerPort: 8081}]
";

const RULES: &str = r#"
groups:
- name: test
  rules:
  - {alert: AgentSeen, expr: 'up{job="agent"} == 1', labels: {severity: info}}
"#;

fn until(what: &str, holds: impl Fn() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < Duration::from_mins(1), "{what}: not within a minute");
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn prometheus_asks_the_ports_called_metrics_and_raises_the_alerts_that_it_is_given() {
    let kubernetes = std::env::var("COFFERDAM_KUBERNETES").unwrap_or_else(|_| parts::NEWEST.to_owned());
    let options = Options { name: "prometheus".to_owned(), kubernetes, ..Options::default() };
    let progress = Progress::new();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut cluster = runtime.block_on(Cluster::up(&options, &progress)).unwrap();
    cluster.install(&PROMETHEUS, &progress).unwrap();
    cluster.apply(POD).unwrap();

    let up = || prometheus::query(&cluster, r#"up{namespace="cofferdam-system"} == 1"#).unwrap();
    until("the pod's first metrics", || up().as_array().is_some_and(|series| !series.is_empty()));
    let series = up();
    assert_eq!(series.as_array().unwrap().len(), 1, "one port is called metrics: {series}");
    let metric = &series[0]["metric"];
    for (label, value) in [("pod", "agent-x"), ("node", "node-1"), ("job", "agent")] {
        assert_eq!(metric[label], value, "{label}");
    }
    cluster.install(&PROMETHEUS_OPERATOR_CRDS, &progress).unwrap();
    let monitor = |spec: &str| {
        cluster.apply(&format!(
            "{{apiVersion: monitoring.coreos.com/v1, kind: PodMonitor, metadata: {{name: some, namespace: default}}, \
             spec: {spec}}}"
        ))
    };
    monitor("{selector: {}, podMetricsEndpoints: [{port: metrics}]}").unwrap();
    let refused = monitor("{selector: {}, podMetricsEndpoints: [{interval: often}]}").unwrap_err().to_string();
    assert!(refused.contains("interval"), "{refused}");

    let refused = prometheus::query(&cluster, "no sense").unwrap_err().to_string();
    assert!(refused.contains("BadRequest"), "{refused}");

    prometheus::set_rules(&cluster, RULES).unwrap();
    let firing = |alerts: &Value| alerts.as_array().is_some_and(|all| all.iter().any(|one| one["state"] == "firing"));
    until("the alert", || firing(&prometheus::alerts(&cluster).unwrap()));
    prometheus::set_rules(&cluster, &RULES.replace("== 1", "== 2")).unwrap();
    until("the end of the alert", || !firing(&prometheus::alerts(&cluster).unwrap()));
}

#[test]
fn promtool_judges_metrics_and_rules_and_says_what_is_wrong() {
    let good = "# HELP a_seconds_total Time.\n# TYPE a_seconds_total counter\na_seconds_total 1\n";
    assert_eq!(prometheus::promtool(["check", "metrics"], good).unwrap(), "");
    let bad = "# HELP a_count Something.\n# TYPE a_count counter\na_count 1\n";
    let error = prometheus::promtool(["check", "metrics"], bad).unwrap_err().to_string();
    assert!(error.contains("counter metrics should have \"_total\" suffix"), "{error}");

    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), RULES).unwrap();
    let path = file.path().to_str().unwrap();
    assert!(prometheus::promtool(["check", "rules", path], "").unwrap().contains("1 rules found"));
    std::fs::write(file.path(), RULES.replace("== 1", "== ")).unwrap();
    assert!(prometheus::promtool(["check", "rules", path], "").is_err());
}
