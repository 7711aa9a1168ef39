//! Polling the files and swapping the certificate.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rustls::pki_types::ServerName;
use tokio::time::MissedTickBehavior;

use crate::certificate::{Certificate, CertificateError};
use crate::current::Current;
use crate::files::{Contents, Files, FilesError};

/// Watches over one [`Current`] certificate.
pub struct Reloader {
    files: Files,
    names: Vec<ServerName<'static>>,
    current: Arc<Current>,
    served: Contents,
    /// The last failure that was logged; the same one again is only counted.
    logged: Option<String>,
}

/// What one look at the files came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The files hold what is served.
    Unchanged,
    /// They hold something new, and it is served now.
    Swapped,
    /// They hold something that cannot be served, or cannot be read; the old certificate stays.
    Kept,
}

/// Why there is no certificate to serve.
#[derive(Debug, thiserror::Error)]
pub enum ReloadError {
    /// A file could not be read.
    #[error(transparent)]
    Files(#[from] FilesError),
    /// They were read, but must not be served.
    #[error("the certificate in {} with the key in {} cannot be served", files.chain.display(), files.key.display())]
    Certificate {
        /// Where they are.
        files: Files,
        /// Why not.
        source: CertificateError,
    },
}

impl Reloader {
    /// Reads and checks the files for the first time; see [`Certificate::check`].
    pub fn load(files: Files, names: Vec<ServerName<'static>>, now: SystemTime) -> Result<Self, ReloadError> {
        let contents = files.read()?;
        let certificate = check(&files, &contents, &names, now)?;
        let current = Arc::new(Current::new(certificate));
        Ok(Self { files, names, current, served: contents, logged: None })
    }

    /// What is served.
    #[must_use]
    pub fn current(&self) -> Arc<Current> {
        Arc::clone(&self.current)
    }

    /// Looks at the files every `interval`, for ever, and tells `on_outcome` what came of it. The first look is one
    /// interval from now. Stop it by dropping the future.
    pub async fn run(mut self, interval: Duration, mut on_outcome: impl FnMut(Outcome)) {
        let mut ticks = tokio::time::interval(interval);
        // After a pause of the whole machine one look is enough.
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        ticks.tick().await;
        loop {
            ticks.tick().await;
            // Two small files on a memory file system: as quick as asking another thread to read them.
            on_outcome(self.look(SystemTime::now()));
        }
    }

    /// Looks at the files once.
    pub fn look(&mut self, now: SystemTime) -> Outcome {
        let loaded = self.files.read().map_err(ReloadError::from).and_then(|contents| {
            if contents == self.served {
                return Ok(None);
            }
            let certificate = check(&self.files, &contents, &self.names, now)?;
            Ok(Some((contents, certificate)))
        });
        match loaded {
            Ok(None) => {
                self.logged = None;
                Outcome::Unchanged
            }
            Ok(Some((contents, certificate))) => {
                tracing::info!(expires_unix_seconds = certificate.expires_unix_seconds(), "serving a new certificate");
                self.current.swap(certificate);
                self.served = contents;
                self.logged = None;
                Outcome::Swapped
            }
            Err(error) => {
                self.log(&error);
                Outcome::Kept
            }
        }
    }

    /// Every look at a broken renewal fails; one line tells it.
    fn log(&mut self, error: &ReloadError) {
        let cause = std::error::Error::source(error).map_or_else(String::new, |cause| format!(": {cause}"));
        let text = format!("{error}{cause}");
        if self.logged.as_ref() != Some(&text) {
            tracing::error!(error = text, "the certificate was not renewed, the old one is still served");
            self.logged = Some(text);
        }
    }
}

fn check(
    files: &Files,
    contents: &Contents,
    names: &[ServerName<'static>],
    now: SystemTime,
) -> Result<Certificate, ReloadError> {
    Certificate::check(contents, names, now).map_err(|source| ReloadError::Certificate { files: files.clone(), source })
}

#[cfg(test)]
mod tests;
