//! The two files of a certificate.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// A chain with its key is a few kilobytes; what is larger is the wrong file.
const LARGEST_FILE_BYTES: u64 = 1024 * 1024;

/// Where chain and key are. They may be one file.
#[derive(Clone, Debug)]
pub struct Files {
    /// PEM: the certificate first, then what leads to its authority. A TLS Secret calls it `tls.crt`.
    pub chain: PathBuf,
    /// PEM: PKCS #8, PKCS #1 or SEC 1. A TLS Secret calls it `tls.key`.
    pub key: PathBuf,
}

/// What the files held at one moment. Never printed: the key is in it.
#[derive(Clone, PartialEq, Eq)]
pub struct Contents {
    pub(crate) chain: Vec<u8>,
    pub(crate) key: Vec<u8>,
}

/// A file could not be read.
#[derive(Debug, thiserror::Error)]
pub enum FilesError {
    /// The operating system says why.
    #[error("cannot read {path}")]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Larger than any certificate.
    #[error("{path} is larger than 1 MiB, so it is no certificate or key")]
    TooLarge {
        /// The file.
        path: PathBuf,
    },
}

impl Files {
    /// Reads both. They may belong to different generations if a renewal happens in between; then key and certificate
    /// do not match, which [`Certificate::check`](crate::Certificate::check) finds.
    pub fn read(&self) -> Result<Contents, FilesError> {
        Ok(Contents { chain: read(&self.chain)?, key: read(&self.key)? })
    }
}

fn read(path: &Path) -> Result<Vec<u8>, FilesError> {
    let mut bytes = Vec::new();
    let taken = File::open(path)
        .and_then(|file| file.take(LARGEST_FILE_BYTES + 1).read_to_end(&mut bytes))
        .map_err(|source| FilesError::Read { path: path.to_owned(), source })?;
    if taken as u64 > LARGEST_FILE_BYTES {
        return Err(FilesError::TooLarge { path: path.to_owned() });
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endless_file_is_refused() {
        let endless = PathBuf::from("/dev/zero");
        let files = Files { chain: endless.clone(), key: endless };
        assert!(matches!(files.read(), Err(FilesError::TooLarge { .. })));
    }

    #[test]
    fn an_error_names_the_file() {
        let missing = PathBuf::from("/nowhere/tls.crt");
        let files = Files { chain: missing.clone(), key: missing };
        assert_eq!(files.read().err().unwrap().to_string(), "cannot read /nowhere/tls.crt");
    }
}
