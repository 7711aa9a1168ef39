//! The stream of a program's inspector: whatever the program writes, nothing but events comes of it, and little is held.

use cofferdam_api::session::inspector::Frames;
use serde_json::Value;

/// Short enough for inputs to be longer.
const LONGEST: usize = 256;

/// Reads the bytes at once, and in pieces whose lengths are made of them.
///
/// # Panics
/// A promise is broken.
pub fn check(bytes: &[u8]) {
    let whole = read(&[bytes]);
    for event in &whole {
        let kind = event.as_object().map(|frame| frame.get("kind"));
        assert!(matches!(kind, Some(None)) || event["kind"] == "event", "no event: {event}");
        assert!(event.to_string().len() <= 8 * LONGEST, "longer than what it was read from");
    }
    let length = bytes.first().map_or(1, |byte| usize::from(byte % 7) + 1);
    for length in [1, length] {
        let pieces: Vec<_> = bytes.chunks(length).collect();
        assert_eq!(read(&pieces), whole, "in pieces of {length}");
    }
}

fn read(pieces: &[&[u8]]) -> Vec<Value> {
    let (mut frames, mut events) = (Frames::new(LONGEST), Vec::new());
    for piece in pieces {
        frames.take(piece, |event| events.push(event));
        assert!(frames.held() <= 2 * LONGEST + 16, "{} bytes are held", frames.held());
    }
    events
}
