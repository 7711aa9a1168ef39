//! Which routing layer addresses are made with (contract rows RTE-02 to RTE-08).

use cofferdam_model::policy::{ParentGateway, ProofMode, Routing, RoutingMode};

/// What there is in the cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Surroundings {
    /// Served versions of the group `gateway.networking.k8s.io` that have `httproutes`, the preferred one first; none
    /// where the group could not be asked for.
    pub gateway_versions: Option<Vec<String>>,
    /// All `IngressClasses`; none where they could not be listed.
    pub ingress_classes: Option<Vec<IngressClass>>,
    /// What was last known of the class of the Gateway that is configured.
    pub gateway_class: Option<GatewayClass>,
}

/// An `IngressClass`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct IngressClass {
    /// Its name.
    pub name: String,
    /// Whether it is marked as the cluster's default.
    pub is_default: bool,
}

/// A `GatewayClass`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct GatewayClass {
    /// Its name.
    pub name: String,
    /// Whose it is.
    pub controller_name: String,
    /// Names in its status.
    pub supported_features: Vec<String>,
}

/// The layer that was resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Layer {
    /// Routing is off: nothing is published but what needs no route (Service and `EndpointSlice`).
    Off,
    /// `HTTPRoutes`.
    Gateway {
        /// Of this version.
        version: String,
        /// Their parent.
        parent: ParentGateway,
        /// Whether they carry a proof.
        proof: bool,
    },
    /// Ingresses.
    Ingress {
        /// Of this class; the cluster's default class where none is configured.
        class: String,
        /// The Secret with the certificate.
        tls_secret: Option<String>,
    },
}

/// Why there is no layer. Each message says what to set.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum LayerError {
    /// Choosing one would be guessing, or nothing is there to choose.
    #[error("{0}")]
    Ambiguous(String),
    /// What is configured contradicts itself or the cluster.
    #[error("{0}")]
    Invalid(String),
}

/// What a `GatewayClass` names among its features when its routes can set a response's headers.
const SETS_RESPONSE_HEADERS: &str = "HTTPRouteResponseHeaderModification";

/// Beginnings of controller names that were tested to set a response's headers, whatever their class says.
const TESTED_CONTROLLERS: [&str; 2] = ["gateway.envoyproxy.io/", "projectcontour.io/"];

/// Chooses the layer: what is configured before what is installed (contract RTE-05: Gateway API's kinds are often there and
/// unused, and a wrong guess makes routes that nobody looks at).
pub(crate) fn resolve(routing: &Routing, surroundings: &Surroundings) -> Result<Layer, LayerError> {
    if !routing.is_on() {
        return Ok(Layer::Off);
    }
    match routing.mode {
        RoutingMode::None => Ok(Layer::Off),
        RoutingMode::Gateway => match &routing.gateway {
            Some(parent) => gateway(routing, parent, surroundings),
            None => Err(invalid("`routing.mode` is gateway and no Gateway is named; set `routing.gateway.name`")),
        },
        RoutingMode::Ingress => ingress(routing, surroundings),
        RoutingMode::Auto => auto(routing, surroundings),
    }
}

fn auto(routing: &Routing, surroundings: &Surroundings) -> Result<Layer, LayerError> {
    if let Some(parent) = &routing.gateway {
        return gateway(routing, parent, surroundings);
    }
    if routing.ingress_class.is_some() {
        return ingress(routing, surroundings);
    }
    // A list that could not be read is not an empty one.
    let Some(classes) = &surroundings.ingress_classes else {
        return Err(ambiguous(format!("the IngressClasses could not be listed; {SET_ONE}")));
    };
    if classes.iter().any(|class| class.is_default) {
        return ingress(routing, surroundings);
    }
    let served = surroundings.gateway_versions.as_ref().map(|versions| !versions.is_empty());
    match (served, classes.is_empty()) {
        (None, _) => Err(ambiguous(format!("it could not be asked whether Gateway API is served; {SET_ONE}"))),
        (Some(true), false) => {
            Err(ambiguous(format!("both HTTPRoutes and Ingresses could be made, and nothing says which; {SET_ONE}")))
        }
        (Some(true), true) => {
            Err(ambiguous("Gateway API is served, and no Gateway is named; set `routing.gateway.name`"))
        }
        (Some(false), false) => ingress(routing, surroundings),
        (Some(false), true) => Err(ambiguous(
            "neither Gateway API nor an IngressClass is there; install a gateway, or set `routing.mode: none`",
        )),
    }
}

/// What to do where nothing is configured.
const SET_ONE: &str = "set `routing.gateway.name` or `routing.ingress.className`";

/// Of the versions of `HTTPRoute` that are served, with the group's own preference first, the one that is used (contract
/// RTE-06).
#[must_use]
pub(crate) fn preferred(served: &[String]) -> Option<&String> {
    let has = |version: &str| served.iter().find(|served| *served == version);
    has("v1").or_else(|| has("v1beta1")).or_else(|| served.first())
}

fn gateway(routing: &Routing, parent: &ParentGateway, surroundings: &Surroundings) -> Result<Layer, LayerError> {
    if routing.ingress_tls_secret.is_some() {
        // It would be ignored: plain text below a policy that reads as TLS.
        return Err(invalid(
            "`routing.ingress.tlsSecret` is set and routes are HTTPRoutes, where the Gateway's listener holds the certificate; remove it",
        ));
    }
    let Some(versions) = &surroundings.gateway_versions else {
        return Err(ambiguous("it could not be asked which versions of Gateway API are served; it is asked again"));
    };
    let Some(version) = preferred(versions) else {
        return Err(invalid(
            "`routing.gateway.name` is set and no HTTPRoutes are served; install Gateway API, or remove it",
        ));
    };
    let proof = match routing.proof {
        ProofMode::On => true,
        ProofMode::Off => false,
        ProofMode::Auto => surroundings.gateway_class.as_ref().is_some_and(GatewayClass::sets_response_headers),
    };
    Ok(Layer::Gateway { version: version.clone(), parent: parent.clone(), proof })
}

fn ingress(routing: &Routing, surroundings: &Surroundings) -> Result<Layer, LayerError> {
    let class = class(routing.ingress_class.as_deref(), surroundings.ingress_classes.as_deref())?;
    Ok(Layer::Ingress { class, tls_secret: routing.ingress_tls_secret.clone() })
}

/// The class that Ingresses get: always one, and one that exists as far as that can be known (case B142: an Ingress without
/// a class may be everybody's or nobody's).
fn class(configured: Option<&str>, classes: Option<&[IngressClass]>) -> Result<String, LayerError> {
    match (configured, classes) {
        (Some(name), None) => Ok(name.to_owned()),
        (Some(name), Some(classes)) if classes.iter().any(|class| class.name == name) => Ok(name.to_owned()),
        (Some(name), Some(classes)) => Err(invalid(format!(
            "there is no IngressClass {name}, which `routing.ingress.className` names; make it, or name another{}",
            among(classes.iter())
        ))),
        (None, None) => Err(ambiguous("the IngressClasses could not be listed; set `routing.ingress.className`")),
        (None, Some([])) => Err(ambiguous("there is no IngressClass; install an ingress controller with one")),
        (None, Some(classes)) => {
            let defaults: Vec<_> = classes.iter().filter(|class| class.is_default).collect();
            match (&defaults[..], classes) {
                ([class], _) => Ok(class.name.clone()),
                ([], [class]) => Ok(class.name.clone()),
                ([], _) => Err(ambiguous(format!(
                    "no IngressClass is the default; set `routing.ingress.className`{}",
                    among(classes.iter())
                ))),
                _ => Err(ambiguous(format!(
                    "several IngressClasses are marked as the default; set `routing.ingress.className`{}",
                    among(defaults.into_iter())
                ))),
            }
        }
    }
}

/// The names to choose from, sorted; nothing where there are none.
fn among<'a>(classes: impl Iterator<Item = &'a IngressClass>) -> String {
    let mut names: Vec<&str> = classes.map(|class| class.name.as_str()).collect();
    names.sort_unstable();
    if names.is_empty() { String::new() } else { format!(" (there are: {})", names.join(", ")) }
}

fn ambiguous(message: impl Into<String>) -> LayerError {
    LayerError::Ambiguous(message.into())
}

fn invalid(message: impl Into<String>) -> LayerError {
    LayerError::Invalid(message.into())
}

impl GatewayClass {
    /// What to go by, with `now` being what is known of the class and `before` what was gone by: a Gateway or a class that is
    /// not there, or whose controller has not yet said what it can, says nothing else. All routes would be written without
    /// proof, and with it again in a moment.
    #[must_use]
    pub(crate) fn settled<'a>(now: Option<&'a Self>, before: Option<&'a Self>) -> Option<&'a Self> {
        let has_yet_to_say = |now: &&Self| {
            now.supported_features.is_empty()
                && before.is_some_and(|before| before.controller_name == now.controller_name)
        };
        now.filter(|now| !has_yet_to_say(now)).or(before)
    }

    /// Whether routes of this class can give the answer to a probe a header that only they know.
    #[must_use]
    pub(crate) fn sets_response_headers(&self) -> bool {
        self.supported_features.iter().any(|feature| feature == SETS_RESPONSE_HEADERS)
            || TESTED_CONTROLLERS.iter().any(|tested| self.controller_name.starts_with(tested))
    }
}

#[cfg(test)]
mod tests;
