//! What a client sends, on its way to the program.
//!
//! A program need not read, and its queue is soon full. A pipe then keeps its writer waiting, and so does this one: nothing more
//! is read of the client. A terminal goes on: when there is a piece that the program has had no room for long enough, that is
//! dropped, so that the size of its window and the client's end are seen behind it. What is less waits, as the program may only
//! just be starting.

use std::pin::pin;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_util::StreamExt as _;
use futures_util::stream::SplitStream;
use tokio::sync::{Notify, mpsc};
use tokio::time::{Instant, sleep};
use tokio_tungstenite::tungstenite::Message;

use crate::http::websocket::Socket;
use crate::wire::{ClientFrame, Io, TerminalInput, TerminalSize};

/// Sizes that come faster than this are those of a window that somebody is still pulling at.
const RESIZE_PAUSE: Duration = Duration::from_millis(50);

/// So much is queued as one: the queue counts what it holds, and not how long that is. A piece is a copy: as a part of what was
/// read from the socket it would keep all of that.
const PIECE: usize = 16 * 1024;

/// How long what is typed waits for room.
const PATIENCE: Duration = Duration::from_secs(10);

/// Takes what the client sends until it leaves. A terminal that is over takes nothing, and nobody is told. A size that there
/// is nothing to give to is `refused`.
pub(super) async fn receive(
    stream: &mut SplitStream<Socket>,
    input: mpsc::Sender<TerminalInput>,
    io: Io,
    refused: &Notify,
) {
    // What came and has not found room yet; and whether what came before it found none.
    let (mut typed, mut is_dropping) = (BytesMut::new(), false);
    let mut size = None;
    let mut is_settled = false;
    let (mut settled, mut late) = (pin!(sleep(Duration::ZERO)), pin!(sleep(Duration::ZERO)));
    loop {
        let message = tokio::select! {
            biased;
            () = &mut settled, if size.is_some() && !is_settled => {
                is_settled = io == Io::Tty;
                if !is_settled {
                    size = None;
                    refused.notify_one();
                }
                continue;
            }
            room = input.reserve(), if is_settled || !typed.is_empty() => {
                let next = match std::mem::take(&mut is_settled).then(|| size.take()).flatten() {
                    Some(size) => TerminalInput::Size(size),
                    None => TerminalInput::Bytes(Bytes::copy_from_slice(&typed.split_to(typed.len().min(PIECE)))),
                };
                match room {
                    Ok(room) => room.send(next),
                    Err(_) => typed.clear(),
                }
                if typed.is_empty() {
                    typed = BytesMut::new();
                }
                is_dropping = false;
                late.as_mut().reset(Instant::now() + PATIENCE);
                continue;
            }
            () = &mut late, if io == Io::Tty && typed.len() >= PIECE => {
                typed = BytesMut::new();
                is_dropping = true;
                continue;
            }
            message = stream.next(), if typed.len() < PIECE => message,
        };
        match message {
            Some(Ok(Message::Binary(bytes))) => {
                let patience = if is_dropping { Duration::ZERO } else { PATIENCE };
                late.as_mut().reset(Instant::now() + patience);
                typed.extend_from_slice(&bytes);
            }
            Some(Ok(Message::Text(text))) => {
                // What is no frame of ours is ignored: a later client may know more than we do.
                if let Ok(ClientFrame::Resize { cols, rows }) = serde_json::from_str(&text) {
                    if size.is_none() {
                        settled.as_mut().reset(Instant::now() + RESIZE_PAUSE);
                    }
                    size = Some(TerminalSize::clamped(cols, rows));
                }
            }
            Some(Ok(_)) => {}
            Some(Err(_)) | None => return,
        }
    }
}

#[cfg(test)]
mod tests;
