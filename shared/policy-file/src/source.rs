//! Where a policy is, and what its file does not say.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;

use cofferdam_model::keys;
use cofferdam_model::policy::{Policy, PolicyError};

/// A ConfigMap holds no more; what is larger is the wrong file.
const LARGEST_POLICY_BYTES: u64 = 1024 * 1024;

/// Where a policy comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PolicySource {
    /// Compiled in.
    BuiltIn,
    /// A file.
    File(PathBuf),
}

/// What a policy file does not say, since it is known only where Cofferdam is installed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Installation {
    /// The image that holds `cofferdam-fetch`; none for the one of the manifests.
    pub image: Option<String>,
    /// Where Cofferdam itself runs.
    pub namespace: String,
}

/// Why a policy cannot be had. Each message names the file, or what else it was read from.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PolicyFileError {
    /// It could not be read.
    #[error("cannot read the policy from {name}")]
    Unreadable {
        /// What it was read from.
        name: String,
        /// Why.
        source: io::Error,
    },
    /// It is larger than any policy.
    #[error("{name} is larger than 1 MiB, so it is no policy")]
    TooLarge {
        /// What it was read from.
        name: String,
    },
    /// It says something that it cannot; the message names file, line and key.
    #[error(transparent)]
    Policy(#[from] PolicyError),
}

impl Default for Installation {
    /// As the manifests install it.
    fn default() -> Self {
        Self { image: None, namespace: keys::SYSTEM_NAMESPACE.to_owned() }
    }
}

impl Installation {
    /// The policy with what its file does not say.
    #[must_use]
    pub fn complete(&self, policy: Policy) -> Policy {
        let policy = policy.with_system_namespace(&self.namespace);
        match &self.image {
            Some(image) => policy.with_image(image),
            None => policy,
        }
    }
}

impl PolicySource {
    /// Reads and checks the policy.
    ///
    /// # Errors
    /// When its file cannot be read, or says something that it cannot.
    pub fn load(&self) -> Result<Policy, PolicyFileError> {
        match self {
            Self::BuiltIn => Ok(Policy::built_in()),
            Self::File(path) => {
                let name = path.display().to_string();
                match File::open(path) {
                    Ok(file) => read(&name, file),
                    Err(source) => Err(PolicyFileError::Unreadable { name, source }),
                }
            }
        }
    }
}

/// Reads and checks a policy that is in no file of its own, such as standard input; errors call it `name`.
///
/// # Errors
/// When it cannot be read, or says something that it cannot.
pub fn read(name: &str, from: impl Read) -> Result<Policy, PolicyFileError> {
    let mut text = String::new();
    let taken = from
        .take(LARGEST_POLICY_BYTES + 1)
        .read_to_string(&mut text)
        .map_err(|source| PolicyFileError::Unreadable { name: name.to_owned(), source })?;
    if taken as u64 > LARGEST_POLICY_BYTES {
        return Err(PolicyFileError::TooLarge { name: name.to_owned() });
    }
    Ok(Policy::parse(name, &text)?)
}

impl fmt::Display for PolicySource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BuiltIn => f.write_str("built-in"),
            Self::File(path) => path.display().fmt(f),
        }
    }
}
