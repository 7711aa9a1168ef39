//! URLs: where to connect, and what to ask for there.

use std::fmt;

use http::Uri;

/// Why a text is no URL to fetch from. None repeats it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum AddressError {
    #[error("is no URL")]
    NoUrl,
    #[error("must begin with http:// or https:// and a host")]
    Scheme,
    #[error("holds a user or a password; give a token by --token-file")]
    UserInfo,
}

/// The longest name of a host, in bytes (RFC 1035): it is repeated in the log and in reasons.
const LONGEST_HOST: usize = 253;

/// A URL of http or https.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Address {
    pub(crate) is_https: bool,
    /// A name or an address, the latter without brackets.
    pub(crate) host: String,
    pub(crate) port: u16,
    /// Host and port as they stand in the URL.
    pub(crate) authority: String,
    /// Path and query.
    pub(crate) target: String,
}

impl Address {
    pub(crate) fn parse(url: &str) -> Result<Self, AddressError> {
        let uri: Uri = url.parse().map_err(|_| AddressError::NoUrl)?;
        let is_https = match uri.scheme_str() {
            Some("http") => false,
            Some("https") => true,
            _ => return Err(AddressError::Scheme),
        };
        let authority = uri.authority().ok_or(AddressError::Scheme)?;
        if authority.as_str().contains('@') {
            return Err(AddressError::UserInfo);
        }
        let host = authority.host().trim_start_matches('[').trim_end_matches(']').to_ascii_lowercase();
        // `host:` and `host:99999` have a port that is none.
        let ends_in_port = authority.as_str().len() > authority.host().len();
        if host.is_empty() || host.len() > LONGEST_HOST || (ends_in_port && authority.port_u16().is_none()) {
            return Err(AddressError::NoUrl);
        }
        let target = match uri.path_and_query() {
            Some(target) if target.as_str().starts_with('/') => target.as_str().to_owned(),
            // `http://host?query`
            Some(target) => format!("/{}", target.as_str()),
            None => "/".to_owned(),
        };
        let port = authority.port_u16().unwrap_or(if is_https { 443 } else { 80 });
        Ok(Self { is_https, host, port, authority: authority.as_str().to_ascii_lowercase(), target })
    }

    /// Where a `Location` in an answer from here leads (RFC 3986, section 5).
    pub(crate) fn join(&self, location: &str) -> Result<Self, AddressError> {
        let scheme = if self.is_https { "https" } else { "http" };
        let end_of_scheme = location.find("://").filter(|end| !location[..*end].contains(['/', '?', '#']));
        if end_of_scheme.is_some() {
            return Self::parse(location);
        }
        if location.starts_with("//") {
            return Self::parse(&format!("{scheme}:{location}"));
        }
        let path = self.target.split('?').next().unwrap_or("/");
        let target = match location.chars().next() {
            None | Some('#') => self.target.clone(),
            Some('/') => location.to_owned(),
            Some('?') => format!("{path}{location}"),
            Some(_) => format!("{}{location}", &path[..=path.rfind('/').unwrap_or(0)]),
        };
        Self::parse(&format!("{scheme}://{}{}", self.authority, without_dots(&target)))
    }

    /// Scheme, host and port: all of a URL that is ever repeated to people.
    pub(crate) fn origin(&self) -> String {
        format!("{}://{}", if self.is_https { "https" } else { "http" }, self.authority)
    }

    pub(crate) fn is_same_origin(&self, other: &Self) -> bool {
        (self.is_https, &self.host, self.port) == (other.is_https, &other.host, other.port)
    }
}

// Path and query may be secret.
impl fmt::Debug for Address {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Address({})", self.origin())
    }
}

/// The target without `.` and `..` in its path.
fn without_dots(target: &str) -> String {
    let end = target.find(['?', '#']).unwrap_or(target.len());
    let (path, rest) = target.split_at(end);
    let mut kept: Vec<&str> = Vec::new();
    let segments: Vec<&str> = path.split('/').skip(1).collect();
    for (index, segment) in segments.iter().enumerate() {
        let is_last = index + 1 == segments.len();
        match *segment {
            ".." => {
                kept.pop();
                if is_last {
                    kept.push("");
                }
            }
            "." if is_last => kept.push(""),
            "." => {}
            name => kept.push(name),
        }
    }
    format!("/{}{rest}", kept.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_taken_apart() {
        for (url, https, host, port, target) in [
            ("http://a.example", false, "a.example", 80, "/"),
            ("https://A.example:8443/b/c?d=e#f", true, "a.example", 8443, "/b/c?d=e"),
            ("http://[fd00::1]:8063/x", false, "fd00::1", 8063, "/x"),
            ("http://10.0.0.1?x=y", false, "10.0.0.1", 80, "/?x=y"),
        ] {
            let address = Address::parse(url).unwrap();
            assert_eq!((address.is_https, &*address.host, address.port), (https, host, port), "{url}");
            assert_eq!(address.target, target, "{url}");
        }
    }

    #[test]
    fn what_is_no_url_to_fetch_from_is_refused() {
        for url in
            ["", "a", "/a", "ftp://a/b", "file:///etc/passwd", "http://", "http:///a", "http://a:b/", "http://a b/"]
        {
            assert!(Address::parse(url).is_err(), "{url}");
        }
        assert_eq!(Address::parse("http://u:p@a/"), Err(AddressError::UserInfo));
        let host = "a".repeat(253);
        assert!(Address::parse(&format!("http://{host}/")).is_ok());
        assert_eq!(Address::parse(&format!("http://a{host}/")), Err(AddressError::NoUrl));
    }

    #[test]
    fn a_location_is_read_from_where_it_stands() {
        let from = Address::parse("https://a.example:1/b/c?d").unwrap();
        for (location, url) in [
            ("http://x.example/y", "http://x.example/y"),
            ("//x.example/y", "https://x.example/y"),
            ("/y?z=http://q/", "https://a.example:1/y?z=http://q/"),
            ("y", "https://a.example:1/b/y"),
            ("../../y/./z", "https://a.example:1/y/z"),
            ("..", "https://a.example:1/"),
            ("?y", "https://a.example:1/b/c?y"),
            ("", "https://a.example:1/b/c?d"),
        ] {
            assert_eq!(from.join(location).unwrap().target, Address::parse(url).unwrap().target, "{location}");
            assert_eq!(from.join(location).unwrap(), Address::parse(url).unwrap(), "{location}");
        }
        assert_eq!(from.join("ftp://a.example/"), Err(AddressError::Scheme));
    }

    #[test]
    fn an_origin_is_scheme_host_and_port_and_hides_the_rest() {
        let url = |url| Address::parse(url).unwrap();
        assert!(url("http://a/b").is_same_origin(&url("http://A:80/c")));
        for other in ["https://a/b", "http://a:8080/b", "http://b.a/b"] {
            assert!(!url("http://a/b").is_same_origin(&url(other)), "{other}");
        }
        assert_eq!(format!("{:?}", url("https://a/secret?secret")), "Address(https://a)");
    }
}
