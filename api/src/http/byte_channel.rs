//! A session's terminal on a WebSocket.
//!
//! ```text
//! server ─▶ text   {"type":"seq","seq":…,"app":…,"io":"tty"}    first
//!           text   {"type":"gap","reason":"buffer_evicted"}     where bytes are not kept any more
//!           text   {"type":"error","error":"resize_unsupported","io":"streams"}
//!           binary sequence number, 32 bits, big endian │ stream: 0 terminal, 1 output, 2 errors │ bytes
//! client ─▶ binary what is typed
//!           text   {"type":"resize","cols":…,"rows":…}
//! ```
//!
//! What is sent is read from the hub when the socket takes it, so a client that does not read holds 64 KiB, loses its
//! place in time, and its connection when it takes nothing at all. Reading and writing go on beside each other: a client
//! that types while it does not read is not waited for. How long it waits for a program that does not read: [`typing`].
//!
//! Sequence numbers are those of the hub. On the wire they have 32 bits: a session that a restarted process goes on with
//! counts from the milliseconds since it was created, which fits 49 days. What does not fit is sent as the largest.

use bytes::{BufMut as _, Bytes, BytesMut};
use futures_util::stream::SplitSink;
use futures_util::{SinkExt as _, StreamExt as _};
use tokio::sync::{Notify, mpsc};
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_util::sync::CancellationToken;

use super::websocket::{self, Close, Socket};
use super::{BATCH_BYTES, QUIET};
use crate::session::hub::{Chunk, Chunks, Hub, Next};
use crate::wire::{GAP_REASON, Io, RESIZE_UNSUPPORTED, ServerFrame, TerminalInput};

mod typing;

use typing::receive;

/// A reader of a session's terminal, and where it begins.
#[derive(Debug)]
pub struct Terminal {
    chunks: Chunks,
    /// What was read to find out whether there is anything.
    first: Vec<Next<Chunk>>,
    /// The number after which it begins.
    after: u64,
}

impl Terminal {
    /// The terminal's bytes after that number; nothing where it is over, and there are none.
    #[must_use]
    pub fn read(hub: &Hub, after: u64) -> Option<Self> {
        let mut chunks = hub.bytes(after);
        let after = chunks.after();
        let mut first = Vec::new();
        while let Some(next) = chunks.try_next() {
            match next {
                Next::End => return None,
                Next::Gap => first.push(Next::Gap),
                Next::Entry { .. } => {
                    first.push(next);
                    break;
                }
            }
        }
        Some(Self { chunks, first, after })
    }
}

/// Lets a client have a terminal until it leaves, the terminal ends, or `close`.
pub async fn talk(
    socket: Socket,
    terminal: Terminal,
    app: &str,
    io: Io,
    input: mpsc::Sender<TerminalInput>,
    close: CancellationToken,
) {
    let (mut sink, mut stream) = socket.split();
    let refused = Notify::new();
    let why = tokio::select! {
        biased;
        () = close.cancelled() => Some(Close::Restarting),
        sent = send(&mut sink, terminal, app, io, &refused) => sent.ok().map(|()| Close::Ended),
        () = receive(&mut stream, input, io, &refused) => None,
    };
    // Both halves are of one socket, so they always fit.
    if let (Some(why), Ok(socket)) = (why, sink.reunite(stream)) {
        websocket::close(socket, why).await;
    }
}

/// Sends what there is until the terminal ends, and whenever a size was `refused` that it was.
async fn send(
    sink: &mut SplitSink<Socket, Message>,
    terminal: Terminal,
    app: &str,
    io: Io,
    refused: &Notify,
) -> Result<(), Error> {
    let Terminal { mut chunks, first, after } = terminal;
    sink.feed(notice(&ServerFrame::Seq { seq: on_wire(after), app: app.to_owned(), io })).await?;
    for next in first {
        if let Some(message) = message(next) {
            sink.feed(message).await?;
        }
    }
    loop {
        // What is fed beside it waits for the first that has to be waited for.
        let mut fed = 0;
        while fed < BATCH_BYTES
            && let Some(next) = chunks.try_next()
        {
            let Some(message) = message(next) else { return sink.flush().await };
            fed += message.len();
            sink.feed(message).await?;
        }
        sink.flush().await?;
        let next = tokio::select! {
            () = refused.notified() => Some(notice(&ServerFrame::Error { error: RESIZE_UNSUPPORTED, io })),
            next = chunks.next() => message(next),
            () = tokio::time::sleep(QUIET) => Some(Message::Ping(Bytes::new())),
        };
        let Some(message) = next else { return Ok(()) };
        sink.feed(message).await?;
    }
}

/// What is next as it is sent; nothing at the end.
fn message(next: Next<Chunk>) -> Option<Message> {
    match next {
        Next::Entry { id, entry } => {
            let mut frame = BytesMut::with_capacity(entry.bytes.len() + 5);
            frame.put_u32(on_wire(id));
            frame.put_u8(entry.stream.code());
            frame.put_slice(&entry.bytes);
            Some(Message::Binary(frame.freeze()))
        }
        Next::Gap => Some(notice(&ServerFrame::Gap { reason: GAP_REASON })),
        Next::End => None,
    }
}

fn notice(frame: &ServerFrame) -> Message {
    // Texts and numbers can always be written.
    Message::text(serde_json::to_string(frame).unwrap_or_default())
}

fn on_wire(seq: u64) -> u32 {
    u32::try_from(seq).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests;
