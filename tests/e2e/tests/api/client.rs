//! A client of the API, down to the bytes: requests, events and a terminal.

use std::io::{BufRead as _, BufReader, Lines, Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use cofferdam_e2e::api::TOKEN;
use cofferdam_e2e::routing::Door;
use serde_json::Value;

/// Longer than anything takes that is waited for here.
const PATIENCE: Duration = Duration::from_mins(3);

/// What asks for a WebSocket.
pub(crate) const UPGRADE: &str = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
                                  Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";

/// A client of one API pod.
pub(crate) struct Client(pub Door);

/// The answer to a request.
#[derive(Debug)]
pub(crate) struct Answer {
    /// Its status line and its headers.
    pub head: String,
    /// Its status.
    pub status: u16,
    /// Its body; null where there is none.
    pub body: Value,
}

/// A terminal: WebSocket frames over a connection.
pub(crate) struct Terminal {
    stream: BufReader<TcpStream>,
    /// All that the program wrote, from where this terminal begins.
    pub text: String,
    /// The same by what it was written to: its terminal, standard output, standard error.
    pub streams: [String; 3],
    /// The number of the last frame of it.
    pub last: u32,
    /// What was said beside it.
    pub notices: Vec<Value>,
    /// How often something was missing.
    pub gaps: usize,
}

/// Events of a session: each with its id, where it has one.
pub(crate) struct Events {
    lines: Lines<BufReader<TcpStream>>,
}

impl Client {
    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(("127.0.0.1", self.0.port())).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    /// Asks, and reads nothing.
    pub(crate) fn send(&self, method: &str, path: &str, headers: &str, body: &str) -> BufReader<TcpStream> {
        let mut stream = self.connect();
        // A request for a WebSocket has no body, not even an empty one.
        let length = if body.is_empty() { String::new() } else { format!("Content-Length: {}\r\n", body.len()) };
        let request = format!("{method} {path} HTTP/1.1\r\nHost: api\r\n{headers}{length}\r\n{body}");
        stream.write_all(request.as_bytes()).unwrap();
        BufReader::new(stream)
    }

    /// Asks, and reads the whole answer.
    pub(crate) fn ask(&self, method: &str, path: &str, body: &Value) -> Answer {
        self.ask_as(method, path, &format!("Authorization: Bearer {TOKEN}\r\n"), body)
    }

    /// The same with these header lines, which may say who asks.
    pub(crate) fn ask_as(&self, method: &str, path: &str, headers: &str, body: &Value) -> Answer {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let headers = format!("{headers}Content-Type: application/json\r\nConnection: close\r\n");
        let mut stream = self.send(method, path, &headers, &body);
        let head = head(&mut stream);
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        Answer { status: status(&head), head, body: serde_json::from_str(&text).unwrap_or_default() }
    }

    /// Asks without a token; the status.
    pub(crate) fn anonymous(&self, path: &str) -> u16 {
        status(&head(&mut self.send("GET", path, "Connection: close\r\n", "")))
    }

    /// Reads a session's events from the beginning, as a browser does, until one is what is waited for; all of them.
    pub(crate) fn events(&self, id: &str, token: &str, until: impl Fn(&Value) -> bool) -> Vec<Value> {
        let mut events = Vec::new();
        for (_, event) in self.events_after(id, token, 0) {
            let is_last = until(&event);
            events.push(event);
            if is_last {
                return events;
            }
        }
        panic!("the stream ended before that: {events:#?}");
    }

    /// Reads a session's events on from that id, as a browser does that lost its connection.
    pub(crate) fn events_after(&self, id: &str, token: &str, last: u64) -> Events {
        let path = format!("/v1/sessions/{id}/events?access_token={token}");
        let headers = format!("Last-Event-ID: {last}\r\nConnection: close\r\n");
        let mut stream = self.send("GET", &path, &headers, "");
        assert_eq!(status(&head(&mut stream)), 200);
        Events { lines: stream.lines() }
    }

    /// Opens a session's terminal from its beginning, as a browser does.
    pub(crate) fn terminal(&self, id: &str, token: &str) -> Terminal {
        self.terminal_after(id, token, 0)
    }

    /// Opens a session's terminal from that number on.
    pub(crate) fn terminal_after(&self, id: &str, token: &str, last: u32) -> Terminal {
        let mut stream = self.ask_for_terminal(id, token, last);
        assert_eq!(status(&head(&mut stream)), 101);
        Terminal { stream, text: String::new(), streams: Default::default(), last, notices: Vec::new(), gaps: 0 }
    }

    /// Asks for a session's terminal, and reads nothing.
    pub(crate) fn ask_for_terminal(&self, id: &str, token: &str, last: u32) -> BufReader<TcpStream> {
        let path = format!("/v1/sessions/{id}/io?lastSeq={last}&access_token={token}");
        self.send("GET", &path, UPGRADE, "")
    }
}

impl Answer {
    /// The session that it promises: its id, and what opens its streams.
    pub(crate) fn session(&self) -> (String, String) {
        assert_eq!(self.status, 201, "{self:?}");
        let text = |key: &str| self.body[key].as_str().unwrap().to_owned();
        (text("sessionId"), text("streamToken"))
    }
}

/// Reads the head of an answer.
pub(crate) fn head(stream: &mut BufReader<TcpStream>) -> String {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        assert!(stream.read_line(&mut head).unwrap() > 0, "the connection was closed after {head:?}");
    }
    head
}

/// The status of an answer, by its head.
pub(crate) fn status(head: &str) -> u16 {
    head.split(' ').nth(1).unwrap().parse().unwrap()
}

impl Iterator for Events {
    type Item = (Option<u64>, Value);

    fn next(&mut self) -> Option<Self::Item> {
        let mut id = None;
        loop {
            let line = self.lines.next()?.unwrap();
            if let Some(its) = line.strip_prefix("id: ") {
                id = Some(its.parse().unwrap());
            } else if let Some(event) = line.strip_prefix("data: ") {
                return Some((id, serde_json::from_str(event).unwrap()));
            }
        }
    }
}

impl Terminal {
    /// Reads on until the program has written that.
    pub(crate) fn until(&mut self, text: &str) {
        let mut seen = 0;
        while !self.text[seen..].contains(text) {
            seen = self.text.floor_char_boundary(self.text.len().saturating_sub(text.len()));
            assert!(self.frame(), "the terminal was closed before {text:?}: {:?}", &self.text[seen..]);
        }
    }

    /// Reads on until that was said beside what the program writes.
    pub(crate) fn until_notice(&mut self, notice: &Value) {
        while !self.notices.contains(notice) {
            assert!(self.frame(), "the terminal was closed before {notice}: {:?}", self.notices);
        }
    }

    /// Writes to the program.
    pub(crate) fn write(&mut self, text: &str) {
        self.send(2, text);
    }

    /// Says something beside what is written.
    pub(crate) fn say(&mut self, said: &Value) {
        self.send(1, &said.to_string());
    }

    fn send(&mut self, kind: u8, text: &str) {
        // With the mask 0, which leaves the bytes as they are.
        let length = u8::try_from(text.len()).unwrap();
        assert!(length < 126);
        let mut frame = vec![0x80 | kind, 0x80 | length, 0, 0, 0, 0];
        frame.extend_from_slice(text.as_bytes());
        self.stream.get_mut().write_all(&frame).unwrap();
    }

    /// Takes in one frame; whether there was one but the last. Numbers rise by one, but for what is said to be missing.
    pub(crate) fn frame(&mut self) -> bool {
        let mut head = [0; 2];
        self.stream.read_exact(&mut head).unwrap();
        let length = match head[1] & 0x7f {
            126 => self.length::<2>(),
            127 => self.length::<8>(),
            length => usize::from(length),
        };
        let mut payload = vec![0; length];
        self.stream.read_exact(&mut payload).unwrap();
        match head[0] & 0x0f {
            1 => {
                let notice: Value = serde_json::from_slice(&payload).unwrap();
                self.gaps += usize::from(notice["type"] == "gap");
                self.notices.push(notice);
            }
            // The sequence number and the stream come first.
            2 => {
                let number = payload[..4].iter().fold(0, |number, byte| number << 8 | u32::from(*byte));
                assert!(number == self.last + 1 || self.gaps > 0, "{number} follows {}", self.last);
                self.last = number;
                let text = String::from_utf8_lossy(&payload[5..]);
                self.streams[usize::from(payload[4])].push_str(&text);
                self.text.push_str(&text);
            }
            8 => return false,
            _ => {}
        }
        true
    }

    fn length<const BYTES: usize>(&mut self) -> usize {
        let mut length = [0; BYTES];
        self.stream.read_exact(&mut length).unwrap();
        length.iter().fold(0, |length, byte| length << 8 | usize::from(*byte))
    }
}
