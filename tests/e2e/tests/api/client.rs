//! A client of the API, down to the bytes: requests, events and a terminal.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use cofferdam_e2e::port_forward::PortForward;
use serde_json::Value;

use crate::installed::TOKEN;

/// Longer than anything takes that is waited for here.
const PATIENCE: Duration = Duration::from_mins(3);

/// A client of one API pod.
pub(crate) struct Client(pub PortForward);

/// The answer to a request.
#[derive(Debug)]
pub(crate) struct Answer {
    /// Its status.
    pub status: u16,
    /// Its body; null where there is none.
    pub body: Value,
}

/// A terminal: WebSocket frames over a connection.
pub(crate) struct Terminal {
    stream: BufReader<TcpStream>,
    /// All that the program wrote.
    pub text: String,
}

impl Client {
    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(("127.0.0.1", self.0.door().port())).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    fn send(&self, method: &str, path: &str, headers: &str, body: &str) -> BufReader<TcpStream> {
        let mut stream = self.connect();
        // A request for a WebSocket has no body, not even an empty one.
        let length = if body.is_empty() { String::new() } else { format!("Content-Length: {}\r\n", body.len()) };
        let request = format!("{method} {path} HTTP/1.1\r\nHost: api\r\n{headers}{length}\r\n{body}");
        stream.write_all(request.as_bytes()).unwrap();
        BufReader::new(stream)
    }

    /// Asks, and reads the whole answer.
    pub(crate) fn ask(&self, method: &str, path: &str, body: &Value) -> Answer {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let headers =
            format!("Authorization: Bearer {TOKEN}\r\nContent-Type: application/json\r\nConnection: close\r\n");
        let mut stream = self.send(method, path, &headers, &body);
        let status = head(&mut stream);
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        Answer { status, body: serde_json::from_str(&text).unwrap_or_default() }
    }

    /// Asks without a token; the status.
    pub(crate) fn anonymous(&self, path: &str) -> u16 {
        head(&mut self.send("GET", path, "Connection: close\r\n", ""))
    }

    /// Reads a session's events from the beginning, as a browser does, until one is what is waited for; all of them.
    pub(crate) fn events(&self, id: &str, token: &str, until: impl Fn(&Value) -> bool) -> Vec<Value> {
        let path = format!("/v1/sessions/{id}/events?access_token={token}");
        let mut stream = self.send("GET", &path, "Connection: close\r\n", "");
        assert_eq!(head(&mut stream), 200);
        let mut events = Vec::new();
        for line in stream.lines() {
            let line = line.unwrap();
            let Some(event) = line.strip_prefix("data: ") else { continue };
            let event: Value = serde_json::from_str(event).unwrap();
            let is_last = until(&event);
            events.push(event);
            if is_last {
                return events;
            }
        }
        panic!("the stream ended before that: {events:#?}");
    }

    /// Opens a session's terminal from its beginning, as a browser does.
    pub(crate) fn terminal(&self, id: &str, token: &str) -> Terminal {
        let path = format!("/v1/sessions/{id}/io?lastSeq=0&access_token={token}");
        let headers = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
                       Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
        let mut stream = self.send("GET", &path, headers, "");
        assert_eq!(head(&mut stream), 101);
        Terminal { stream, text: String::new() }
    }
}

/// Reads the head of an answer; its status.
fn head(stream: &mut BufReader<TcpStream>) -> u16 {
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).unwrap();
        if line.trim().is_empty() {
            break;
        }
        lines.push(line);
    }
    lines[0].split(' ').nth(1).unwrap().parse().unwrap()
}

impl Terminal {
    /// Reads on until the program has written that.
    pub(crate) fn until(&mut self, text: &str) {
        while !self.text.contains(text) {
            assert!(self.frame(), "the terminal was closed before {text:?}: {:?}", self.text);
        }
    }

    /// Writes to the program.
    pub(crate) fn write(&mut self, text: &str) {
        // A binary frame with the mask 0, which leaves the bytes as they are.
        let length = u8::try_from(text.len()).unwrap();
        assert!(length < 126);
        let mut frame = vec![0x82, 0x80 | length, 0, 0, 0, 0];
        frame.extend_from_slice(text.as_bytes());
        self.stream.get_mut().write_all(&frame).unwrap();
    }

    /// Takes in one frame; whether there was one but the last.
    fn frame(&mut self) -> bool {
        let mut head = [0; 2];
        self.stream.read_exact(&mut head).unwrap();
        let length = match head[1] & 0x7f {
            126 => {
                let mut length = [0; 2];
                self.stream.read_exact(&mut length).unwrap();
                usize::from(u16::from_be_bytes(length))
            }
            length => usize::from(length),
        };
        let mut payload = vec![0; length];
        self.stream.read_exact(&mut payload).unwrap();
        match head[0] & 0x0f {
            // The sequence number and the stream come first.
            2 => self.text.push_str(&String::from_utf8_lossy(&payload[5..])),
            8 => return false,
            _ => {}
        }
        true
    }
}
