//! The objects of one session are made what they ought to be.

use std::collections::{BTreeMap, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::{Duration, Instant};

use cofferdam_model::policy::NetworkMode;
use futures_util::future::join_all;
use k8s_openapi::jiff::Timestamp;

use super::Crew;
use super::pace::Pace;
use super::secret;
use super::stages::Stages;
use crate::backoff::Backoff;
use crate::cluster::{Class, Failed};
use crate::desired::{Proof, Wanted, desired};
use crate::events::Tone;
use crate::ground::Ground;
use crate::layer::Layer;
use crate::objects::{Kind, Live, name, resource, route_name};
use crate::plan::{Claim, Step, claim, plan};
use crate::report::Hindrance;
use crate::session::{Session, version};
use crate::world::Snapshot;

mod claiming;

/// Between attempts that fail.
const SHORTEST_PAUSE: Duration = Duration::from_millis(400);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// After so many failures in a row, what passes by itself is told as well.
const PATIENCE: u32 = 3;

/// An object of the session.
type Slot = (Kind, String);

/// What is known of the objects of one session, beside the objects.
#[derive(Debug)]
pub(super) struct Publisher {
    proofs: BTreeMap<u16, Proof>,
    applied: HashMap<Slot, Applied>,
    paces: HashMap<Slot, Pace>,
    since: HashMap<Slot, Instant>,
    hindrance: Option<Hindrance>,
    backoff: Backoff,
    is_published: bool,
    was_told: bool,
}

/// Our last write of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Applied {
    /// The version that it gave the object.
    version: u64,
    /// What was written, as a hash: a wish that has changed since is nobody's quarrel with us.
    wish: u64,
}

/// What came of one attempt.
enum Attempt {
    /// Nothing was to be done, or all of it was.
    Done,
    /// A correction has to wait until then.
    Later(Instant),
    /// Something is in the way.
    Hindered(Hindrance, Duration),
    /// The API server refused.
    Failed(Kind, Failed),
}

impl Default for Publisher {
    fn default() -> Self {
        Self {
            proofs: BTreeMap::new(),
            applied: HashMap::new(),
            paces: HashMap::new(),
            since: HashMap::new(),
            hindrance: None,
            backoff: Backoff::new(SHORTEST_PAUSE, LONGEST_PAUSE),
            is_published: false,
            was_told: false,
        }
    }
}

impl Publisher {
    /// Does what is to be done now; gives when to try again.
    pub(super) async fn publish(
        &mut self,
        crew: &Crew,
        snapshot: &Snapshot,
        ground: &Ground,
        stages: &mut Stages,
    ) -> Option<Instant> {
        let session = &snapshot.seen.session;
        let layer = match &ground.layer {
            Ok(layer) => layer,
            // What is not to be published at all goes, whatever the layer.
            Err(_) if !session.is_publishable() => &Layer::Off,
            // What is there stays: the layer may be back in a moment, and people are using it.
            Err(_) => {
                self.hindrance = None;
                return None;
            }
        };
        if !self.prepare_proofs(session, &snapshot.live) {
            self.hindrance = Some(Hindrance::PublishFailed("the system gives no random numbers".to_owned()));
            return Some(Instant::now() + LONGEST_PAUSE);
        }
        let proofs = &self.proofs;
        // Every TCP port has one; the API server would refuse an empty one.
        let nothing = || Proof { probe: String::new(), proof: String::new() };
        let proof = |port: u16| proofs.get(&port).cloned().unwrap_or_else(nothing);
        let wanted = desired(session, layer, ground.policy.routing(), &crew.node, &proof);
        let is_managed = ground.policy.network().mode == NetworkMode::Managed;
        if !wanted.is_empty() && is_managed && !snapshot.is_protected && !has_claim(session, &snapshot.live) {
            self.hindrance = Some(Hindrance::WaitingForNetworkPolicy);
            return None;
        }
        let attempt = self.carry_out(crew, snapshot, layer, &wanted).await;
        self.is_published = match attempt {
            Attempt::Done => !wanted.is_empty(),
            // As it was: nothing was done.
            Attempt::Later(_) => self.is_published,
            Attempt::Hindered(..) | Attempt::Failed(..) => false,
        };
        match attempt {
            Attempt::Done => {
                self.backoff.over();
                self.hindrance = None;
                if self.is_published {
                    stages.published(&crew.metrics);
                }
                None
            }
            Attempt::Later(moment) => Some(moment),
            Attempt::Hindered(hindrance, pause) => {
                self.backoff.over();
                self.hindrance = Some(hindrance);
                Some(Instant::now() + pause.mul_f64(0.75 + fastrand::f64() / 2.0))
            }
            Attempt::Failed(kind, failed) => Some(Instant::now() + self.failed(session, kind, &failed)),
        }
    }

    /// What keeps the session from being published.
    pub(super) fn hindrance(&self) -> Option<Hindrance> {
        self.hindrance.clone()
    }

    /// Whether all objects are there.
    pub(super) fn is_published(&self) -> bool {
        self.is_published
    }

    /// The proof of a port's route.
    pub(super) fn proof(&self, port: u16) -> Option<&Proof> {
        self.proofs.get(&port)
    }

    /// When the routing layer had to have judged the route of that object at the latest.
    pub(super) fn deadline(&self, live: &Live, seconds: u32) -> Instant {
        let (now, seconds) = (Instant::now(), Duration::from_secs(seconds.into()));
        if let Some(since) = self.since.get(&(live.kind, live.name.clone())) {
            return *since + seconds;
        }
        // Made before this agent began.
        let created = live.object["metadata"]["creationTimestamp"].as_str().and_then(|time| time.parse().ok());
        let age = created.map_or(Duration::ZERO, |created: Timestamp| {
            Duration::from_secs(u64::try_from(Timestamp::now().as_second() - created.as_second()).unwrap_or_default())
        });
        now + seconds.saturating_sub(age)
    }

    /// How long to wait after a failure, which is told unless it may pass by itself.
    fn failed(&mut self, session: &Session, kind: Kind, failed: &Failed) -> Duration {
        let pause = self.backoff.failed();
        let passes = matches!(
            failed.class,
            Class::Unreachable | Class::Timeout | Class::Throttled | Class::Conflict | Class::Server
        );
        if passes && self.backoff.failures() < PATIENCE {
            return pause;
        }
        if self.backoff.failures() <= PATIENCE {
            let (namespace, pod) = (&session.namespace, &session.name);
            tracing::warn!(namespace, pod, ?kind, error = %failed, "an object of a session cannot be written");
        }
        let what = resource(kind, "").name;
        self.hindrance = Some(Hindrance::PublishFailed(format!("{what}: {}", failed.class.sentence())));
        pause
    }

    /// Whether every TCP port has a proof: the one of its route, or a new one.
    fn prepare_proofs(&mut self, session: &Session, live: &[Live]) -> bool {
        let (Ok(ports), Some(id)) = (&session.ports, &session.id) else { return true };
        self.proofs.retain(|port, _| ports.tcp().any(|tcp| tcp == *port));
        // Ports come and go; what was written for those that are gone is of no more use.
        let names: Vec<String> = ports.tcp().map(|port| route_name(id.as_str(), port)).collect();
        let is_wanted = |(kind, name): &Slot| *kind != Kind::HttpRoute || names.contains(name);
        self.applied.retain(|slot, _| is_wanted(slot));
        self.paces.retain(|slot, _| is_wanted(slot));
        self.since.retain(|slot, _| is_wanted(slot));
        for port in ports.tcp() {
            if self.proofs.contains_key(&port) {
                continue;
            }
            let name = route_name(id.as_str(), port);
            let route = live.iter().find(|live| live.kind == Kind::HttpRoute && live.name == name);
            match route.and_then(|route| secret::proof_of(&route.object)).or_else(secret::proof) {
                Some(proof) => drop(self.proofs.insert(port, proof)),
                None => return false,
            }
        }
        true
    }

    async fn carry_out(&mut self, crew: &Crew, snapshot: &Snapshot, layer: &Layer, wanted: &[Wanted]) -> Attempt {
        let session = &snapshot.seen.session;
        let Some(id) = &session.id else { return Attempt::Done };
        let applied = |kind: Kind, name: &str| {
            let version = crew.world.version_of(&session.namespace, id.as_str(), kind, name);
            let wish = wanted.iter().find(|wanted| wanted.kind == kind && wanted.name == name).map(wish);
            let applied = version.zip(wish).map(|(version, wish)| Applied { version, wish });
            applied.is_some() && applied.as_ref() == self.applied.get(&(kind, name.to_owned()))
        };
        let mut steps = plan(&session.uid, wanted, &snapshot.live, &applied);
        let version = match layer {
            Layer::Gateway { version, .. } => version.as_str(),
            Layer::Off | Layer::Ingress { .. } => "v1",
        };
        if let Some(Step::Create(service)) = steps.iter().find(|step| matches!(step, Step::Create(_))) {
            let service = service.clone();
            match claiming::take(crew, session, &service).await {
                Ok(answer) => self.wrote(crew, &service, &answer, "create"),
                Err(done) => return done,
            }
            steps.retain(|step| !matches!(step, Step::Create(_)));
            if !std::mem::replace(&mut self.was_told, true) {
                let routes = wanted.iter().filter(|wanted| wanted.kind >= Kind::HttpRoute).count();
                let s = if routes == 1 { "" } else { "s" };
                let note = format!("Service {} is made, with its endpoints and {routes} route{s}", service.name);
                crew.events.tell(session, Tone::Normal, "Published", &note);
            }
        }
        let (deletes, writes): (Vec<Step>, Vec<Step>) =
            steps.into_iter().partition(|step| matches!(step, Step::Delete { .. }));
        for step in deletes {
            let Step::Delete { kind, name, uid } = step else { continue };
            if let Err(failed) = crew.cluster.delete(&resource(kind, version), &session.namespace, &name, &uid).await {
                return Attempt::Failed(kind, failed);
            }
            crew.metrics.wrote(resource(kind, version).name, "delete");
        }
        self.write(crew, session, version, writes).await
    }

    /// All at once: none needs the others to be there.
    async fn write(&mut self, crew: &Crew, session: &Session, version: &str, steps: Vec<Step>) -> Attempt {
        let now = Instant::now();
        let mut later: Option<Instant> = None;
        let mut writes = Vec::new();
        for step in steps {
            let (replaced, wanted) = match step {
                Step::Apply(wanted) => (None, wanted),
                Step::Replace { uid, wanted } => (Some(uid), wanted),
                Step::Create(_) | Step::Delete { .. } => continue,
            };
            let slot = (wanted.kind, wanted.name.clone());
            // What was written once already was undone by somebody; a first write, or another wish, is no quarrel.
            let is_correction = self.applied.get(&slot).is_some_and(|applied| applied.wish == wish(&wanted));
            let due = self.paces.get(&slot).map_or(now, |pace| pace.due(now));
            if is_correction && due > now {
                later = Some(later.map_or(due, |later| later.min(due)));
                continue;
            }
            writes.push(async move {
                let (kind, namespace) = (resource(wanted.kind, version), &session.namespace);
                if let Some(uid) = &replaced {
                    let gone = crew.cluster.delete(&kind, namespace, &wanted.name, uid).await;
                    crew.metrics.replaced(kind.name);
                    if let Err(failed) = gone {
                        let kind = wanted.kind;
                        return (wanted, is_correction, Err(Attempt::Failed(kind, failed)));
                    }
                }
                let answer = if replaced.is_some() && wanted.kind == Kind::Service {
                    // The claim again, and another may be quicker.
                    claiming::take(crew, session, &wanted).await
                } else {
                    let answer = crew.cluster.apply(&kind, namespace, &wanted.name, &wanted.object).await;
                    answer.map_err(|failed| Attempt::Failed(wanted.kind, failed))
                };
                (wanted, is_correction, answer)
            });
        }
        let mut failure = None;
        for (wanted, is_correction, answer) in join_all(writes).await {
            match answer {
                Ok(answer) => {
                    if is_correction {
                        self.paces.entry((wanted.kind, wanted.name.clone())).or_default().made(now);
                    }
                    self.wrote(crew, &wanted, &answer, "apply");
                }
                Err(attempt) => failure = Some(attempt),
            }
        }
        failure.unwrap_or_else(|| later.map_or(Attempt::Done, Attempt::Later))
    }

    fn wrote(&mut self, crew: &Crew, wanted: &Wanted, answer: &serde_json::Value, verb: &str) {
        let slot = (wanted.kind, wanted.name.clone());
        crew.metrics.wrote(resource(wanted.kind, "").name, verb);
        self.applied.insert(slot.clone(), Applied { version: version(answer), wish: wish(wanted) });
        self.since.insert(slot, Instant::now());
        crew.world.object(wanted.kind, answer);
    }
}

/// What is wanted, in short.
fn wish(wanted: &Wanted) -> u64 {
    let mut hasher = DefaultHasher::new();
    wanted.object.to_string().hash(&mut hasher);
    hasher.finish()
}

/// Whether a session has the claim of its id: what another pod of that id has is its own.
pub(super) fn has_claim(session: &Session, live: &[Live]) -> bool {
    live.iter().any(|live| live.kind == Kind::Service && claim(&live.object, &session.uid) == Claim::Ours)
}

/// The object that is the route of a port, as far as it is there.
pub(super) fn route<'a>(session: &Session, layer: &Layer, live: &'a [Live], port: u16) -> Option<&'a Live> {
    let id = session.id.as_ref()?;
    let (kind, name) = match layer {
        Layer::Off => return None,
        Layer::Gateway { .. } => (Kind::HttpRoute, route_name(id.as_str(), port)),
        Layer::Ingress { .. } => (Kind::Ingress, name(id.as_str())),
    };
    live.iter().find(|live| live.kind == kind && live.name == name)
}
