//! The events in an inspector's stream (HTML: server-sent events), out of bytes as they come.
//!
//! Whoever writes them is the session's program: what is no event is passed over, and what has no end is not kept.

use serde_json::Value;

/// Reads a stream. What it holds is bounded by the longest frame, whatever comes.
#[derive(Debug)]
pub struct Frames {
    longest: usize,
    /// What came of a line that has not ended.
    line: Vec<u8>,
    /// Whether more came of it than is held.
    is_cut: bool,
    /// Whether its end may have a second part.
    is_after_return: bool,
    /// The data of a frame that has not ended: its lines, each with an end.
    data: Vec<u8>,
    /// Whether more came of that than is held.
    is_too_long: bool,
}

impl Frames {
    /// Of a stream that begins. A frame with more data than `longest` bytes is passed over.
    #[must_use]
    pub fn new(longest: usize) -> Self {
        Self { longest, line: Vec::new(), is_cut: false, is_after_return: false, data: Vec::new(), is_too_long: false }
    }

    /// Takes in what came, and tells of each event that is whole now, in order.
    pub fn take(&mut self, mut bytes: &[u8], mut tell: impl FnMut(Value)) {
        if !bytes.is_empty() && std::mem::take(&mut self.is_after_return) {
            bytes = bytes.strip_prefix(b"\n").unwrap_or(bytes);
        }
        while let Some(end) = bytes.iter().position(|byte| matches!(byte, b'\n' | b'\r')) {
            self.add(&bytes[..end]);
            let is_return = bytes[end] == b'\r';
            bytes = &bytes[end + 1..];
            if is_return {
                self.is_after_return = bytes.is_empty();
                bytes = bytes.strip_prefix(b"\n").unwrap_or(bytes);
            }
            if let Some(event) = self.end_line() {
                tell(event);
            }
        }
        self.add(bytes);
    }

    /// How many bytes it holds.
    #[must_use]
    pub fn held(&self) -> usize {
        self.line.len() + self.data.len()
    }

    fn add(&mut self, bytes: &[u8]) {
        let room = (self.longest + FIELD.len()).saturating_sub(self.line.len());
        self.is_cut |= bytes.len() > room;
        self.line.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }

    fn end_line(&mut self) -> Option<Value> {
        let (line, is_cut) = (std::mem::take(&mut self.line), std::mem::take(&mut self.is_cut));
        if line.is_empty() {
            let (data, is_too_long) = (std::mem::take(&mut self.data), std::mem::take(&mut self.is_too_long));
            return if is_too_long { None } else { event(&data) };
        }
        let data = data(&line)?;
        self.is_too_long |= is_cut || self.data.len() + data.len() >= self.longest;
        if self.is_too_long {
            self.data = Vec::new();
        } else {
            self.data.extend_from_slice(data);
            self.data.push(b'\n');
        }
        None
    }
}

/// How a line of data begins, at most.
const FIELD: &[u8] = b"data: ";

/// What of a frame's data a line is; none for a comment and for other fields.
fn data(line: &[u8]) -> Option<&[u8]> {
    match line.strip_prefix(b"data")? {
        [] => Some(&[]),
        [b':', b' ', data @ ..] | [b':', data @ ..] => Some(data),
        _ => None,
    }
}

/// A frame that is an event: clients are told of no other. Lines that a program writes are on its terminal already, and would
/// only push what else is told of the session out of what is kept (contract DBG-02, DBG-04).
fn event(data: &[u8]) -> Option<Value> {
    let frame: Value = serde_json::from_slice(data).ok()?;
    let kind = frame.as_object()?.get("kind");
    kind.is_none_or(|kind| kind == "event").then_some(frame)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is told of these pieces, by the member `n`.
    fn told(frames: &mut Frames, pieces: &[&[u8]]) -> Vec<Value> {
        let mut told = Vec::new();
        for piece in pieces {
            frames.take(piece, |event| told.push(event["n"].clone()));
        }
        told
    }

    #[test]
    fn dbg_02_of_a_stream_only_events_are_told() {
        for (stream, expected) in [
            ("data: {\"n\":1}\n\n", &[1][..]),
            ("data:{\"n\":1,\"kind\":\"event\"}\n\ndata: {\"n\":2}\n\n", &[1, 2]),
            // The ends of lines that there are, and all other fields.
            ("id: 7\r\nevent: message\r\ndata: {\"n\":1}\r\nretry: 1\r\n\r\n", &[1]),
            ("data: {\"n\":1}\r\rdata: {\"n\":2}\r\r", &[1, 2]),
            ("data: {\ndata: \"n\":\ndata: 1}\n\n", &[1]),
            (": a comment\n\ndata: {\"n\":1}\n: another\n\n", &[1]),
            // Other kinds, and what is no frame.
            ("data: {\"n\":1,\"kind\":\"log\"}\n\ndata: {\"n\":2,\"kind\":\"record\"}\n\n", &[]),
            ("data: {\"n\":1,\"kind\":null}\n\ndata: {\"n\":2,\"kind\":[\"event\"]}\n\n", &[]),
            ("data: {\"n\":\n\ndata: 1\n\ndata: [1]\n\ndata\n\ndata:\n\ndata: \u{fffd}\n\ndata: {\"n\":2}\n\n", &[2]),
            ("datum: {\"n\":1}\n\nDATA: {\"n\":1}\n\n data: {\"n\":1}\n\n\n\n\n", &[]),
            // Not whole.
            ("data: {\"n\":1}\n", &[]),
            ("data: {\"n\":1}\n\ndata: {\"n\":2}", &[1]),
        ] {
            let expected: Vec<Value> = expected.iter().map(|n| Value::from(*n)).collect();
            assert_eq!(told(&mut Frames::new(100), &[stream.as_bytes()]), expected, "{stream:?}");
            let bytes: Vec<&[u8]> = stream.as_bytes().chunks(1).collect();
            assert_eq!(told(&mut Frames::new(100), &bytes), expected, "{stream:?}, byte by byte");
        }
    }

    #[test]
    fn what_has_no_end_is_not_kept_and_what_follows_is_read() {
        let text = |length: usize| "x".repeat(length);
        for start in ["data: {\"n\":1,\"x\":\"", ": ", "", "event: "] {
            let mut frames = Frames::new(100);
            frames.take(start.as_bytes(), |_| panic!("it is not whole"));
            for _ in 0..1000 {
                frames.take(text(1000).as_bytes(), |_| panic!("it is not whole"));
                assert!(frames.held() <= 200, "{} after {start:?}", frames.held());
            }
            assert_eq!(told(&mut frames, &[b"\"}\n\ndata: {\"n\":2}\n\n"]), [2], "{start:?}");
        }
        let mut frames = Frames::new(100);
        for _ in 0..1000 {
            frames.take(b"data: {}\n", |_| panic!("it is not whole"));
            assert!(frames.held() <= 200);
        }
        assert_eq!(told(&mut frames, &[b"\ndata: {\"n\":2}\n\n"]), [2]);
        // A line that is too long is only missed where it is data.
        let stream = format!("data: {{\"n\":1}}\n: {}\n\ndata: {{\"n\":2}}\ndata: {}\n\n", text(200), text(200));
        assert_eq!(told(&mut Frames::new(100), &[stream.as_bytes()]), [1]);
    }

    #[test]
    fn what_is_nested_without_end_is_no_event() {
        let stream = format!("data: {{\"n\":{}\n\n", "[".repeat(50_000));
        assert!(told(&mut Frames::new(100_000), &[stream.as_bytes()]).is_empty());
    }
}
