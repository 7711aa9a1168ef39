//! Several watches that fill one picture, for whoever decides by it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use tokio::task::JoinSet;

use super::{Change, Watches, follow};
use crate::{Cluster, Resource, Selection};

/// What watches, until it is dropped, and what was seen by now.
#[derive(Debug)]
pub struct Lookout<S> {
    cluster: Cluster,
    watches: Watches,
    picture: Picture<S>,
    tasks: JoinSet<()>,
}

/// What was seen by now. Clones share it.
#[derive(Debug)]
pub struct Picture<S> {
    seen: Arc<Mutex<S>>,
    changed: Arc<Notify>,
}

impl<S> Clone for Picture<S> {
    fn clone(&self) -> Self {
        Self { seen: Arc::clone(&self.seen), changed: Arc::clone(&self.changed) }
    }
}

impl<S> Picture<S> {
    /// `change` changes it, and says whether it may be another now.
    pub fn change(&self, change: impl FnOnce(&mut S) -> bool) {
        if change(&mut self.seen()) {
            self.changed.notify_one();
        }
    }

    /// What is there is whole after any panic.
    fn seen(&self) -> MutexGuard<'_, S> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<S: Send + 'static> Lookout<S> {
    /// Nothing is watched yet; `seen` is what is known all the same.
    #[must_use]
    pub fn new(cluster: Cluster, watches: Watches, seen: S) -> Self {
        let picture = Picture { seen: Arc::new(Mutex::new(seen)), changed: Arc::default() };
        Self { cluster, watches, picture, tasks: JoinSet::new() }
    }

    /// What was seen by now.
    pub fn seen(&self) -> MutexGuard<'_, S> {
        self.picture.seen()
    }

    /// Waits until that is another. False when a watch has panicked, and all has to begin anew.
    pub async fn changed(&mut self) -> bool {
        tokio::select! {
            () = self.picture.changed.notified() => true,
            Some(_) = self.tasks.join_next() => false,
        }
    }

    /// Watches; `name` is what metrics call it. `take` takes in what is told, and says whether what was seen may be another
    /// then.
    pub fn watch(
        &mut self,
        name: &'static str,
        resource: Resource,
        selection: Selection,
        mut take: impl FnMut(&mut S, Change) -> bool + Send + 'static,
    ) {
        let (cluster, watching, picture) = (self.cluster.clone(), self.watches.begin(name), self.picture.clone());
        let tell = move |change| picture.change(|seen| take(seen, change));
        self.tasks.spawn(async move { follow(cluster, resource, selection, watching, &Notify::new(), tell).await });
    }

    /// Runs what cannot be watched, such as discovery, beside the watches. It puts what it finds into the picture that it is
    /// given.
    pub fn ask<F: Future<Output = ()> + Send + 'static>(&mut self, ask: impl FnOnce(Cluster, Picture<S>) -> F) {
        self.tasks.spawn(ask(self.cluster.clone(), self.picture.clone()));
    }
}
