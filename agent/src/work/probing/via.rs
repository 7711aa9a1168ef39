//! Where a gateway takes connections: what the policy says, or else what the status of Gateway or Ingress says.

use std::net::IpAddr;

use cofferdam_model::policy::{ProbeHost, Routing, Scheme};
use serde_json::Value;

use crate::layer::Layer;
use crate::probe::Via;
use crate::verdict::Known;

/// Where to ask, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Door {
    pub(super) via: Via,
    pub(super) scheme: Scheme,
}

/// The door of a layer; none where nothing says which. `route` is the route or Ingress.
pub(super) fn door(layer: &Layer, routing: &Routing, gateway: Known<'_>, route: &Value) -> Option<Door> {
    let probe = &routing.probe;
    let (listener, address) = match layer {
        Layer::Off => return None,
        Layer::Gateway { parent, .. } => {
            let Known::There(gateway) = gateway else { return configured(routing, None) };
            let listener = listener(gateway, parent.listener.as_deref(), routing);
            (listener, gateway["status"]["addresses"][0]["value"].as_str().map(str::to_owned))
        }
        Layer::Ingress { tls_secret, .. } => {
            let scheme = if tls_secret.is_some() { Scheme::Https } else { Scheme::Http };
            let entry = &route["status"]["loadBalancer"]["ingress"][0];
            let address = entry["ip"].as_str().or(entry["hostname"].as_str());
            (Some((scheme, scheme.port())), address.map(str::to_owned))
        }
    };
    if probe.address.is_some() {
        return configured(routing, listener);
    }
    let (scheme, port) = listener?;
    let address = address?;
    let host = address.parse::<IpAddr>().map_or(ProbeHost::Name(address), ProbeHost::Address);
    Some(Door { via: Via { host, port }, scheme: probe.scheme.unwrap_or(scheme) })
}

fn configured(routing: &Routing, listener: Option<(Scheme, u16)>) -> Option<Door> {
    let address = routing.probe.address.as_ref()?;
    let own = listener.unwrap_or_else(|| (routing.public_url.scheme, routing.public_url.scheme.port()));
    let scheme = routing.probe.scheme.unwrap_or(own.0);
    let port = if scheme == own.0 { own.1 } else { scheme.port() };
    Some(Door { via: Via { host: address.host.clone(), port: address.port.unwrap_or(port) }, scheme })
}

/// Scheme and port of the listener that is named, or of the one that people come through.
fn listener(gateway: &Value, name: Option<&str>, routing: &Routing) -> Option<(Scheme, u16)> {
    let all = gateway["spec"]["listeners"].as_array()?;
    let read = |listener: &Value| {
        let scheme = match listener["protocol"].as_str()? {
            "HTTP" => Scheme::Http,
            "HTTPS" | "TLS" => Scheme::Https,
            _ => return None,
        };
        Some((scheme, u16::try_from(listener["port"].as_u64()?).ok()?))
    };
    if let Some(name) = name {
        return all.iter().find(|listener| listener["name"] == name).and_then(read);
    }
    let wanted = routing.probe.scheme.unwrap_or(routing.public_url.scheme);
    let mut readable = all.iter().filter_map(read).collect::<Vec<_>>();
    readable.sort_by_key(|(scheme, _)| *scheme != wanted);
    readable.first().copied()
}

#[cfg(test)]
mod tests {
    use cofferdam_model::policy::{ParentGateway, ProbeAddress, ProbeRouting};
    use serde_json::json;

    use super::*;

    fn layer(listener: Option<&str>) -> Layer {
        let listener = listener.map(str::to_owned);
        let parent = ParentGateway { name: "g".to_owned(), namespace: "n".to_owned(), listener };
        Layer::Gateway { version: "v1".to_owned(), parent, proof: true }
    }

    fn gateway() -> Value {
        json!({
            "spec": {"listeners": [
                {"name": "udp", "protocol": "UDP", "port": 53},
                {"name": "http", "protocol": "HTTP", "port": 8080},
                {"name": "https", "protocol": "HTTPS", "port": 8443},
            ]},
            "status": {"addresses": [{"type": "IPAddress", "value": "10.89.0.1"}]},
        })
    }

    fn shown(door: Option<Door>) -> String {
        door.map_or_else(String::new, |door| format!("{} {:?} {}", door.scheme.as_str(), door.via.host, door.via.port))
    }

    #[test]
    fn the_listener_is_the_named_one_or_the_one_that_people_come_through() {
        let (gateway, https) = (gateway(), Routing::default());
        let http = Routing {
            public_url: cofferdam_model::policy::PublicUrl { scheme: Scheme::Http, port: None },
            ..Routing::default()
        };
        let ask = |name, routing: &Routing| shown(door(&layer(name), routing, Known::There(&gateway), &json!({})));
        assert_eq!(ask(None, &https), "https Address(10.89.0.1) 8443");
        assert_eq!(ask(None, &http), "http Address(10.89.0.1) 8080");
        assert_eq!(ask(Some("http"), &https), "http Address(10.89.0.1) 8080");
        assert_eq!(ask(Some("missing"), &https), "");
        assert_eq!(shown(door(&layer(None), &https, Known::Missing, &json!({}))), "");
    }

    #[test]
    fn what_the_policy_says_comes_first_and_needs_no_status() {
        let host = ProbeHost::Name("gateway.example.com".to_owned());
        let probe = |port, scheme| ProbeRouting {
            address: Some(ProbeAddress { host: host.clone(), port }),
            scheme,
            ca_bundle: None,
        };
        let routing = |port, scheme| Routing { probe: probe(port, scheme), ..Routing::default() };
        let gateway = gateway();
        let there = Known::There(&gateway);
        for (port, scheme, known, expected) in [
            (None, None, there, "https Name(\"gateway.example.com\") 8443"),
            (Some(1), None, there, "https Name(\"gateway.example.com\") 1"),
            (None, Some(Scheme::Http), there, "http Name(\"gateway.example.com\") 8080"),
            (None, None, Known::Unreadable, "https Name(\"gateway.example.com\") 443"),
            (None, Some(Scheme::Http), Known::Unreadable, "http Name(\"gateway.example.com\") 80"),
        ] {
            assert_eq!(shown(door(&layer(None), &routing(port, scheme), known, &json!({}))), expected);
        }
    }

    #[test]
    fn an_ingress_is_asked_at_its_address() {
        let ingress = |entry: Value| json!({"status": {"loadBalancer": {"ingress": [entry]}}});
        let layer = |tls: Option<&str>| Layer::Ingress { class: "c".to_owned(), tls_secret: tls.map(str::to_owned) };
        let ask = |layer: &Layer, route: &Value| shown(door(layer, &Routing::default(), Known::Missing, route));
        assert_eq!(ask(&layer(None), &ingress(json!({"ip": "fd00::1"}))), "http Address(fd00::1) 80");
        assert_eq!(ask(&layer(Some("s")), &ingress(json!({"hostname": "lb.test"}))), "https Name(\"lb.test\") 443");
        assert_eq!(ask(&layer(None), &json!({"status": {}})), "");
    }
}
