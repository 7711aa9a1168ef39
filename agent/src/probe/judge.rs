//! What the answers to an address's probe mean.
//!
//! A route that holds a proof: the answer carries it, and is no 5xx, or the pod itself answers the same when it is asked
//! directly. A gateway was seen to set the route's header on its own 500 and 503 too, so the proof alone proves no
//! backend; and a program that answers 503 is reached all the same.
//!
//! A route that cannot hold one: the answer differs from that for a host that nobody has, by its status or by a header
//! that an answerer always sends alike (`server`, `content-type`, `content-length`, `location` without the host). Where
//! both are alike the address does not count as reachable, even if it is: a program that answers exactly as the gateway
//! does for strangers cannot be told from it. The rule for 5xx is the same.

use cofferdam_model::endpoints::Identity;

use crate::probe::head::{Answer, Unanswered};
use crate::probe::{Closed, Failure, Outcome, SLOW};

/// What was heard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Heard {
    /// For the session's host.
    pub session: Result<Answer, Unanswered>,
    /// For a host that nobody has, at the same time; asked for only where there is no proof.
    pub nobody: Option<Result<Answer, Unanswered>>,
    /// From the pod itself; asked only where [`asks_pod`] says so.
    pub pod: Option<Result<Answer, Unanswered>>,
}

/// Whether the pod has to be asked before the answer for the session's host can be judged.
#[must_use]
pub(crate) fn asks_pod(session: &Result<Answer, Unanswered>, has_proof: bool) -> bool {
    session.as_ref().is_ok_and(|answer| is_server_error(answer) && (answer.proved || !has_proof))
}

/// Whether the address works; none where nothing could be asked, which is no answer of anybody.
#[must_use]
pub(crate) fn judge(heard: &Heard) -> Option<Result<Identity, Failure>> {
    let answer = match &heard.session {
        Ok(answer) => answer,
        Err(unanswered) => return failure(*unanswered).map(Err),
    };
    let identity = match &heard.nobody {
        None if answer.proved => Identity::Proved,
        None => return Some(Err(Failure::NotRouted(answer.status))),
        Some(nobody) => match differs(answer, nobody) {
            Ok(true) => Identity::Unproved,
            Ok(false) => return Some(Err(Failure::NotRouted(answer.status))),
            Err(unanswered) => return failure(unanswered).map(Err),
        },
    };
    let pod_alike = || matches!(&heard.pod, Some(Ok(pod)) if pod.status == answer.status);
    if is_server_error(answer) && !pod_alike() {
        return Some(Err(Failure::BadGateway(answer.status)));
    }
    Some(Ok(identity))
}

/// What became of the probe that was judged so.
#[must_use]
pub(crate) fn outcome(heard: &Heard, verdict: Option<&Result<Identity, Failure>>) -> Outcome {
    let Some(verdict) = verdict else { return Outcome::Other };
    let Err(failure) = verdict else { return Outcome::Ok };
    match failure {
        Failure::NotRouted(_) => Outcome::NotRouted,
        Failure::BadGateway(_) => Outcome::BadGateway,
        Failure::TlsFailed(_) => Outcome::TlsFailed,
        Failure::NoProbeAddress => Outcome::Other,
        Failure::NoAnswer(_) => match (&heard.session, &heard.nobody) {
            (Err(unanswered), _) | (Ok(_), Some(Err(unanswered))) => of_unanswered(*unanswered),
            (Ok(_), _) => Outcome::Other,
        },
    }
}

fn of_unanswered(unanswered: Unanswered) -> Outcome {
    match unanswered {
        Unanswered::Connect(closed) => closed.into(),
        Unanswered::TimedOut => Outcome::TimedOut,
        Unanswered::Ended => Outcome::NoAnswer,
        Unanswered::Tls(_) => Outcome::TlsFailed,
        Unanswered::Unresolved | Unanswered::Garbage | Unanswered::TooLarge | Unanswered::NotMade => Outcome::Other,
    }
}

/// Whether somebody else answers for the session than for a host that nobody has. A gateway may well hang up on
/// strangers, and tell them so by TLS; but one that cannot be reached for a moment has said nothing.
fn differs(answer: &Answer, nobody: &Result<Answer, Unanswered>) -> Result<bool, Unanswered> {
    match nobody {
        Ok(nobody) => Ok((answer.status, &answer.looks) != (nobody.status, &nobody.looks)),
        Err(Unanswered::Tls(_) | Unanswered::Ended | Unanswered::Garbage | Unanswered::TooLarge) => Ok(true),
        Err(unanswered) => Err(*unanswered),
    }
}

fn is_server_error(answer: &Answer) -> bool {
    (500..600).contains(&answer.status)
}

/// What it means for an address that a question went unanswered.
fn failure(unanswered: Unanswered) -> Option<Failure> {
    Some(match unanswered {
        Unanswered::Connect(Closed::Refused) => Failure::NoAnswer("refuses the connection"),
        Unanswered::Connect(Closed::TimedOut) => Failure::NoAnswer("does not take the connection in time"),
        Unanswered::Connect(Closed::Unreachable) => Failure::NoAnswer("cannot be reached from the node"),
        Unanswered::Unresolved => Failure::NoAnswer("has a name that cannot be resolved on the node"),
        Unanswered::Tls(why) => Failure::TlsFailed(why),
        Unanswered::TimedOut => Failure::NoAnswer(SLOW),
        Unanswered::Ended => Failure::NoAnswer("closes the connection without an answer"),
        Unanswered::Garbage => Failure::NoAnswer("answers with something that is not HTTP"),
        Unanswered::TooLarge => Failure::NoAnswer("answers with more than 16 KiB of headers"),
        Unanswered::NotMade => return None,
    })
}

#[cfg(test)]
mod tests;
