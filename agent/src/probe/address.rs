//! Whether an address works through the gateway: one probe.

use std::net::SocketAddr;
use std::sync::OnceLock;
use std::time::Duration;

use cofferdam_model::endpoints::Identity;

use crate::probe::head::{Answer, Question, ask};
use crate::probe::judge::{self, Heard, asks_pod, judge};
use crate::probe::{Failure, Outcome, Target, Via};

/// What became of a probe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Probed {
    /// Whether the address works; none where nothing could be asked, which says nothing about it.
    pub verdict: Option<Result<Identity, Failure>>,
    /// For those who count.
    pub outcome: Outcome,
}

/// Asks for the address of `target` and, where that tells more, for a host that nobody has and `pod` itself, each answer
/// for at most `within`.
pub(crate) async fn probe(target: &Target, pod: SocketAddr, within: Duration) -> Probed {
    let Some(via) = &target.via else {
        return Probed { verdict: Some(Err(Failure::NoProbeAddress)), outcome: Outcome::Other };
    };
    let question = |host, proof| Question { via, tls: target.tls.as_ref(), host, proof };
    let (session, nobody) = if let Some(proof) = &target.proof {
        (ask(&question(&target.host, Some(proof)), within).await, None)
    } else {
        let stranger = nobody(&target.host, &target.base_domain);
        let questions = (question(&target.host, None), question(&stranger, None));
        let (session, nobody) = tokio::join!(ask(&questions.0, within), ask(&questions.1, within));
        if stranger.len() == target.host.len() {
            (session, Some(nobody))
        } else {
            (session.map(Answer::without_length), Some(nobody.map(Answer::without_length)))
        }
    };
    let pod = if asks_pod(&session, target.proof.is_some()) {
        let via = Via::from(pod);
        Some(ask(&Question { via: &via, tls: None, host: &target.host, proof: None }, within).await)
    } else {
        None
    };
    let heard = Heard { session, nobody, pod };
    let verdict = judge(&heard);
    let outcome = judge::outcome(&heard, verdict.as_ref());
    Probed { verdict, outcome }
}

/// A host that nobody has. It is the same for as long as the process lives, since a gateway may keep something for each
/// host that it was ever asked for; and, if it can be, as long as the session's, since a body may hold it. No session's
/// begins with a letter.
fn nobody(host: &str, base_domain: &str) -> String {
    const LETTERS: usize = 63;
    /// Fewer might be the name of somebody.
    const FEWEST: usize = 12;
    static NOBODY: OnceLock<String> = OnceLock::new();
    let letters = NOBODY.get_or_init(|| (0..LETTERS).map(|_| fastrand::lowercase()).collect());
    let label = host.find('.').unwrap_or(host.len()).clamp(FEWEST, LETTERS);
    format!("{}.{base_domain}", &letters[..label])
}

#[cfg(test)]
mod tests;
