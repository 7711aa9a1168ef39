//! What goes over a session's byte channel beside bytes.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::Io;

/// The largest terminal.
const MAX_SIDE: f64 = 10_000.0;

/// A text frame from the server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum ServerFrame {
    /// Bytes follow that come after those of this number. It is the first frame.
    Seq {
        /// 0 where they are all that is kept.
        seq: u32,
        /// Whose terminal it is.
        app: String,
        /// How its output is told apart.
        io: Io,
    },
    /// Bytes that came before are not kept any more.
    Gap {
        /// `buffer_evicted`.
        reason: &'static str,
    },
    /// What the client asked for cannot be done.
    Error {
        /// [`RESIZE_UNSUPPORTED`].
        error: &'static str,
        /// How the output is told apart, which is why.
        io: Io,
    },
}

/// What has no terminal has no size.
pub const RESIZE_UNSUPPORTED: &str = "resize_unsupported";

/// A text frame from the client.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum ClientFrame {
    /// Its window has another size.
    Resize {
        /// Columns.
        cols: f64,
        /// Rows.
        rows: f64,
    },
}

/// What a client wants of a terminal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TerminalInput {
    /// It typed this.
    Bytes(Bytes),
    /// Its window has this size now.
    Size(TerminalSize),
}

/// The size of a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TerminalSize {
    /// From 1 to 10,000.
    pub columns: u16,
    /// From 1 to 10,000.
    pub rows: u16,
}

impl TerminalSize {
    /// The nearest size that a terminal can have.
    #[must_use]
    pub fn clamped(columns: f64, rows: f64) -> Self {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to what fits")]
        let side = |side: f64| side.floor().clamp(1.0, MAX_SIDE) as u16;
        Self { columns: side(columns), rows: side(rows) }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn sizes_are_floored_and_clamped() {
        for (sent, columns, rows) in
            [("80.9, 24", 80, 24), ("0, -5", 1, 1), ("1e300, 10001", 10_000, 10_000), ("0.5, 10000", 1, 10_000)]
        {
            let (cols, lines) = sent.split_once(", ").unwrap();
            let text = format!(r#"{{"type": "resize", "cols": {cols}, "rows": {lines}, "more": 1}}"#);
            let ClientFrame::Resize { cols, rows: lines } = serde_json::from_str(&text).unwrap();
            assert_eq!(TerminalSize::clamped(cols, lines), TerminalSize { columns, rows }, "{sent}");
        }
        for other in [r#"{"type": "resize", "cols": "80", "rows": 24}"#, r#"{"type": "other"}"#, "[]", "{"] {
            assert!(serde_json::from_str::<ClientFrame>(other).is_err(), "{other}");
        }
    }

    #[test]
    fn frames_are_what_clients_of_the_contract_read() {
        let seq = ServerFrame::Seq { seq: 7, app: "app".to_owned(), io: Io::Tty };
        assert_eq!(serde_json::to_value(seq).unwrap(), json!({"type": "seq", "seq": 7, "app": "app", "io": "tty"}));
        let gap = ServerFrame::Gap { reason: super::super::GAP_REASON };
        assert_eq!(serde_json::to_value(gap).unwrap(), json!({"type": "gap", "reason": "buffer_evicted"}));
        let refused = ServerFrame::Error { error: RESIZE_UNSUPPORTED, io: Io::Streams };
        let expected = json!({"type": "error", "error": "resize_unsupported", "io": "streams"});
        assert_eq!(serde_json::to_value(refused).unwrap(), expected);
    }
}
