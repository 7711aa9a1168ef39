//! Docker Hub's own API, which says when a tag was pushed (Docker Hub API, `v2/repositories`).

use http::Uri;
use serde::Deserialize;

use super::requests::next_page;
use super::source::{Source, SourceError};
use super::{MOST, RequestError, Tag};

/// Where it is.
pub(super) const ADDRESS: &str = "https://hub.docker.com";

/// Tags on a page: the most that it gives.
const PAGE: usize = 100;

#[derive(Deserialize)]
struct Page {
    next: Option<String>,
    results: Vec<Entry>,
}

#[derive(Deserialize)]
struct Entry {
    name: String,
    last_updated: Option<String>,
}

/// Its tags, of which it tells the latest first, so that the rest need not be asked for.
pub(super) async fn tags(source: &Source) -> Result<Vec<Tag>, SourceError> {
    let address = format!("{}/v2/repositories/{}/tags?page_size={PAGE}", source.docker_hub, source.repository.path);
    let mut uri: Uri = address
        .parse()
        .map_err(|_| RequestError::Address { host: source.docker_hub.clone(), problem: "it is no URL" })?;
    let mut tags = Vec::new();
    // However small the pages are: as many as would fill the list, one by one, are enough.
    for _ in 0..MOST {
        let answer = source.client.get(&uri, None).await?;
        let page: Page = source.body(&uri, &answer, "a page of tags")?;
        tags.extend(page.results.into_iter().map(|entry| Tag { name: entry.name, updated: entry.last_updated }));
        let Some(next) = page.next.filter(|_| tags.len() < MOST) else { break };
        uri = next_page(&uri, &next)?;
    }
    Ok(tags)
}
