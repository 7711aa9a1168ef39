//! Where tags come from: whichever of the two ways the registry knows.

use std::path::PathBuf;

use http::{StatusCode, Uri};
use serde::de::DeserializeOwned;

use super::repository::Repository;
use super::requests::{Answer, Client, RequestError, host};
use super::{CatalogueArgs, CatalogueError, CredentialsError, Tag, credentials, distribution, docker_hub};

/// A repository, and how it is asked.
#[derive(Debug)]
pub(super) struct Source {
    pub(super) repository: Repository,
    pub(super) client: Client,
    pub(super) credentials: Option<PathBuf>,
    /// `https`, or `http` where the operator says so.
    pub(super) scheme: &'static str,
    /// Docker Hub's own API.
    pub(super) docker_hub: String,
}

/// Why a registry gave no list of tags.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// No answer.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// The file of credentials is not what it was.
    #[error(transparent)]
    Credentials(#[from] CredentialsError),
    /// It does not know the repository, or does not say so to everybody.
    #[error("{host} knows no repository {path}, or shows it to nobody without --catalogue-credentials")]
    Unknown {
        /// Who was asked.
        host: String,
        /// For what.
        path: String,
    },
    /// It wants somebody else.
    #[error("{host} refuses to list the tags of {path} (HTTP {status}); check --catalogue-credentials")]
    Refused {
        /// Who was asked.
        host: String,
        /// For what.
        path: String,
        /// What it answered.
        status: u16,
    },
    /// It asks who calls in a way that we do not know.
    #[error("{host} asks for a login, and {problem}")]
    Login {
        /// Who was asked.
        host: String,
        /// What is wrong.
        problem: &'static str,
    },
    /// Another answer.
    #[error("{host} answered with HTTP {status}")]
    Status {
        /// Who was asked.
        host: String,
        /// What it answered.
        status: u16,
    },
    /// An answer that is something else.
    #[error("{host} answered with something that is not {what}")]
    Unreadable {
        /// Who was asked.
        host: String,
        /// What it ought to be.
        what: &'static str,
    },
}

impl Source {
    pub(super) fn new(name: &str, args: &CatalogueArgs) -> Result<Self, CatalogueError> {
        let repository = Repository::parse(name)?;
        if let Some(path) = &args.credentials {
            credentials::read(path, repository.registry.as_str())?;
        }
        Ok(Self {
            repository,
            client: Client::new(args.ca_bundle.as_deref())?,
            credentials: args.credentials.clone(),
            scheme: if args.plain_http { "http" } else { "https" },
            docker_hub: docker_hub::ADDRESS.to_owned(),
        })
    }

    /// The tags.
    pub(super) async fn tags(&self) -> Result<Vec<Tag>, SourceError> {
        // Docker Hub's own API says when a tag was pushed, and knows no users of the registry.
        if self.repository.is_on_docker_hub() && self.credentials.is_none() {
            docker_hub::tags(self).await
        } else {
            distribution::tags(self).await
        }
    }

    /// A tag as the image that a client asks for.
    pub(super) fn image(&self, tag: &Tag) -> String {
        format!("{}:{}", self.repository.name, tag.name)
    }

    /// The body of an answer that is one.
    pub(super) fn body<T: DeserializeOwned>(
        &self,
        uri: &Uri,
        answer: &Answer,
        what: &'static str,
    ) -> Result<T, SourceError> {
        let (host, path) = (host(uri), self.repository.path.clone());
        match answer.status {
            StatusCode::OK => serde_json::from_slice(&answer.body).map_err(|_| SourceError::Unreadable { host, what }),
            StatusCode::NOT_FOUND => Err(SourceError::Unknown { host, path }),
            status @ (StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) => {
                Err(SourceError::Refused { host, path, status: status.as_u16() })
            }
            status => Err(SourceError::Status { host, status: status.as_u16() }),
        }
    }
}
