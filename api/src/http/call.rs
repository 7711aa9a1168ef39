//! A request, with what its route has found out about it.

use cofferdam_model::session::SessionId;
use http::request::Parts;
use hyper::body::Body;

use super::body::{Bodies, Sent};
use super::refusal::Refusal;
use super::validation::Shape;

/// A request on its way to its route.
#[derive(Debug)]
pub struct Call<B> {
    /// All but the body.
    pub head: Parts,
    /// What the path has in the place that its route leaves open, decoded.
    pub parameter: String,
    body: Option<B>,
}

impl<B> Call<B> {
    /// A request and what its path says.
    pub fn new(head: Parts, parameter: String, body: B) -> Self {
        Self { head, parameter, body: Some(body) }
    }

    /// The session that the path names.
    ///
    /// # Errors
    /// When it is no id: then there is no such session, and nobody else has to be asked.
    pub fn session(&self) -> Result<SessionId, Refusal> {
        SessionId::parse(&self.parameter).map_err(|_| Refusal::no_session())
    }

    /// The decoded value of that name in the URL's query.
    #[must_use]
    pub fn query(&self, name: &str) -> Option<String> {
        query_value(self.head.uri.query(), name)
    }
}

impl<B: Body + Unpin> Call<B> {
    /// The body, read.
    ///
    /// # Errors
    /// As [`Bodies::read`].
    pub async fn json<T: serde::de::DeserializeOwned + Send + 'static>(
        &mut self,
        bodies: &Bodies,
        shape: &Shape,
    ) -> Result<Sent<T>, Refusal> {
        let body = self.body.take().ok_or_else(Refusal::empty)?;
        bodies.read(shape, &self.head.headers, body).await
    }

    /// Whether there is a body that nobody has looked at: the next request on the connection lies behind it.
    pub(super) fn is_unread(&self) -> bool {
        self.body.as_ref().is_some_and(|body| !body.is_end_stream())
    }
}

/// The decoded value of the first such name in a query.
#[must_use]
pub fn query_value(query: Option<&str>, name: &str) -> Option<String> {
    let mut values = form_urlencoded::parse(query?.as_bytes());
    values.find(|(known, _)| known == name).map(|(_, value)| value.into_owned())
}

/// A part of a path as it was meant; nothing where it is no text.
#[must_use]
pub fn decoded(part: &str) -> Option<String> {
    // In a path a plus is a plus; that is all that forms write otherwise.
    let form = format!("={}", part.replace('+', "%2B").replace('&', "%26"));
    let value = form_urlencoded::parse(form.as_bytes()).next()?.1.into_owned();
    (!value.contains(char::REPLACEMENT_CHARACTER)).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_path_are_decoded_and_what_is_no_text_is_nothing() {
        for (part, is) in [
            ("plain", Some("plain")),
            ("a%20b+c", Some("a b+c")),
            ("a&b=c", Some("a&b=c")),
            ("%2F", Some("/")),
            ("%ff", None),
            ("%", Some("%")),
        ] {
            assert_eq!(decoded(part).as_deref(), is, "{part}");
        }
    }

    #[test]
    fn b117_what_is_no_id_is_no_session_and_goes_no_further() {
        let call = |parameter: &str| {
            let (head, body) = http::Request::new(http_body_util::Empty::<bytes::Bytes>::new()).into_parts();
            Call::new(head, parameter.to_owned(), body).session()
        };
        for id in ["_@example.com", "-x", "ÜBER", "a..b", "", "a.", "a--b", "../../pods/x", &"a".repeat(51), "a\0"] {
            assert_eq!(call(id).unwrap_err(), Refusal::no_session(), "{id}");
        }
        assert_eq!(call("abcdefghijkl").unwrap().as_str(), "abcdefghijkl");
    }

    #[test]
    fn of_a_name_in_a_query_the_first_value_holds() {
        assert_eq!(query_value(Some("a=1&b=x%20y&b=2"), "b").as_deref(), Some("x y"));
        assert_eq!((query_value(Some("a=1"), "b"), query_value(None, "a")), (None, None));
    }
}
