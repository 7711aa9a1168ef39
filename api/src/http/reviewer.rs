//! Asks the cluster who calls, and what it may do there; and believes the answer for a moment.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use cofferdam_kubernetes::{Cluster, Failed};
use tokio::time::Instant;

use super::access::Act;
use super::refusal::Refusal;
use super::turns::Turns;
use super::verdicts::{Key, Verdict, Verdicts};
use crate::cluster::{is_allowed, tell, user_of};
use crate::metrics::{Metrics, Review};

/// So long is a verdict believed, as API servers of Kubernetes' own believe one that they delegated: a token that was taken
/// back opens nothing after that, and a role that was given holds.
pub const BELIEVED: Duration = Duration::from_secs(10);

/// So many verdicts are kept. Each is small, and holds nothing of a token or a person.
const KEPT: usize = 4096;

/// So many are asked for at a time, and so many callers wait: who sends guesses costs the API server no more than that.
const AT_A_TIME: usize = 8;
const WAITING: usize = 256;

/// The longest token that anybody is asked about. Those of Kubernetes have about one KiB.
const LONGEST: usize = 16 * 1024;

/// Asks who calls.
pub struct Reviewer {
    cluster: Cluster,
    namespace: String,
    audience: String,
    turns: Turns,
    verdicts: Mutex<Verdicts>,
    metrics: Metrics,
}

impl Reviewer {
    /// Asks `cluster` about tokens for `audience`, and about rights to pods in `namespace`.
    #[must_use]
    pub fn new(cluster: Cluster, namespace: String, audience: String, metrics: Metrics) -> Self {
        let verdicts = Mutex::new(Verdicts::new(KEPT, BELIEVED));
        Self { cluster, namespace, audience, turns: Turns::new(AT_A_TIME, WAITING), verdicts, metrics }
    }

    /// Whether who has the token may do that.
    ///
    /// # Errors
    /// When nobody has it; when who has it may not; or when the cluster does not say it.
    pub async fn review(&self, token: &str, act: Act) -> Result<(), Refusal> {
        if token.len() > LONGEST {
            return Err(Refusal::unauthenticated());
        }
        let key = Key::of(token, act);
        if let Some(verdict) = self.believed(&key) {
            return told(verdict, act);
        }
        let _turn = self.turns.take().await?;
        // Of many calls with one token the first asks.
        if let Some(verdict) = self.believed(&key) {
            return told(verdict, act);
        }
        match self.ask(token, act).await {
            Ok(verdict) => {
                self.metrics.reviewed(Review::Said(verdict));
                self.verdicts().note(key, verdict, Instant::now());
                told(verdict, act)
            }
            Err(failed) => {
                self.metrics.reviewed(Review::Failed);
                Err(Refusal::unreviewed(tell("reviewing a caller", &failed)))
            }
        }
    }

    async fn ask(&self, token: &str, act: Act) -> Result<Verdict, Failed> {
        let Some(user) = user_of(&self.cluster, token, &self.audience).await? else { return Ok(Verdict::Unknown) };
        let is_allowed = is_allowed(&self.cluster, &user, &self.namespace, act.right()).await?;
        Ok(if is_allowed { Verdict::Allowed } else { Verdict::Forbidden })
    }

    fn believed(&self, key: &Key) -> Option<Verdict> {
        self.verdicts().find(key, Instant::now())
    }

    fn verdicts(&self) -> MutexGuard<'_, Verdicts> {
        // What is done while it is locked leaves it whole.
        self.verdicts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn told(verdict: Verdict, act: Act) -> Result<(), Refusal> {
    match verdict {
        Verdict::Allowed => Ok(()),
        Verdict::Unknown => Err(Refusal::unauthenticated()),
        Verdict::Forbidden => Err(Refusal::forbidden(act.right())),
    }
}

#[cfg(test)]
mod tests;
