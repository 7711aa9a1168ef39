use serde_json::json;

use super::RULE;
use crate::testing::{apply, fields, pod};

#[test]
fn every_handler_of_every_list_loses_its_host_and_nobody_hears_which() {
    let http = json!({ "httpGet": { "port": 80, "host": "10.0.0.1", "path": "/hunter2-xyz" } });
    let tcp = json!({ "tcpSocket": { "port": 80, "host": "metadata.internal" } });
    let container = json!({
        "name": "a",
        "livenessProbe": http, "readinessProbe": tcp, "startupProbe": http,
        "lifecycle": { "postStart": tcp, "preStop": http },
    });
    for list in ["containers", "initContainers", "ephemeralContainers"] {
        let applied = apply(&RULE, &pod(json!({ list: [container] }))).unwrap();
        assert_eq!(
            applied.warnings,
            [
                format!("spec.{list}[0].livenessProbe.httpGet.host: removed (probe-host)"),
                format!("spec.{list}[0].readinessProbe.tcpSocket.host: removed (probe-host)"),
                format!("spec.{list}[0].startupProbe.httpGet.host: removed (probe-host)"),
                format!("spec.{list}[0].lifecycle.postStart.tcpSocket.host: removed (probe-host)"),
                format!("spec.{list}[0].lifecycle.preStop.httpGet.host: removed (probe-host)"),
            ]
        );
        assert_eq!(
            applied.spec(&format!("/{list}/0/livenessProbe")),
            &json!({ "httpGet": { "port": 80, "path": "/hunter2-xyz" } })
        );
    }
}

#[test]
fn the_pods_own_address_is_no_way_around() {
    for host in ["127.0.0.1", "localhost", "::1", "$(POD_IP)", " "] {
        let probe = json!({ "httpGet": { "port": 80, "host": host } });
        let applied = apply(&RULE, &pod(json!({ "containers": [{ "name": "a", "livenessProbe": probe }] }))).unwrap();
        assert_eq!(applied.warnings.len(), 1, "{host}");
    }
}

#[test]
fn a_probe_that_names_no_host_stays_as_it_is() {
    let header = json!([{ "name": "Host", "value": "example.com" }]);
    let spec = json!({ "containers": [{
        "name": "a",
        "livenessProbe": { "httpGet": { "port": 80, "host": "", "httpHeaders": header } },
        "readinessProbe": { "grpc": { "port": 80, "service": "x" } },
        "startupProbe": { "exec": { "command": ["true"] } },
        "lifecycle": { "preStop": { "sleep": { "seconds": 1 } }, "postStart": null },
    }] });
    let applied = apply(&RULE, &pod(spec.clone())).unwrap();
    assert_eq!(applied.pod["spec"], spec);
    assert!(applied.changes.is_empty());
}

#[test]
fn a_host_that_is_no_text_is_refused() {
    let probe = json!({ "tcpSocket": { "port": 80, "host": ["10.0.0.1"] } });
    let refusal = apply(&RULE, &pod(json!({ "containers": [{ "livenessProbe": probe }] }))).err().unwrap();
    assert_eq!(fields(&refusal), ["spec.containers[0].livenessProbe.tcpSocket.host"]);
}
