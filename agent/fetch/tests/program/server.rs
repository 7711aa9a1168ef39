//! The other side: a server that answers one request after the other as a test says.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::ops::Range;
use std::sync::{Arc, Mutex};
use std::thread;

use bytes::Bytes;
use futures_util::StreamExt as _;
use futures_util::stream;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, StreamBody};
use hyper::body::Frame;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use sha2::{Digest as _, Sha256};
use tokio::net::TcpListener;

/// What became of a request.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) method: String,
    pub(crate) target: String,
    headers: Vec<(String, String)>,
}

impl Asked {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(given, _)| given == name).map(|(_, value)| &**value)
    }
}

/// How an answer ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Whole,
    /// The connection breaks.
    Cut,
    /// Nothing comes any more, and the connection stays.
    Never,
}

/// One answer.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    status: u16,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
    end: End,
}

impl Answer {
    pub(crate) fn new(status: u16) -> Self {
        Self { status, headers: Vec::new(), body: Vec::new(), end: End::Whole }
    }

    /// 200 with the whole archive.
    pub(crate) fn whole(archive: &[u8]) -> Self {
        Self::new(200).header("content-length", &archive.len().to_string()).body(archive)
    }

    /// 200 with the beginning of the archive, of which more was promised.
    pub(crate) fn begun(archive: &[u8], sent: usize, end: End) -> Self {
        Self::whole(archive).body(&archive[..sent]).end(end)
    }

    /// 206 with what comes after `from`.
    pub(crate) fn rest(archive: &[u8], from: usize) -> Self {
        Self::part(archive, from..archive.len())
    }

    /// 206 with a part.
    pub(crate) fn part(archive: &[u8], part: Range<usize>) -> Self {
        let range = format!("bytes {}-{}/{}", part.start, part.end - 1, archive.len());
        Self::new(206).header("content-range", &range).body(&archive[part])
    }

    pub(crate) fn end(mut self, end: End) -> Self {
        self.end = end;
        self
    }

    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn body(mut self, body: &[u8]) -> Self {
        body.clone_into(&mut self.body);
        self
    }

    /// The same, from a server that wants to know when the body has arrived.
    pub(crate) fn told(self) -> Self {
        self.header("x-cofferdam-acknowledge", "delete")
    }

    fn response(self) -> Response<UnsyncBoxBody<Bytes, io::Error>> {
        let mut response = Response::builder().status(self.status);
        for (name, value) in &self.headers {
            response = response.header(name, value);
        }
        let sent = stream::iter([Ok(Frame::data(Bytes::from(self.body)))]);
        let end = self.end;
        let ending = stream::once(async move {
            match end {
                End::Whole => Ok(Frame::data(Bytes::new())),
                End::Cut => {
                    // What came before is sent first.
                    tokio::task::yield_now().await;
                    Err(io::Error::other("cut"))
                }
                End::Never => std::future::pending().await,
            }
        });
        response.body(StreamBody::new(sent.chain(ending)).boxed_unsync()).unwrap()
    }
}

/// A server on a port of its own, for as long as the test program runs.
#[derive(Debug, Clone)]
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Server {
    /// Answers the first request with the first answer and so on; all others with the last one.
    pub(crate) fn start(answers: Vec<Answer>) -> Self {
        Self::start_with(|_| answers)
    }

    /// The same, for answers that name the server's own address.
    pub(crate) fn start_with(answers: impl FnOnce(SocketAddr) -> Vec<Answer>) -> Self {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let answers = answers(address);
        let asked: Arc<Mutex<Vec<Asked>>> = Arc::default();
        let seen = Arc::clone(&asked);
        thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let listener = TcpListener::from_std(listener).unwrap();
                loop {
                    let (stream, _) = listener.accept().await.unwrap();
                    let (seen, answers) = (Arc::clone(&seen), answers.clone());
                    let service = service_fn(move |request: Request<hyper::body::Incoming>| {
                        let answer = answer(&request, &seen, &answers);
                        async move { Ok::<_, Infallible>(answer.response()) }
                    });
                    let serving =
                        hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service);
                    tokio::spawn(async move {
                        // What is cut ends with an error here, as it should.
                        let _ = serving.await;
                    });
                }
            });
        });
        Self { address, asked }
    }

    pub(crate) fn url(&self, target: &str) -> String {
        format!("http://{}{target}", self.address)
    }

    /// The requests until now.
    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }

    /// Their methods.
    pub(crate) fn methods(&self) -> Vec<String> {
        self.asked().into_iter().map(|asked| asked.method).collect()
    }
}

fn answer(request: &Request<hyper::body::Incoming>, seen: &Mutex<Vec<Asked>>, answers: &[Answer]) -> Answer {
    let text = |value: &http::HeaderValue| value.to_str().unwrap().to_owned();
    let mut seen = seen.lock().unwrap();
    seen.push(Asked {
        method: request.method().to_string(),
        target: request.uri().to_string(),
        headers: request.headers().iter().map(|(name, value)| (name.to_string(), text(value))).collect(),
    });
    if request.method() == "DELETE" {
        return Answer::new(204);
    }
    let gets = seen.iter().filter(|asked| asked.method == "GET").count();
    answers[(gets - 1).min(answers.len() - 1)].clone()
}

/// An address where nobody listens.
pub(crate) fn nobody() -> SocketAddr {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

pub(crate) fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().fold(String::new(), |hex, byte| format!("{hex}{byte:02x}"))
}
