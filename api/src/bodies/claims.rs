//! Who may have a body: the first pod that redeems its token, until it has it.
//!
//! Single use does not mean "one answer": an init container is started again when its pod's sandbox is made anew, and a
//! connection may break in the middle (fault D18, case B77). So the claim is the pod's, and the pod may come again until
//! it acknowledges or its time is over. What is decided here is decided from what lies in the store, by each process
//! alike; the store lets exactly one claim be made.

use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

use super::store::{BodyStore, Record, StoreError};
use crate::token::TokenDigest;

/// How long a body waits to be fetched, and from then on to be acknowledged.
pub const LIFETIME: Duration = Duration::from_mins(5);

/// Who redeems a body.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Redeemer {
    /// The pod's uid; none where nobody can be asked who a pod is, and then the token is all that is known of it.
    pub pod_uid: Option<String>,
}

/// A body that was redeemed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// By whom.
    pub by: Redeemer,
    /// When, by the store's clock, which all processes share.
    pub at: SystemTime,
}

/// How a body stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// Since when it waits, by the store's clock.
    pub staged: SystemTime,
    /// Who has redeemed it.
    pub claim: Option<Claim>,
    /// Whether its pod has it.
    pub acknowledged: bool,
}

/// Why somebody does not get a body. All are answered alike; the log tells them apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// There is none of that session.
    #[error("no body of that session waits")]
    Unknown,
    /// The token is missing, or another one.
    #[error("the token is not this body's")]
    Token,
    /// The pod does not say who it is, or is not the session's.
    #[error("it is not asked for by the session's pod")]
    Stranger,
    /// Another pod has redeemed it.
    #[error("another pod has redeemed it")]
    Claimed,
    /// Nobody has redeemed it, so nobody can have it.
    #[error("it was not redeemed")]
    Unclaimed,
    /// Its pod has it.
    #[error("its pod has acknowledged it")]
    Acknowledged,
    /// Its time is over.
    #[error("its time is over")]
    Expired,
}

/// What is next for who wants a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// Try to claim it.
    Claim,
    /// Fetch it.
    Fetch,
}

impl Standing {
    /// Until when the body can be had.
    #[must_use]
    pub fn until(&self) -> SystemTime {
        self.claim.as_ref().map_or(self.staged, |claim| claim.at) + LIFETIME
    }

    fn step(&self, who: &Redeemer, now: SystemTime) -> Result<Step, Refusal> {
        if now >= self.until() {
            return Err(Refusal::Expired);
        }
        match &self.claim {
            None => Ok(Step::Claim),
            Some(claim) if claim.by != *who => Err(Refusal::Claimed),
            Some(_) if self.acknowledged => Err(Refusal::Acknowledged),
            Some(_) => Ok(Step::Fetch),
        }
    }

    /// Whether `who` may say that it has the body; once more is no harm, for the answer may have been lost.
    fn acknowledgement(&self, who: &Redeemer, now: SystemTime) -> Result<(), Refusal> {
        match self.step(who, now) {
            Ok(Step::Fetch) | Err(Refusal::Acknowledged) => Ok(()),
            Ok(Step::Claim) => Err(Refusal::Unclaimed),
            Err(refusal) => Err(refusal),
        }
    }
}

/// The body of that session, if the token is its own.
///
/// Where there is none a digest is compared as well, so that how long a refusal takes says nothing.
pub async fn find(store: &BodyStore, id: &str, token: &str) -> Result<Result<Record, Refusal>, StoreError> {
    let record = store.record(id).await?;
    let digest = record.as_ref().map_or(TokenDigest::of(""), |record| record.token);
    let matches = digest.is_of(token);
    Ok(record.ok_or(Refusal::Unknown).and_then(|record| if matches { Ok(record) } else { Err(Refusal::Token) }))
}

/// Claims the body for `who`, or finds that it has it already.
pub async fn redeem(
    store: &BodyStore,
    id: &str,
    record: &Record,
    who: &Redeemer,
    now: SystemTime,
) -> Result<Result<(), Refusal>, StoreError> {
    for _ in 0..2 {
        match store.standing(id, record).await?.step(who, now) {
            Ok(Step::Fetch) => return Ok(Ok(())),
            Err(refusal) => return Ok(Err(refusal)),
            Ok(Step::Claim) => {
                if store.claim(id, who).await? {
                    tracing::info!(session = id, pod_uid = who.pod_uid.as_deref(), "a body was redeemed");
                    return Ok(Ok(()));
                }
                // Who comes second looks whose it is: it may be the same pod's other attempt.
            }
        }
    }
    // Claimed by somebody, and then nobody's: all of it was deleted in between.
    Ok(Err(Refusal::Unknown))
}

/// Notes that `who` has the body, which is deleted then.
pub async fn acknowledge(
    store: &BodyStore,
    id: &str,
    record: &Record,
    who: &Redeemer,
    now: SystemTime,
) -> Result<Result<(), Refusal>, StoreError> {
    if let Err(refusal) = store.standing(id, record).await?.acknowledgement(who, now) {
        return Ok(Err(refusal));
    }
    store.acknowledge(id).await?;
    Ok(Ok(()))
}

#[cfg(test)]
mod tests;
