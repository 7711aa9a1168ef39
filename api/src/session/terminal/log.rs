//! A program's log, as far as it is there.

use std::pin::pin;
use std::time::Duration;

use cofferdam_kubernetes::{Class, Failed};
use futures_util::AsyncReadExt as _;
use kube::core::Request;
use kube::core::subresource::LogParams;
use tokio::time::timeout;

use super::shown::{Shown, skip};
use crate::cluster::Home;
use crate::session::pod::CONTAINER;
use crate::wire::Io;

/// Each part of an answer may take so long.
const PATIENCE: Duration = Duration::from_secs(15);

/// So much is read at once.
const PART: usize = 16 * 1024;

/// So much is looked at to tell what was given away: twice what is known of it.
const LOOKED_AT: usize = 128 * 1024;

/// Gives `output` what of the log was not given away before; never more of it than a part is in memory. A terminal's lines end as
/// they do there: with a carriage return, which containerd takes away.
pub(super) async fn read(
    home: &Home,
    pod: &str,
    io: Io,
    shown: &mut Shown,
    mut output: impl FnMut(&[u8]),
) -> Result<(), Failed> {
    let params = LogParams { container: Some(CONTAINER.to_owned()), ..LogParams::default() };
    let request = Request::new(home.pods_path()).logs(pod, &params).map_err(kube::Error::BuildRequest);
    let client = home.cluster.client();
    let answer = async { client.request_stream(request?).await };
    let answer = patiently(home, async { answer.await.map_err(|error| Failed::from(&error)) }).await?;
    let mut answer = pin!(answer);
    let (mut part, mut certain, mut start) = (vec![0; PART], shown.certain(), Some(Vec::new()));
    let mut before = None;
    let mut give = |bytes: &[u8], shown: &mut Shown| {
        if !bytes.is_empty() {
            shown.add(bytes);
            match io {
                Io::Tty => output(&with_returns(bytes, &mut before)),
                Io::Streams => output(bytes),
            }
        }
    };
    loop {
        let length = patiently(home, async { answer.read(&mut part).await.map_err(|error| broken(&error)) }).await?;
        let bytes = &part[..length];
        let bytes = &bytes[skip(bytes, &mut certain)..];
        match &mut start {
            Some(looked_at) => looked_at.extend_from_slice(bytes),
            None => give(bytes, shown),
        }
        if let Some(looked_at) = start.take_if(|start| length == 0 || start.len() >= LOOKED_AT) {
            give(&looked_at[shown.place(&looked_at)..], shown);
        }
        if length == 0 {
            return Ok(());
        }
    }
}

/// With a carriage return before each end of a line that has none; `before` is the last byte of what came before.
fn with_returns(bytes: &[u8], before: &mut Option<u8>) -> Vec<u8> {
    let mut with = Vec::with_capacity(bytes.len() + bytes.len() / 16);
    for byte in bytes {
        if *byte == b'\n' && *before != Some(b'\r') {
            with.push(b'\r');
        }
        with.push(*byte);
        *before = Some(*byte);
    }
    with
}

async fn patiently<T>(home: &Home, asking: impl Future<Output = Result<T, Failed>>) -> Result<T, Failed> {
    let done = timeout(PATIENCE, asking).await.unwrap_or_else(|_| Err(Failed::timed_out()));
    done.inspect_err(|failed| home.cluster.note(failed.class))
}

fn broken(error: &std::io::Error) -> Failed {
    Failed { class: Class::Unreachable, detail: format!("the log broke off: {error}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_of_a_terminal_ends_with_a_carriage_return() {
        for (log, expected) in [
            ("", ""),
            ("one\ntwo\n", "one\r\ntwo\r\n"),
            ("one\r\ntwo\r\n", "one\r\ntwo\r\n"),
            ("\n\nend", "\r\n\r\nend"),
            ("1 %\r2 %\n", "1 %\r2 %\r\n"),
        ] {
            for part in 1..=log.len().max(1) {
                let mut before = None;
                let with = log.as_bytes().chunks(part).flat_map(|log| with_returns(log, &mut before));
                assert_eq!(String::from_utf8(with.collect()).unwrap(), expected);
            }
        }
    }
}
