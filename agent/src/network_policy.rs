//! The `NetworkPolicy` of a namespace with sessions (defect D27).
//!
//! Sessions reach DNS, the port that bodies come from, and the internet less what the policy blocks; never each other. They
//! are reached by agents, by the data plane of the routing layer, and by an API at the one port where a program's inspector
//! may listen; to all else that runs in a session an API speaks through its kubelet. Where the data plane runs cannot be told from a Gateway or a class: most controllers run it in a
//! namespace of their own. So `network.dataPlaneNamespaces` is required where routing is on (lesson L14), and where it is
//! empty a line in the log says so. A data plane on the nodes' own network has no namespace that a policy could name; there,
//! use `network.mode: manual`.

use std::net::IpAddr;

use cofferdam_kubernetes::{Resource, Selection, json};
use cofferdam_model::keys::{AGENT, KUBE_SYSTEM, MANAGED_BY, NETWORK_POLICY, SESSION};
use cofferdam_model::policy::Network;
use cofferdam_model::ports::INSPECTOR;
use serde_json::{Value, json};

use crate::objects::digest;

/// Where pods fetch their bodies from, at the API.
const BODIES: u16 = 8063;

/// The kind of object that it is.
#[must_use]
pub(crate) fn resource() -> Resource {
    Resource::of("networkpolicies", "networking.k8s.io/v1").small()
}

/// Those of our name, in all namespaces.
#[must_use]
pub(crate) fn of_our_name() -> Selection {
    Selection { fields: format!("metadata.name={NETWORK_POLICY}"), ..Selection::default() }
}

/// Whether one of our name is the agents': one that somebody else made may allow anything.
#[must_use]
pub(crate) fn is_ours(policy: &Value) -> bool {
    json::label(policy, MANAGED_BY) == Some(AGENT)
}

/// The `NetworkPolicy` as it is applied, but for its namespace. In namespaces that are `enforced` it selects all pods, since
/// one that slipped through may have no label; elsewhere those with the label of a session. `system` is Cofferdam's own
/// namespace.
#[must_use]
pub(crate) fn network_policy(enforced: bool, network: &Network, system: &str) -> Value {
    let selected =
        if enforced { json!({}) } else { json!({"matchExpressions": [{"key": SESSION, "operator": "Exists"}]}) };
    let mut ingress = vec![
        json!({"from": [component("agent", system)]}),
        json!({"from": [component("api", system)], "ports": [{"protocol": "TCP", "port": INSPECTOR}]}),
    ];
    if !network.data_plane_namespaces.is_empty() {
        let from: Vec<_> =
            network.data_plane_namespaces.iter().map(|name| json!({"namespaceSelector": named(name)})).collect();
        ingress.push(json!({ "from": from }));
    }
    json!({
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": NETWORK_POLICY, "labels": {MANAGED_BY: AGENT}},
        "spec": {
            "podSelector": selected,
            "policyTypes": ["Ingress", "Egress"],
            "ingress": ingress,
            "egress": [
                {
                    "to": [{
                        "namespaceSelector": named(KUBE_SYSTEM),
                        "podSelector": {"matchLabels": {"k8s-app": "kube-dns"}},
                    }],
                    "ports": [{"protocol": "UDP", "port": 53}, {"protocol": "TCP", "port": 53}],
                },
                {"to": [component("api", system)], "ports": [{"protocol": "TCP", "port": BODIES}]},
                {"to": [internet("0.0.0.0/0", network), internet("::/0", network)]},
            ],
        },
    })
}

/// What is kept of a policy of that name, however much somebody writes into it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Live {
    /// Its uid.
    pub uid: String,
    /// Whether it is the agents'.
    pub is_ours: bool,
    /// In short: it is only compared.
    spec: u64,
}

impl Live {
    /// Reads the object.
    #[must_use]
    pub(crate) fn read(policy: &Value) -> Self {
        Self { uid: json::uid(policy).to_owned(), is_ours: is_ours(policy), spec: digest(&policy["spec"]) }
    }

    /// Whether it is what is wanted. What others put beside it, such as labels of their own, does not count.
    #[must_use]
    pub(crate) fn is_as(&self, wanted: &Self) -> bool {
        self.is_ours && self.spec == wanted.spec
    }
}

fn named(namespace: &str) -> Value {
    json!({"matchLabels": {"kubernetes.io/metadata.name": namespace}})
}

/// Pods of a program of ours.
fn component(component: &str, system: &str) -> Value {
    let labels = json!({"app.kubernetes.io/name": "cofferdam", "app.kubernetes.io/component": component});
    json!({"namespaceSelector": named(system), "podSelector": {"matchLabels": labels}})
}

/// All addresses of one family less those that are blocked; the API server takes no exception of the other family.
fn internet(all: &str, network: &Network) -> Value {
    let is_ipv6 = |cidr: &str| {
        cidr.split('/').next().and_then(|address| address.parse().ok()).is_some_and(|address: IpAddr| address.is_ipv6())
    };
    let except: Vec<_> = network.blocked.iter().filter(|cidr| is_ipv6(cidr) == is_ipv6(all)).collect();
    if except.is_empty() {
        json!({"ipBlock": {"cidr": all}})
    } else {
        json!({"ipBlock": {"cidr": all, "except": except}})
    }
}

#[cfg(test)]
mod tests {
    use cofferdam_model::keys::SYSTEM_NAMESPACE;
    use cofferdam_model::policy::Policy;
    use k8s_openapi::api::networking::v1::NetworkPolicy;

    use super::*;

    fn policy(enforced: bool, network: &Network) -> Value {
        network_policy(enforced, network, "cofferdam-system")
    }

    #[test]
    fn every_pod_is_selected_where_every_pod_is_a_session() {
        assert_eq!(policy(true, &Network::default())["spec"]["podSelector"], json!({}));
        assert_eq!(
            policy(false, &Network::default())["spec"]["podSelector"],
            json!({"matchExpressions": [{"key": "cofferdam.dev/session", "operator": "Exists"}]})
        );
    }

    #[test]
    fn d27_the_internet_is_of_both_families_and_less_what_is_blocked() {
        let spec = &policy(true, &Network::default())["spec"];
        let internet = &spec["egress"][2]["to"];
        assert_eq!(internet[0]["ipBlock"]["cidr"], "0.0.0.0/0");
        assert_eq!(internet[1]["ipBlock"]["cidr"], "::/0");
        let except = |family: usize| {
            let except = internet[family]["ipBlock"]["except"].as_array().unwrap();
            except.iter().map(|cidr| cidr.as_str().unwrap()).collect::<Vec<_>>()
        };
        for cidr in ["10.0.0.0/8", "100.64.0.0/10", "169.254.0.0/16", "127.0.0.0/8"] {
            assert!(except(0).contains(&cidr), "{cidr}");
        }
        for cidr in ["fc00::/7", "fe80::/10", "::1/128"] {
            assert!(except(1).contains(&cidr), "{cidr}");
        }
        assert_eq!(except(0).len() + except(1).len(), Network::default().blocked.len());
        let open = Network { blocked: Vec::new(), ..Network::default() };
        assert_eq!(
            policy(true, &open)["spec"]["egress"][2]["to"],
            json!([{"ipBlock": {"cidr": "0.0.0.0/0"}}, {"ipBlock": {"cidr": "::/0"}}])
        );
    }

    #[test]
    fn l14_the_data_plane_gets_in_where_it_is_named_and_nobody_else_does() {
        let from = |network: &Network| {
            let policy = policy(true, network);
            let rules = policy["spec"]["ingress"].as_array().unwrap().clone();
            rules.iter().flat_map(|rule| rule["from"].as_array().unwrap().clone()).collect::<Vec<_>>()
        };
        let ours = ["agent", "api"].map(|program| component(program, "cofferdam-system"));
        assert_eq!(from(&Network::default()), ours);
        let data_plane_namespaces = vec!["envoy-gateway-system".to_owned(), "edge".to_owned()];
        let named = from(&Network { data_plane_namespaces, ..Network::default() });
        assert_eq!(named.len(), 4);
        let name = "kubernetes.io/metadata.name";
        assert_eq!(named[3], json!({"namespaceSelector": {"matchLabels": {name: "edge"}}}));
        assert_eq!(ours[0]["namespaceSelector"]["matchLabels"][name], "cofferdam-system");
        // A rule without a peer would let everybody in.
        assert!(named.iter().all(|peer| peer != &json!({})));
    }

    #[test]
    fn dbg_03_an_api_reaches_the_inspectors_port_and_no_other() {
        let policy = policy(true, &Network::default());
        let rules = policy["spec"]["ingress"].as_array().unwrap();
        let of_api: Vec<_> = rules.iter().filter(|rule| rule["from"].to_string().contains("api")).collect();
        assert_eq!(of_api.len(), 1);
        assert_eq!(of_api[0]["ports"], json!([{"protocol": "TCP", "port": 9230}]));
    }

    #[test]
    fn nothing_of_it_is_unknown_to_the_api_or_filled_in_by_it() {
        let policy = policy(false, &Network::default());
        let typed: NetworkPolicy = serde_json::from_value(policy.clone()).unwrap();
        assert_eq!(serde_json::to_value(typed).unwrap(), policy);
        // These have defaults, so what is stored differs from what is applied if they are left out.
        assert!(policy["spec"]["policyTypes"].is_array());
        for rule in ["ingress", "egress"].iter().flat_map(|way| policy["spec"][way].as_array().unwrap()) {
            for port in rule["ports"].as_array().into_iter().flatten() {
                assert!(port["protocol"].is_string(), "{port}");
            }
        }
    }

    #[test]
    fn what_others_change_in_it_is_seen() {
        let wanted = policy(false, &Network::default());
        let mut live = wanted.clone();
        live["metadata"]["labels"]["team"] = json!("a");
        live["metadata"]["resourceVersion"] = json!("7");
        let wanted = Live::read(&wanted);
        assert!(Live::read(&live).is_as(&wanted));
        let mut edits = vec![live.clone(); 4];
        edits[0]["spec"]["egress"].as_array_mut().unwrap().push(json!({}));
        edits[1]["spec"]["podSelector"]["matchLabels"] = json!({"a": "b"});
        edits[2]["metadata"]["labels"] = json!({"team": "a"});
        edits[3]["spec"]["policyTypes"] = json!(["Ingress"]);
        for edit in edits {
            assert!(!Live::read(&edit).is_as(&wanted), "{edit}");
        }
    }

    #[test]
    fn the_example_to_apply_by_hand_is_the_same() {
        let file = include_str!("../../manifests/examples/network-policy/network-policy.yaml");
        let example: Value = serde_saphyr::from_str(file).unwrap();
        let ours = network_policy(true, Policy::built_in().network(), SYSTEM_NAMESPACE);
        assert_eq!(example["spec"], ours["spec"]);
        assert_eq!(example["metadata"]["name"], NETWORK_POLICY);
    }
}
