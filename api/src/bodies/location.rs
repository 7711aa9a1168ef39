//! Where bodies are kept, as it is configured: `file:///directory`, a bucket (`s3://bucket/prefix`, `gs://…`,
//! `az://container/prefix`), or `memory` for tests and trials.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// The place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Location {
    /// In this process, and gone with it.
    Memory,
    /// In files below a directory.
    Directory(PathBuf),
    /// In a bucket.
    Bucket(Bucket),
}

/// A part of a bucket. What else is to be known of it, such as credentials, is in the environment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bucket {
    /// Whose.
    pub service: Service,
    /// Its name.
    pub name: String,
    /// What all names in it begin with; empty for none.
    pub prefix: String,
}

/// Who keeps buckets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Service {
    /// Amazon S3, or what speaks its language.
    S3,
    /// Google Cloud Storage.
    Gcs,
    /// Azure Blob Storage, which calls buckets containers.
    Azure,
}

/// A text that names no place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "must be `file:///` and an absolute path, `s3://`, `gs://` or `az://` and a bucket, with a prefix or without, or \
     `memory`; credentials are taken from the environment"
)]
pub struct NoLocation;

impl Service {
    fn scheme(self) -> &'static str {
        match self {
            Self::S3 => "s3",
            Self::Gcs => "gs",
            Self::Azure => "az",
        }
    }
}

impl FromStr for Location {
    type Err = NoLocation;

    fn from_str(text: &str) -> Result<Self, NoLocation> {
        if text == "memory" {
            return Ok(Self::Memory);
        }
        let (scheme, rest) = text.split_once("://").ok_or(NoLocation)?;
        if scheme == "file" {
            let is_path = rest.starts_with('/') && !rest.contains('\0');
            return if is_path { Ok(Self::Directory(rest.into())) } else { Err(NoLocation) };
        }
        let services = [Service::S3, Service::Gcs, Service::Azure];
        let service = services.into_iter().find(|service| service.scheme() == scheme).ok_or(NoLocation)?;
        let (name, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        let is_name = |name: &str| {
            !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte))
        };
        let is_prefix = prefix.is_empty() || prefix.split('/').all(|part| is_name(part) && part != "." && part != "..");
        if !is_name(name) || !is_prefix {
            return Err(NoLocation);
        }
        Ok(Self::Bucket(Bucket { service, name: name.to_owned(), prefix: prefix.to_owned() }))
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory => f.write_str("memory"),
            Self::Directory(directory) => write!(f, "file://{}", directory.display()),
            Self::Bucket(Bucket { service, name, prefix }) => {
                write!(f, "{}://{name}", service.scheme())?;
                if prefix.is_empty() { Ok(()) } else { write!(f, "/{prefix}") }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_read_as_they_are_written() {
        for text in [
            "memory",
            "file:///var/lib/cofferdam/bodies",
            "file:///",
            "s3://bucket",
            "s3://my-bucket.x/cofferdam/bodies",
            "gs://bucket_1/p",
            "az://container/p",
        ] {
            assert_eq!(Location::from_str(text).unwrap().to_string(), text);
        }
        for text in [
            "",
            "/var/lib",
            "file://host/x",
            "file:relative",
            "file:///a\0b",
            "Memory",
            "memory://",
            "ftp://x",
            "s3://",
            "s3:///p",
            "s3://key:secret@bucket",
            "s3://bucket/p/",
            "s3://bucket/a//b",
            "s3://bucket/../b",
            "gs://bucket?x=y",
            "https://bucket",
        ] {
            assert_eq!(Location::from_str(text), Err(NoLocation), "{text}");
        }
    }
}
