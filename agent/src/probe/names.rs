//! The addresses behind a gateway's name. They are looked up once for all probes of the next seconds: a name server that
//! was asked for every probe of every node would feel it.

use std::collections::HashMap;
use std::io;
use std::net::IpAddr;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::Duration;

use tokio::net::lookup_host;
use tokio::sync::Mutex as Turn;
use tokio::time::Instant;

/// For how long an answer is used, of whichever kind.
const FRESH: Duration = Duration::from_secs(5);

/// More names than a cluster has gateways; then all are forgotten, so that none stays for ever.
const MOST: usize = 256;

static NAMES: LazyLock<Names> = LazyLock::new(Names::default);

/// What is known of each name.
#[derive(Debug, Default)]
struct Names(Mutex<HashMap<String, Arc<Turn<Option<Answer>>>>>);

#[derive(Clone, Debug)]
struct Answer {
    at: Instant,
    /// None where there was no answer, or an empty one.
    addresses: Arc<[IpAddr]>,
}

/// The addresses of this name, best first; none where nobody knows it.
pub(super) async fn addresses(name: &str) -> Arc<[IpAddr]> {
    NAMES.addresses(name, resolve).await
}

async fn resolve(name: String) -> io::Result<Vec<IpAddr>> {
    Ok(lookup_host((name, 0)).await?.map(|address| address.ip()).collect())
}

impl Names {
    /// `resolve` is asked by one at a time for each name; the others wait for what it says.
    async fn addresses<F>(&self, name: &str, resolve: impl FnOnce(String) -> F) -> Arc<[IpAddr]>
    where
        F: Future<Output = io::Result<Vec<IpAddr>>>,
    {
        let known = self.known(name);
        let mut known = known.lock().await;
        if let Some(answer) = known.as_ref().filter(|answer| answer.at.elapsed() < FRESH) {
            return Arc::clone(&answer.addresses);
        }
        let addresses: Arc<[IpAddr]> = resolve(name.to_owned()).await.unwrap_or_default().into();
        *known = Some(Answer { at: Instant::now(), addresses: Arc::clone(&addresses) });
        addresses
    }

    fn known(&self, name: &str) -> Arc<Turn<Option<Answer>>> {
        let mut names = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if names.len() >= MOST && !names.contains_key(name) {
            names.clear();
        }
        Arc::clone(names.entry(name.to_owned()).or_default())
    }
}

#[cfg(test)]
mod tests;
