//! The inspector of a session's program: a stream of events at a port of its pod, which clients are told of.
//!
//! At the other end is a program that nobody vouches for. So one connection is held, to the pod's own address, and what comes
//! is bounded: the head of the answer in size and time, a frame in size, all of it in pace. No redirect is followed, nothing
//! is unpacked, and what is no event is passed over. However it behaves, it is its own session that goes without.

use std::net::SocketAddr;
use std::pin::pin;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, HOST};
use http::{HeaderValue, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Empty};
use hyper::body::Incoming;
use hyper::client::conn::http1::{Builder, SendRequest};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::terminal::Program;

mod frames;
mod metered;
mod pace;

pub use frames::Frames;
use metered::{Metered, Spent};

/// The stream, at the inspector's port.
const PATH: &str = "/events";

/// The longest event that is passed on.
const LONGEST_EVENT: usize = 256 * 1024;

/// The largest head of an answer, and what is read at once.
const READ_BYTES: usize = 16 * 1024;

/// How long it may take to connect, and how long to answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// Between connections, as long as the program may only just be starting or just have started anew; and later on.
const PAUSE: Duration = Duration::from_millis(500);
const LATER_PAUSE: Duration = Duration::from_secs(5);

/// How long that is.
const STARTING: Duration = Duration::from_mins(1);

/// What comes of listening.
#[derive(Clone, Debug, PartialEq)]
pub enum Heard {
    /// An event of the program's.
    Event(Value),
    /// After a minute it is still not known where the pod is. It is tried on, and not told again.
    NoAddress,
    /// After a minute nothing has answered there. Again it is tried on, and not told again.
    NoAnswer,
}

/// Listens to the inspector at this port of the session's pod from when the program runs until it has ended, or until nobody
/// tells any more how far it is. A stream that ends is asked for again.
pub async fn run(mut program: watch::Receiver<Program>, port: u16, tell: impl FnMut(Heard)) {
    if program.wait_for(|program| *program != Program::Waiting).await.is_err() {
        return;
    }
    let mut its_end = program.clone();
    tokio::select! {
        // Whether it has ended or nobody tells any more.
        _ = its_end.wait_for(|program| *program == Program::Ended) => {}
        () = listen(&program, port, tell) => {}
    }
}

async fn listen(program: &watch::Receiver<Program>, port: u16, mut tell: impl FnMut(Heard)) {
    let spent = Spent::new();
    let (mut starts_until, mut is_told) = (Instant::now() + STARTING, false);
    loop {
        let address = match *program.borrow() {
            Program::Running { address } => address,
            Program::Waiting | Program::Ended => None,
        };
        let has_answered = match address {
            Some(address) => relay((address, port).into(), &spent, &mut tell).await,
            None => false,
        };
        let now = Instant::now();
        if has_answered {
            (starts_until, is_told) = (now + STARTING, true);
        }
        let is_starting = now < starts_until;
        if !is_starting && !std::mem::replace(&mut is_told, true) {
            tell(if address.is_some() { Heard::NoAnswer } else { Heard::NoAddress });
        }
        sleep(if is_starting { PAUSE } else { LATER_PAUSE }).await;
    }
}

/// Tells what one connection brings until it ends; whether there was a stream.
async fn relay(address: SocketAddr, spent: &Spent, tell: &mut impl FnMut(Heard)) -> bool {
    let Ok(Ok(stream)) = timeout(PATIENCE, TcpStream::connect(address)).await else { return false };
    let mut builder = Builder::new();
    builder.max_buf_size(READ_BYTES);
    let Ok((sender, connection)) = builder.handshake(TokioIo::new(Metered::new(stream, spent.clone()))).await else {
        return false;
    };
    let mut reading = pin!(async {
        match timeout(PATIENCE, ask(sender, address)).await {
            Ok(Some(answer)) if is_stream(&answer) => {
                read(answer.into_body(), spent, tell).await;
                true
            }
            _ => false,
        }
    });
    tokio::select! {
        has_answered = &mut reading => return has_answered,
        // What came before the connection ended is still to be read.
        _ = connection => {}
    }
    reading.await
}

async fn ask(mut sender: SendRequest<Empty<Bytes>>, address: SocketAddr) -> Option<Response<Incoming>> {
    let request = Request::get(PATH)
        .header(HOST, address.to_string())
        .header(ACCEPT, "text/event-stream")
        .header(ACCEPT_ENCODING, "identity")
        .header(CACHE_CONTROL, "no-store")
        .body(Empty::new())
        .ok()?;
    sender.send_request(request).await.ok()
}

fn is_stream<B>(answer: &Response<B>) -> bool {
    let text = |value: Option<&HeaderValue>| value.and_then(|value| value.to_str().ok()).map(str::to_ascii_lowercase);
    let kind = text(answer.headers().get(CONTENT_TYPE)).unwrap_or_default();
    let is_packed = answer.headers().get_all(CONTENT_ENCODING).iter().any(|coding| coding != "identity");
    answer.status() == StatusCode::OK && kind.starts_with("text/event-stream") && !is_packed
}

async fn read(mut body: Incoming, spent: &Spent, tell: &mut impl FnMut(Heard)) {
    let mut frames = Frames::new(LONGEST_EVENT);
    while let Some(Ok(frame)) = body.frame().await {
        let Ok(bytes) = frame.into_data() else { continue };
        let mut events = 0;
        frames.take(&bytes, |event| {
            events += 1;
            tell(Heard::Event(event));
        });
        if let Some(until) = spent.spend(0, events) {
            sleep_until(until).await;
        }
    }
}

#[cfg(test)]
mod tests;
