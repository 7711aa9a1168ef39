//! Serving certificates: read, check, hand to rustls, and swap when the files change.
//!
//! ```text
//! tls.crt, tls.key ──files──▶ contents ──certificate──▶ checked pair ──current──▶ every new TLS handshake
//!        ▲                                                   │
//!        └──────── reload: every 10 s ◀──────────────────────┘   a broken renewal keeps the old pair
//! ```
//!
//! Contents are polled instead of watched. A kubelet replaces a Secret volume by renaming a symlink two levels up, which
//! a watch on the file never sees; a poll sees every way of changing a file, and 10 s are short beside the minute that a
//! kubelet takes to bring a Secret to its pods.

pub mod certificate;
pub mod current;
pub mod files;
pub mod reload;
#[cfg(any(test, feature = "testing"))]
pub mod testing;

pub use certificate::{Certificate, CertificateError};
pub use current::{Current, server_config};
pub use files::{Contents, Files, FilesError};
pub use reload::{Outcome, ReloadError, Reloader};
