//! Opening the place where bodies are kept.

use std::fs;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path as Directory;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder};
use object_store::gcp::{GoogleCloudStorageBuilder, GoogleConfigKey};
use object_store::local::LocalFileSystem;
use object_store::memory::InMemory;
use object_store::prefix::PrefixStore;
use object_store::{ObjectStore, RetryConfig};

use super::location::{Bucket, Location, Service};

/// How often a bucket is asked again, and for how long. A pod that waits for its body asks again by itself.
const RETRIES: usize = 3;
const RETRYING: Duration = Duration::from_secs(10);

/// A place that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("cannot keep bodies in {location}; {question}")]
pub struct OpenError {
    location: Box<Location>,
    question: &'static str,
    source: Problem,
}

type Problem = Box<dyn std::error::Error + Send + Sync>;

impl Location {
    /// Opens the place. Of a bucket this asks nobody yet; `settings` are environment variables.
    pub(super) fn open(
        &self,
        settings: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Arc<dyn ObjectStore>, OpenError> {
        let (opened, question) = match self {
            Self::Memory => (Ok(Arc::new(InMemory::new()) as Arc<dyn ObjectStore>), ""),
            Self::Directory(path) => (directory(path), "is it a directory that can be written to?"),
            Self::Bucket(of) => (
                bucket(of, settings).map_err(Problem::from),
                "are its variables right, and is SSL_CERT_FILE a bundle of CA certificates?",
            ),
        };
        opened.map_err(|source| OpenError { location: Box::new(self.clone()), question, source })
    }
}

fn directory(path: &Directory) -> Result<Arc<dyn ObjectStore>, Problem> {
    // Bodies are their senders' alone.
    fs::DirBuilder::new().recursive(true).mode(0o700).create(path)?;
    let files = LocalFileSystem::new_with_prefix(path)?;
    // What was accepted outlives the node's crash, where its disk does.
    Ok(Arc::new(files.with_fsync(true).with_automatic_cleanup(true)))
}

fn bucket(
    of: &Bucket,
    settings: impl IntoIterator<Item = (String, String)>,
) -> object_store::Result<Arc<dyn ObjectStore>> {
    // The client of the library takes the process's provider, and would panic without. Another one will do as well.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let retry = RetryConfig { max_retries: RETRIES, retry_timeout: RETRYING, ..RetryConfig::default() };
    let (name, prefix) = (of.name.as_str(), of.prefix.as_str());
    match of.service {
        Service::S3 => {
            let builder = known::<AmazonS3ConfigKey>("AWS_", settings)
                .fold(AmazonS3Builder::new(), |builder, (key, value)| builder.with_config(key, value));
            Ok(below(prefix, builder.with_bucket_name(name).with_retry(retry).build()?))
        }
        Service::Gcs => {
            let builder = known::<GoogleConfigKey>("GOOGLE_", settings)
                .fold(GoogleCloudStorageBuilder::new(), |builder, (key, value)| builder.with_config(key, value));
            Ok(below(prefix, builder.with_bucket_name(name).with_retry(retry).build()?))
        }
        Service::Azure => {
            let builder = known::<AzureConfigKey>("AZURE_", settings)
                .fold(MicrosoftAzureBuilder::new(), |builder, (key, value)| builder.with_config(key, value));
            Ok(below(prefix, builder.with_container_name(name).with_retry(retry).build()?))
        }
    }
}

/// The settings that begin so and mean something.
fn known<K: FromStr>(
    begin: &'static str,
    settings: impl IntoIterator<Item = (String, String)>,
) -> impl Iterator<Item = (K, String)> {
    let ours = settings.into_iter().filter(move |(name, _)| name.starts_with(begin));
    ours.filter_map(|(name, value)| Some((name.to_ascii_lowercase().parse().ok()?, value)))
}

fn below(prefix: &str, store: impl ObjectStore) -> Arc<dyn ObjectStore> {
    if prefix.is_empty() { Arc::new(store) } else { Arc::new(PrefixStore::new(store, prefix)) }
}

#[cfg(test)]
mod fake;
#[cfg(test)]
mod tests;
