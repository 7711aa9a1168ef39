//! A list, page by page: never more of it is in memory than a page.

use std::time::Duration;

use kube::core::params::ListParams;
use kube::core::{ListMeta, Request};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{Class, Cluster, Failed, Resource, Selection};
use crate::{Backoff, Bounded};

/// Objects of one page: one may have more than a megabyte, and a page is in memory three times while it is read.
const OBJECTS_PER_PAGE: u32 = 10;

/// The same where of each object little is kept, so that the text is all there is: of 25 of the largest a hundred megabytes,
/// which fit into an agent.
const BOUNDED_PER_PAGE: u32 = 25;

/// The same where of each object its metadata alone is sent, which may have half a megabyte.
const METADATA_PER_PAGE: u32 = 50;

/// No page is larger than this, whatever happened: a list that cannot end is no better than one that is too large.
const MOST_PER_PAGE: u32 = 500;

/// A page after the first is asked for again so many times, with such pauses: together shorter than a token holds.
const RETRIES: u32 = 4;
const SHORTEST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(4);

/// The pages of a list.
#[derive(Debug)]
pub struct Pages<'a> {
    cluster: &'a Cluster,
    resource: &'a Resource,
    namespace: Option<&'a str>,
    params: ListParams,
    is_over: bool,
}

/// One of them.
#[derive(Debug)]
pub struct Page<T = Value> {
    /// The objects; without `apiVersion` and `kind`, which a list says once.
    pub items: Vec<T>,
    /// From where to watch.
    pub resource_version: String,
}

/// One answer to a list.
#[derive(Deserialize)]
struct List<T> {
    #[serde(default)]
    metadata: ListMeta,
    items: Option<Vec<T>>,
}

impl Cluster {
    /// The objects of a kind; nothing is asked for yet.
    #[must_use]
    pub fn pages<'a>(&'a self, resource: &'a Resource, selection: &'a Selection) -> Pages<'a> {
        let limit = if resource.is_metadata() {
            METADATA_PER_PAGE
        } else if resource.is_bounded() {
            BOUNDED_PER_PAGE
        } else {
            OBJECTS_PER_PAGE
        };
        let mut params = ListParams::default().limit(limit);
        if !selection.labels.is_empty() {
            params = params.labels(&selection.labels);
        }
        if !selection.fields.is_empty() {
            params = params.fields(&selection.fields);
        }
        Pages { cluster: self, resource, namespace: selection.namespace.as_deref(), params, is_over: false }
    }
}

impl Pages<'_> {
    /// Pages for whoever keeps little of each object, see [`next_of`](Self::next_of).
    #[must_use]
    pub fn bounded(mut self) -> Self {
        self.params.limit = Some(BOUNDED_PER_PAGE);
        self
    }

    /// Pages of one object, for whoever asks whether there is any.
    #[must_use]
    pub fn of_one(mut self) -> Self {
        self.params.limit = Some(1);
        self
    }

    /// Pages so many times as large, up to a largest.
    #[must_use]
    pub fn larger(mut self, times: u32) -> Self {
        self.params.limit = self.params.limit.map(|limit| limit.saturating_mul(times).min(MOST_PER_PAGE));
        self
    }

    /// The next page, which may be empty; none after the last.
    ///
    /// # Errors
    /// Of class [`Class::Expired`] where the pages before are too old, which is counted: nobody has read the whole list then,
    /// and it has to begin anew.
    pub async fn next(&mut self) -> Result<Option<Page>, Failed> {
        if !self.resource.is_bounded() {
            return self.next_of().await;
        }
        let page = self.next_of::<Bounded>().await?;
        Ok(page.map(|Page { items, resource_version }| {
            let items = items.into_iter().map(|Bounded(object)| object).collect();
            Page { items, resource_version }
        }))
    }

    /// The same, for whoever reads each object in a way of their own.
    ///
    /// # Errors
    /// As [`next`](Self::next).
    pub async fn next_of<T: DeserializeOwned>(&mut self) -> Result<Option<Page<T>>, Failed> {
        if self.is_over {
            return Ok(None);
        }
        let List { metadata, items } = self.answer::<List<T>>().await.inspect_err(|failed| {
            if failed.class == Class::Expired {
                self.cluster.list_expired();
            }
        })?;
        self.params.continue_token = metadata.continue_.filter(|token| !token.is_empty());
        self.is_over = self.params.continue_token.is_none();
        let resource_version = metadata.resource_version.unwrap_or_default();
        Ok(Some(Page { items: items.unwrap_or_default(), resource_version }))
    }

    /// The answer to the next question. Whoever gets no first page has lost nothing, and begins anew by themselves; with a later
    /// one all that was read before it would be lost, so it is asked for again while that may help.
    async fn answer<T: DeserializeOwned>(&self) -> Result<T, Failed> {
        let mut failures = Backoff::new(SHORTEST_PAUSE, LONGEST_PAUSE);
        let is_first = self.params.continue_token.is_none();
        loop {
            let request = Request::new(self.resource.path(self.namespace));
            let request = if self.resource.is_metadata() {
                request.list_metadata(&self.params)
            } else {
                request.list(&self.params)
            };
            match self.cluster.request(request).await {
                Err(failed) if !is_first && failed.class.passes() && failures.failures() < RETRIES => {
                    tokio::time::sleep(failures.failed()).await;
                }
                answer => return answer,
            }
        }
    }
}
