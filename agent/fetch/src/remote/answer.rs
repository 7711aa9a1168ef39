//! Answers that are not the body.

use http::HeaderMap;
use http::header::LOCATION;

use super::address::Address;
use super::connect::Trouble;
use crate::failure::Failure;

/// What an attempt came to, if not to an answer to read from.
pub(crate) enum Attempt {
    Trouble(Trouble),
    Changed,
}

impl From<Trouble> for Attempt {
    fn from(trouble: Trouble) -> Self {
        Self::Trouble(trouble)
    }
}

impl From<Failure> for Attempt {
    fn from(failure: Failure) -> Self {
        Self::Trouble(failure.into())
    }
}

pub(crate) fn refused(address: &Address, what: &str) -> Attempt {
    Failure::Refused(format!("{} does not give the body: {what}", address.origin())).into()
}

/// Where a redirect leads. Who asked by https is not led away from it.
pub(crate) fn follow(from: &Address, headers: &HeaderMap) -> Result<Address, Attempt> {
    let location = headers.get(LOCATION).and_then(|location| location.to_str().ok());
    let to = location.ok_or_else(|| refused(from, "a redirect to nowhere"))?;
    let to = from.join(to).map_err(|_| refused(from, "a redirect to what is no URL of http or https"))?;
    if from.is_https && !to.is_https {
        return Err(refused(from, "a redirect from https to http"));
    }
    Ok(to)
}

/// What people should look at.
pub(crate) fn meaning(status: u16) -> &'static str {
    match status {
        401 => "which is how a missing or unknown token is answered; check cofferdam.dev/body-token-secret",
        403 => "so this pod may not have it; check its token, and that the URL has not expired",
        404 | 410 => "so it is not there (any more); a body of single use belongs to the first pod that asked for it",
        _ => "which is neither the body nor a failure that passes",
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn a_redirect_leads_on_but_not_away_from_https() {
        let from = Address::parse("https://a.example/b").unwrap();
        let to = |location: &'static str| {
            let headers = HeaderMap::from_iter([(LOCATION, HeaderValue::from_static(location))]);
            follow(&from, &headers).ok().map(|to| to.origin())
        };
        assert_eq!(to("https://c.example/").as_deref(), Some("https://c.example"));
        assert_eq!(to("http://a.example/"), None);
        assert_eq!(to("file:///etc/passwd"), None);
        assert!(follow(&from, &HeaderMap::new()).is_err());
    }
}
