//! An HTTP server of a few lines, which notes what it is asked.

use std::sync::{Arc, Mutex};

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// What was asked.
#[derive(Clone, Debug)]
pub(super) struct Request {
    /// How many came before.
    pub(super) number: usize,
    pub(super) target: String,
    pub(super) host: String,
    headers: Vec<(String, String)>,
}

/// What is answered.
pub(super) struct Reply {
    pub(super) status: u16,
    pub(super) headers: Vec<(&'static str, String)>,
    pub(super) body: Vec<u8>,
}

pub(super) struct Server {
    host: String,
    requests: Arc<Mutex<Vec<Request>>>,
}

impl Request {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }
}

impl Reply {
    pub(super) fn status(status: u16) -> Self {
        Self { status, headers: Vec::new(), body: Vec::new() }
    }

    pub(super) fn json(value: &Value) -> Self {
        Self { body: value.to_string().into_bytes(), ..Self::status(200) }
    }
}

impl Server {
    pub(super) async fn start(answer: impl Fn(&Request) -> Reply + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = Self { host: listener.local_addr().unwrap().to_string(), requests: Arc::default() };
        let (host, requests) = (server.host.clone(), Arc::clone(&server.requests));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let number = requests.lock().unwrap().len();
                let Some((request, stream)) = read(stream, &host, number).await else { continue };
                let reply = answer(&request);
                requests.lock().unwrap().push(request);
                write(stream, &reply).await;
            }
        });
        server
    }

    pub(super) fn host(&self) -> String {
        self.host.clone()
    }

    pub(super) fn address(&self) -> String {
        format!("http://{}", self.host)
    }

    pub(super) fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }
}

async fn read(mut stream: TcpStream, host: &str, number: usize) -> Option<(Request, TcpStream)> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.ok()?);
    }
    let head = String::from_utf8(head).unwrap();
    let mut lines = head.lines();
    let target = lines.next()?.split(' ').nth(1)?.to_owned();
    let header = |line: &str| line.split_once(": ").map(|(name, value)| (name.to_owned(), value.to_owned()));
    Some((Request { number, target, host: host.to_owned(), headers: lines.filter_map(header).collect() }, stream))
}

/// Who asks may hang up before all of a large answer is sent.
async fn write(mut stream: TcpStream, reply: &Reply) {
    let header = |(name, value): &(&str, String)| format!("{name}: {value}\r\n");
    let headers = reply.headers.iter().map(header).collect::<Vec<_>>().concat();
    let head = format!(
        "HTTP/1.1 {} Any\r\nconnection: close\r\ncontent-length: {}\r\n{headers}\r\n",
        reply.status,
        reply.body.len()
    );
    let _ = stream.write_all(head.as_bytes()).await;
    let _ = stream.write_all(&reply.body).await;
    let _ = stream.shutdown().await;
}
