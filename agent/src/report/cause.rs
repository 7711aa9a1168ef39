//! Why a condition is what it is: for a session as a whole, or for one of its ports.

use cofferdam_model::endpoints::Identity;
use cofferdam_model::host::host;

use super::{Facts, Hindrance};
use crate::layer::{Layer, LayerError};
use crate::objects::name;
use crate::probe::flips::GRACE;
use crate::probe::{Closed, Failure};
use crate::reason::{ConditionType, Reason};
use crate::session::{Phase, Session};
use crate::verdict::Verdict;

/// A reason, and what a person is told. The least is the worst.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Cause {
    pub(super) reason: Reason,
    pub(super) says: String,
}

impl Cause {
    fn new(reason: Reason, says: impl Into<String>) -> Self {
        Self { reason, says: says.into() }
    }
}

/// Ports that are dialled and routed.
pub(super) fn tcp(facts: &Facts<'_>) -> Vec<u16> {
    facts.session.ports.as_ref().map(|ports| ports.tcp().collect()).unwrap_or_default()
}

/// What holds for the whole session, whatever its ports do; nothing where the ports decide.
pub(super) fn of_session(facts: &Facts<'_>, type_: ConditionType) -> Option<Cause> {
    let session = facts.session;
    if type_ == ConditionType::Hardened {
        return slipped_through(session).then(|| Cause::new(Reason::SlippedThrough, findings(session)));
    }
    if slipped_through(session) {
        return Some(Cause::new(Reason::NotHardened, "The pod slipped through unhardened, and is not published."));
    }
    match session.phase {
        Phase::Finished => return Some(Cause::new(Reason::Finished, "The pod has ended.")),
        Phase::Leaving => return Some(Cause::new(Reason::Finished, "The pod is being deleted.")),
        Phase::Released => {
            let dials = type_ == ConditionType::PortsReachable;
            let reason = if dials { Reason::NothingToDial } else { Reason::NothingToRoute };
            return Some(Cause::new(reason, "The pod's namespace has no sessions any more."));
        }
        Phase::Starting | Phase::Running => {}
    }
    if let Err(error) = &session.ports {
        return Some(Cause::new(Reason::PortsInvalid, format!("The pod's ports cannot be read: {error}.")));
    }
    match type_ {
        ConditionType::Hardened => None,
        ConditionType::PortsReachable if tcp(facts).is_empty() => {
            Some(Cause::new(Reason::NothingToDial, "The session has no TCP port."))
        }
        ConditionType::PortsReachable => no_address(session),
        ConditionType::RouteProgrammed => match nothing_to_route(facts) {
            // Even then the name may be taken, or the Service refused.
            Some(nothing) => hindrance(facts).or(Some(nothing)),
            None => no_layer(facts).or_else(|| no_address(session)).or_else(|| hindrance(facts)),
        },
        ConditionType::RouteReachable => nothing_to_route(facts)
            .or_else(|| no_layer(facts))
            .or_else(|| no_address(session))
            .or_else(|| hindrance(facts)),
    }
}

/// What holds for one TCP port of a session that has an address; of conditions about routes, where there is also a layer and
/// no hindrance.
pub(super) fn of_port(facts: &Facts<'_>, type_: ConditionType, port: u16) -> Cause {
    match type_ {
        ConditionType::Hardened => Cause::new(Reason::Hardened, ""),
        ConditionType::PortsReachable => listening(facts, port),
        ConditionType::RouteProgrammed => route(facts, port),
        ConditionType::RouteReachable => address(facts, port),
    }
}

/// Who answers at the port's address, if it is reached.
pub(super) fn identity(facts: &Facts<'_>, port: u16) -> Option<Identity> {
    facts.probes.get(&port)?.address.as_ref()?.as_ref().ok().copied()
}

/// The host of a port that is, or is to be, this session's; none where nothing routes, or the name is another's.
pub(super) fn host_of(facts: &Facts<'_>, port: u16) -> Option<String> {
    let is_anothers = matches!(facts.hindrance, Some(Hindrance::HostTaken { .. } | Hindrance::NameTaken));
    let routes = matches!(facts.layer, Ok(Layer::Gateway { .. } | Layer::Ingress { .. }));
    if !routes || is_anothers || slipped_through(facts.session) {
        return None;
    }
    host(port, facts.session.id.as_ref()?, &facts.session.namespace, facts.routing)
}

fn slipped_through(session: &Session) -> bool {
    !session.findings.is_empty() || session.id.is_none()
}

/// All findings of the audit, each with its field.
fn findings(session: &Session) -> String {
    if session.findings.is_empty() {
        return "The pod has no session id.".to_owned();
    }
    session.findings.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

fn nothing_to_route(facts: &Facts<'_>) -> Option<Cause> {
    if tcp(facts).is_empty() {
        return Some(Cause::new(Reason::NothingToRoute, "The session has no TCP port."));
    }
    matches!(facts.layer, Ok(Layer::Off)).then(|| Cause::new(Reason::NothingToRoute, "Routing is off."))
}

fn no_layer(facts: &Facts<'_>) -> Option<Cause> {
    let error = facts.layer.err()?;
    let reason = match error {
        LayerError::Ambiguous(_) => Reason::RoutingAmbiguous,
        LayerError::Invalid(_) => Reason::RoutingInvalid,
    };
    Some(Cause::new(reason, format!("No route is made: {error}.")))
}

fn no_address(session: &Session) -> Option<Cause> {
    session.address.is_none().then(|| Cause::new(Reason::NoAddress, "The pod has no address yet."))
}

fn hindrance(facts: &Facts<'_>) -> Option<Cause> {
    let hindrance = facts.hindrance.as_ref()?;
    let service = facts.session.id.as_ref().map(|id| name(id.as_str())).unwrap_or_default();
    let says = match hindrance {
        Hindrance::HostTaken { pod: Some(pod) } => {
            format!("Pod {pod} of this namespace has the same session id, and with it the name and the hosts.")
        }
        Hindrance::HostTaken { pod: None } => {
            format!("Service {service} was made for another pod of this namespace with the same session id.")
        }
        Hindrance::NameTaken => format!("Service {service} is there, and is not Cofferdam's."),
        Hindrance::WaitingForNetworkPolicy => {
            "The namespace has no NetworkPolicy cofferdam-sessions yet, and nothing is published before.".to_owned()
        }
        Hindrance::PublishFailed(why) => why.clone(),
        Hindrance::Terminating { object, finalizers } => {
            let kept = match &finalizers[..] {
                [] => String::new(),
                some => format!(", and kept by finalizers {}", some.join(", ")),
            };
            format!("{object} is being deleted{kept}; it is made anew once it is gone.")
        }
        Hindrance::PublishDelayed(what) => {
            format!("Too much has changed lately, so changes come slower: {what}. It is done by itself.")
        }
    };
    Some(Cause::new(hindrance.reason(), says))
}

fn listening(facts: &Facts<'_>, port: u16) -> Cause {
    let observation = facts.probes.get(&port);
    match observation.and_then(|observation| observation.listening) {
        None if facts.session.phase == Phase::Starting => Cause::new(Reason::NotStarted, NOT_STARTED),
        None => Cause::new(Reason::Checking, checking(observation.and_then(|observation| observation.so_far))),
        Some(Ok(())) => Cause::new(Reason::AllReachable, "Connections are taken."),
        Some(Err(Closed::Refused)) => Cause::new(
            Reason::Refused,
            "Nothing listens there at the pod's address, or a network policy answers in its place; who listens on 127.0.0.1 \
             cannot be reached from outside.",
        ),
        Some(Err(Closed::TimedOut)) => {
            Cause::new(Reason::TimedOut, "Nobody answers: a network policy drops what agents send, or the pod hangs.")
        }
        Some(Err(Closed::Unreachable)) => Cause::new(Reason::Unreachable, "There is no way from the node to the pod."),
    }
}

/// What is said of a port while the program may still begin.
fn checking(so_far: Option<Closed>) -> String {
    let found = match so_far {
        None => return "It is being dialled.".to_owned(),
        Some(Closed::Refused) => "Refused so far",
        Some(Closed::TimedOut) => "Nobody has answered so far",
        Some(Closed::Unreachable) => "There has been no way from the node to the pod so far",
    };
    format!("{found}; a program that starts is waited for, for {} s.", GRACE.as_secs())
}

fn route(facts: &Facts<'_>, port: u16) -> Cause {
    match facts.verdicts.get(&port) {
        None => Cause::new(Reason::Pending, NOT_MADE),
        Some(Verdict::Pending(told)) => Cause::new(Reason::Pending, told.clone()),
        Some(Verdict::Unreadable(told)) => Cause::new(Reason::StatusUnreadable, told.clone()),
        Some(Verdict::Programmed { is_weak: false }) => {
            Cause::new(Reason::Programmed, "The Gateway has taken the route.")
        }
        Some(Verdict::Programmed { is_weak: true }) => {
            Cause::new(Reason::AddressAssigned, "The Ingress has an address, which is all that its status can say.")
        }
        Some(Verdict::Refused { reason, message }) => Cause::new(*reason, message.clone()),
    }
}

fn address(facts: &Facts<'_>, port: u16) -> Cause {
    let host = host_of(facts, port).unwrap_or_default();
    let observation = facts.probes.get(&port).and_then(|observation| observation.address.as_ref());
    match observation {
        Some(Ok(Identity::Proved)) => Cause::new(Reason::Reachable, "This session's route answers at the address."),
        Some(Ok(Identity::Unproved)) => Cause::new(
            Reason::ReachableUnproved,
            "The address answers otherwise than a host that nobody has; who answers cannot be proved.",
        ),
        Some(Err(Failure::NoAnswer(how))) => Cause::new(Reason::NoAnswer, format!("The gateway {how}.")),
        Some(Err(Failure::NotRouted(status))) => Cause::new(
            Reason::NotRouted,
            format!("The gateway answers {status} for {host}, and not by this session's route."),
        ),
        Some(Err(Failure::BadGateway(status))) => Cause::new(
            Reason::BadGateway,
            format!(
                "The gateway answers {status} for {host}, and the pod itself does not: it does not reach the pod, or \
                 what answers there is no HTTP."
            ),
        ),
        Some(Err(Failure::TlsFailed(why))) => {
            Cause::new(Reason::TlsFailed, format!("No TLS comes about with the gateway: {why}."))
        }
        Some(Err(Failure::NoProbeAddress)) => Cause::new(
            Reason::NoProbeAddress,
            "The status names no address that could be probed; `routing.probe.address` in the policy can.",
        ),
        None => unprobed(facts, port),
    }
}

/// What is said of an address that no probe has said anything about.
fn unprobed(facts: &Facts<'_>, port: u16) -> Cause {
    match facts.verdicts.get(&port) {
        None => Cause::new(Reason::Pending, NOT_MADE),
        Some(Verdict::Refused { reason, .. }) => {
            let says = format!("The routing layer has not taken the route ({}).", reason.as_str());
            Cause::new(Reason::NotProgrammed, says)
        }
        Some(_) if facts.session.phase == Phase::Starting => Cause::new(Reason::NotStarted, NOT_STARTED),
        Some(_) => Cause::new(Reason::Pending, "The address is being probed."),
    }
}

const NOT_MADE: &str = "The route has not been made yet.";

const NOT_STARTED: &str = "Not every container of the pod runs yet; kubectl describe pod says why.";
