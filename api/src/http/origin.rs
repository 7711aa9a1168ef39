//! Which pages may use the service from a browser: the `Origin` of a request, and the headers of CORS.

use cofferdam_runtime::http::{Reply, reply};
use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_MAX_AGE,
    ACCESS_CONTROL_REQUEST_HEADERS, ORIGIN, VARY,
};
use http::{HeaderMap, HeaderValue, StatusCode};

/// What browsers may be allowed; the routes decide what there is.
const METHODS: &str = "GET, HEAD, POST, PUT, DELETE, OPTIONS";

/// How long a browser may keep the answer to its preflight, in seconds.
const MAX_AGE: &str = "600";

/// The origins whose pages may use the service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origins {
    /// All.
    Any,
    /// These.
    Listed(Vec<String>),
}

/// What is no list of origins.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no origin; write *, or SCHEME://HOST[:PORT] as browsers send it, in lower case and without a path")]
pub struct OriginError(String);

impl Origins {
    /// Reads `*` or a list with commas.
    ///
    /// # Errors
    /// When one of the list can be no browser's `Origin`: it would never be allowed.
    pub fn parse(text: &str) -> Result<Self, OriginError> {
        let origins: Vec<_> = text.split(',').map(str::trim).filter(|origin| !origin.is_empty()).collect();
        if origins.is_empty() || origins.contains(&"*") {
            return if origins == ["*"] { Ok(Self::Any) } else { Err(OriginError(text.to_owned())) };
        }
        match origins.iter().find(|origin| !is_origin(origin)) {
            Some(origin) => Err(OriginError((*origin).to_owned())),
            None => Ok(Self::Listed(origins.into_iter().map(ToOwned::to_owned).collect())),
        }
    }

    /// Whether the request may be answered. Who sends no origin is no browser's page.
    #[must_use]
    pub fn allow(&self, headers: &HeaderMap) -> bool {
        !headers.contains_key(ORIGIN) || self.allow_page(headers)
    }

    /// Whether the request is an allowed page's: the rule for a WebSocket, which a browser lets any page open.
    #[must_use]
    pub fn allow_page(&self, headers: &HeaderMap) -> bool {
        match self {
            Self::Any => true,
            Self::Listed(origins) => headers
                .get(ORIGIN)
                .is_some_and(|sent| origins.iter().any(|origin| origin.as_bytes() == sent.as_bytes())),
        }
    }

    /// Says in the answer which pages may read it.
    pub fn mark(&self, request: &HeaderMap, reply: &mut Reply) {
        let headers = reply.headers_mut();
        match self {
            Self::Any => {
                headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
            }
            Self::Listed(_) => {
                headers.append(VARY, HeaderValue::from_static("origin"));
                if self.allow_page(request)
                    && let Some(origin) = request.get(ORIGIN)
                {
                    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
                }
            }
        }
    }
}

/// The answer to `OPTIONS`, which a browser asks before it sends what a form could not.
#[must_use]
pub fn preflight(request: &HeaderMap) -> Reply {
    let mut reply = reply::empty(StatusCode::NO_CONTENT);
    let headers = reply.headers_mut();
    headers.insert(ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static(METHODS));
    headers.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static(MAX_AGE));
    if let Some(asked) = request.get(ACCESS_CONTROL_REQUEST_HEADERS) {
        headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, asked.clone());
        headers.insert(VARY, HeaderValue::from_static("access-control-request-headers"));
    }
    reply
}

fn is_origin(text: &str) -> bool {
    let Some((scheme, host)) = text.split_once("://") else { return false };
    let is_of = |text: &str, more: &[u8]| {
        let is_one = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || more.contains(&byte);
        !text.is_empty() && text.bytes().all(is_one)
    };
    is_of(scheme, b"+-.") && is_of(host, b"-._:[]")
}

#[cfg(test)]
mod tests {
    use http::HeaderName;

    use super::*;

    fn from(origin: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(ORIGIN, HeaderValue::from_static(origin))])
    }

    fn marks(origins: &Origins, request: &HeaderMap) -> (Option<String>, Option<String>) {
        let mut reply = reply::empty(StatusCode::OK);
        origins.mark(request, &mut reply);
        let header = |name: HeaderName| reply.headers().get(name).map(|value| value.to_str().unwrap().to_owned());
        (header(ACCESS_CONTROL_ALLOW_ORIGIN), header(VARY))
    }

    #[test]
    fn all_pages_may_unless_some_are_listed() {
        let any = Origins::parse("*").unwrap();
        assert!(any.allow(&from("https://a.example")) && any.allow_page(&HeaderMap::new()));
        assert_eq!(marks(&any, &HeaderMap::new()), (Some("*".to_owned()), None));
    }

    #[test]
    fn a_list_is_enforced_and_only_websockets_need_an_origin() {
        let origins = Origins::parse("https://a.example, http://localhost:3000").unwrap();
        let (listed, other) = (from("http://localhost:3000"), from("https://b.example"));
        assert!(origins.allow(&listed) && origins.allow_page(&listed));
        assert!(!origins.allow(&other) && !origins.allow_page(&other));
        assert!(origins.allow(&HeaderMap::new()) && !origins.allow_page(&HeaderMap::new()));
        let vary = || Some("origin".to_owned());
        assert_eq!(marks(&origins, &listed), (Some("http://localhost:3000".to_owned()), vary()));
        assert_eq!(marks(&origins, &other), (None, vary()));
    }

    #[test]
    fn what_no_browser_sends_as_an_origin_is_refused_at_the_start() {
        for text in [
            "",
            " ,",
            "a.example",
            "https://a.example/",
            "https://A.example",
            "https://*.example",
            "*,https://a",
            "null",
        ] {
            assert!(Origins::parse(text).is_err(), "{text}");
        }
        assert!(Origins::parse("https://[::1]:8443").is_ok());
    }

    #[test]
    fn a_preflight_allows_the_headers_that_are_asked_for() {
        let asked = HeaderMap::from_iter([(
            ACCESS_CONTROL_REQUEST_HEADERS,
            HeaderValue::from_static("content-type,x-telo-accepted-terms"),
        )]);
        let reply = preflight(&asked);
        assert_eq!(reply.status(), StatusCode::NO_CONTENT);
        assert_eq!(reply.headers()[ACCESS_CONTROL_ALLOW_HEADERS], "content-type,x-telo-accepted-terms");
        assert!(reply.headers()[ACCESS_CONTROL_ALLOW_METHODS].to_str().unwrap().contains("DELETE"));
    }
}
