//! The body of a request for a session: any bytes are one, or get an answer that says what is wrong in a sentence.

use std::collections::HashSet;
use std::sync::LazyLock;

use cofferdam_api::http::body;
use cofferdam_api::http::validation::Shape;
use cofferdam_api::wire::CreateSession;

/// The longest sentence, in bytes: a place is cut, and what is wrong is short.
const MAX_SENTENCE: usize = 1024;

/// Reads the bytes as a client's, and once more as its type alone would be read.
///
/// # Panics
/// A promise is broken.
pub fn check(bytes: &[u8]) {
    static SHAPE: LazyLock<Shape> = LazyLock::new(Shape::of::<CreateSession>);

    let read = body::parse::<CreateSession>(&SHAPE, bytes);
    match &read {
        Ok(create) => {
            let names: HashSet<_> = create.env.0.iter().map(|(name, _)| name).collect();
            assert_eq!(names.len(), create.env.0.len(), "a variable is there twice");
            assert!(create.ports.iter().all(|port| port.port > 0), "no port");
            assert!(!create.bundle.entry_relative_path.is_empty() && !create.config.image.is_empty(), "an empty text");
            assert!(create.apps.as_ref().is_none_or(|apps| !apps.is_empty()), "no app");
        }
        Err(refusal) => {
            assert!([400, 413].contains(&refusal.status().as_u16()), "{refusal:?}");
            let sentence = refusal.message();
            assert!(!sentence.is_empty() && sentence.len() <= MAX_SENTENCE, "{} bytes", sentence.len());
            let is_json = serde_json::from_slice::<serde_json::Value>(bytes).is_ok();
            assert!(!sentence.starts_with("Body is not valid JSON") || !is_json, "it is JSON");
            assert_ne!(sentence, "body is not what this route takes", "what passed the check is no session");
        }
    }
    // What needs no correction means what it says.
    if let (Ok(read), Ok(plain)) = (read, serde_json::from_slice::<CreateSession>(bytes)) {
        assert_eq!(read, plain, "it was corrected without need");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_requests_to_begin_with_are_taken() {
        // One that is not is judged no further, and what is grown from it mostly is not taken either.
        let shape = Shape::of::<CreateSession>();
        for request in [
            include_str!("../corpus/session/contract.json"),
            include_str!("../corpus/session/apps.json"),
            include_str!("../corpus/session/corrected.json"),
        ] {
            assert!(body::parse::<CreateSession>(&shape, request.as_bytes()).is_ok(), "{request}");
        }
    }
}
