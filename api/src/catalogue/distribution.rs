//! The API that all registries have (OCI distribution specification, "Listing Tags"), with the login of the distribution
//! project: a registry that refuses says where a token is to be had, and for what.

use http::header::{HeaderValue, LINK};
use http::uri::Scheme;
use http::{StatusCode, Uri};
use serde::Deserialize;

use super::challenge::{Challenge, challenges};
use super::requests::{Answer, host, next_page};
use super::source::{Source, SourceError};
use super::{RequestError, Tag, credentials};

/// Tags on a page. Registries give fewer if they like.
const PAGE: usize = 1000;

/// The most names that are read of a repository. Names come in the order of the alphabet, so that the newest version may
/// be the last; only then can the newest be kept.
const MOST_NAMES: usize = 10_000;

/// The most pages that are read, however small they are.
const MOST_PAGES: usize = 100;

/// Docker Hub's registry has another name than its images say.
const DOCKER_HUB: &str = "registry-1.docker.io";

#[derive(Deserialize)]
struct Page {
    /// `null` where there are none.
    tags: Option<Vec<String>>,
}

/// A token stands under either name, or under both.
#[derive(Deserialize)]
struct Token {
    token: Option<String>,
    access_token: Option<String>,
}

/// The tags of a repository. None of them says when it was pushed.
pub(super) async fn tags(source: &Source) -> Result<Vec<Tag>, SourceError> {
    let repository = &source.repository;
    let registry = if repository.is_on_docker_hub() { DOCKER_HUB } else { repository.registry.as_str() };
    let address = format!("{}://{registry}/v2/{}/tags/list?n={PAGE}", source.scheme, repository.path);
    let mut uri: Uri =
        address.parse().map_err(|_| RequestError::Address { host: registry.to_owned(), problem: "it is no URL" })?;
    let mut authorization = None;
    let mut tags = Vec::new();
    for _ in 0..MOST_PAGES {
        let mut answer = source.client.get(&uri, authorization.as_ref()).await?;
        if answer.status == StatusCode::UNAUTHORIZED && authorization.is_none() {
            authorization = Some(log_in(source, &uri, &answer).await?);
            answer = source.client.get(&uri, authorization.as_ref()).await?;
        }
        let page: Page = source.body(&uri, &answer, "a list of tags")?;
        tags.extend(page.tags.unwrap_or_default().into_iter().map(|name| Tag { name, updated: None }));
        let Some(next) = next(&answer).filter(|_| tags.len() < MOST_NAMES) else { break };
        uri = next_page(&uri, &next)?;
    }
    Ok(tags)
}

/// Where the next page is, if there is one (RFC 8288).
fn next(answer: &Answer) -> Option<String> {
    let links = answer.headers.get_all(LINK).iter().filter_map(|value| value.to_str().ok());
    links.flat_map(|links| links.split(',')).find_map(|link| {
        let (target, parameters) = link.trim().strip_prefix('<')?.split_once('>')?;
        let is_next = |parameter: &str| matches!(parameter.trim(), "rel=\"next\"" | "rel=next");
        parameters.split(';').any(is_next).then(|| target.to_owned())
    })
}

/// The `Authorization` that the registry asks for. The password goes to the registry, or to whom it names, which is the
/// login of all registries; so neither is asked without TLS unless the operator says so.
pub(super) async fn log_in(source: &Source, uri: &Uri, answer: &Answer) -> Result<HeaderValue, SourceError> {
    let unable = |problem| SourceError::Login { host: host(uri), problem };
    let user = source.credentials.as_deref().map(|path| credentials::read(path, source.repository.registry.as_str()));
    let user = user.transpose()?;
    let offered = challenges(&answer.headers);
    if let Some(bearer) = offered.iter().find(|challenge| challenge.scheme == "bearer") {
        return token(source, uri, bearer, user.as_ref()).await;
    }
    if !offered.iter().any(|challenge| challenge.scheme == "basic") {
        return Err(unable("we know none of its ways"));
    }
    user.ok_or_else(|| unable("there is nobody to log in as; see --catalogue-credentials"))
}

async fn token(
    source: &Source,
    uri: &Uri,
    bearer: &Challenge,
    user: Option<&HeaderValue>,
) -> Result<HeaderValue, SourceError> {
    let unable = |problem| SourceError::Login { host: host(uri), problem };
    let realm = bearer.parameters.get("realm").ok_or_else(|| unable("does not say where"))?;
    let scope = format!("repository:{}:pull", source.repository.path);
    let query = {
        // It may not be sent to another thread, and so must not be here while somebody waits.
        let mut query = form_urlencoded::Serializer::new(String::new());
        if let Some(service) = bearer.parameters.get("service") {
            query.append_pair("service", service);
        }
        query.append_pair("scope", bearer.parameters.get("scope").unwrap_or(&scope)).finish()
    };
    let separator = if realm.contains('?') { '&' } else { '?' };
    let at: Uri = format!("{realm}{separator}{query}").parse().map_err(|_| unable("names no URL for it"))?;
    if at.authority().is_none() || at.scheme() != Some(&Scheme::HTTPS) && source.scheme != "http" {
        return Err(unable("names a place for it that is not https"));
    }
    let answer = source.client.get(&at, user).await?;
    let Token { token, access_token } = source.body(&at, &answer, "a token")?;
    let header = token.or(access_token).and_then(|token| HeaderValue::try_from(format!("Bearer {token}")).ok());
    let mut header = header.ok_or_else(|| SourceError::Unreadable { host: host(&at), what: "a token" })?;
    header.set_sensitive(true);
    Ok(header)
}
