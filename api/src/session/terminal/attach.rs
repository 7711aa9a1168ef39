//! A program's terminal, over a WebSocket of the API server (Kubernetes: `v5.channel.k8s.io`, and `v4`).
//!
//! What is sent and what comes go their own ways: a program that writes and reads nothing must not keep what it writes from
//! being read.

use std::future::pending;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::{BufMut as _, Bytes, BytesMut};
use cofferdam_kubernetes::{Class, Failed, json};
use futures_util::{SinkExt as _, StreamExt as _};
use hyper_util::rt::TokioIo;
use kube::core::Request;
use kube::core::subresource::AttachParams;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior, interval, timeout, timeout_at};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;

use crate::cluster::Home;
use crate::session::hub::Stream;
use crate::session::pod::CONTAINER;
use crate::wire::{Io, TerminalInput, TerminalSize};

/// The first byte of a message says what it belongs to.
const STDIN: u8 = 0;
const STDOUT: u8 = 1;
const STDERR: u8 = 2;
const STATUS: u8 = 3;
const RESIZE: u8 = 4;

/// An attempt to attach may take so long.
const PATIENCE: Duration = Duration::from_secs(15);

/// What lies between closes connections that are silent for longer.
const PING: Duration = Duration::from_secs(30);

/// One on which nothing comes for so long, not even an answer to a ping, is cut off: what is sent would be tried for a quarter of
/// an hour.
const SILENCE: Duration = Duration::from_secs(90);

/// Unless more than this lies before the pings that are not answered: a program that does not read keeps them from getting there.
const MOST_UNANSWERED: u64 = 64 * 1024;

/// So much of what comes first tells a place in the log.
const EARLY: usize = 256;

/// It is waited for so long, and so long once it has begun: a program that writes little has written all of it by then.
const FIRST_WORDS: Duration = Duration::from_millis(500);
const BREATH: Duration = Duration::from_millis(50);

/// A terminal that somebody is attached to.
pub(super) struct Terminal<S = TokioIo<hyper::upgrade::Upgraded>> {
    socket: WebSocketStream<S>,
    io: Io,
}

/// Some of what a program wrote.
pub(super) type Piece = (Stream, Vec<u8>);

/// What a message means.
#[derive(Debug, PartialEq, Eq)]
enum Came<'a> {
    Output(Stream, &'a [u8]),
    /// The program has ended, or could not be attached to.
    End(Result<(), String>),
    Nothing,
}

/// Attaches to the session's program.
pub(super) async fn attach(home: &Home, pod: &str, io: Io) -> Result<Terminal, Failed> {
    let is_tty = io == Io::Tty;
    let params = AttachParams {
        container: Some(CONTAINER.to_owned()),
        stdin: true,
        stdout: true,
        // A terminal has one stream, and asking for another is refused.
        stderr: !is_tty,
        tty: is_tty,
        ..AttachParams::default()
    };
    let request = Request::new(home.pods_path()).attach(pod, &params).map_err(kube::Error::BuildRequest);
    let client = home.cluster.client();
    let connected = timeout(PATIENCE, async { client.connect(request?).await }).await;
    let failed = match connected {
        Ok(Ok(connection)) => return Ok(Terminal { socket: connection.into_stream(), io }),
        Ok(Err(error)) => Failed::from(&error),
        Err(_) => Failed::timed_out(),
    };
    home.cluster.note(failed.class);
    Err(failed)
}

impl<S: AsyncRead + AsyncWrite + Unpin> Terminal<S> {
    /// What comes first, piece by piece, and whether that was all.
    pub(super) async fn early(&mut self) -> Result<(Vec<Piece>, bool), Failed> {
        let (mut early, mut length) = (Vec::new(), 0);
        let end = Instant::now() + FIRST_WORDS;
        while length < EARLY {
            let breath = if early.is_empty() { end } else { end.min(Instant::now() + BREATH) };
            let Ok(next) = timeout_at(breath, self.socket.next()).await else { break };
            let Some(message) = next else { return Ok((early, true)) };
            let message = message.map_err(|error| broken(&error))?;
            match came(&message, self.io) {
                Came::Output(stream, bytes) => {
                    length += bytes.len();
                    early.push((stream, bytes.to_vec()));
                }
                Came::End(end) => return end.map(|()| (early, true)).map_err(|message| refused(&message)),
                Came::Nothing => {}
            }
        }
        Ok((early, false))
    }

    /// Sends all of `input`, and gives `output` what comes, until the terminal is closed.
    pub(super) async fn pump(
        self,
        input: &mut mpsc::Receiver<TerminalInput>,
        mut output: impl FnMut(Stream, &[u8]),
    ) -> Result<(), Failed> {
        let io = self.io;
        let (mut sending, mut coming) = self.socket.split();
        let mut pings = interval(PING);
        pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
        // A ping says how much was sent before it, and its answer repeats that.
        let (given, answered) = (AtomicU64::new(0), AtomicU64::new(0));
        let send = async {
            loop {
                let message = tokio::select! {
                    next = next(input) => Message::Binary(sent(&next)),
                    _ = pings.tick() => Message::Ping(Bytes::copy_from_slice(&given.load(Ordering::Relaxed).to_be_bytes())),
                };
                given.fetch_add(u64::try_from(message.len()).unwrap_or(u64::MAX), Ordering::Relaxed);
                if let Err(error) = sending.send(message).await {
                    return Err(broken(&error));
                }
            }
        };
        let receive = async {
            loop {
                let message = match timeout(SILENCE, coming.next()).await {
                    Ok(Some(message)) => message.map_err(|error| broken(&error))?,
                    Ok(None) => return Ok(()),
                    Err(_) if given.load(Ordering::Relaxed) - answered.load(Ordering::Relaxed) > MOST_UNANSWERED => {
                        continue;
                    }
                    Err(_) => return Err(cut_off()),
                };
                if let Message::Pong(before) = &message
                    && let Ok(before) = before.as_ref().try_into().map(u64::from_be_bytes)
                    && before <= given.load(Ordering::Relaxed)
                {
                    answered.fetch_max(before, Ordering::Relaxed);
                }
                match came(&message, io) {
                    Came::Output(stream, bytes) => output(stream, bytes),
                    Came::End(end) => return end.map_err(|message| refused(&message)),
                    Came::Nothing => {}
                }
            }
        };
        tokio::select! {
            done = receive => done,
            failed = send => failed,
        }
    }
}

/// What is sent next; never, where nobody sends any more: the program may go on without.
async fn next(input: &mut mpsc::Receiver<TerminalInput>) -> TerminalInput {
    match input.recv().await {
        Some(next) => next,
        None => pending().await,
    }
}

/// A message of the program's.
fn came(message: &Message, io: Io) -> Came<'_> {
    let Message::Binary(bytes) = message else { return Came::Nothing };
    match bytes.split_first() {
        Some((_, [])) | None => Came::Nothing,
        Some((&STDOUT, bytes)) if io == Io::Tty => Came::Output(Stream::Tty, bytes),
        Some((&STDOUT, bytes)) => Came::Output(Stream::Stdout, bytes),
        Some((&STDERR, bytes)) => Came::Output(Stream::Stderr, bytes),
        Some((&STATUS, bytes)) => {
            let status: Value = serde_json::from_slice(bytes).unwrap_or_default();
            let is_good = status["status"] == "Success";
            Came::End(if is_good { Ok(()) } else { Err(json::text(&status["message"]).to_owned()) })
        }
        Some(_) => Came::Nothing,
    }
}

/// The message that carries something to the program.
fn sent(input: &TerminalInput) -> Bytes {
    match input {
        TerminalInput::Bytes(bytes) => {
            let mut message = BytesMut::with_capacity(1 + bytes.len());
            message.put_u8(STDIN);
            message.put_slice(bytes);
            message.freeze()
        }
        TerminalInput::Size(TerminalSize { columns, rows }) => {
            let size = serde_json::json!({"Width": columns, "Height": rows}).to_string();
            let mut message = BytesMut::with_capacity(1 + size.len());
            message.put_u8(RESIZE);
            message.put_slice(size.as_bytes());
            message.freeze()
        }
    }
}

fn broken(error: &tokio_tungstenite::tungstenite::Error) -> Failed {
    Failed { class: Class::Unreachable, detail: format!("the terminal broke off: {error}") }
}

fn cut_off() -> Failed {
    Failed { class: Class::Unreachable, detail: format!("nothing came of the terminal for {} s", SILENCE.as_secs()) }
}

fn refused(message: &str) -> Failed {
    Failed { class: Class::Other, detail: format!("the terminal ended: {message}") }
}

#[cfg(test)]
mod tests;
