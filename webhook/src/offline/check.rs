//! Whether a file is as hardening would leave it.

use std::io::Write;

use cofferdam_model::Verdict;
use cofferdam_model::policy::Policy;

use super::{OfflineError, Options, Outcome, documents, templates};

/// Writes what would be done and to what, and nothing else.
pub(super) fn check(
    options: &Options,
    policy: &Policy,
    text: &str,
    notes: &mut impl Write,
) -> Result<Outcome, OfflineError> {
    let mut outcome = Outcome::Done;
    for mut document in documents::read(&options.source, text)? {
        for judged in templates::harden(&mut document.object, options, policy) {
            for line in judged.lines() {
                writeln!(notes, "{line}")?;
            }
            if judged.is_refused() {
                outcome = Outcome::Refused;
            } else if judged.would_change() {
                if let Verdict::Hardened(hardened) = &judged.verdict {
                    writeln!(notes, "{}: {} fields would change", judged.name, hardened.changes.len())?;
                }
                if outcome == Outcome::Done {
                    outcome = Outcome::WouldChange;
                }
            }
        }
    }
    Ok(outcome)
}
