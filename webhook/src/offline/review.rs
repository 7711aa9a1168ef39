//! An `AdmissionReview` in, and out what the server would answer, byte for byte.

use std::io::Write;

use cofferdam_model::policy::Policy;

use super::{Job, OfflineError, Outcome};
use crate::admit::{Entry, decide};
use crate::review::Review;

/// Writes the answer, whatever it is.
pub(super) fn answer(
    job: &Job,
    entry: Entry,
    policy: &Policy,
    text: &str,
    out: &mut impl Write,
) -> Result<Outcome, OfflineError> {
    let not_a_review = |problem: String| OfflineError::NotAReview { source_name: job.source.to_string(), problem };
    let review = Review::parse(text.as_bytes()).map_err(|malformed| not_a_review(malformed.to_string()))?;
    let scope = entry.scope().ok_or_else(|| not_a_review("there is no such entry".to_owned()))?;
    out.write_all(&decide(entry, scope, &review, policy).answer.to_body())?;
    Ok(Outcome::Done)
}
