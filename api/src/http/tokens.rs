//! The tokens of callers.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use std::{fmt, fs, io};

use arc_swap::ArcSwap;
use cofferdam_runtime::errors::with_causes;
use subtle::{Choice, ConstantTimeEq as _};
use tokio::time::MissedTickBehavior;

use crate::token::TokenDigest;

/// A shorter one could be guessed.
const MIN_LENGTH: usize = 16;

/// The tokens that callers may send, at least one. Digests are compared instead, so that not even a length can be learned.
#[derive(PartialEq, Eq)]
pub struct Tokens(Vec<TokenDigest>);

/// Why there are no tokens. The messages show none.
#[derive(Debug, thiserror::Error)]
pub enum TokensError {
    /// The file cannot be read.
    #[error("cannot read the tokens in {}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system answered.
        source: io::Error,
    },
    /// There is nothing in it.
    #[error("there is no token in {}; write one, or one a line while it is replaced", .0.display())]
    Empty(PathBuf),
    /// A line that nobody could send, or that is too short.
    #[error("line {line} of {} is no token; write at least {MIN_LENGTH} visible ASCII characters", path.display())]
    Unusable {
        /// The file.
        path: PathBuf,
        /// Which line of it, from 1.
        line: usize,
    },
}

impl Tokens {
    /// Reads a file of one token a line.
    ///
    /// # Errors
    /// When it cannot be read, or has a line that is no token, or none at all.
    pub fn load(path: &Path) -> Result<Self, TokensError> {
        let text =
            fs::read_to_string(path).map_err(|source| TokensError::Unreadable { path: path.to_owned(), source })?;
        let lines = text.lines().map(str::trim).enumerate().filter(|(_, line)| !line.is_empty());
        let tokens: Vec<_> = lines
            .map(|(number, line)| {
                let is_token = line.len() >= MIN_LENGTH && line.bytes().all(|byte| byte.is_ascii_graphic());
                let unusable = || TokensError::Unusable { path: path.to_owned(), line: number + 1 };
                if is_token { Ok(TokenDigest::of(line)) } else { Err(unusable()) }
            })
            .collect::<Result<_, _>>()?;
        if tokens.is_empty() { Err(TokensError::Empty(path.to_owned())) } else { Ok(Self(tokens)) }
    }

    /// Whether a caller who sends this may call. It takes as long whatever was sent.
    #[must_use]
    pub fn accept(&self, sent: &str) -> bool {
        let sent = TokenDigest::of(sent);
        self.0.iter().map(|token| token.ct_eq(&sent)).fold(Choice::from(0), |any, one| any | one).into()
    }
}

/// It holds secrets.
impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tokens({})", self.0.len())
    }
}

/// What one look at the file came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The file holds what is accepted.
    Unchanged,
    /// It holds others, and they are accepted now.
    Swapped,
    /// It cannot be used; the old ones stay.
    Kept,
}

/// Looks after a file of tokens.
pub struct Reloader {
    path: PathBuf,
    current: Arc<ArcSwap<Tokens>>,
    /// The last failure that was logged; the same one again is not.
    logged: Option<String>,
}

impl Reloader {
    /// Reads the file for the first time.
    ///
    /// # Errors
    /// As [`Tokens::load`].
    pub fn load(path: PathBuf) -> Result<Self, TokensError> {
        let tokens = Tokens::load(&path)?;
        Ok(Self { path, current: Arc::new(ArcSwap::from_pointee(tokens)), logged: None })
    }

    /// The tokens that are accepted.
    #[must_use]
    pub fn current(&self) -> Arc<ArcSwap<Tokens>> {
        Arc::clone(&self.current)
    }

    /// Looks at the file every `interval`, for ever, and tells `on_outcome` what came of it. Stop it by dropping the
    /// future.
    pub async fn run(mut self, interval: Duration, mut on_outcome: impl FnMut(Outcome)) {
        let mut ticks = tokio::time::interval(interval);
        // After a pause of the whole machine one look is enough.
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        ticks.tick().await;
        loop {
            ticks.tick().await;
            // A small file on a memory file system: as quick as asking another thread to read it.
            on_outcome(self.look());
        }
    }

    /// Looks at the file once.
    pub fn look(&mut self) -> Outcome {
        match Tokens::load(&self.path) {
            Ok(tokens) => {
                self.logged = None;
                if **self.current.load() == tokens {
                    return Outcome::Unchanged;
                }
                self.current.store(Arc::new(tokens));
                tracing::info!(file = %self.path.display(), "new tokens are accepted");
                Outcome::Swapped
            }
            Err(error) => {
                let text = with_causes(&error);
                if self.logged.as_ref() != Some(&text) {
                    tracing::error!(error = text, "the tokens were not replaced, the old ones are still accepted");
                    self.logged = Some(text);
                }
                Outcome::Kept
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: &str = "old-token-0123456789";
    const NEW: &str = "new-token-0123456789";

    fn file(text: &str) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tokens");
        fs::write(&path, text).unwrap();
        (folder, path)
    }

    fn tokens(text: &str) -> Result<Tokens, TokensError> {
        let (_folder, path) = file(text);
        Tokens::load(&path)
    }

    #[test]
    fn whoever_sends_one_of_the_tokens_may_call() {
        let tokens = tokens(&format!("{NEW}\n\n {OLD} \n")).unwrap();
        assert!(tokens.accept(NEW) && tokens.accept(OLD));
        for other in ["", "new-token-012345678", "new-token-01234567890", "NEW-TOKEN-0123456789", &format!("{NEW}\n")] {
            assert!(!tokens.accept(other), "{other:?}");
        }
    }

    #[test]
    fn a_file_that_would_let_somebody_guess_is_refused_and_never_shown() {
        assert!(matches!(tokens(" \n"), Err(TokensError::Empty(_))));
        for text in ["short", "with a space in the middle", "täken-0123456789-0123456789"] {
            let error = tokens(&format!("{NEW}\n{text}\n")).unwrap_err();
            assert!(matches!(error, TokensError::Unusable { line: 2, .. }), "{error:?}");
            assert!(!error.to_string().contains(text) && !error.to_string().contains(NEW), "{error}");
        }
        assert!(matches!(Tokens::load(Path::new("/nowhere")), Err(TokensError::Unreadable { .. })));
        assert!(!format!("{:?}", tokens(NEW).unwrap()).contains("0123"));
    }

    #[test]
    fn a_file_is_taken_up_when_it_changes_and_a_bad_one_changes_nothing() {
        let (_folder, path) = file(OLD);
        let mut reloader = Reloader::load(path.clone()).unwrap();
        let current = reloader.current();
        assert_eq!(reloader.look(), Outcome::Unchanged);
        fs::write(&path, "short").unwrap();
        assert_eq!(reloader.look(), Outcome::Kept);
        assert!(current.load().accept(OLD));
        fs::write(&path, NEW).unwrap();
        assert_eq!(reloader.look(), Outcome::Swapped);
        assert!(current.load().accept(NEW) && !current.load().accept(OLD));
        fs::remove_file(&path).unwrap();
        assert_eq!(reloader.look(), Outcome::Kept);
    }
}
