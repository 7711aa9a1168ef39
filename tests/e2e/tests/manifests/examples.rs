//! The examples are installations that hold together as they are, whatever of their names is a placeholder.

use std::collections::BTreeSet;

use cofferdam_model::policy::{Policy, params_config_map};
use serde_json::{Value, json};

use crate::agreement::loose_ends;
use crate::objects::{Objects, items, text};

/// The policy that an installation mounts, and what its admission policies read of it.
fn policy_and_params(objects: &Objects) -> (Policy, &Value) {
    let volumes = items(&objects.only("Deployment")["spec"]["template"]["spec"]["volumes"]);
    let mounted = volumes.iter().find(|volume| volume["name"] == "policy").expect("it mounts a policy");
    let map = objects.named("ConfigMap", text(&mounted["configMap"]["name"])).expect("the policy is there");
    let policy = Policy::parse("policy.yaml", text(&map["data"]["policy.yaml"])).expect("it loads");
    let params = objects.kind("ConfigMap").find(|map| map["data"]["trusted"].is_string());
    (policy, params.expect("the parameters are there"))
}

#[test]
fn who_may_report_is_who_an_installation_has_and_its_parameters_say_so() {
    for directory in ["overlays/cert-manager", "overlays/namespaced", "examples/renamed", "examples/complete"] {
        let objects = Objects::of(directory);
        let (policy, params) = policy_and_params(&objects);
        let of_policy: Value = serde_saphyr::from_str(&params_config_map(&policy, "any", "any")).expect("it is YAML");
        assert_eq!(params["data"], of_policy["data"], "{directory}");
        let trusted: BTreeSet<_> = text(&params["data"]["trusted"]).split(',').map(str::to_owned).collect();
        let reporting = objects.kind("ServiceAccount").filter(|account| {
            let component = &account["metadata"]["labels"]["app.kubernetes.io/component"];
            component == "agent" || component == "api"
        });
        let reporting: BTreeSet<_> = reporting
            .map(|account| &account["metadata"])
            .map(|account| format!("system:serviceaccount:{}:{}", text(&account["namespace"]), text(&account["name"])))
            .collect();
        assert_eq!(trusted, reporting, "{directory}");
    }
}

/// The complete example without what is not ours in it: the Gateway and its certificate.
fn complete() -> (Objects, Objects) {
    let (gateway, ours) = Objects::of("examples/complete").0.into_iter().partition(|object| {
        object["metadata"]["namespace"] == "edge"
            || object["kind"] == "Namespace" && object["metadata"]["name"] == "edge"
    });
    (Objects(ours), Objects(gateway))
}

#[test]
fn the_complete_example_has_the_gateway_and_the_certificate_that_its_policy_counts_on() {
    let (ours, theirs) = complete();
    assert_eq!(loose_ends(&ours), Vec::<String>::new());
    let (policy, _) = policy_and_params(&ours);
    let routing = policy.routing();
    let (domain, parent) =
        (routing.base_domain.as_ref().expect("it is set"), routing.gateway.as_ref().expect("it is set"));
    let gateway = theirs.only("Gateway");
    assert_eq!(
        (&gateway["metadata"]["name"], &gateway["metadata"]["namespace"]),
        (&json!(parent.name), &json!(parent.namespace))
    );
    let listeners = items(&gateway["spec"]["listeners"]);
    let listener = listeners.iter().find(|listener| listener["name"] == json!(parent.listener)).expect("it has it");
    assert_eq!(listener["hostname"], format!("*.{domain}"));
    let certificate = &theirs.only("Certificate")["spec"];
    assert_eq!(listener["tls"]["certificateRefs"], json!([{"name": certificate["secretName"]}]));
    assert_eq!(certificate["dnsNames"], json!([listener["hostname"]]));
    let admitted = &listener["allowedRoutes"]["namespaces"]["selector"]["matchLabels"];
    let sessions = ours.named("Namespace", "cofferdam-sessions").expect("it comes with it");
    for (key, value) in admitted.as_object().expect("it selects by labels") {
        assert_eq!(sessions["metadata"]["labels"][key], *value, "{key}");
    }
}

#[test]
fn the_complete_example_runs_one_image_and_its_alerts_link_to_their_runbooks() {
    let (ours, _) = complete();
    let images: BTreeSet<_> = ours
        .workloads()
        .map(|workload| &workload["spec"]["template"]["spec"]["containers"][0])
        .flat_map(|container| {
            let told = items(&container["env"]).iter().filter(|variable| variable["name"] == "COFFERDAM_WEBHOOK_IMAGE");
            told.map(|variable| &variable["value"]).chain([&container["image"]])
        })
        .map(text)
        .collect();
    assert_eq!(images, BTreeSet::from(["registry.example.com/cofferdam:0.1.0"]));
    for kind in ["PodMonitor", "PrometheusRule"] {
        assert_eq!(ours.only(kind)["metadata"]["labels"]["prometheus"], "main", "{kind}");
    }
    let alerts = items(&ours.only("PrometheusRule")["spec"]["groups"]).iter().flat_map(|group| items(&group["rules"]));
    let mut count = 0;
    for alert in alerts {
        let place = "https://git.example.com/platform/cofferdam/blob/main";
        let runbook = format!("{place}/docs/runbooks/{}.md", text(&alert["alert"]));
        assert_eq!(alert["annotations"]["runbook_url"], runbook);
        count += 1;
    }
    assert!(count > 0);
}
