//! What routes stand on: the policy, the layer that it comes to in this cluster, and the Gateway that is the parent of routes.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use cofferdam_kubernetes::watch::{Lookout, Watches};
use cofferdam_kubernetes::{Cluster, Selection};
use cofferdam_model::policy::{Policy, RoutingMode};
use cofferdam_runtime::ready::Gate;
use serde_json::Value;
use tokio::time::{Instant, sleep_until};

use crate::layer::{self, GatewayClass, Layer, LayerError, Surroundings};
use crate::probe::Tls;
use crate::verdict::Known;
use crate::world::World;

mod sights;

use sights::{Sight, Sights};

/// Is told which versions of Gateway API's routes are served, the preferred one first.
pub(crate) type Served = Arc<dyn Fn(&[String]) + Send + Sync>;

/// A layer is given up only when it has been gone for so long.
const PATIENCE: Duration = Duration::from_secs(15);

/// What routes stand on at a moment.
#[derive(Debug, PartialEq)]
pub(crate) struct Ground {
    /// Whether all that the layer depends on was asked for; nothing may be concluded before.
    pub is_known: bool,
    /// The policy.
    pub policy: Arc<Policy>,
    /// The layer, or why there is none.
    pub layer: Result<Layer, LayerError>,
    /// How to speak TLS to a gateway.
    pub tls: Tls,
    /// The Gateway that is the parent of all routes, by its name, if it is there.
    gateways: Sight<BTreeMap<String, Value>>,
    /// The class by which it was told whether routes carry a proof.
    class: Option<GatewayClass>,
}

impl Default for Ground {
    fn default() -> Self {
        Self {
            is_known: false,
            policy: Arc::new(Policy::built_in()),
            layer: Ok(Layer::Off),
            tls: Tls::new(None),
            gateways: Sight::NotAsked,
            class: None,
        }
    }
}

impl Ground {
    /// The Gateway that is the parent of all routes.
    #[must_use]
    pub(crate) fn gateway(&self) -> Known<'_> {
        if !matches!(self.layer, Ok(Layer::Gateway { .. })) {
            return Known::Missing;
        }
        match self.gateways.seen() {
            None => Known::Unreadable,
            Some(gateways) => gateways.values().next().map_or(Known::Missing, Known::There),
        }
    }

    /// Whether an agent that has just begun knows what there is. Before, it would take routes away, give them other proofs,
    /// and tell of a session that works that it does not.
    #[must_use]
    pub(crate) fn is_settled(&self, are_routes_known: bool) -> bool {
        self.is_known && (are_routes_known || !matches!(self.layer, Ok(Layer::Gateway { .. })))
    }
}

/// What readiness waits for.
#[derive(Debug, Default)]
pub(crate) struct Gates {
    /// Opened once it is known what routes stand on.
    pub layer: Option<Gate>,
    /// Opened once the `HTTPRoutes` that are there are known too, where the layer has such.
    pub routes: Option<Gate>,
}

impl Gates {
    fn open(&mut self, ground: &Ground, are_routes_known: bool) {
        if let Some(gate) = self.layer.take_if(|_| ground.is_known) {
            gate.open();
        }
        if let Some(gate) = self.routes.take_if(|_| ground.is_settled(are_routes_known)) {
            gate.open();
        }
    }
}

/// Keeps `world.ground` as the cluster is, until it is dropped. `versions` is told which versions of Gateway API's routes
/// are served. `namespace` is the only one that may be looked into, if there is one. Of `gates` those stay shut that were not
/// opened by then: they are for the next policy's ground.
pub(crate) async fn keep(
    world: Arc<World>,
    cluster: Cluster,
    watches: Watches,
    policy: Arc<Policy>,
    namespace: Option<String>,
    versions: Served,
    gates: &mut Gates,
) {
    // Classes belong to no namespace, so who may look into one only cannot ask for them.
    let asks = namespace.is_none();
    let mut sights = Sights::default();
    if !asks {
        (sights.ingress_classes, sights.gateway_classes) = (Sight::Refused, Sight::Refused);
    }
    let mut lookout = Lookout::new(cluster, watches, sights);
    let routing = policy.routing();
    // Once for each policy, since it takes a while.
    let tls = Tls::new(routing.probe.ca_bundle.as_deref());
    if let Some(error) = tls.error() {
        tracing::warn!(%error, "no address can be probed over TLS");
    }
    if routing.is_on() {
        let look_again = sights::versions(&mut lookout, versions);
        if routing.mode != RoutingMode::Gateway && asks {
            sights::ingress_classes(&mut lookout, &look_again);
        }
        if let Some(parent) = routing.gateway.clone().filter(|_| routing.mode != RoutingMode::Ingress) {
            let fields = format!("metadata.name={}", parent.name);
            let selection = Selection { namespace: Some(parent.namespace), fields, ..Selection::default() };
            sights::gateway(&mut lookout, selection, &look_again);
            if asks {
                sights::gateway_classes(&mut lookout, &look_again);
            }
        }
    }
    let (mut routes, mut gone_since) = (world.routes_known(), None);
    loop {
        let ground = seen(&lookout.seen(), &policy, &tls, &world.ground.load());
        let held = ground
            .as_ref()
            .and_then(|ground| held_until(&world.ground.load().layer, &ground.layer, &mut gone_since, Instant::now()));
        if let Some(ground) = ground.filter(|_| held.is_none()) {
            stand_on(&world, ground);
        }
        gates.open(&world.ground.load(), *routes.borrow_and_update());
        tokio::select! {
            // The other end is in the world, and so never gone.
            _ = routes.changed() => {}
            goes_on = lookout.changed() => if !goes_on { return },
            () = sleep_until(held.unwrap_or_else(Instant::now)), if held.is_some() => {}
        }
    }
}

/// Until when the layer of `before` holds, although there is none now; none where it does not. What is reinstalled is gone
/// for a moment. `gone_since` is kept between one look and the next.
fn held_until(
    before: &Result<Layer, LayerError>,
    now: &Result<Layer, LayerError>,
    gone_since: &mut Option<Instant>,
    moment: Instant,
) -> Option<Instant> {
    if !matches!((before, now), (Ok(Layer::Gateway { .. } | Layer::Ingress { .. }), Err(_))) {
        *gone_since = None;
        return None;
    }
    let until = *gone_since.get_or_insert(moment) + PATIENCE;
    (until > moment).then_some(until)
}

/// From now on routes stand on this, if it is another ground.
fn stand_on(world: &World, ground: Ground) {
    let before = world.ground.load();
    if **before == ground {
        return;
    }
    if before.layer != ground.layer {
        match &ground.layer {
            Ok(layer) => tracing::info!(?layer, "routes are made for"),
            Err(error) => tracing::warn!(%error, "no routes are made"),
        }
    }
    world.ground.store(Arc::new(ground));
    world.wake_everyone();
}

/// The ground as far as it was seen; nothing before all that the layer depends on was asked for.
fn seen(sights: &Sights, policy: &Arc<Policy>, tls: &Tls, before: &Ground) -> Option<Ground> {
    let routing = policy.routing();
    let has_parent = routing.gateway.is_some() && routing.mode != RoutingMode::Ingress;
    let is_known = sights.gateway_versions.is_known()
        && (routing.mode == RoutingMode::Gateway || sights.ingress_classes.is_known())
        && (!has_parent || sights.gateways.is_known() && sights.gateway_classes.is_known());
    if routing.is_on() && !is_known {
        return None;
    }
    let gateway = sights.gateways.seen().and_then(|gateways| gateways.values().next());
    let named = gateway.and_then(|gateway| gateway["spec"]["gatewayClassName"].as_str());
    let class = named.and_then(|name| sights.gateway_classes.seen()?.get(name));
    // Of another Gateway it says nothing.
    let before = before.class.as_ref().filter(|_| before.policy.routing().gateway == routing.gateway);
    let class = GatewayClass::settled(class, before).cloned();
    let surroundings = Surroundings {
        gateway_versions: sights.gateway_versions.seen().cloned(),
        ingress_classes: sights.ingress_classes.seen().map(|classes| classes.values().cloned().collect()),
        gateway_class: class.clone(),
    };
    Some(Ground {
        is_known: true,
        policy: Arc::clone(policy),
        layer: layer::resolve(routing, &surroundings),
        tls: tls.clone(),
        gateways: sights.gateways.clone(),
        class,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    mod answers;

    #[test]
    fn a_layer_is_given_up_when_it_has_been_gone_for_so_long_however_often_somebody_looks() {
        let layer = Ok(Layer::Ingress { class: "c".to_owned(), tls_secret: None });
        let none = Err(LayerError::Ambiguous("there is none".to_owned()));
        let (begin, mut gone_since) = (Instant::now(), None);
        let mut look = |before, now, seconds| {
            let until = held_until(before, now, &mut gone_since, begin + Duration::from_secs(seconds));
            until.map(|until| (until - begin).as_secs())
        };
        assert_eq!(look(&layer, &none, 0), Some(15));
        assert_eq!(look(&layer, &none, 14), Some(15), "a second look begins no second patience");
        assert_eq!(look(&layer, &none, 15), None);
        assert_eq!(look(&layer, &layer, 16), None);
        assert_eq!(look(&layer, &none, 20), Some(35), "it was back");
        assert_eq!(look(&none, &none, 21), None, "there was none before");
        assert_eq!(look(&layer, &Ok(Layer::Off), 22), None, "the policy wants none");
    }
}
