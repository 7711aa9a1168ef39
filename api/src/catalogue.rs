//! Images that a client may pick: the default one, and tags of one repository.
//!
//! ```text
//!              every hour                  pure
//!  registry ──▶ source ──▶ tags ──▶ filter, newest first ──▶ Choices ──▶ the list, and what is accepted
//! ```
//!
//! * [`Choices`]: what is shown and what is accepted, of one time; both come from here, so that what is shown is accepted.
//! * [`Filter`] and [`Tag`]: which tags, in which order.
//! * `docker_hub` and `distribution`: the two ways in which registries tell their tags.
//!
//! A registry that does not answer takes nothing away: the last good list stays, and before the first one there is the
//! default image.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use cofferdam_runtime::errors::with_causes;

mod args;
mod challenge;
mod choices;
mod credentials;
mod distribution;
mod docker_hub;
mod filter;
mod repository;
mod requests;
mod source;
mod tag;

pub use args::CatalogueArgs;
pub use choices::{Choices, NotOffered};
pub use credentials::CredentialsError;
pub use filter::Filter;
pub use repository::RepositoryError;
pub use requests::{CaBundleError, RequestError};
pub use source::SourceError;
pub use tag::Tag;

use source::Source;

/// How long one look at the registry may take as a whole: the program waits for the first one.
const REFRESH: Duration = Duration::from_secs(30);

/// The most tags that are kept, the newest of those that may be picked.
const MOST: usize = 200;

/// Images that may be picked, kept up to date.
#[derive(Debug)]
pub struct Catalogue {
    default_image: String,
    /// Where tags come from; none where the image is fixed.
    source: Option<Source>,
    filter: Filter,
    limit: usize,
    refresh_interval: Duration,
    choices: ArcSwap<Choices>,
}

/// Why there can be no catalogue. Each is a mistake of the command line.
#[derive(Debug, thiserror::Error)]
pub enum CatalogueError {
    /// No repository that has tags.
    #[error(transparent)]
    Repository(#[from] RepositoryError),
    /// Credentials that cannot be read.
    #[error(transparent)]
    Credentials(#[from] CredentialsError),
    /// Authorities that cannot be trusted.
    #[error(transparent)]
    CaBundle(#[from] CaBundleError),
}

/// Why the list is as old as it is.
#[derive(Debug, thiserror::Error)]
pub enum RefreshError {
    /// The registry gave none.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// It takes its time.
    #[error("listing the tags took longer than {} s", REFRESH.as_secs())]
    TimedOut,
}

impl Catalogue {
    /// A catalogue that offers the default image and has asked nobody yet.
    pub fn new(args: &CatalogueArgs) -> Result<Self, CatalogueError> {
        let source = args.repository.as_deref().filter(|name| !name.is_empty()).map(|name| Source::new(name, args));
        let source = source.transpose()?;
        let choices = match source {
            Some(_) => Choices::of(&args.default_image, Vec::new(), args.limit),
            None => Choices::fixed(&args.default_image),
        };
        Ok(Self {
            default_image: args.default_image.clone(),
            source,
            filter: args.filter(),
            limit: args.limit,
            refresh_interval: args.refresh_interval,
            choices: ArcSwap::from_pointee(choices),
        })
    }

    /// What may be picked now.
    #[must_use]
    pub fn choices(&self) -> Arc<Choices> {
        self.choices.load_full()
    }

    /// Asks the registry once. Where that fails, what may be picked stays as it is.
    pub async fn refresh(&self) -> Result<(), RefreshError> {
        let Some(source) = &self.source else { return Ok(()) };
        let tags = tokio::time::timeout(REFRESH, source.tags()).await.map_err(|_| RefreshError::TimedOut)??;
        let images = self.filter.pick(tags).into_iter().take(MOST).map(|tag| source.image(&tag)).collect();
        self.choices.store(Arc::new(Choices::of(&self.default_image, images, self.limit)));
        Ok(())
    }

    /// [`Catalogue::refresh`], where a failure is for the log alone: no session waits for a registry.
    pub async fn refresh_or_log(&self) {
        match self.refresh().await {
            Ok(()) if self.source.is_some() => {
                tracing::debug!(images = self.choices().images().len(), "the images that may be picked are up to date");
            }
            Ok(()) => {}
            Err(error) => tracing::warn!(
                error = with_causes(&error),
                images = self.choices().images().len(),
                "cannot list the images that may be picked; what was known stays",
            ),
        }
    }

    /// Refreshes for ever, first after one interval. Ends only by being dropped.
    pub async fn keep(&self) {
        loop {
            tokio::time::sleep(self.refresh_interval).await;
            self.refresh_or_log().await;
        }
    }
}

#[cfg(test)]
mod tests;
