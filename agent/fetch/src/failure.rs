//! Why a body was not delivered: an exit code, and one sentence for whoever looks at the pod.

/// The longest sentence, in characters: a kubelet keeps the first 4 KiB of a message, people read less.
const LONGEST: usize = 500;

/// Why a body was not delivered. Each message is a whole clause; none holds a token, or of a URL more than its origin.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Failure {
    /// The command line, or a file that it names, is unusable.
    #[error("{0}")]
    Usage(String),
    /// The body was not there before the deadline.
    #[error("{0}")]
    NotReached(String),
    /// The server will not give the body, however often it is asked.
    #[error("{0}")]
    Refused(String),
    /// What came is something else than what was asked for.
    #[error(
        "the body's SHA-256 is {actual}, and the pod asks for {wanted}: it was changed after the pod was made, or \
         cofferdam.dev/body-sha256 is wrong"
    )]
    Digest {
        /// What the pod asks for, as hex digits.
        wanted: String,
        /// What came.
        actual: String,
    },
    /// The archive holds what may not be unpacked, or is none.
    #[error("{0}")]
    Unsafe(String),
    /// The body would take more than it may.
    #[error("{0}")]
    TooLarge(String),
    /// The volume does not take it.
    #[error("{0}")]
    Disk(String),
}

impl Failure {
    /// The exit code, which tells the kinds of failure apart.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Usage(_) => 2,
            Self::NotReached(_) => 10,
            Self::Refused(_) => 11,
            Self::Digest { .. } => 12,
            Self::Unsafe(_) => 13,
            Self::TooLarge(_) => 14,
            Self::Disk(_) => 15,
        }
    }

    /// The message as one line of at most 500 characters, whatever names it repeats.
    #[must_use]
    pub fn sentence(&self) -> String {
        line(&self.to_string())
    }

    /// The volume said no to `what`.
    pub(crate) fn disk(what: &str, cause: impl std::fmt::Display) -> Self {
        Self::Disk(format!("cannot {what}: {cause}"))
    }
}

/// A text as one line of at most 500 characters.
pub(crate) fn line(text: &str) -> String {
    let line: String = text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
    match line.char_indices().nth(LONGEST) {
        None => line,
        Some(_) => line.chars().take(LONGEST - 1).chain(['…']).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_is_one_line_of_at_most_500_characters() {
        let short = Failure::Unsafe("a\nb\u{1b}[1m".to_owned());
        assert_eq!(short.sentence(), "a\u{fffd}b\u{fffd}[1m");
        let long = Failure::Refused("ü".repeat(501));
        assert_eq!(long.sentence().chars().count(), 500);
        assert!(long.sentence().ends_with('…'));
        assert_eq!(Failure::Refused("ü".repeat(500)).sentence(), "ü".repeat(500));
    }

    #[test]
    fn the_kinds_of_failure_have_the_codes_that_are_promised() {
        let text = String::new;
        let digest = Failure::Digest { wanted: text(), actual: text() };
        let kinds = [
            Failure::Usage(text()),
            Failure::NotReached(text()),
            Failure::Refused(text()),
            digest,
            Failure::Unsafe(text()),
            Failure::TooLarge(text()),
            Failure::Disk(text()),
        ];
        assert_eq!(kinds.map(|kind| kind.exit_code()), [2, 10, 11, 12, 13, 14, 15]);
    }
}
