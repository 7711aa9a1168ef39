//! What is told of a session, one thing after the other: from what is known now, and what was told before, to events. Pure:
//! the time comes from outside.

use std::time::{Duration, Instant};

use cofferdam_model::ports::Ports;
use serde_json::Value;

use super::state::{Block, Ended, Facts, Sighting, State, Waiting, state};
use crate::wire::{Endpoint, Event, Phase, Status};

mod health;

use health::Health;

/// How long a session may take to start (contract SES-10).
pub const START: Duration = Duration::from_mins(2);

/// How long a program that runs is not told of for want of its addresses (defect D23).
pub const ADDRESSES: Duration = Duration::from_secs(3);

/// What was told of a session.
#[derive(Debug)]
pub struct Story {
    begun: Instant,
    status: Option<Status>,
    /// The last line about what it waits for.
    progress: String,
    /// What kind of thing keeps it from starting, and since when.
    blocked: Option<(Block, Instant)>,
    runs_since: Option<Instant>,
    health: Health,
}

/// What there is to tell, and to do.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Turn {
    /// To be told in this order.
    pub events: Vec<Event>,
    /// How the session has ended, once. Its status is the last of the events; whoever keeps the session writes it down where
    /// no pod will tell it.
    pub ended: Option<Ended>,
    /// When there is something to tell even if nothing changes.
    pub again: Option<Instant>,
}

impl Story {
    /// Of a session that begins now, or that is found now.
    #[must_use]
    pub fn new(now: Instant) -> Self {
        Self {
            begun: now,
            status: None,
            progress: String::new(),
            blocked: None,
            runs_since: None,
            health: Health::default(),
        }
    }

    /// The state that was told last.
    #[must_use]
    pub fn status(&self) -> Status {
        self.status.clone().unwrap_or(Status::Starting)
    }

    /// What is new since the last turn. After an end nothing is (defect D07).
    pub fn turn(&mut self, facts: &Facts<'_>, now: Instant) -> Turn {
        let mut turn = Turn::default();
        if self.status.as_ref().is_some_and(Status::is_final) {
            return turn;
        }
        match state(facts) {
            State::Ended(ended) => self.end(ended, &mut turn),
            State::Leaving => {
                // Of one that is found so nothing was told yet, and a stream begins with a status.
                if self.status.is_none() {
                    self.tell(Status::Starting, &mut turn);
                }
                self.progress("Ending", &mut turn);
            }
            State::Running => {
                if let Sighting::There(pod) = facts.pod {
                    let app = facts.record.apps.first().map_or("app", |app| &app.name);
                    self.run(pod, app, now, &mut turn);
                }
            }
            State::Starting(waiting) => self.start(waiting, facts.is_stopped, now, &mut turn),
        }
        turn
    }

    fn end(&mut self, ended: Ended, turn: &mut Turn) {
        self.tell(ended.status.clone(), turn);
        turn.ended = Some(ended);
    }

    fn start(&mut self, waiting: Waiting, is_stopped: bool, now: Instant, turn: &mut Turn) {
        // A program that ran goes on, whatever its node says of it for a while.
        if self.status.as_ref().is_some_and(|status| *status != Status::Starting) {
            return;
        }
        if self.status.is_none() {
            self.tell(Status::Starting, turn);
        }
        let kind = waiting.blocked.as_ref().map(|blocked| blocked.kind);
        self.blocked = kind.map(|kind| match self.blocked {
            Some((before, since)) if before == kind => (kind, since),
            _ => (kind, now),
        });
        let late = self.begun + START;
        let patience = self.blocked.and_then(|(kind, since)| Some(since + kind.patience()?));
        let until = patience.map_or(late, |patience| patience.min(late));
        if now < until {
            self.progress(&waiting.progress, turn);
            turn.again = Some(until);
            return;
        }
        let message = match waiting.blocked {
            Some(blocked) => blocked.sentence,
            None => format!("start: the program did not run within {} s: {}", START.as_secs(), waiting.progress),
        };
        let status = if is_stopped { Status::Stopped } else { Status::Failed { message } };
        self.end(Ended { status, at: None, leaves_pod: true }, turn);
    }

    fn run(&mut self, pod: &Value, app: &str, now: Instant, turn: &mut Turn) {
        let since = *self.runs_since.get_or_insert(now);
        let ports = Ports::of(pod).unwrap_or_default();
        let known = health::known(pod, &ports);
        let is_told = matches!(self.status, Some(Status::Running { .. }));
        if !is_told && known.is_none() && now < since + ADDRESSES {
            turn.again = Some(since + ADDRESSES);
            return;
        }
        match known {
            Some(known) => {
                let endpoints = health::endpoints(&known);
                match &self.status {
                    Some(Status::Running { endpoints: Some(before) }) if *before == endpoints => {}
                    Some(Status::Running { endpoints: Some(before) }) if self.health.is_known() => {
                        turn.events.push(health::moved(app, before, &endpoints));
                        self.status = Some(Status::Running { endpoints: Some(endpoints) });
                    }
                    _ => self.running(endpoints, turn),
                }
                turn.events.extend(self.health.changes(app, &known));
            }
            None if !is_told => {
                self.running(health::without_addresses(&ports), turn);
                self.progress_of(Phase::Boot, "The program runs; its addresses are not known yet", turn);
            }
            // The ports have changed, and the agent has not looked at the new ones yet.
            None => {}
        }
    }

    fn running(&mut self, endpoints: Vec<Endpoint>, turn: &mut Turn) {
        self.tell(Status::Running { endpoints: Some(endpoints) }, turn);
    }

    fn tell(&mut self, status: Status, turn: &mut Turn) {
        turn.events.push(Event::Status { status: status.clone() });
        self.status = Some(status);
    }

    fn progress(&mut self, message: &str, turn: &mut Turn) {
        self.progress_of(Phase::Provision, message, turn);
    }

    fn progress_of(&mut self, phase: Phase, message: &str, turn: &mut Turn) {
        if self.progress != message {
            message.clone_into(&mut self.progress);
            turn.events.push(Event::Progress { app: None, phase, message: message.to_owned(), done: None });
        }
    }
}

#[cfg(test)]
mod tests;
