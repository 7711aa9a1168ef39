//! Who may call.

use std::fmt;
use std::sync::Arc;

use arc_swap::ArcSwap;
use cofferdam_model::session::SessionId;
use http::HeaderMap;
use http::header::AUTHORIZATION;

use super::refusal::Refusal;
use super::tokens::Tokens;

/// Who may call.
#[derive(Clone)]
pub enum Access {
    /// Whoever sends one of these tokens.
    Token(Arc<ArcSwap<Tokens>>),
    /// Everybody who reaches the port.
    Everybody,
}

impl Access {
    /// Whether the caller may call.
    ///
    /// # Errors
    /// When it has to say who it is, and does not.
    pub fn caller(&self, headers: &HeaderMap) -> Result<(), Refusal> {
        match self {
            Self::Everybody => Ok(()),
            Self::Token(tokens) => {
                let is_one = bearer(headers).is_some_and(|sent| tokens.load().accept(sent));
                if is_one { Ok(()) } else { Err(Refusal::unauthenticated()) }
            }
        }
    }

    /// Whether the caller may read a session's streams. A browser can send no header there, so what it was given when the
    /// session was made counts as well; the caller's own token never does: a URL is written to logs everywhere.
    ///
    /// # Errors
    /// As [`caller`](Self::caller).
    pub fn reader(&self, headers: &HeaderMap, sent: Option<&str>, session: &SessionId) -> Result<(), Refusal> {
        let is_given = |sent| match self {
            Self::Everybody => true,
            Self::Token(tokens) => tokens.load().accept_stream(sent, session),
        };
        if sent.is_some_and(is_given) { Ok(()) } else { self.caller(headers) }
    }

    /// What opens the streams of a session; nothing where everybody may.
    #[must_use]
    pub fn stream_token(&self, session: &SessionId) -> Option<String> {
        match self {
            Self::Everybody => None,
            Self::Token(tokens) => Some(tokens.load().stream_token(session)),
        }
    }
}

/// It holds secrets.
impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Token(_) => "Token",
            Self::Everybody => "Everybody",
        })
    }
}

/// The token of `Authorization: Bearer …`.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = headers.get(AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim_matches(' '))
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

    fn sends(value: &str) -> HeaderMap {
        HeaderMap::from_iter([(AUTHORIZATION, HeaderValue::from_str(value).unwrap())])
    }

    #[test]
    fn a_caller_sends_a_bearer_token() {
        for good in [format!("Bearer {TOKEN}"), format!("bearer  {TOKEN}")] {
            assert_eq!(access().caller(&sends(&good)), Ok(()), "{good}");
        }
        for bad in [TOKEN.to_owned(), format!("Basic {TOKEN}"), format!("Bearer {TOKEN}x"), "Bearer ".to_owned()] {
            assert_eq!(access().caller(&sends(&bad)).unwrap_err().status(), 401, "{bad}");
        }
        assert_eq!(access().caller(&HeaderMap::new()).unwrap_err(), Refusal::unauthenticated());
        assert_eq!(Access::Everybody.caller(&HeaderMap::new()), Ok(()));
    }

    #[test]
    fn streams_open_to_callers_and_to_what_was_given_for_their_session() {
        let (access, none) = (access(), HeaderMap::new());
        let [session, other] = ["abcdefghijkl", "abcdefghijkm"].map(|id| SessionId::parse(id).unwrap());
        let token = access.stream_token(&session).unwrap();
        assert_eq!(access.reader(&none, Some(&token), &session), Ok(()));
        assert_eq!(access.reader(&sends(&format!("Bearer {TOKEN}")), None, &session), Ok(()));
        for (sent, of) in [(Some(token.as_str()), &other), (Some(TOKEN), &session), (None, &session)] {
            assert_eq!(access.reader(&none, sent, of).unwrap_err(), Refusal::unauthenticated());
        }
        assert_eq!(Access::Everybody.stream_token(&session), None);
        assert_eq!(Access::Everybody.reader(&none, Some("anything"), &session), Ok(()));
    }
}
