//! A plan is carried out.

use std::collections::hash_map::Entry;
use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use serde_json::Value;

use super::{Attempt, Publisher, Slot, Written, claiming, named, slot};
use crate::cluster::Failed;
use crate::desired::Wanted;
use crate::events::Tone;
use crate::objects::{Kind, Live, digest};
use crate::plan::{Delete, Flaw, Write, first_leaving, flaw, plan};
use crate::report::Hindrance;
use crate::session::Session;
use crate::work::Crew;
use crate::work::pace::Pace;
use crate::world::Moment;

/// So many corrections of one object come at once; then they wait, for so long at most.
const FREE: u32 = 3;
const LONGEST_PAUSE: Duration = Duration::from_mins(5);

/// When what depends on others is looked at again; mostly their doing wakes us before.
const AGAIN: Duration = Duration::from_secs(30);

impl Publisher {
    /// Does what can be done now, so that `live` becomes `wanted`. Nothing that fails, or has no effect, stops what does not
    /// need it.
    pub(super) async fn carry_out(
        &mut self,
        crew: &Crew,
        live: &[Live],
        session: &Session,
        version: &str,
        wanted: &[Wanted],
    ) -> Attempt {
        if self.not_before.is_none_or(|moment| moment <= Instant::now()) {
            self.refused.clear();
        }
        let mut plan = plan(session, wanted, live);
        let mut attempt = match first_leaving(wanted, live) {
            Some((wanted, finalizers)) => terminating(wanted, finalizers),
            None => Attempt::Done,
        };
        attempt = attempt.or(self.delete(crew, session, version, plan.deletes).await);
        if let Some(service) = plan.claim {
            let name = service.name.clone();
            let begun = crew.world.moment();
            let claimed = match self.may_write(&service, Instant::now()) {
                Ok(()) => claiming::take(crew, session, &service).await,
                Err(delayed) => Err(delayed),
            };
            let answer = match claimed {
                Ok(answer) => answer,
                Err(hindered) => {
                    // Of all that can be in the way only another pod of ours wakes us when it ends.
                    if let Attempt::Hindered(hindrance, moment) = &hindered
                        && !matches!(hindrance, Hindrance::HostTaken { .. })
                    {
                        self.refused.insert(slot(&service));
                        self.not_before = Some(*moment);
                    }
                    return attempt.or(self.noted(hindered));
                }
            };
            self.wrote(crew, &service, &answer, "create", begun);
            match flaw(&service, &answer) {
                None => {}
                Some(Flaw::Leaving(finalizers)) => attempt = attempt.or(terminating(&service, finalizers)),
                // It was there already, with something of others in it.
                Some(Flaw::Field(_)) => plan.writes.push(Write { wanted: service, replaces: None }),
            }
            if !std::mem::replace(&mut self.was_told, true) {
                let routes = wanted.iter().filter(|wanted| wanted.kind.is_route()).count();
                let s = if routes == 1 { "" } else { "s" };
                let note = format!("Service {name} is made, with its endpoints and {routes} route{s}");
                crew.events.tell(session, Tone::Normal, "Published", &note);
            }
        }
        attempt.or(self.write(crew, session, version, plan.writes).await)
    }

    /// All at once: none needs the others to be there, and no answer waits for one that is late.
    async fn write(&mut self, crew: &Crew, session: &Session, version: &str, writes: Vec<Write>) -> Attempt {
        let (now, begun) = (Instant::now(), crew.world.moment());
        let mut attempt = Attempt::Done;
        let mut under_way = FuturesUnordered::new();
        for Write { wanted, replaces } in writes {
            match self.may_write(&wanted, now) {
                Ok(()) => under_way.push(async move {
                    let made = make(crew, session, version, &wanted, replaces).await;
                    (wanted, made)
                }),
                Err(delayed) => attempt = attempt.or(delayed),
            }
        }
        while let Some((wanted, made)) = under_way.next().await {
            attempt = attempt.or(match made {
                Ok(answer) => {
                    self.wrote(crew, &wanted, &answer, "apply", begun);
                    came_to(&wanted, &answer)
                }
                Err(failed) => self.noted(failed),
            });
        }
        attempt
    }

    /// Routes before what they lead to. The claim goes last, and not before all the rest: whoever has it answers for that.
    async fn delete(&mut self, crew: &Crew, session: &Session, version: &str, deletes: Vec<Delete>) -> Attempt {
        let mut attempt = Attempt::Done;
        for Delete { kind, name, uid } in deletes {
            if kind == Kind::Service && attempt != Attempt::Done {
                continue;
            }
            let resource = crate::objects::resource(kind, version);
            let slot = (kind, name);
            if let Some(moment) = self.rests(&slot, Instant::now()) {
                attempt = attempt.or(Attempt::Resting(moment));
                continue;
            }
            match crew.cluster.delete(&resource, &session.namespace, &slot.1, &uid).await {
                Ok(()) => crew.metrics.wrote(resource.name, "delete"),
                Err(failed) => attempt = attempt.or(self.noted(Attempt::Failed(slot, failed))),
            }
        }
        attempt
    }

    /// Until when an object is left alone, if it is.
    fn rests(&self, slot: &Slot, now: Instant) -> Option<Instant> {
        self.not_before.filter(|moment| *moment > now && self.refused.contains(slot))
    }

    /// Takes down which object was refused.
    fn noted(&mut self, attempt: Attempt) -> Attempt {
        if let Attempt::Failed(slot, _) = &attempt {
            self.refused.insert(slot.clone());
        }
        attempt
    }

    /// Whether an object may be written now.
    ///
    /// # Errors
    /// When to try again.
    fn may_write(&self, wanted: &Wanted, now: Instant) -> Result<(), Attempt> {
        let slot = slot(wanted);
        if let Some(moment) = self.rests(&slot, now) {
            return Err(Attempt::Resting(moment));
        }
        // A first write, or another wish, is no correction.
        let undone = self.written.get(&slot).filter(|written| written.digest == digest(&wanted.object));
        match undone.map(|written| written.corrections.due(now)).filter(|due| *due > now) {
            Some(due) => {
                let what = format!("{} is changed by others again and again", named(&slot));
                Err(Attempt::Hindered(Hindrance::PublishDelayed(what), due))
            }
            None => Ok(()),
        }
    }

    /// Takes down a write that began then and came to `answer`.
    fn wrote(&mut self, crew: &Crew, wanted: &Wanted, answer: &Value, verb: &str, begun: Moment) {
        let (digest, at) = (digest(&wanted.object), Instant::now());
        crew.metrics.wrote(wanted.kind.plural(), verb);
        self.has_written = true;
        match self.written.entry(slot(wanted)) {
            Entry::Occupied(mut entry) => {
                let before = entry.get_mut();
                if before.digest == digest {
                    // Somebody must have undone the same write.
                    before.corrections.made(at);
                }
                (before.digest, before.at) = (digest, at);
            }
            Entry::Vacant(entry) => {
                entry.insert(Written { digest, at, corrections: Pace::new(FREE, LONGEST_PAUSE) });
            }
        }
        crew.world.answer(wanted.kind, answer, begun);
    }
}

/// Whether an object that was written, and made anew where that was no use, is what is wanted now.
fn came_to(wanted: &Wanted, answer: &Value) -> Attempt {
    match flaw(wanted, answer) {
        None => Attempt::Done,
        Some(Flaw::Leaving(finalizers)) => terminating(wanted, finalizers),
        Some(Flaw::Field(field)) => {
            let object = named(&slot(wanted));
            let why = format!("{object}: something in the cluster writes {field} into it even when it is made anew");
            Attempt::Hindered(Hindrance::PublishFailed(why), Instant::now() + AGAIN)
        }
    }
}

/// Applies an object; makes it anew where no apply can help, as with what it `replaces`, or none did.
///
/// # Errors
/// What is in the way.
async fn make(
    crew: &Crew,
    session: &Session,
    version: &str,
    wanted: &Wanted,
    replaces: Option<String>,
) -> Result<Value, Attempt> {
    let (resource, namespace) = (crate::objects::resource(wanted.kind, version), &session.namespace);
    let failed = |failed: Failed| Attempt::Failed(slot(wanted), failed);
    let apply = || crew.cluster.apply(&resource, namespace, &wanted.name, &wanted.object);
    let uid = if let Some(uid) = replaces {
        uid
    } else {
        let answer = apply().await.map_err(failed)?;
        match (flaw(wanted, &answer), answer["metadata"]["uid"].as_str()) {
            (Some(Flaw::Field(_)), Some(uid)) => uid.to_owned(),
            _ => return Ok(answer),
        }
    };
    crew.cluster.delete(&resource, namespace, &wanted.name, &uid).await.map_err(failed)?;
    crew.metrics.replaced(resource.name);
    if wanted.kind == Kind::Service {
        // The claim again, and another may be quicker.
        return claiming::take(crew, session, wanted).await;
    }
    apply().await.map_err(failed)
}

fn terminating(wanted: &Wanted, finalizers: Vec<String>) -> Attempt {
    Attempt::Hindered(Hindrance::Terminating { object: named(&slot(wanted)), finalizers }, Instant::now() + AGAIN)
}
