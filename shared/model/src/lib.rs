//! What Cofferdam knows and decides about pods, and nothing else: no clock, no network, no environment.
//!
//! ```text
//! AdmissionReview ──▶ Request ──────────┐
//!                                       ├─▶ harden() ─▶ Verdict: Untouched | Hardened (pod, patch, warnings) | Refused | Advised
//! policy.yaml ──────▶ policy::Policy  ──┤      └─ walks rules::RULES, each one file in `rules/`
//!                                       │      ┌─ walks them as well, only looking
//! a live pod ───────────────────────────┴─▶ audit() ──▶ Reasons
//! ```
//!
//! A pod stays the JSON that came in: rules read and edit it through `pod::Draft`, which writes down every edit as it
//! is made. Warnings and recorded changes are rendered from those notes, so they cannot tell another story than the
//! patch does.

pub mod endpoints;
pub mod host;
pub mod image;
pub mod keys;
pub mod policy;
pub mod ports;
pub mod quantity;
pub mod rules;
pub mod session;
pub mod text;

mod audit;
mod change;
mod glob;
mod harden;
mod names;
mod pod;
mod record;
mod refusal;
mod request;
mod walk;
mod warning;

#[cfg(test)]
mod testing;

pub use audit::audit;
pub use change::{Action, Change, Told};
pub use harden::{Advice, Hardened, Untouched, Verdict, harden};
pub use names::{is_container_name, is_object_name};
pub use record::{Record, RecordedChange, changes_annotation};
pub use refusal::{Reason, Refusal};
pub use request::{Operation, Request, Scope, Template, User};
pub use warning::advice;
