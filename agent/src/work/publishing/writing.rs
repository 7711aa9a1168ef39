//! A plan is carried out.

use std::collections::hash_map::Entry;
use std::time::{Duration, Instant};

use cofferdam_kubernetes::{Backoff, Failed};
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use serde_json::Value;

use super::{
    Attempt, Claimed, Due, LONGEST_PAUSE, PATIENCE, Publisher, Rest, SHORTEST_PAUSE, Slot, Task, Written, claiming,
    named, refusal, slot,
};
use crate::desired::Wanted;
use crate::objects::{Kind, Live, digest};
use crate::plan::{Delete, Flaw, Write, first_leaving, flaw, has_claim, plan, while_lost};
use crate::report::Hindrance;
use crate::session::Session;
use crate::work::Crew;
use crate::work::pace::Pace;
use crate::world::Moment;

/// So many corrections of one object come at once; then they wait, for so long at most.
const FREE: u32 = 3;
const LONGEST_WAIT: Duration = Duration::from_mins(5);

/// When what depends on others is looked at again; mostly their doing wakes us before.
const AGAIN: Duration = Duration::from_secs(30);

impl Publisher {
    /// What of a plan can be done now, so that `live` becomes `wanted`, and what comes of the rest. Nothing that rests stops
    /// what does not need it.
    pub(super) fn due(
        &mut self,
        crew: &Crew,
        session: &Session,
        live: &[Live],
        wanted: &[Wanted],
        is_node_lost: bool,
    ) -> Due {
        let now = Instant::now();
        if self.is_id_free(crew, live) {
            let claims = self.resting.iter_mut().filter(|((kind, _), _)| *kind == Kind::Service);
            claims.for_each(|(_, rest)| rest.until = now);
        }
        self.deleted.retain(|uid| live.iter().any(|live| live.uid == *uid));
        let planned = |wanted: &[Wanted], live: &[Live]| {
            let mut plan = plan(session, wanted, live);
            plan.deletes.retain(|delete| !self.deleted.contains(&delete.uid));
            plan
        };
        let mut plan = planned(wanted, live);
        // What is as it ought to be by now, or nobody's wish any more, rests no longer; what is only held back is neither.
        let steps = plan.slots();
        if is_node_lost {
            let (wanted, live) = while_lost(session, wanted, live);
            plan = planned(&wanted, &live);
        }
        let is_held_back = plan.slots() != steps;
        self.resting.retain(|slot, _| steps.contains(slot));
        let (mut rest, mut next) = (Attempt::Done, None);
        let mut wait = |attempt: Attempt, moment: Instant| {
            next = next.into_iter().chain([moment]).min();
            rest = std::mem::replace(&mut rest, Attempt::Done).or(attempt);
        };
        // What is made under another's claim is the business of that one.
        let is_ours = has_claim(session, live);
        let ours = wanted.iter().filter(|wanted| is_ours || wanted.kind == Kind::Service);
        if let Some((wanted, finalizers)) = first_leaving(ours, live) {
            wait(terminating(wanted, finalizers), now + AGAIN);
        }
        let mut may =
            |rests: Result<(), (Attempt, Instant)>| rests.map_err(|(attempt, moment)| wait(attempt, moment)).is_ok();
        let deletes = plan.deletes.len();
        plan.deletes.retain(|delete| may(self.rests(&(delete.kind, delete.name.clone()), now)));
        if plan.deletes.len() < deletes {
            plan.deletes.retain(|delete| delete.kind != Kind::Service);
        }
        if plan.claim.as_ref().is_some_and(|service| !may(self.may_write(service, now))) {
            plan.claim = None;
            plan.writes.clear();
        }
        plan.writes.retain(|write| may(self.may_write(&write.wanted, now)));
        Due { plan, rest, next, is_held_back }
    }

    /// Whether the pod of this node that has our id has given it up.
    fn is_id_free(&mut self, crew: &Crew, live: &[Live]) -> bool {
        let Some(holder) = &mut self.holder else { return false };
        // Whose end is seen here has the id until then, also while its Service is being made anew.
        if let Some(uid) = &holder.uid {
            return crew.world.is_live(uid) != Some(true);
        }
        let is_there = holder.service.as_ref().is_some_and(|service| live.iter().any(|live| live.uid == *service));
        holder.is_seen |= is_there;
        holder.is_seen && !is_there
    }

    /// Does all of it. Nothing that fails, or has no effect, stops what does not need it.
    pub(super) async fn make_so(&mut self, crew: &Crew, session: &Session, task: Task) -> Attempt {
        let Task { mut plan, version } = task;
        let mut attempt = self.delete(crew, session, &version, plan.deletes).await;
        if let Some(service) = plan.claim {
            let begun = crew.world.moment();
            let answer = match claiming::take(crew, session, &service, &mut self.is_name_taken).await {
                Ok(answer) => answer,
                Err(hindered) => return attempt.or(self.noted(slot(&service), hindered)),
            };
            self.wrote(crew, &service, &answer, "create", begun);
            self.noted(slot(&service), Attempt::Done);
            if self.claimed == Claimed::No {
                self.claimed = Claimed::Untold;
            }
            match flaw(&service, &answer) {
                None => {}
                Some(Flaw::Leaving(finalizers)) => attempt = attempt.or(terminating(&service, finalizers)),
                // It was there already, with something of others in it.
                Some(Flaw::Field(_)) => plan.writes.push(Write { wanted: service, replaces: None }),
            }
        }
        attempt.or(self.write(crew, session, &version, plan.writes).await)
    }

    /// All at once: none needs the others to be there, and no answer waits for one that is late.
    async fn write(&mut self, crew: &Crew, session: &Session, version: &str, writes: Vec<Write>) -> Attempt {
        let begun = crew.world.moment();
        let one = async |Write { wanted, replaces }| {
            let made = make(crew, session, version, &wanted, replaces).await;
            (wanted, made)
        };
        let mut under_way: FuturesUnordered<_> = writes.into_iter().map(one).collect();
        let mut attempt = Attempt::Done;
        while let Some((wanted, made)) = under_way.next().await {
            let came_to = match made {
                Ok(answer) => {
                    self.wrote(crew, &wanted, &answer, "apply", begun);
                    came_to(&wanted, &answer)
                }
                Err(failed) => failed,
            };
            attempt = attempt.or(match came_to {
                // What is being deleted is waited for as long as it is there, and no longer.
                Attempt::Hindered(Hindrance::Terminating { .. }, _) => came_to,
                _ => self.noted(slot(&wanted), came_to),
            });
        }
        attempt
    }

    /// All at once, so that nothing leads for long to where the pod was, and the claim last: not before all the rest is gone,
    /// since whoever has it answers for that.
    async fn delete(&mut self, crew: &Crew, session: &Session, version: &str, deletes: Vec<Delete>) -> Attempt {
        let (claim, rest): (Vec<Delete>, Vec<Delete>) =
            deletes.into_iter().partition(|delete| delete.kind == Kind::Service);
        let mut attempt = Attempt::Done;
        for deletes in [rest, claim] {
            if attempt != Attempt::Done {
                break;
            }
            let one = async |delete: Delete| {
                let resource = crate::objects::resource(delete.kind, version);
                let answer = crew.cluster.delete(&resource, &session.namespace, &delete.name, &delete.uid).await;
                (resource, delete, answer)
            };
            let mut under_way: FuturesUnordered<_> = deletes.into_iter().map(one).collect();
            while let Some((resource, delete, answer)) = under_way.next().await {
                let slot = (delete.kind, delete.name);
                match answer {
                    Ok(()) => {
                        crew.metrics.wrote(resource.name, "delete");
                        self.noted(slot, Attempt::Done);
                        self.deleted.insert(delete.uid);
                    }
                    Err(failed) => attempt = attempt.or(self.noted(slot.clone(), Attempt::Failed(slot, failed))),
                }
            }
        }
        attempt
    }

    /// Whether an object is not left alone now.
    ///
    /// # Errors
    /// Until when it is.
    fn rests(&self, slot: &Slot, now: Instant) -> Result<(), (Attempt, Instant)> {
        let until = self.resting.get(slot).map(|rest| rest.until).filter(|until| *until > now);
        until.map_or(Ok(()), |until| Err((Attempt::Resting(until), until)))
    }

    /// Takes down until when, and why, an object is left alone that is not what it ought to be in spite of an attempt; none of
    /// it where it is.
    pub(super) fn noted(&mut self, slot: Slot, attempt: Attempt) -> Attempt {
        let now = Instant::now();
        let rest = |until: Instant, why: Option<Hindrance>| {
            let failures = Backoff::new(SHORTEST_PAUSE, LONGEST_PAUSE);
            Rest { until, why, failures, failing_since: None }
        };
        if slot.0 == Kind::Service && !matches!(attempt, Attempt::Taken(_)) {
            self.holder = None;
            self.waits.over();
        }
        match &attempt {
            Attempt::Done => drop(self.resting.remove(&slot)),
            Attempt::Resting(moment) => drop(self.resting.insert(slot, rest(*moment, None))),
            Attempt::Hindered(hindrance, moment) => {
                self.resting.insert(slot, rest(*moment, Some(hindrance.clone())));
            }
            Attempt::Taken(holder) => {
                let why = Hindrance::HostTaken { pod: holder.name.clone() };
                self.resting.insert(slot, rest(now + self.waits.failed(), Some(why)));
                self.holder = Some(holder.clone());
            }
            Attempt::Failed(_, failed) => {
                let why = Hindrance::PublishFailed(format!("{}: {}", named(&slot), refusal::sentence(failed.class)));
                let rest = self.resting.entry(slot).or_insert_with(|| rest(now, None));
                let since = *rest.failing_since.get_or_insert(now);
                rest.until = now + rest.failures.failed();
                // What may pass by itself is told once it lasts.
                if !failed.class.passes() || now.duration_since(since) >= PATIENCE {
                    rest.why = Some(why);
                }
            }
        }
        attempt
    }

    /// Whether an object may be written now.
    ///
    /// # Errors
    /// When to try again.
    fn may_write(&self, wanted: &Wanted, now: Instant) -> Result<(), (Attempt, Instant)> {
        let slot = slot(wanted);
        self.rests(&slot, now)?;
        // A first write, or another wish, is no correction.
        let undone = self.written.get(&slot).filter(|written| written.digest == digest(&wanted.object));
        match undone.map(|written| written.corrections.due(now)).filter(|due| *due > now) {
            Some(due) => {
                let what = format!("{} is changed by others again and again", named(&slot));
                Err((Attempt::Hindered(Hindrance::PublishDelayed(what), due), due))
            }
            None => Ok(()),
        }
    }

    /// Takes down a write that began then and came to `answer`.
    fn wrote(&mut self, crew: &Crew, wanted: &Wanted, answer: &Value, verb: &str, begun: Moment) {
        let (digest, at) = (digest(&wanted.object), Instant::now());
        crew.metrics.wrote(wanted.kind.plural(), verb);
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
                entry.insert(Written { digest, at, corrections: Pace::new(FREE, LONGEST_WAIT) });
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
        return claiming::take(crew, session, wanted, &mut false).await;
    }
    apply().await.map_err(failed)
}

fn terminating(wanted: &Wanted, finalizers: Vec<String>) -> Attempt {
    Attempt::Hindered(Hindrance::Terminating { object: named(&slot(wanted)), finalizers }, Instant::now() + AGAIN)
}
