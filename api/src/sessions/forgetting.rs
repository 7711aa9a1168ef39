//! Sessions that are kept no more, and what broke off.

use std::collections::BTreeMap;
use std::time::Duration;

use cofferdam_model::session::SessionId;
use cofferdam_runtime::errors::with_causes;
use k8s_openapi::jiff::Timestamp;
use tokio::time::{MissedTickBehavior, interval};

use super::{Place, Sessions, places};
use crate::session::retention::{self, Room, is_forgotten};
use crate::session::{stop, sweep};

/// How often it is looked for what broke off, and what was kept for long enough; more often where that is short.
const SWEEP: Duration = Duration::from_secs(30);

impl Sessions {
    /// Sweeps again and again, for ever. Stop it by dropping the future.
    pub async fn keep_clean(&self) {
        let mut ticks = interval(SWEEP.min(self.0.bounds.kept));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            self.sweep(Timestamp::now()).await;
        }
    }

    /// Does what a start or a stop that broke off has left to do, and forgets what was kept for long enough.
    pub async fn sweep(&self, now: Timestamp) {
        let kept = self.0.bounds.kept;
        let (mut forgotten, mut todo) = (Vec::new(), Vec::new());
        {
            let mut all = self.all();
            let over: Vec<SessionId> = all
                .iter()
                .filter(|(_, place)| {
                    place.session().and_then(|it| it.ended()).is_some_and(|at| is_forgotten(at, now, kept))
                })
                .map(|(id, _)| id.clone())
                .collect();
            for id in over {
                forget(&mut all, &id);
            }
            for (id, place) in &*all {
                match place {
                    Place::Kept(session) => {
                        let seen = session.seen();
                        todo.extend(sweep::judge(&seen, now, kept).map(|what| (id.clone(), seen, what)));
                    }
                    // Also what was not gone by the last time.
                    Place::Forgotten => forgotten.push(id.clone()),
                }
            }
        }
        for id in forgotten {
            self.take_away(&id).await;
        }
        for (id, seen, what) in todo {
            if let Err(failed) = sweep::carry_out(&self.0.home, &id, &seen, what, now).await {
                tracing::warn!(session = %id, error = %failed, "a session cannot be put in order; it is tried again");
            }
        }
    }

    /// What is known of a session but not of its objects any more goes where there are too many: others may have forgotten
    /// it, and made others.
    pub(super) fn trim(&self, all: &mut BTreeMap<SessionId, Place>) {
        let Room::After(first) = retention::room(self.0.bounds.capacity.saturating_add(1), places(all)) else { return };
        for id in first {
            if all.get(&id).and_then(Place::session).is_some_and(|session| !session.is_somewhere()) {
                forget(all, &id);
            }
        }
    }

    /// Takes all that there is of a forgotten session out of the cluster; the next sweep does what fails.
    pub(super) async fn take_away(&self, id: &SessionId) {
        if let Err(failed) = stop::forget(&self.0.home, id).await {
            tracing::warn!(session = %id, error = %failed, "a session that is kept no more cannot be deleted; it is tried again");
        }
        if let Some(store) = &self.0.workshop.store
            && let Err(error) = store.remove(id.as_str()).await
        {
            tracing::warn!(session = %id, error = with_causes(&error), "a body cannot be deleted; the store is swept");
        }
    }
}

/// Lets a session go: its streams end, and nobody finds it any more. What is in the cluster of it is not taken for a session
/// while it goes.
pub(super) fn forget(all: &mut BTreeMap<SessionId, Place>, id: &SessionId) {
    let Some(Place::Kept(session)) = all.remove(id) else { return };
    session.live().hub.finish();
    if session.is_somewhere() {
        all.insert(id.clone(), Place::Forgotten);
    }
}
