//! A session is made: its Secret, then its pod, and then the Secret goes when the pod does.
//!
//! The Secret comes first, since it tells of the session whatever becomes of the rest: a pod that is refused is a session that
//! failed, and a start that breaks off leaves something to find.

use std::fmt;
use std::time::Duration;

use cofferdam_kubernetes::{Backoff, Class, Failed, Resource, json};
use cofferdam_model::session::SessionId;
use k8s_openapi::jiff::Timestamp;
use serde_json::Value;
use tokio::time::{Instant, timeout};

use super::marks::Mark;
use super::secret;
use super::stop::GRACE_SECONDS;
use crate::cluster::{Home, tell, tell_unhardened};

/// Who asks for a session is answered after so long, whatever has become of it by then.
const ANSWER: Duration = Duration::from_secs(1);

/// What passes by itself is waited for so long: a webhook that has just been installed is trusted by then (case B95).
const PATIENCE: Duration = Duration::from_secs(30);

/// Between attempts.
const SHORTEST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// What a session is made of. Its `Debug` shows none of it.
pub struct Objects {
    /// The session's id.
    pub id: SessionId,
    /// Its Secret, as [`Record::secret`](super::record::Record::secret) makes it.
    pub secret: Value,
    /// Its pod.
    pub pod: Value,
}

/// What has become of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Its pod is there; what follows its pod tells.
    Submitted,
    /// Its pod was refused, for which there is a sentence for clients. It is written on its Secret.
    Refused(String),
    /// Nothing of it is there. Again a sentence for clients.
    NotMade(String),
    /// Somebody asked for its end meanwhile.
    Stopped,
}

impl fmt::Debug for Objects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Objects").field("id", &self.id).finish_non_exhaustive()
    }
}

/// Makes a session by `making`, and tells what has become of it. Returns when that is told, or after a second; the rest is
/// told later (lesson L23).
pub async fn begin(
    making: impl Future<Output = Outcome> + Send + 'static,
    told: impl FnOnce(Outcome) + Send + 'static,
) {
    let making = tokio::spawn(async move { told(making.await) });
    // One that panicked has told nothing, and the sweep finds what it left.
    let _ = timeout(ANSWER, making).await;
}

/// Makes a session.
pub async fn make(home: &Home, objects: &Objects) -> Outcome {
    let deadline = Instant::now() + PATIENCE;
    if let Err(failed) = create(home, &Home::secrets(), &objects.secret, deadline).await {
        return Outcome::NotMade(refusal("creating a session's Secret", &failed));
    }
    let pod = match create(home, &Home::pods(), &objects.pod, deadline).await {
        Ok(pod) => pod,
        Err(failed) => return refused(home, &objects.id, refusal("creating a session's pod", &failed)).await,
    };
    if !Home::is_hardened(&pod) {
        // Said first, as with every end: a pod that is gone with no word is somebody else's doing.
        let outcome = refused(home, &objects.id, format!("create: {}", tell_unhardened())).await;
        delete(home, &pod).await;
        return outcome;
    }
    match secret::own(home, &objects.id, &pod).await {
        Ok(true) => Outcome::Submitted,
        Ok(false) => stopped(home, &pod).await,
        Err(failed) if failed.class == Class::NotFound => stopped(home, &pod).await,
        Err(failed) => {
            tracing::warn!(session = %objects.id, error = %failed, "a session's Secret has no owner yet; the sweep sees to it");
            Outcome::Submitted
        }
    }
}

/// A sentence for clients, behind the stage of the start that it ended.
fn refusal(doing: &'static str, failed: &Failed) -> String {
    format!("create: {}", tell(doing, failed))
}

/// The pod was refused: so the session ended, unless somebody had stopped it before.
async fn refused(home: &Home, id: &SessionId, message: String) -> Outcome {
    let mark = Mark::Refused { at: Timestamp::now(), message: message.clone() };
    match secret::mark(home, id, &mark).await {
        Ok(Some(Mark::Stopped { .. })) => return Outcome::Stopped,
        Ok(_) => {}
        Err(failed) if failed.class == Class::NotFound => {}
        Err(failed) => {
            tracing::warn!(session = %id, error = %failed, "the end of a session cannot be written; the sweep sees to it");
        }
    }
    Outcome::Refused(message)
}

/// Somebody stopped the session while its pod was made, and found none to delete (SES-09).
async fn stopped(home: &Home, pod: &Value) -> Outcome {
    delete(home, pod).await;
    Outcome::Stopped
}

async fn delete(home: &Home, pod: &Value) {
    if let Err(failed) = home.cluster.delete_pod(&home.namespace, json::name(pod), GRACE_SECONDS).await {
        tracing::warn!(pod = json::name(pod), error = %failed, "a pod cannot be deleted; the sweep sees to it");
    }
}

/// Makes an object, again and again while nothing is wrong with that. What is there after an attempt that was not answered is
/// what that attempt made: no name is used twice.
async fn create(home: &Home, resource: &Resource, object: &Value, deadline: Instant) -> Result<Value, Failed> {
    let mut failures = Backoff::new(SHORTEST_PAUSE, LONGEST_PAUSE);
    loop {
        let failed = match home.cluster.create(resource, &home.namespace, object).await {
            Ok(made) => return Ok(made),
            Err(failed) if failed.class == Class::AlreadyExists && failures.failures() > 0 => {
                match home.cluster.get(resource, Some(&home.namespace), json::name(object)).await {
                    Ok(made) => return Ok(made),
                    Err(failed) => failed,
                }
            }
            Err(failed) => failed,
        };
        let pause = failures.failed();
        if !failed.class.passes() || Instant::now() + pause > deadline {
            return Err(failed);
        }
        tokio::time::sleep(pause).await;
    }
}

#[cfg(test)]
mod tests;
