//! The objects of one session are made what they ought to be.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::{Duration, Instant};

use cofferdam_kubernetes::json::parsed;
use cofferdam_kubernetes::{Backoff, Failed};
use cofferdam_model::policy::NetworkMode;
use cofferdam_model::ports::Ports;
use k8s_openapi::jiff::Timestamp;

use super::Crew;
use super::pace::Pace;
use super::secret;
use super::stages::Stages;
use crate::desired::{Proof, Wanted, desired, proof_of};
use crate::events::Tone;
use crate::ground::Ground;
use crate::layer::Layer;
use crate::objects::{Kind, Live, name, route_name};
use crate::plan::{Plan, has_any, has_claim, is_owned, without_layer};
use crate::report::Hindrance;
use crate::session::Session;
use crate::world::Snapshot;

mod claiming;
mod refusal;
mod wish;
mod writing;

/// Between attempts that fail.
const SHORTEST_PAUSE: Duration = Duration::from_millis(400);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// After so long without success, what passes by itself is told as well.
const PATIENCE: Duration = Duration::from_secs(10);
/// Who waits for an id that another pod has asks again after so long, and then somewhat later. On the same node it does once
/// the id is free.
const SHORTEST_WAIT: Duration = Duration::from_secs(4);
const LONGEST_WAIT: Duration = Duration::from_secs(8);

/// Why ports wait.
const PORTS_CHANGE: &str = "the ports that the session asks for change again and again";

/// An object of the session.
type Slot = (Kind, String);

/// What is known of the objects of one session, beside the objects.
#[derive(Debug)]
pub(super) struct Publisher {
    proofs: BTreeMap<u16, Proof>,
    written: HashMap<Slot, Written>,
    wish: wish::Wish,
    /// What is in the way, as far as a look alone shows it.
    obstacle: Option<Hindrance>,
    /// What was refused, or had no effect, and would again: each is left alone for a while, whatever wakes us.
    resting: BTreeMap<Slot, Rest>,
    /// Who has our id, and how often that was found out.
    holder: Option<Holder>,
    waits: Backoff,
    /// Whether a Service of the session's name that is not its own was there when it was last asked for.
    is_name_taken: bool,
    /// How often the node was lost.
    outages: u64,
    /// What was deleted: the watch may be behind.
    deleted: HashSet<String>,
    is_published: bool,
    claimed: Claimed,
}

/// Whether this agent has made the Service, and has told so, which it does once all the rest is there too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Claimed {
    No,
    Untold,
    Told,
}

/// What is to be done about the objects of a session now.
#[derive(Debug)]
pub(super) struct Task {
    plan: Plan,
    /// The version that routes are written at.
    version: String,
}

/// What of a plan can be done now.
#[derive(Debug)]
struct Due {
    plan: Plan,
    /// What comes of the rest.
    rest: Attempt,
    /// When the first of that can be tried again.
    next: Option<Instant>,
    /// Whether more is to be done, once the node is back.
    is_held_back: bool,
}

/// The pod that has the id of another.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Holder {
    /// Its name, if that is known.
    name: Option<String>,
    /// Its uid, if its end is seen on this node.
    uid: Option<String>,
    /// The uid of its Service, if that was made on this node.
    service: Option<String>,
    /// Whether that Service was seen, so that its end will be.
    is_seen: bool,
}

/// An object that is left alone.
#[derive(Debug)]
struct Rest {
    until: Instant,
    /// Why, as it is told; it is also while it is being tried again. None for what may pass by itself.
    why: Option<Hindrance>,
    /// What failed of it in a row, and since when.
    failures: Backoff,
    failing_since: Option<Instant>,
}

/// Our last write of an object.
#[derive(Debug)]
struct Written {
    digest: u64,
    at: Instant,
    /// How often the same was written again, since somebody had undone it.
    corrections: Pace,
}

/// What came of one attempt.
#[derive(Debug, PartialEq)]
enum Attempt {
    /// Nothing was to be done, or all of it was.
    Done,
    /// The pause after a failure is not over.
    Resting(Instant),
    /// Something is in the way; when to try again.
    Hindered(Hindrance, Instant),
    /// Another pod has the session's id.
    Taken(Holder),
    /// The API server refused a write of this object.
    Failed(Slot, Failed),
}

impl Attempt {
    /// The one of two that says more: a refusal more than a hindrance, and what waits for others more than what waits for
    /// its time. What rests has said why before.
    fn or(self, other: Self) -> Self {
        let says = |attempt: &Self| match attempt {
            Self::Done => 0,
            Self::Resting(_) => 1,
            Self::Hindered(Hindrance::PublishDelayed(_), _) => 2,
            Self::Hindered(..) | Self::Taken(_) => 3,
            Self::Failed(..) => 4,
        };
        if says(&other) > says(&self) { other } else { self }
    }
}

impl Default for Publisher {
    fn default() -> Self {
        Self {
            proofs: BTreeMap::new(),
            written: HashMap::new(),
            wish: wish::Wish::default(),
            obstacle: None,
            resting: BTreeMap::new(),
            holder: None,
            waits: Backoff::new(SHORTEST_WAIT, LONGEST_WAIT),
            is_name_taken: false,
            outages: 0,
            deleted: HashSet::new(),
            is_published: false,
            claimed: Claimed::No,
        }
    }
}

impl Publisher {
    /// What is to be done now, if anything is, and when to look again.
    pub(super) fn look(
        &mut self,
        crew: &Crew,
        snapshot: &Snapshot,
        ground: &Ground,
        stages: &mut Stages,
    ) -> (Option<Task>, Option<Instant>) {
        let session = &snapshot.seen.session;
        let (ports, more_at) = self.wish.take_up(&session.ports, Instant::now());
        let ports = &ports;
        // Where the layer cannot be told, what is there stays, and leads to where the pod is: the layer may be back in a moment,
        // and people are using it.
        let layer = ground.layer.as_ref().unwrap_or(&Layer::Off);
        if ground.layer.is_err() && !has_any(session, &snapshot.live) {
            return self.is_kept_from_all(None, None);
        }
        if !self.prepare_proofs(session, ports, &snapshot.live) {
            let why = Hindrance::PublishFailed("the system gives no random numbers".to_owned());
            return self.is_kept_from_all(Some(why), Some(Instant::now() + LONGEST_PAUSE));
        }
        let proofs = &self.proofs;
        // Every TCP port has one; the API server would refuse an empty one.
        let nothing = || Proof { probe: String::new(), proof: String::new() };
        let proof = |port: u16| proofs.get(&port).cloned().unwrap_or_else(nothing);
        let wanted = desired(session, ports, layer, ground.policy.routing(), &crew.node, &proof);
        let is_managed = ground.policy.network().mode == NetworkMode::Managed;
        if !wanted.is_empty() && is_managed && !snapshot.is_protected && !has_claim(session, &snapshot.live) {
            return self.is_kept_from_all(Some(Hindrance::WaitingForNetworkPolicy), None);
        }
        if std::mem::replace(&mut self.outages, snapshot.outages) != snapshot.outages {
            // To put back what the elected agent took out of service is no correction.
            self.written.retain(|(kind, _), _| *kind != Kind::EndpointSlice);
        }
        let mut judged = Cow::from(&snapshot.live);
        if ground.layer.is_err() {
            judged = without_layer(session, ports, &judged).into();
        }
        // Whether a session is published with all that it asks for.
        let is_all = ground.layer.is_ok() && !snapshot.is_node_lost;
        let version = match layer {
            Layer::Gateway { version, .. } => version.as_str(),
            // Routes may be left from before.
            Layer::Off | Layer::Ingress { .. } => snapshot.route_version.as_deref().unwrap_or("v1"),
        };
        let Due { plan, mut rest, mut next, is_held_back } =
            self.due(crew, session, &judged, &wanted, snapshot.is_node_lost);
        if let Some(due) = more_at {
            rest = rest.or(Attempt::Hindered(Hindrance::PublishDelayed(PORTS_CHANGE.to_owned()), due));
            next = next.into_iter().chain([due]).min();
        }
        let is_done = plan == Plan::default() && rest == Attempt::Done && !is_held_back;
        self.obstacle = match rest {
            Attempt::Hindered(hindrance, _) => Some(hindrance),
            // What was late, and is held back now that its time may have come, is as late as before.
            _ if is_held_back => self.obstacle.take().filter(|late| matches!(late, Hindrance::PublishDelayed(_))),
            Attempt::Done | Attempt::Resting(_) | Attempt::Taken(_) | Attempt::Failed(..) => None,
        };
        // What is only late is as it was.
        let is_as_it_was = matches!(self.hindrance(), None | Some(Hindrance::PublishDelayed(_)));
        self.is_published &= is_as_it_was && session.is_publishable();
        if plan != Plan::default() {
            return (Some(Task { plan, version: version.to_owned() }), None);
        }
        if is_done {
            if is_all {
                self.is_published = !wanted.is_empty();
            }
            if self.is_published {
                stages.published(&crew.metrics);
                self.tell(crew, session, &wanted);
            }
        }
        (None, next)
    }

    /// Nothing is to be done before `next`, whatever was tried until now.
    fn is_kept_from_all(&mut self, why: Option<Hindrance>, next: Option<Instant>) -> (Option<Task>, Option<Instant>) {
        self.resting.clear();
        (self.obstacle, self.is_published) = (why, false);
        (None, next)
    }

    /// Does it.
    pub(super) async fn carry_out(&mut self, crew: &Crew, session: &Session, task: Task) {
        let fails = |publisher: &Self| matches!(publisher.hindrance(), Some(Hindrance::PublishFailed(_)));
        let has_failed = fails(self);
        let attempt = self.make_so(crew, session, task).await;
        if let Attempt::Failed(slot, failed) = attempt
            && !has_failed
            && fails(self)
        {
            let (namespace, pod) = (&session.namespace, &session.name);
            tracing::warn!(namespace, pod, object = named(&slot), error = %failed, "an object of a session cannot be written");
        }
    }

    /// Tells once that all is there, if this agent has made it.
    fn tell(&mut self, crew: &Crew, session: &Session, wanted: &[Wanted]) {
        let service = wanted.iter().find(|wanted| wanted.kind == Kind::Service);
        if let Some(service) = service.filter(|_| self.claimed == Claimed::Untold) {
            self.claimed = Claimed::Told;
            let routes = wanted.iter().filter(|wanted| wanted.kind.is_route()).count();
            let s = if routes == 1 { "" } else { "s" };
            let note = format!("Service {} is made, with its endpoints and {routes} route{s}", service.name);
            crew.events.tell(session, Tone::Normal, "Published", &note);
        }
    }

    /// What keeps the session from being published: the worst of all that does, and of several that are as bad that of the
    /// first object, so that what stays is not told again and again.
    pub(super) fn hindrance(&self) -> Option<Hindrance> {
        let resting = self.resting.values().filter_map(|rest| rest.why.as_ref());
        self.obstacle.iter().chain(resting).min_by_key(|hindrance| hindrance.reason()).cloned()
    }

    /// Whether all objects are there.
    pub(super) fn is_published(&self) -> bool {
        self.is_published
    }

    /// The proof of a port's route.
    pub(super) fn proof(&self, port: u16) -> Option<&Proof> {
        self.proofs.get(&port)
    }

    /// When the routing layer has, or had, to have judged the route of that object at the latest. For one that was made before
    /// this agent began, and long ago, that is `now`.
    pub(super) fn deadline(&self, live: &Live, seconds: u32, now: Instant) -> Instant {
        let seconds = Duration::from_secs(seconds.into());
        if let Some(written) = self.written.get(&(live.kind, live.name.clone())) {
            return written.at + seconds;
        }
        let created = parsed(&live.object["metadata"]["creationTimestamp"]);
        let age = created.map_or(Duration::ZERO, |created: Timestamp| {
            Duration::from_secs(u64::try_from(Timestamp::now().as_second() - created.as_second()).unwrap_or_default())
        });
        now + seconds.saturating_sub(age)
    }

    /// Whether every TCP port has a proof: the one of its route, or a new one.
    fn prepare_proofs(&mut self, session: &Session, ports: &Ports, live: &[Live]) -> bool {
        let Some(id) = &session.id else { return true };
        self.proofs.retain(|port, _| ports.tcp().any(|tcp| tcp == *port));
        // Ports come and go; what was written for those that are gone is of no more use.
        let names: Vec<String> = ports.tcp().map(|port| route_name(id.as_str(), port)).collect();
        let is_wanted = |(kind, name): &Slot| *kind != Kind::HttpRoute || names.contains(name);
        self.written.retain(|slot, _| is_wanted(slot));
        for port in ports.tcp() {
            if self.proofs.contains_key(&port) {
                continue;
            }
            let name = route_name(id.as_str(), port);
            let route = live
                .iter()
                .find(|live| live.kind == Kind::HttpRoute && live.name == name && is_owned(&live.object, &session.uid));
            match route.and_then(|route| proof_of(&route.object)).or_else(secret::proof) {
                Some(proof) => drop(self.proofs.insert(port, proof)),
                None => return false,
            }
        }
        true
    }
}

/// As kubectl takes it.
fn named((kind, name): &Slot) -> String {
    format!("{}/{name}", kind.plural())
}

fn slot(wanted: &Wanted) -> Slot {
    (wanted.kind, wanted.name.clone())
}

/// The object that is the route of a port, as far as it is there. What another pod of the same id left is none: it leads, and
/// answers, to that one.
pub(super) fn route<'a>(session: &Session, layer: &Layer, live: &'a [Live], port: u16) -> Option<&'a Live> {
    let id = session.id.as_ref()?;
    let (kind, name) = match layer {
        Layer::Off => return None,
        Layer::Gateway { .. } => (Kind::HttpRoute, route_name(id.as_str(), port)),
        Layer::Ingress { .. } => (Kind::Ingress, name(id.as_str())),
    };
    live.iter().find(|live| live.kind == kind && live.name == name && is_owned(&live.object, &session.uid))
}

#[cfg(test)]
mod tests;
