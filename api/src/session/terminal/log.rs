//! A program's log, as far as it is there.

use std::pin::pin;
use std::time::Duration;

use cofferdam_kubernetes::{Class, Failed};
use futures_util::AsyncReadExt as _;
use kube::core::Request;
use kube::core::subresource::LogParams;
use tokio::time::timeout;

use super::shown::Shown;
use crate::cluster::Home;
use crate::session::pod::CONTAINER;

/// Each part of an answer may take so long.
const PATIENCE: Duration = Duration::from_secs(15);

/// So much is read at once.
const PART: usize = 16 * 1024;

/// So much is looked at to tell what was given away: twice what is known of it.
const LOOKED_AT: usize = 128 * 1024;

/// Gives `output` what of the log was not given away before; never more of it than a part is in memory.
pub(super) async fn read(
    home: &Home,
    pod: &str,
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
    loop {
        let length = patiently(home, async { answer.read(&mut part).await.map_err(|error| broken(&error)) }).await?;
        let bytes = &part[..length];
        let skipped = usize::try_from(certain).unwrap_or(usize::MAX).min(length);
        certain -= u64::try_from(skipped).unwrap_or_default();
        let bytes = &bytes[skipped..];
        match &mut start {
            Some(looked_at) => looked_at.extend_from_slice(bytes),
            None if !bytes.is_empty() => give(shown, bytes, &mut output),
            None => {}
        }
        if let Some(looked_at) = start.take_if(|start| length == 0 || start.len() >= LOOKED_AT) {
            give(shown, &looked_at[shown.place(&looked_at)..], &mut output);
        }
        if length == 0 {
            return Ok(());
        }
    }
}

fn give(shown: &mut Shown, bytes: &[u8], output: &mut impl FnMut(&[u8])) {
    if !bytes.is_empty() {
        shown.add(bytes);
        output(bytes);
    }
}

async fn patiently<T>(home: &Home, asking: impl Future<Output = Result<T, Failed>>) -> Result<T, Failed> {
    let done = timeout(PATIENCE, asking).await.unwrap_or_else(|_| Err(Failed::timed_out()));
    done.inspect_err(|failed| home.cluster.note(failed.class))
}

fn broken(error: &std::io::Error) -> Failed {
    Failed { class: Class::Unreachable, detail: format!("the log broke off: {error}") }
}
