//! Bodies: a bundle becomes an archive, the archive waits in a store, and one pod redeems it.
//!
//! ```text
//! wire::Bundle ─▶ files ─▶ archive ─▶ store ◀─ claims ◀─ serve ◀── GET, DELETE ── cofferdam-fetch in the pod
//!                (path)                                   └ identity ─▶ TokenReview
//! ```
//!
//! * [`Files`], [`Archiver`]: what is wrong with a bundle, told before a session is promised; its tar.gz;
//! * [`BodyStore`], [`Location`]: where archives wait, and what is known of them;
//! * [`claims`]: who may have one;
//! * [`Bodies`], [`token_review`]: the port of its own where pods fetch them;
//! * [`keep_clean`]: what can be had no more is deleted.

mod archive;
mod backend;
pub mod claims;
mod counts;
mod files;
mod identity;
mod location;
mod path;
mod range;
mod serve;
mod store;
mod sweep;
#[cfg(test)]
mod testing;
mod unfinished;

pub use archive::{Archive, ArchiveError, Archiver};
pub use backend::OpenError;
pub use counts::Counts;
pub use files::{BundleError, Files, Limits, Place};
pub use identity::{Identify, Identifying, PodIdentity, Unidentified, token_review};
pub use location::{Bucket, Location, NoLocation, Service};
pub use path::PathProblem;
pub use serve::{Bodies, IDENTITY, PATH, Redeemers, url};
pub use store::{BodyStore, Record, StoreError, Swept};
pub use sweep::keep_clean;
