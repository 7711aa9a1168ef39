//! What is known of a session is told: in its pod's status, by Events, and to those who count.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::{Duration, Instant};

use cofferdam_kubernetes::{Backoff, Class, json};
use cofferdam_model::endpoints::{AddressState, Endpoint};
use k8s_openapi::jiff::Timestamp;
use serde_json::json;

use super::Crew;
use super::pace::Pace;
use super::publishing::{self, Publisher};
use crate::events::Tone;
use crate::ground::Ground;
use crate::layer::Layer;
use crate::metrics::{PortState, SessionState, Tally};
use crate::objects::Kind;
use crate::probe::Observation;
use crate::reason::{ConditionType, Reason, Status};
use crate::report::{Condition, Facts, Report, patch, report, time};
use crate::session::{self, Phase, Seen, Session, Told};
use crate::verdict::{Evidence, Verdict, verdict};
use crate::world::Snapshot;

/// The same event is told again only after so long.
const QUIET: Duration = Duration::from_mins(5);

/// Between attempts to write.
const SHORTEST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// So many writes come at once, which is more than a start takes; then they wait, for so long at most. What is written in the
/// end is what holds then.
const FREE: u32 = 30;
const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// What was told of one session.
#[derive(Debug)]
pub(super) struct Teller {
    /// What was written last, and the version that it gave the pod: the pod as it is seen may be older.
    written: Option<(u64, Told)>,
    said: HashMap<(ConditionType, Reason), Instant>,
    backoff: Backoff,
    /// After a failure, whatever wakes us.
    not_before: Option<Instant>,
    pace: Pace,
    programmed: BTreeSet<u16>,
    newly_programmed: Vec<u16>,
    /// Since when the routing layer no longer says of a route that it has taken it.
    waiting_again: BTreeMap<u16, Instant>,
}

/// What is to be told of a session.
#[derive(Debug)]
pub(super) struct News(Report);

impl Default for Teller {
    fn default() -> Self {
        Self {
            written: None,
            said: HashMap::new(),
            backoff: Backoff::new(SHORTEST_PAUSE, LONGEST_PAUSE),
            not_before: None,
            pace: Pace::new(FREE, LONGEST_WAIT),
            programmed: BTreeSet::new(),
            newly_programmed: Vec::new(),
            waiting_again: BTreeMap::new(),
        }
    }
}

impl Teller {
    /// Looks at what holds; gives that, and when to look again.
    pub(super) fn look(
        &mut self,
        snapshot: &Snapshot,
        ground: &Ground,
        publisher: &Publisher,
        probes: BTreeMap<u16, Observation>,
        tally: &mut Tally,
    ) -> (Report, Option<Instant>) {
        let session = &snapshot.seen.session;
        let now = Instant::now();
        let waiting_again =
            |port: &u16| self.programmed.contains(port).then_some(now).or(self.waiting_again.get(port).copied());
        let (verdicts, deadline) = verdicts(snapshot, ground, publisher, waiting_again, now);
        let is_programmed =
            |(port, verdict): (&u16, &Verdict)| matches!(verdict, Verdict::Programmed { .. }).then_some(*port);
        let programmed: BTreeSet<u16> = verdicts.iter().filter_map(is_programmed).collect();
        self.newly_programmed = programmed.difference(&self.programmed).copied().collect();
        let waits = verdicts.keys().filter(|port| !programmed.contains(port));
        self.waiting_again = waits.filter_map(|port| Some((*port, waiting_again(port)?))).collect();
        self.programmed = programmed;
        let report = report(&Facts {
            session,
            routing: ground.policy.routing(),
            layer: ground.layer.as_ref(),
            hindrance: publisher.hindrance(),
            verdicts,
            probes,
        });
        count(session, publisher, &report, tally);
        (report, deadline)
    }

    /// The ports whose routes the routing layer has taken since it was last told: their addresses may work now.
    pub(super) fn newly_programmed(&self) -> impl Iterator<Item = u16> + '_ {
        self.newly_programmed.iter().copied()
    }

    /// What of a report is to be told now; if it has to wait, until when.
    pub(super) fn news(&mut self, seen: &Seen, report: Report, now: Instant) -> (Option<News>, Option<Instant>) {
        if seen.session.phase == Phase::Leaving {
            return (None, None);
        }
        // What the time is then matters not here.
        if patch(self.told(seen), &report, "").is_none() {
            self.backoff.over();
            self.not_before = None;
            return (None, None);
        }
        let due = self.pace.due(now).max(self.not_before.unwrap_or(now));
        if due > now {
            return (None, Some(due));
        }
        (Some(News(report)), None)
    }

    /// What was told last: the pod as it is seen may be older.
    fn told<'a>(&'a self, seen: &'a Seen) -> &'a Told {
        match &self.written {
            Some((version, told)) if *version > seen.resource_version => told,
            _ => &seen.session.told,
        }
    }

    /// Tells it.
    pub(super) async fn write(&mut self, crew: &Crew, seen: &Seen, News(report): News) {
        let session = &seen.session;
        let told = self.told(seen).clone();
        let Some(mut patch) = patch(&told, &report, &time(Timestamp::now())) else { return };
        // Another pod of that name is not the one that this is about.
        patch["metadata"]["uid"] = json!(session.uid);
        match crew.cluster.patch_pod_status(&session.namespace, &session.name, &patch).await {
            Ok(answer) => {
                self.backoff.over();
                self.pace.made(Instant::now());
                crew.metrics.status_patched();
                self.written = Some((json::version(&answer), report.told()));
                self.events(crew, session, &told, &report);
            }
            Err(failed) => {
                let (namespace, pod) = (&session.namespace, &session.name);
                // One that is gone will be known to be.
                if self.backoff.failures() == 0 && failed.class != Class::NotFound {
                    tracing::warn!(namespace, pod, error = %failed, "what is known of a session cannot be written");
                }
                self.not_before = Some(Instant::now() + self.backoff.failed());
            }
        }
    }

    /// An event for each of the [`steps`].
    fn events(&mut self, crew: &Crew, session: &Session, told: &Told, report: &Report) {
        for condition in steps(told, report) {
            let Condition { type_, reason, .. } = *condition;
            let Some((tone, note)) = note(condition, report) else { continue };
            let now = Instant::now();
            let key = (type_, reason);
            if self.said.get(&key).is_some_and(|said| now.saturating_duration_since(*said) < QUIET) {
                continue;
            }
            self.said.insert(key, now);
            crew.events.tell(session, tone, reason.as_str(), &note);
        }
    }
}

/// The conditions that came to be `True` or `False`, or are so for another reason. An address that works says by itself that
/// its port and its route do: in a rush steps are told together, and only the last is worth an event.
fn steps<'a>(told: &Told, report: &'a Report) -> Vec<&'a Condition> {
    let is_new = |condition: &&Condition| {
        let Condition { type_, reason, .. } = condition;
        let before = told.conditions.iter().find(|before| before.type_ == type_.as_str());
        let is_same =
            |before: &session::Condition| before.status == reason.status().as_str() && before.reason == reason.as_str();
        !before.is_some_and(is_same)
    };
    let works = |condition: &Condition| matches!(condition.reason, Reason::Reachable | Reason::ReachableUnproved);
    let mut steps: Vec<&Condition> = report.conditions.iter().filter(is_new).collect();
    if steps.iter().any(|condition| works(condition)) {
        steps.retain(|condition| works(condition) || condition.reason.status() != Status::True);
    }
    steps
}

/// What is said of a condition that has changed; nothing while it is only being found out, or was to be expected.
fn note(condition: &Condition, report: &Report) -> Option<(Tone, String)> {
    let message = || condition.message.clone();
    match condition.reason {
        // Only being found out.
        Reason::NodeLost
        | Reason::AgentSilent
        | Reason::NoAddress
        | Reason::NotStarted
        | Reason::WaitingForNetworkPolicy
        | Reason::StatusUnreadable
        | Reason::Pending
        | Reason::Checking
        // To be expected.
        | Reason::Hardened
        | Reason::NothingToDial
        | Reason::NothingToRoute
        | Reason::Finished
        // Said already, by the condition that it comes from.
        | Reason::NotHardened
        | Reason::NotProgrammed => None,
        Reason::Reachable | Reason::ReachableUnproved => {
            let works = |endpoint: &&Endpoint| {
                endpoint.address.as_ref().is_some_and(|address| address.state == AddressState::Reachable)
            };
            let urls: Vec<&str> =
                report.endpoints.ports.iter().filter(works).filter_map(|endpoint| endpoint.url.as_deref()).collect();
            Some((Tone::Normal, format!("{} works", urls.join(" "))))
        }
        Reason::AddressAssigned | Reason::Programmed | Reason::AllReachable => Some((Tone::Normal, message())),
        Reason::SlippedThrough
        | Reason::PortsInvalid
        | Reason::RoutingInvalid
        | Reason::RoutingAmbiguous
        | Reason::HostTaken
        | Reason::PublishFailed
        | Reason::Terminating
        | Reason::PublishDelayed
        | Reason::GatewayMissing
        | Reason::GatewayNotProgrammed
        | Reason::RefusedByController
        | Reason::BackendNotResolved
        | Reason::Unclaimed
        | Reason::NoProbeAddress
        | Reason::TlsFailed
        | Reason::NoAnswer
        | Reason::NotRouted
        | Reason::BadGateway
        | Reason::Unreachable
        | Reason::TimedOut
        | Reason::Refused => Some((Tone::Warning, message())),
    }
}

/// What the routing layer says of each TCP port, and when the first of those that wait is overdue. One that was taken before
/// has its time again from the moment that it is `waiting_again`: a Gateway that somebody edits says nothing for a while.
fn verdicts(
    snapshot: &Snapshot,
    ground: &Ground,
    publisher: &Publisher,
    waiting_again: impl Fn(&u16) -> Option<Instant>,
    now: Instant,
) -> (BTreeMap<u16, Verdict>, Option<Instant>) {
    let session = &snapshot.seen.session;
    let (Ok(layer), Ok(ports)) = (&ground.layer, &session.ports) else { return (BTreeMap::new(), None) };
    let kind = match layer {
        Layer::Off => return (BTreeMap::new(), None),
        Layer::Gateway { .. } => Kind::HttpRoute,
        Layer::Ingress { .. } => Kind::Ingress,
    };
    let seconds = ground.policy.routing().deadline_seconds;
    let mut deadlines = Vec::new();
    let mut verdicts = BTreeMap::new();
    for port in ports.tcp() {
        let route = publishing::route(session, layer, &snapshot.live, port);
        let again = waiting_again(&port).map(|since| since + Duration::from_secs(seconds.into()));
        let deadline = route.map(|route| publisher.deadline(route, seconds, now)).max(again);
        let evidence = Evidence {
            route: route.map(|route| &route.object),
            gateway: ground.gateway(),
            is_overdue: deadline.is_some_and(|deadline| deadline <= now),
            is_unreadable: snapshot.unreadable.contains(&kind),
        };
        let verdict = verdict(layer, evidence);
        if matches!(verdict, Verdict::Pending(_) | Verdict::Unreadable(_)) {
            deadlines.extend(deadline.filter(|deadline| *deadline > now));
        }
        verdicts.insert(port, verdict);
    }
    (verdicts, deadlines.into_iter().min())
}

fn count(session: &Session, publisher: &Publisher, report: &Report, tally: &mut Tally) {
    let state = match session.phase {
        Phase::Finished | Phase::Leaving | Phase::Released => SessionState::Finished,
        _ if !session.findings.is_empty() => SessionState::SlippedThrough,
        _ if publisher.is_published() => SessionState::Published,
        _ => SessionState::Unpublished,
    };
    let ports = report.endpoints.ports.iter().map(|endpoint| (endpoint.port, PortState::of(endpoint))).collect();
    tally.set(state, ports, &session.namespace, session.id.as_ref().map_or("", |id| id.as_str()));
}

#[cfg(test)]
mod tests;
