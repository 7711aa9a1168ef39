//! An `AdmissionReview` in, and out what the server would answer, byte for byte.

use std::io::Write;

use cofferdam_model::policy::Policy;

use super::{OfflineError, Options, Outcome};
use crate::admit::{Entry, decide};
use crate::review::Review;

/// Writes the answer, whatever it is.
pub(super) fn answer(
    options: &Options,
    entry: Entry,
    policy: &Policy,
    text: &str,
    out: &mut impl Write,
) -> Result<Outcome, OfflineError> {
    let review = Review::parse(text.as_bytes()).map_err(|malformed| OfflineError::NotAReview {
        source_name: options.source.to_string(),
        problem: malformed.to_string(),
    })?;
    out.write_all(&decide(entry, &review, policy).answer.to_body())?;
    Ok(Outcome::Done)
}
