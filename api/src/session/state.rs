//! What a session's pod makes of the session. Pure: the same pod is always the same state.
//!
//! What is said of it is shown to whoever may see the session. So it is put together from words of ours, from reasons of a
//! closed list, and from exit codes. Of what others wrote only two things are repeated: why our own program could not fetch
//! the body, and why a kubelet cannot pull an image that the client named itself.

use std::time::Duration;

use cofferdam_kubernetes::json::{each, is_leaving, parsed, text};
use k8s_openapi::jiff::Timestamp;
use serde_json::Value;

use super::pod::CONTAINER;
use super::record::Record;
use crate::wire::Status;

mod failure;
mod sentence;
mod waiting;

pub use sentence::{LONGEST, sentence};

/// What is known of a session.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    /// What the pod does not tell.
    pub record: &'a Record,
    /// Its pod.
    pub pod: Sighting<'a>,
    /// Whether somebody asked for its end.
    pub is_stopped: bool,
    /// Why it could not start, as it was noted: its pod was never made, or given up.
    pub refused: Option<&'a str>,
}

/// What is known of a session's pod.
#[derive(Clone, Copy, Debug)]
pub enum Sighting<'a> {
    /// It has not been seen yet.
    Awaited,
    /// It is there.
    There(&'a Value),
    /// It is there no more, and was last seen like this; nothing where it never came.
    Gone(Option<&'a Value>),
}

/// How far a session is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// Its program does not run yet.
    Starting(Waiting),
    /// Its program runs.
    Running,
    /// Its pod is being taken away; what was true of it last still is, and nothing new may be said of it (case B145).
    Leaving,
    /// It has ended.
    Ended(Ended),
}

/// What a session that starts waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// For people, in few words.
    pub progress: String,
    /// What keeps it from going on; none where it goes on by itself.
    pub blocked: Option<Blocked>,
}

/// What keeps a session from starting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blocked {
    /// Of which kind; it may flicker between reasons of the same kind.
    pub kind: Block,
    /// What is wrong, and what to do.
    pub sentence: String,
}

/// How long it is worth waiting that something which keeps a session from starting passes (defect D05).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Block {
    /// It never passes: a name that names nothing, an image that may not be pulled, an init container that fails.
    Final,
    /// A kubelet may only just have missed something, such as a Secret that was made a moment ago.
    Container,
    /// Registries have bad moments; a kubelet tries again after ten seconds, and after twenty more.
    Pull,
    /// A node may come, or room on one: until the time to start is over.
    Node,
}

/// How a session ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// A final one.
    pub status: Status,
    /// When; none where the cluster does not say.
    pub at: Option<Timestamp>,
    /// Whether its pod is still there and has not ended itself, so that somebody has to delete it.
    pub leaves_pod: bool,
}

impl<'a> Sighting<'a> {
    /// The pod, where it is there.
    #[must_use]
    pub fn there(self) -> Option<&'a Value> {
        match self {
            Self::There(pod) => Some(pod),
            Self::Awaited | Self::Gone(_) => None,
        }
    }
}

impl Block {
    /// How long it is waited for; none for as long as a session may take to start.
    #[must_use]
    pub fn patience(self) -> Option<Duration> {
        match self {
            Self::Final => Some(Duration::ZERO),
            Self::Container => Some(Duration::from_secs(10)),
            Self::Pull => Some(Duration::from_secs(30)),
            Self::Node => None,
        }
    }
}

/// How far a session is.
///
/// That somebody stopped it beats every way in which it may have ended (defect D07): what is killed on request has not
/// failed.
#[must_use]
pub fn state(facts: &Facts<'_>) -> State {
    // Whoever stops a session deletes its pod.
    let leaves_pod = match facts.pod {
        Sighting::There(pod) => !(has_ended(pod) || is_leaving(pod) && facts.is_stopped),
        Sighting::Awaited | Sighting::Gone(_) => false,
    };
    let ended = |status: Status, at| {
        let status = if facts.is_stopped { Status::Stopped } else { status };
        State::Ended(Ended { status, at, leaves_pod })
    };
    if let Some(refused) = facts.refused {
        return ended(Status::Failed { message: sentence(refused) }, None);
    }
    match facts.pod {
        Sighting::Awaited => State::Starting(waiting::scheduling()),
        Sighting::Gone(last) => {
            let (status, at) = last.and_then(end).unwrap_or_else(|| (failure::vanished(last), None));
            ended(status, at)
        }
        Sighting::There(pod) => match end(pod) {
            Some((status, at)) => ended(status, at),
            None if is_leaving(pod) && facts.is_stopped => ended(Status::Stopped, None),
            None if is_leaving(pod) => State::Leaving,
            // One that others put into the pod may run already, which makes the pod do so.
            None if phase(pod) == "Running" && !program(pod).is_some_and(is_waiting) => State::Running,
            None => State::Starting(waiting::waiting(pod, facts.record)),
        },
    }
}

/// How the program ended and when, by its pod; none while it may go on.
fn end(pod: &Value) -> Option<(Status, Option<Timestamp>)> {
    let terminated = program(pod).map(|program| &program["state"]["terminated"]).filter(|it| it.is_object());
    let status = match (phase(pod), terminated) {
        ("Succeeded", _) => Status::Exited { code: terminated.and_then(exit_code).unwrap_or(0) },
        ("Failed", _) => failure::failed(pod, terminated),
        // Others in the pod may go on without it (lesson L32); what is never restarted has ended.
        (_, Some(_)) if pod["spec"]["restartPolicy"] == "Never" => failure::failed(pod, terminated),
        _ => return None,
    };
    Some((status, terminated.and_then(|terminated| parsed(&terminated["finishedAt"]))))
}

/// The exit code of a container that has terminated.
fn exit_code(terminated: &Value) -> Option<i32> {
    i32::try_from(terminated["exitCode"].as_i64()?).ok()
}

/// The status of the session's own container: whatever else is in the pod was put there by others.
fn program(pod: &Value) -> Option<&Value> {
    let all = &pod["status"]["containerStatuses"];
    each(all).find(|container| container["name"] == CONTAINER).or_else(|| each(all).next())
}

fn is_waiting(container: &Value) -> bool {
    container["state"]["waiting"].is_object()
}

fn phase(pod: &Value) -> &str {
    text(&pod["status"]["phase"])
}

fn has_ended(pod: &Value) -> bool {
    matches!(phase(pod), "Succeeded" | "Failed")
}

#[cfg(test)]
mod tests;
