//! One `HEAD /`: a new connection each time, so that it sees what a new client would.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use cofferdam_model::policy::ProbeHost;
use http::header::{CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, HOST, HeaderMap, LOCATION, SERVER, USER_AGENT};
use http::{HeaderValue, Method, Request};
use http_body_util::Empty;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};
use tokio_rustls::TlsConnector;

use crate::desired::{PROBE_HEADER, PROOF_HEADER, Proof};
use crate::probe::port::{self, Dial};
use crate::probe::{Closed, Tls, Via, names, tls};

/// How long an answer may take, everything included.
pub(crate) const WITHIN: Duration = Duration::from_secs(2);

/// The most that a head may take; what is longer is not read.
const HEAD_BYTES: usize = 16 * 1024;

/// Whom to ask for what.
#[derive(Clone, Debug)]
pub(crate) struct Question<'a> {
    /// Who is asked.
    pub via: &'a Via,
    /// How to speak to it; none for plain text.
    pub tls: Option<&'a Tls>,
    /// Host header and SNI.
    pub host: &'a str,
    /// The route's secrets; none to ask as anybody would.
    pub proof: Option<&'a Proof>,
}

/// What came back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    /// The status.
    pub status: u16,
    /// Whether the proof that was asked for is there, once.
    pub proved: bool,
    /// What tells one answerer from another.
    pub looks: Looks,
}

/// What tells an answer from another one, beside its status. No header that differs from answer to answer is in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Looks {
    server: Option<HeaderValue>,
    content_type: Option<HeaderValue>,
    content_length: Option<HeaderValue>,
    /// Without the host: a gateway that sends every host to its https sends each somewhere else.
    location: Option<String>,
}

#[cfg(test)]
impl Looks {
    pub(super) fn of_server(server: &'static str) -> Self {
        Self { server: Some(HeaderValue::from_static(server)), ..Self::default() }
    }
}

impl Answer {
    /// The same, without the length of its body.
    #[must_use]
    pub(crate) fn without_length(mut self) -> Self {
        self.looks.content_length = None;
        self
    }
}

/// Why nothing came back that could be judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unanswered {
    /// No connection.
    Connect(Closed),
    /// Nobody knows the name.
    Unresolved,
    /// No TLS. Why, as a clause of its own.
    Tls(&'static str),
    /// The answer is not complete in time.
    TimedOut,
    /// The connection ends before it.
    Ended,
    /// It is not HTTP.
    Garbage,
    /// Its head is longer than 16 KiB, or has more than 100 headers.
    TooLarge,
    /// The question could not be put, which says nothing about anybody.
    NotMade,
}

/// Asks, and waits for the head of the answer until `within` is over.
pub(crate) async fn ask(question: &Question<'_>, within: Duration) -> Result<Answer, Unanswered> {
    let deadline = Instant::now() + within;
    let tls = question.tls.map(Tls::config).transpose().map_err(Unanswered::Tls)?;
    let addresses = timeout_at(deadline, resolve(question.via)).await.map_err(|_| Unanswered::Unresolved)?;
    let stream = connect(&addresses, deadline).await?;
    // Small writes that wait for an acknowledgement would be measured as the gateway's.
    let _ = stream.set_nodelay(true);
    let answer = async {
        match tls {
            None => exchange(stream, question).await,
            Some(tls) => {
                let name = ServerName::try_from(question.host.to_owned()).map_err(|_| Unanswered::NotMade)?;
                let stream = TlsConnector::from(tls).connect(name, stream).await;
                let stream = stream.map_err(|error| Unanswered::Tls(tls::why(&error)))?;
                exchange(stream, question).await
            }
        }
    };
    timeout_at(deadline, answer).await.map_err(|_| Unanswered::TimedOut)?
}

async fn resolve(via: &Via) -> Vec<SocketAddr> {
    match &via.host {
        ProbeHost::Address(address) => vec![SocketAddr::new(*address, via.port)],
        ProbeHost::Name(name) => {
            names::addresses(name).await.iter().map(|address| SocketAddr::new(*address, via.port)).collect()
        }
    }
}

/// Tries one after the other; each gets its share of the time that is left.
async fn connect(addresses: &[SocketAddr], deadline: Instant) -> Result<TcpStream, Unanswered> {
    let mut last = Unanswered::Unresolved;
    for (left, address) in (1..=addresses.len()).rev().zip(addresses) {
        let share = deadline.saturating_duration_since(Instant::now()) / u32::try_from(left).unwrap_or(u32::MAX);
        last = match timeout_at(Instant::now() + share, TcpStream::connect(*address)).await {
            Ok(Ok(stream)) => return Ok(stream),
            Ok(Err(error)) => of_error(&error),
            Err(_) => Unanswered::Connect(Closed::TimedOut),
        };
    }
    Err(last)
}

fn of_error(error: &io::Error) -> Unanswered {
    match port::of_error(error) {
        Dial::Closed(closed) => Unanswered::Connect(closed),
        Dial::Open | Dial::NotMade => Unanswered::NotMade,
    }
}

async fn exchange(stream: impl AsyncRead + AsyncWrite + Unpin, question: &Question<'_>) -> Result<Answer, Unanswered> {
    let (mut sender, connection) = http1::Builder::new()
        .max_buf_size(HEAD_BYTES)
        .handshake(TokioIo::new(stream))
        .await
        .map_err(|error| of_hyper(&error))?;
    let answer = sender.send_request(request(question)?);
    tokio::pin!(connection, answer);
    let answer = tokio::select! {
        // An answer that is there counts, whatever became of the connection.
        biased;
        answer = &mut answer => answer,
        _ = &mut connection => answer.await,
    };
    let answer = answer.map_err(|error| of_hyper(&error))?;
    let headers = answer.headers();
    Ok(Answer {
        status: answer.status().as_u16(),
        proved: question.proof.is_some_and(|proof| is_proved(headers, proof)),
        looks: looks(headers, question.host),
    })
}

fn request(question: &Question<'_>) -> Result<Request<Empty<Bytes>>, Unanswered> {
    let mut request = Request::builder()
        .method(Method::HEAD)
        .uri("/")
        .header(HOST, question.host)
        .header(USER_AGENT, "cofferdam-agent")
        .header(CONNECTION, "close");
    if let Some(proof) = question.proof {
        request = request.header(PROBE_HEADER, &proof.probe);
    }
    request.body(Empty::new()).map_err(|_| Unanswered::NotMade)
}

/// Whether the proof is there, once: two of it were not made by one route.
fn is_proved(headers: &HeaderMap, proof: &Proof) -> bool {
    let mut found = headers.get_all(PROOF_HEADER).iter();
    found.next().is_some_and(|value| value.as_bytes() == proof.proof.as_bytes()) && found.next().is_none()
}

fn looks(headers: &HeaderMap, host: &str) -> Looks {
    let location = headers.get(LOCATION).map(|value| String::from_utf8_lossy(value.as_bytes()).replace(host, ""));
    Looks {
        server: headers.get(SERVER).cloned(),
        content_type: headers.get(CONTENT_TYPE).cloned(),
        content_length: headers.get(CONTENT_LENGTH).cloned(),
        location,
    }
}

fn of_hyper(error: &hyper::Error) -> Unanswered {
    if error.is_parse_too_large() {
        Unanswered::TooLarge
    } else if error.is_parse() {
        Unanswered::Garbage
    } else {
        Unanswered::Ended
    }
}

#[cfg(test)]
mod tests;
