//! What is wrong with a policy file, where, and what to write instead.

/// Why a policy was not taken. Every message begins with file and line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PolicyError {
    /// A key that nothing reads, so it would protect nothing.
    #[error("{file}:{line}: unknown key `{key}`; {hint}")]
    UnknownKey {
        /// The file as it was named.
        file: String,
        /// The line of the key, from 1.
        line: u64,
        /// The key.
        key: String,
        /// The key that was probably meant, or all that are known there.
        hint: String,
    },
    /// A value that cannot be, alone or beside another.
    #[error("{file}:{line}: `{key}` {problem}")]
    Invalid {
        /// The file as it was named.
        file: String,
        /// The line of the value, from 1.
        line: u64,
        /// The key.
        key: String,
        /// What is wrong and what to write.
        problem: String,
    },
    /// No YAML, or a value of the wrong type that belongs to no single key.
    #[error("{file}:{line}: {problem}")]
    Unreadable {
        /// The file as it was named.
        file: String,
        /// The line, from 1.
        line: u64,
        /// What is wrong.
        problem: String,
    },
}

impl PolicyError {
    /// With control characters of the file spelled out, so that no message is more than one line or moves a terminal's
    /// cursor.
    pub(super) fn on_one_line(self) -> Self {
        match self {
            Self::UnknownKey { file, line, key, hint } => {
                Self::UnknownKey { file, line, key: spelled_out(&key), hint: spelled_out(&hint) }
            }
            Self::Invalid { file, line, key, problem } => {
                Self::Invalid { file, line, key: spelled_out(&key), problem: spelled_out(&problem) }
            }
            Self::Unreadable { file, line, problem } => Self::Unreadable { file, line, problem: spelled_out(&problem) },
        }
    }
}

fn spelled_out(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() { line.extend(c.escape_default()) } else { line.push(c) }
    }
    line
}
