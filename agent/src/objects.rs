//! The objects that make a session reachable.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use cofferdam_kubernetes::Resource;
use serde_json::Value;

/// Gateway API's group.
pub(crate) const GATEWAY_GROUP: &str = "gateway.networking.k8s.io";

/// The kinds of objects that lead to a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Kind {
    /// The claim of a session's name, and what routes refer to.
    Service,
    /// The pod's address.
    EndpointSlice,
    /// Gateway API's route; one for each port.
    HttpRoute,
    /// The other kind of route; one for each session.
    Ingress,
}

impl Kind {
    /// Each of them; routes come last.
    pub(crate) const ALL: [Self; 4] = [Self::Service, Self::EndpointSlice, Self::HttpRoute, Self::Ingress];

    /// As the API server's paths, metrics and kubectl name it.
    #[must_use]
    pub(crate) fn plural(self) -> &'static str {
        match self {
            Self::Service => "services",
            Self::EndpointSlice => "endpointslices",
            Self::HttpRoute => "httproutes",
            Self::Ingress => "ingresses",
        }
    }

    /// Its group; empty for the core.
    #[must_use]
    pub(crate) fn group(self) -> &'static str {
        match self {
            Self::Service => "",
            Self::EndpointSlice => "discovery.k8s.io",
            Self::HttpRoute => GATEWAY_GROUP,
            Self::Ingress => "networking.k8s.io",
        }
    }

    /// The versions that it may be served in, the one to ask for first being the first.
    #[must_use]
    pub(crate) fn versions(self) -> &'static [&'static str] {
        match self {
            Self::HttpRoute => &["v1", "v1beta1"],
            Self::Service | Self::EndpointSlice | Self::Ingress => &["v1"],
        }
    }

    /// Whether it leads to a session's Service from outside.
    #[must_use]
    pub(crate) fn is_route(self) -> bool {
        matches!(self, Self::HttpRoute | Self::Ingress)
    }
}

/// An object as the API server has it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Live {
    /// Its kind.
    pub kind: Kind,
    /// Its name.
    pub name: String,
    /// Its uid.
    pub uid: String,
    /// The object, without `managedFields`.
    pub object: Value,
}

/// A value in short, to be compared with others of this process.
#[must_use]
pub(crate) fn digest(value: &Value) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

/// The name of the session's Service, `EndpointSlice` and Ingress (an id may begin with a digit, a Service's name may
/// not before Kubernetes 1.36).
#[must_use]
pub(crate) fn name(id: &str) -> String {
    format!("s-{id}")
}

/// The name of the `HTTPRoute` of one port.
#[must_use]
pub(crate) fn route_name(id: &str, port: u16) -> String {
    format!("s-{id}-{port}")
}

/// The id of the session that an object is named for; none where it is named as none of ours.
#[must_use]
pub(crate) fn id_of(kind: Kind, name: &str) -> Option<&str> {
    let rest = name.strip_prefix("s-")?;
    match kind {
        Kind::HttpRoute => rest.rsplit_once('-').map(|(id, _)| id),
        Kind::Service | Kind::EndpointSlice | Kind::Ingress => Some(rest),
    }
}

/// A kind in the version that is served: `v1`, but for Gateway API's routes.
#[must_use]
pub(crate) fn resource(kind: Kind, version: &str) -> Resource {
    let resource = match kind {
        Kind::Service => Resource::core(kind.plural()),
        Kind::HttpRoute => Resource::of(kind.plural(), &format!("{}/{version}", kind.group())),
        Kind::EndpointSlice | Kind::Ingress => Resource::of(kind.plural(), &format!("{}/v1", kind.group())),
    };
    resource.small()
}

#[cfg(test)]
mod tests {
    use cofferdam_kubernetes::Bounded;

    use super::*;
    use crate::desired::testing::{gateway, ingress, objects, session};

    #[test]
    fn a_name_tells_whose_an_object_is() {
        for id in ["abc", "a-3000", "3000"] {
            for kind in [Kind::Service, Kind::EndpointSlice, Kind::Ingress] {
                assert_eq!(id_of(kind, &name(id)), Some(id));
            }
            assert_eq!(id_of(Kind::HttpRoute, &route_name(id, 8080)), Some(id));
        }
        assert_eq!(id_of(Kind::Service, "web"), None);
    }

    #[test]
    fn of_a_session_with_as_many_ports_as_there_may_be_everything_is_read() {
        let ports: Vec<String> = (1..=100).map(|port| port.to_string()).collect();
        for layer in [gateway(true), ingress()] {
            for wanted in objects(&session(&ports.join(",")), &layer) {
                let Bounded(read) = serde_json::from_str(&wanted.object.to_string()).unwrap();
                assert_eq!(read, wanted.object, "{}", wanted.name);
            }
        }
    }
}
