use super::*;

fn on() -> Routing {
    Routing { base_domain: Some("example.com".to_owned()), ..Routing::default() }
}

fn with_gateway(routing: Routing) -> Routing {
    let parent = ParentGateway { name: "sessions".to_owned(), namespace: "gateway".to_owned(), listener: None };
    Routing { gateway: Some(parent), ..routing }
}

fn with_class(routing: Routing) -> Routing {
    Routing { ingress_class: Some("contour".to_owned()), ..routing }
}

/// `*` marks a default.
#[expect(clippy::unnecessary_wraps, reason = "reads well in a table beside None")]
fn classes(names: &[&str]) -> Option<Vec<IngressClass>> {
    let class =
        |name: &&str| IngressClass { name: name.trim_matches('*').to_owned(), is_default: name.starts_with('*') };
    Some(names.iter().map(class).collect())
}

fn there(versions: Option<&[&str]>, ingress_classes: Option<Vec<IngressClass>>) -> Surroundings {
    let gateway_versions = versions.map(|versions| versions.iter().map(ToString::to_string).collect());
    Surroundings { gateway_versions, ingress_classes, gateway_class: None }
}

/// Short for a layer or an error.
fn told(routing: &Routing, surroundings: &Surroundings) -> String {
    match resolve(routing, surroundings) {
        Ok(Layer::Off) => "off".to_owned(),
        Ok(Layer::Gateway { version, parent, .. }) => format!("gateway {version} {}", parent.name),
        Ok(Layer::Ingress { class, .. }) => format!("ingress {class}"),
        Err(LayerError::Ambiguous(message)) => format!("ambiguous: {message}"),
        Err(LayerError::Invalid(message)) => format!("invalid: {message}"),
    }
}

const V1: Option<&[&str]> = Some(&["v1"]);
const NONE: Option<&[&str]> = Some(&[]);

#[test]
fn rte_01_rte_03_without_a_base_domain_or_with_mode_none_there_is_no_layer() {
    let without = with_gateway(Routing { base_domain: None, ..Routing::default() });
    let off = with_gateway(Routing { mode: RoutingMode::None, ..on() });
    for routing in [without, off] {
        assert_eq!(resolve(&routing, &there(V1, classes(&["*contour"]))), Ok(Layer::Off));
    }
}

#[test]
fn rte_04_rte_05_auto_goes_by_what_is_configured_before_what_is_installed() {
    let both = with_class(with_gateway(on()));
    for (routing, versions, list, expected) in [
        (with_gateway(on()), V1, classes(&["*contour"]), "gateway v1 sessions"),
        (both, V1, classes(&["*contour"]), "gateway v1 sessions"),
        (with_gateway(on()), V1, None, "gateway v1 sessions"),
        (with_gateway(on()), NONE, classes(&["*contour"]), "invalid: `routing.gateway.name` is set and no HTTPRoutes"),
        (with_gateway(on()), None, classes(&["*contour"]), "ambiguous: it could not be asked which versions"),
        (with_class(on()), V1, classes(&["contour", "*nginx"]), "ingress contour"),
        (with_class(on()), V1, None, "ingress contour"),
        (with_class(on()), None, classes(&["contour"]), "ingress contour"),
        (on(), V1, classes(&["contour", "*nginx"]), "ingress nginx"),
        (on(), None, classes(&["*nginx"]), "ingress nginx"),
        (on(), V1, classes(&["nginx"]), "ambiguous: both"),
        (on(), V1, classes(&[]), "ambiguous: Gateway API is served, and no Gateway is named"),
        (on(), NONE, classes(&["nginx"]), "ingress nginx"),
        (on(), NONE, classes(&["nginx", "contour"]), "ambiguous: no IngressClass is the default"),
        (on(), None, classes(&["nginx"]), "ambiguous: it could not be asked whether Gateway API is served"),
        (on(), NONE, classes(&[]), "ambiguous: neither"),
    ] {
        let told = told(&routing, &there(versions, list.clone()));
        assert!(told.starts_with(expected), "{told}, not {expected}, with {versions:?} and {list:?}");
    }
}

#[test]
fn rte_07_l10_a_list_that_could_not_be_read_is_not_called_empty() {
    for versions in [V1, NONE, None] {
        let told = told(&on(), &there(versions, None));
        assert_eq!(
            told,
            "ambiguous: the IngressClasses could not be listed; set `routing.gateway.name` or `routing.ingress.className`"
        );
    }
    let forced = Routing { mode: RoutingMode::Ingress, ..on() };
    assert!(told(&forced, &there(V1, None)).starts_with("ambiguous: the IngressClasses could not be listed"));
}

#[test]
fn rte_02_a_forced_mode_wants_its_own_layer() {
    let gateway = Routing { mode: RoutingMode::Gateway, ..on() };
    assert!(told(&gateway, &there(V1, classes(&["*nginx"]))).starts_with("invalid: `routing.mode` is gateway"));
    let ingress = with_gateway(Routing { mode: RoutingMode::Ingress, ..on() });
    assert_eq!(told(&ingress, &there(V1, classes(&["nginx"]))), "ingress nginx");
    assert_eq!(told(&ingress, &there(V1, classes(&["nginx", "*contour"]))), "ingress contour");
    assert!(told(&ingress, &there(V1, classes(&[]))).starts_with("ambiguous: there is no IngressClass"));
}

#[test]
fn b142_an_ingress_gets_a_class_that_exists() {
    assert_eq!(
        told(&with_class(on()), &there(V1, classes(&["nginx", "haproxy"]))),
        "invalid: there is no IngressClass contour, which `routing.ingress.className` names; make it, or name another \
         (there are: haproxy, nginx)"
    );
    assert_eq!(
        told(&on(), &there(NONE, classes(&["*nginx", "*contour", "haproxy"]))),
        "ambiguous: several IngressClasses are marked as the default; set `routing.ingress.className` (there are: \
         contour, nginx)"
    );
}

#[test]
fn rte_06_v1_is_preferred_then_v1beta1_then_what_the_group_prefers() {
    for (served, chosen) in
        [(&["v1beta1", "v1"][..], "v1"), (&["v1alpha2", "v1beta1"], "v1beta1"), (&["v2", "v1alpha2"], "v2")]
    {
        assert_eq!(told(&with_gateway(on()), &there(Some(served), None)), format!("gateway {chosen} sessions"));
    }
}

#[test]
fn rte_08_an_ingress_tls_secret_beside_a_gateway_is_refused_once_the_layer_is_known() {
    let secret = |routing| Routing { ingress_tls_secret: Some("tls".to_owned()), ..routing };
    for mode in [RoutingMode::Auto, RoutingMode::Gateway] {
        let routing = secret(with_gateway(Routing { mode, ..on() }));
        assert!(told(&routing, &there(V1, classes(&["*nginx"]))).starts_with("invalid: `routing.ingress.tlsSecret`"));
    }
    let layer = resolve(&secret(on()), &there(V1, classes(&["*nginx"])));
    assert_eq!(layer, Ok(Layer::Ingress { class: "nginx".to_owned(), tls_secret: Some("tls".to_owned()) }));
}

#[test]
fn routes_carry_a_proof_where_the_layer_is_known_to_be_able_to_or_is_told_to_be() {
    let class = |controller: &str, features: &[&str]| {
        let supported_features = features.iter().map(ToString::to_string).collect();
        Some(GatewayClass { name: "c".to_owned(), controller_name: controller.to_owned(), supported_features })
    };
    let able = class("example.com/gateway", &["HTTPRoute", "HTTPRouteResponseHeaderModification"]);
    let unable = class("example.com/gateway", &["HTTPRoute"]);
    for (mode, gateway_class, expected) in [
        (ProofMode::Auto, able.clone(), true),
        (ProofMode::Auto, unable.clone(), false),
        (ProofMode::Auto, None, false),
        (ProofMode::Auto, class("gateway.envoyproxy.io/gatewayclass-controller", &[]), true),
        (ProofMode::Auto, class("projectcontour.io/gateway-controller", &[]), true),
        (ProofMode::Auto, class("projectcontour.io.example.com/gateway-controller", &[]), false),
        (ProofMode::On, unable, true),
        (ProofMode::On, None, true),
        (ProofMode::Off, able, false),
    ] {
        let routing = with_gateway(Routing { proof: mode, ..on() });
        let surroundings = Surroundings { gateway_class: gateway_class.clone(), ..there(V1, None) };
        match resolve(&routing, &surroundings) {
            Ok(Layer::Gateway { proof, .. }) => assert_eq!(proof, expected, "{mode:?} {gateway_class:?}"),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_class_that_is_gone_or_has_yet_to_say_what_it_can_changes_nothing() {
    let class = |controller: &str, features: &[&str]| GatewayClass {
        name: "c".to_owned(),
        controller_name: controller.to_owned(),
        supported_features: features.iter().map(ToString::to_string).collect(),
    };
    let (able, silent) = (class("a", &[SETS_RESPONSE_HEADERS]), class("a", &[]));
    let (unable, other) = (class("a", &["HTTPRoute"]), class("b", &[]));
    for (now, before, expected) in [
        (None, Some(&able), Some(&able)),
        (Some(&silent), Some(&able), Some(&able)),
        (Some(&unable), Some(&able), Some(&unable)),
        (Some(&other), Some(&able), Some(&other)),
        (Some(&silent), None, Some(&silent)),
        (Some(&able), Some(&silent), Some(&able)),
        (None, None, None),
    ] {
        assert_eq!(GatewayClass::settled(now, before), expected, "{now:?} after {before:?}");
    }
}
