//! A real server on a real socket, and clients that send exactly what they are told to.

use std::net::SocketAddr;
use std::time::Duration;

use cofferdam_runtime::http::{Counts, Limits, Phases, Reply, Server};
use http::Request;
use hyper::body::Incoming;
use prometheus::Registry;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};

/// How long a test waits for what has to come.
const PATIENCE: Duration = Duration::from_secs(20);

/// A server that answers with `handler` until the test ends, and what ends it.
pub(crate) async fn serve<H, F>(limits: Limits, handler: H) -> (SocketAddr, Phases)
where
    H: Fn(Request<Incoming>) -> F + Send + Sync + 'static,
    F: Future<Output = Reply> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let phases = Phases::default();
    let counts = Counts::register(&Registry::new()).unwrap().of("test");
    let server = Server { tls: None, limits, counts, phases: phases.clone() };
    tokio::spawn(server.serve(listener, handler));
    (address, phases)
}

/// A connection.
pub(crate) struct Client(BufReader<TcpStream>);

impl Client {
    pub(crate) async fn connect(address: SocketAddr) -> Self {
        Self(BufReader::new(TcpStream::connect(address).await.unwrap()))
    }

    /// Sends a request without a body; `more` is header lines.
    pub(crate) async fn get(address: SocketAddr, path: &str, more: &str) -> Self {
        let mut client = Self::connect(address).await;
        client.send(format!("GET {path} HTTP/1.1\r\nhost: x\r\n{more}\r\n").as_bytes()).await;
        client
    }

    pub(crate) async fn send(&mut self, bytes: &[u8]) {
        self.0.get_mut().write_all(bytes).await.unwrap();
    }

    /// Reads up to the end of `text`.
    pub(crate) async fn until(&mut self, text: &str) -> String {
        let mut read = Vec::new();
        let reading = async {
            while !read.ends_with(text.as_bytes()) {
                let byte = self.0.read_u8().await;
                read.push(byte.unwrap_or_else(|_| panic!("closed before {text:?}")));
            }
        };
        assert!(tokio::time::timeout(PATIENCE, reading).await.is_ok(), "no {text:?} came");
        String::from_utf8(read).unwrap()
    }

    /// The head of an answer.
    pub(crate) async fn head(&mut self) -> String {
        self.until("\r\n\r\n").await
    }

    /// One chunk of a streamed answer; empty for the last one.
    pub(crate) async fn chunk(&mut self) -> String {
        let mut size = String::new();
        tokio::time::timeout(PATIENCE, self.0.read_line(&mut size)).await.unwrap().unwrap();
        let mut chunk = vec![0; usize::from_str_radix(size.trim_end(), 16).unwrap() + 2];
        self.0.read_exact(&mut chunk).await.unwrap();
        String::from_utf8(chunk).unwrap().strip_suffix("\r\n").unwrap().to_owned()
    }

    /// What comes until the server closes.
    pub(crate) async fn rest(&mut self) -> String {
        let mut rest = String::new();
        tokio::time::timeout(PATIENCE, self.0.read_to_string(&mut rest)).await.unwrap().unwrap();
        rest
    }
}
