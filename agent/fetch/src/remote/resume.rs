//! Going on where a download stopped: what is asked for (RFC 9110, sections 13.1.5 and 14), and whether the answer is it.

use http::HeaderMap;
use http::HeaderValue;
use http::header::{CONTENT_RANGE, ETAG, IF_RANGE, LAST_MODIFIED, RANGE};
use http::request::Builder;

/// What tells one version of a body from another, from the answer that began the download.
pub(crate) fn validator(headers: &HeaderMap) -> Option<HeaderValue> {
    // A weak one does not promise the same bytes.
    let strong = headers.get(ETAG).filter(|tag| tag.as_bytes().starts_with(b"\""));
    strong.or_else(|| headers.get(LAST_MODIFIED)).cloned()
}

/// Asks for what comes after `received` bytes, or for everything if it has changed since.
pub(crate) fn ask(request: Builder, received: u64, validator: Option<&HeaderValue>) -> Builder {
    let request = request.header(RANGE, format!("bytes={received}-"));
    match validator {
        Some(validator) => request.header(IF_RANGE, validator),
        None => request,
    }
}

/// How long the whole body is, as an answer 206 says.
pub(crate) fn total(headers: &HeaderMap) -> Option<u64> {
    headers.get(CONTENT_RANGE)?.to_str().ok()?.rsplit_once('/')?.1.parse().ok()
}

/// Whether an answer 206 goes on after `received` bytes of the same version.
pub(crate) fn goes_on(headers: &HeaderMap, received: u64, begun_with: Option<&HeaderValue>) -> bool {
    let range = headers.get(CONTENT_RANGE).and_then(|range| range.to_str().ok());
    let start = range.and_then(|range| range.strip_prefix("bytes ")?.split('-').next()?.parse::<u64>().ok());
    let now = validator(headers);
    start == Some(received) && (now.is_none() || begun_with.is_none() || now.as_ref() == begun_with)
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::Request;

    fn headers(lines: &[(&'static str, &'static str)]) -> HeaderMap {
        lines.iter().map(|(name, value)| (name.parse().unwrap(), HeaderValue::from_static(value))).collect()
    }

    #[test]
    fn a_version_is_told_by_a_strong_tag_or_else_by_its_date() {
        let date = ("last-modified", "Sun, 06 Nov 1994 08:49:37 GMT");
        assert_eq!(validator(&headers(&[("etag", "\"a\""), date])).unwrap(), "\"a\"");
        assert_eq!(validator(&headers(&[("etag", "W/\"a\""), date])).unwrap(), date.1);
        assert_eq!(validator(&headers(&[("etag", "W/\"a\"")])), None);
    }

    #[test]
    fn the_rest_is_asked_for_under_the_condition_that_nothing_changed() {
        let tag = HeaderValue::from_static("\"a\"");
        let request = ask(Request::builder(), 7, Some(&tag)).body(()).unwrap();
        assert_eq!((&request.headers()["range"], &request.headers()["if-range"]), (&"bytes=7-".parse().unwrap(), &tag));
        assert!(!ask(Request::builder(), 7, None).body(()).unwrap().headers().contains_key("if-range"));
    }

    #[test]
    fn the_whole_is_as_long_as_a_part_says() {
        for (range, expected) in [("bytes 7-9/10", Some(10)), ("bytes 7-9/*", None), ("bytes 7-9", None), ("/x", None)]
        {
            assert_eq!(total(&headers(&[("content-range", range)])), expected, "{range}");
        }
        assert_eq!(total(&headers(&[])), None);
    }

    #[test]
    fn only_what_begins_where_the_last_one_ended_goes_on() {
        let tag = HeaderValue::from_static("\"a\"");
        for (lines, expected) in [
            (&[("content-range", "bytes 7-9/10")] as &[_], true),
            (&[("content-range", "bytes 7-9/*"), ("etag", "\"a\"")], true),
            (&[("content-range", "bytes 7-9/10"), ("etag", "\"b\"")], false),
            (&[("content-range", "bytes 0-9/10")], false),
            (&[("content-range", "octets 7-9/10")], false),
            (&[("content-range", "bytes */10")], false),
            (&[], false),
        ] {
            assert_eq!(goes_on(&headers(lines), 7, Some(&tag)), expected, "{lines:?}");
        }
    }
}
