//! A list, then a watch, for ever: what happens to the objects of one kind.
//!
//! kube's own watcher keeps bookmarks to itself, and on a quiet node they are the only sign that a watch is alive.

use std::pin::pin;
use std::time::Duration;

use futures_util::StreamExt as _;
use kube::core::WatchEvent;
use serde_json::Value;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout};

use crate::{Backoff, Class, Cluster, Failed, Pages, Resource, Selection};

mod collected;
mod lookout;
mod metrics;

pub use collected::Collected;
pub use lookout::{Lookout, Picture};
pub use metrics::{Watches, Watching};

/// The API server ends a watch after so many seconds, and the next goes on where it ended.
const WATCH_SECONDS: u32 = 240;

/// Bookmarks come about every minute: a watch that is silent for longer is dead, whatever its connection looks like.
const SILENCE: Duration = Duration::from_secs(150);

/// A watch that ends earlier, and told nothing, has failed.
const SHORTEST_WATCH: Duration = Duration::from_secs(1);

/// Between attempts.
const SHORTEST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// Who may read nothing is believed only after a while: an API server that starts refuses everybody until it knows its roles.
const PATIENCE: Duration = Duration::from_secs(15);

/// How much larger pages get after a list that took too long: fewer questions, each of which the API server looks through
/// its objects for.
const LARGER: u32 = 4;

/// What is told of the objects.
#[derive(Debug)]
pub enum Change {
    /// A list begins.
    Begun,
    /// An object is there, or has changed.
    Seen(Value),
    /// The list is over: what was not seen since it began is not there (case B109).
    Listed,
    /// An object is gone; it as it last was.
    Gone(Value),
    /// Nothing can be read, and what is known gets old; once it can, a list follows.
    Unreadable {
        /// Whether that answers the question what there is: no such kind, or no right to it, until somebody changes that.
        /// Whatever else fails says nothing of it.
        is_conclusive: bool,
    },
}

/// Lists and watches until it is dropped, which `watching` counts. `relist` begins anew, for whoever reads the objects
/// differently now.
pub async fn follow(
    cluster: Cluster,
    resource: Resource,
    selection: Selection,
    watching: Watching,
    relist: &Notify,
    mut tell: impl FnMut(Change),
) {
    let mut failures = Backoff::new(SHORTEST_PAUSE, LONGEST_PAUSE);
    let mut from: Option<String> = None;
    let mut times = 1_u32;
    let mut forbidden_since = None;
    loop {
        let lists = from.is_none();
        let done = match from.take() {
            None => list(cluster.pages(&resource, &selection).larger(times), &watching, &mut tell).await,
            Some(version) => {
                let going_on = watch(&cluster, &resource, &selection, &watching, version, &mut failures, &mut tell);
                tokio::select! {
                    done = going_on => done,
                    () = relist.notified() => Ok(None),
                }
            }
        };
        match done {
            Ok(next) => (from, forbidden_since) = (next, None),
            Err((failed, resume)) => {
                let now = Instant::now();
                let conclusive_from = conclusive_from(failed.class, &mut forbidden_since, now);
                watching.restarted();
                let first = failures.failures() == 0;
                let is_too_old = failed.class == Class::Expired;
                if is_too_old && lists {
                    // The list took longer than the API server keeps what was there at its first page.
                    times = times.saturating_mul(LARGER);
                }
                if is_too_old && !lists {
                    // Self-healing: the list that follows tells what was missed (case B113).
                    tracing::debug!(resource = resource.name, "the watch is too old, listing anew");
                } else {
                    // A list that is too old may follow a watch that was.
                    if first || is_too_old {
                        let doing = if lists { "listed" } else { "watched" };
                        tracing::warn!(resource = resource.name, error = %failed, "cannot be {doing}");
                    }
                    // A connection that broke is nothing; one that does not come back is. After that all is listed anew:
                    // nothing in a watch that goes on says when it has told what was missed, and until then what is known
                    // is old.
                    from = resume.filter(|_| first);
                    if from.is_none() {
                        tell(Change::Unreadable { is_conclusive: conclusive_from.is_some_and(|from| from <= now) });
                    }
                }
                // Who waits for the answer gets it as soon as it is one.
                let most = conclusive_from.filter(|from| *from > now).map_or(LONGEST_PAUSE, |from| from - now);
                tokio::time::sleep(failures.failed().min(most)).await;
            }
        }
    }
}

/// From when on such a failure answers the question what there is; none where it never does. `forbidden_since` is kept between
/// one failure and the next.
fn conclusive_from(class: Class, forbidden_since: &mut Option<Instant>, now: Instant) -> Option<Instant> {
    let since = forbidden_since.take();
    match class {
        Class::NotFound => Some(now),
        Class::Forbidden => Some(*forbidden_since.insert(since.unwrap_or(now)) + PATIENCE),
        _ => None,
    }
}

type Done = Result<Option<String>, (Failed, Option<String>)>;

/// Lists everything; gives the version to watch from.
async fn list(mut pages: Pages<'_>, watching: &Watching, tell: &mut impl FnMut(Change)) -> Done {
    tell(Change::Begun);
    let mut version = String::new();
    while let Some(page) = pages.next().await.map_err(|failed| (failed, None))? {
        page.items.into_iter().for_each(|object| tell(Change::Seen(object)));
        version = page.resource_version;
    }
    // Not before: a list that never comes to its end would look like a watch that hears of everything.
    watching.event();
    tell(Change::Listed);
    Ok(Some(version))
}

/// Watches from a version on; gives the version to go on from, or none to list anew.
async fn watch(
    cluster: &Cluster,
    resource: &Resource,
    selection: &Selection,
    watching: &Watching,
    mut version: String,
    failures: &mut Backoff,
    tell: &mut impl FnMut(Change),
) -> Done {
    let events = cluster.watch(resource, selection, &version, WATCH_SECONDS).await;
    let events = events.map_err(|failed| (failed, Some(version.clone())))?;
    let mut events = pin!(events);
    let (begun, mut is_alive) = (Instant::now(), false);
    loop {
        let Ok(event) = timeout(SILENCE, events.next()).await else {
            let failed = Failed { class: Class::Timeout, detail: "the watch fell silent".to_owned() };
            return Err((failed, Some(version)));
        };
        // A list alone proves nothing: who may list and not watch would be asked for both without a pause.
        // Nor does a watch whose first word is that it failed.
        if matches!(&event, Some(Ok(event)) if !matches!(event, WatchEvent::Error(_))) {
            failures.over();
            is_alive = true;
        }
        let object = match event {
            // Whoever ends each watch at once would be asked without a pause.
            None if !is_alive && begun.elapsed() < SHORTEST_WATCH => {
                let failed = Failed { class: Class::Unreachable, detail: "the watch ended at once".to_owned() };
                return Err((failed, Some(version)));
            }
            None => {
                failures.over();
                return Ok(Some(version));
            }
            Some(Err(failed)) => return Err((failed, Some(version))),
            Some(Ok(WatchEvent::Error(status))) => {
                // 410 inside a stream that began well (case B105).
                return Err((Failed::of_status(status.code, &status.reason, &status.message), None));
            }
            Some(Ok(WatchEvent::Bookmark(bookmark))) => {
                version = bookmark.metadata.resource_version;
                watching.event();
                continue;
            }
            Some(Ok(WatchEvent::Added(object) | WatchEvent::Modified(object))) => Change::Seen(object),
            Some(Ok(WatchEvent::Deleted(object))) => Change::Gone(object),
        };
        if let Change::Seen(value) | Change::Gone(value) = &object
            && let Some(newer) = value["metadata"]["resourceVersion"].as_str()
        {
            newer.clone_into(&mut version);
        }
        watching.event();
        tell(object);
    }
}

#[cfg(test)]
mod tests;
