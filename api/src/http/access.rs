//! Who may call.

use std::fmt;
use std::sync::Arc;

use arc_swap::ArcSwap;
use http::HeaderMap;
use http::header::AUTHORIZATION;

use super::refusal::Refusal;
use super::reviewer::Reviewer;
use super::tokens::Tokens;
use crate::cluster::PodAccess;

/// Who may call.
#[derive(Clone)]
pub enum Access {
    /// Whoever sends one of these tokens, and may do everything.
    Token(Arc<ArcSwap<Tokens>>),
    /// Whoever the cluster knows, and may do what it may do to pods there.
    Review(Arc<Reviewer>),
    /// Everybody who reaches the port.
    Everybody,
}

/// What a caller does, as a right to pods of the namespace of sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Act {
    /// Makes a session, or asks whether there could be one.
    Create,
    /// Reads what there is.
    Read,
    /// Reads a program's terminal, and types into it.
    Attach,
    /// Changes what a session has.
    Change,
    /// Ends a session.
    Delete,
}

impl Act {
    /// The right that it takes.
    #[must_use]
    pub fn right(self) -> PodAccess {
        let (verb, subresource) = match self {
            Self::Create => ("create", ""),
            Self::Read => ("get", ""),
            Self::Attach => ("create", "attach"),
            Self::Change => ("update", ""),
            Self::Delete => ("delete", ""),
        };
        PodAccess { verb, subresource }
    }
}

impl Access {
    /// Whether the caller may do that.
    ///
    /// # Errors
    /// When it has to say who it is, and does not; when it may not; or when nobody can say it now.
    pub async fn caller(&self, headers: &HeaderMap, act: Act) -> Result<(), Refusal> {
        let sent = || bearer(headers).ok_or_else(Refusal::unauthenticated);
        match self {
            Self::Everybody => Ok(()),
            Self::Token(tokens) if tokens.load().accept(sent()?) => Ok(()),
            Self::Token(_) => Err(Refusal::unauthenticated()),
            Self::Review(reviewer) => reviewer.review(sent()?, act).await,
        }
    }

    /// Whether somebody is asked who it is: a session then has a token of its own, which opens its streams.
    #[must_use]
    pub fn asks(&self) -> bool {
        !matches!(self, Self::Everybody)
    }
}

/// It holds secrets.
impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Token(_) => "Token",
            Self::Review(_) => "Review",
            Self::Everybody => "Everybody",
        })
    }
}

/// The token of `Authorization: Bearer …`. Of two such headers none counts: what stands before us may have looked at the other.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let mut sent = headers.get_all(AUTHORIZATION).iter();
    let (only, None) = (sent.next()?, sent.next()) else { return None };
    let (scheme, token) = only.to_str().ok()?.split_once(' ')?;
    let token = token.trim_matches(' ');
    let is_token = !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_graphic());
    (scheme.eq_ignore_ascii_case("bearer") && is_token).then_some(token)
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    const TOKEN: &str = "token-0123456789-0123456789";

    fn access() -> Access {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        std::fs::write(&path, TOKEN).unwrap();
        Access::Token(Arc::new(ArcSwap::from_pointee(Tokens::load(&path).unwrap())))
    }

    fn sends(values: &[&str]) -> HeaderMap {
        values.iter().map(|value| (AUTHORIZATION, HeaderValue::from_str(value).unwrap())).collect()
    }

    #[tokio::test]
    async fn a_caller_sends_a_bearer_token() {
        for good in [format!("Bearer {TOKEN}"), format!("bearer  {TOKEN}"), format!("BEARER {TOKEN} ")] {
            assert_eq!(access().caller(&sends(&[&good]), Act::Create).await, Ok(()), "{good}");
        }
        for bad in [
            TOKEN.to_owned(),
            format!("Basic {TOKEN}"),
            format!("Bearer {TOKEN}x"),
            format!("Bearer {TOKEN} {TOKEN}"),
            format!("Bearer\t{TOKEN}"),
            format!("Bearer {TOKEN}, Bearer {TOKEN}"),
            "Bearer ".to_owned(),
            "Bearer".to_owned(),
        ] {
            let refusal = access().caller(&sends(&[&bad]), Act::Read).await.unwrap_err();
            assert_eq!(refusal, Refusal::unauthenticated(), "{bad}");
        }
        assert_eq!(access().caller(&HeaderMap::new(), Act::Read).await, Err(Refusal::unauthenticated()));
        assert_eq!(Access::Everybody.caller(&HeaderMap::new(), Act::Read).await, Ok(()));
    }

    #[test]
    fn of_two_tokens_none_counts() {
        let good = format!("Bearer {TOKEN}");
        assert_eq!(bearer(&sends(&[&good])), Some(TOKEN));
        for two in [[good.as_str(), "Bearer other"], ["Bearer other", &good], [&good, &good], ["Basic eA==", &good]] {
            let mut headers = HeaderMap::new();
            for value in two {
                headers.append(AUTHORIZATION, HeaderValue::from_str(value).unwrap());
            }
            assert_eq!(bearer(&headers), None, "{two:?}");
        }
    }
}
