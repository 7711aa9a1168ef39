//! A list, page by page: never more of it is in memory than a page.

use kube::core::params::ListParams;
use kube::core::{ListMeta, Request};
use serde::Deserialize;
use serde_json::Value;

use super::{Cluster, Failed, Resource, Selection};
use crate::objects::Bounded;

/// Objects of one page: one may have more than a megabyte, and a page is in memory three times while it is read.
const OBJECTS: u32 = 10;

/// The same where of each object its metadata alone is sent, which may have half a megabyte.
const METADATA: u32 = 50;

/// The pages of a list.
#[derive(Debug)]
pub(crate) struct Pages<'a> {
    cluster: &'a Cluster,
    resource: &'a Resource,
    namespace: Option<&'a str>,
    params: ListParams,
    is_over: bool,
}

/// One of them.
#[derive(Debug)]
pub(crate) struct Page {
    /// The objects; without `apiVersion` and `kind`, which a list says once.
    pub items: Vec<Value>,
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
    pub(crate) fn pages<'a>(&'a self, resource: &'a Resource, selection: &'a Selection) -> Pages<'a> {
        let mut params = ListParams::default().limit(if resource.is_metadata() { METADATA } else { OBJECTS });
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
    /// The next page, which may be empty; none after the last.
    ///
    /// # Errors
    /// Of class [`Class::Expired`](super::Class::Expired) where the pages before are too old; the list then begins anew.
    pub(crate) async fn next(&mut self) -> Result<Option<Page>, Failed> {
        if self.is_over {
            return Ok(None);
        }
        let (cluster, params) = (self.cluster, &self.params);
        let request = Request::new(self.resource.path(self.namespace));
        let request = if self.resource.is_metadata() { request.list_metadata(params) } else { request.list(params) };
        let (metadata, items) = if self.resource.is_bounded() {
            let List { metadata, items } = cluster.request::<List<Bounded>>(request).await?;
            (metadata, items.map(|items| items.into_iter().map(|Bounded(object)| object).collect()))
        } else {
            let List { metadata, items } = cluster.request(request).await?;
            (metadata, items)
        };
        self.params.continue_token = metadata.continue_.filter(|token| !token.is_empty());
        self.is_over = self.params.continue_token.is_none();
        let resource_version = metadata.resource_version.unwrap_or_default();
        Ok(Some(Page { items: items.unwrap_or_default(), resource_version }))
    }
}
