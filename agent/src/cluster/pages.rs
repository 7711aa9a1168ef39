//! A list, page by page: never more of it is in memory than a page.

use super::{Cluster, Failed, Page, Resource, Selection};

/// Objects of one page: one may have more than a megabyte, and a page is in memory three times while it is read.
const OBJECTS: u32 = 10;

/// The same where of each object its metadata alone is sent, which may have half a megabyte.
const METADATA: u32 = 50;

/// The pages of a list.
#[derive(Debug)]
pub struct Pages<'a> {
    cluster: &'a Cluster,
    resource: &'a Resource,
    selection: &'a Selection,
    from: Option<String>,
    is_over: bool,
}

impl Cluster {
    /// The objects of a kind; nothing is asked for yet.
    #[must_use]
    pub fn pages<'a>(&'a self, resource: &'a Resource, selection: &'a Selection) -> Pages<'a> {
        Pages { cluster: self, resource, selection, from: None, is_over: false }
    }
}

impl Pages<'_> {
    /// The next page, which may be empty; none after the last.
    ///
    /// # Errors
    /// Of class [`Class::Expired`](super::Class::Expired) where the pages before are too old; the list then begins anew.
    pub async fn next(&mut self) -> Result<Option<Page>, Failed> {
        if self.is_over {
            return Ok(None);
        }
        let size = if self.resource.is_metadata() { METADATA } else { OBJECTS };
        let mut page = self.cluster.list(self.resource, self.selection, size, self.from.as_deref()).await?;
        self.from = page.next.take();
        self.is_over = self.from.is_none();
        Ok(Some(page))
    }
}
