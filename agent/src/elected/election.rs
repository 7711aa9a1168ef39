//! The election: one agent holds the Lease and renews it, the others look whether it still does.

use std::time::Duration;

use cofferdam_kubernetes::Failed;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::jiff::Timestamp;
use kube::Api;
use kube::api::{GetParams, PostParams};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout, timeout_at};

use super::Context;
use super::lease::{self, Action, LOOK, PATIENCE, RENEW, Seen, TERM};
use cofferdam_model::keys::AGENT;

/// After a renewal that failed; there is little time left.
const RETRY: Duration = Duration::from_secs(1);

/// How long releasing may hold up the end of the program.
pub(super) const RELEASE: Duration = Duration::from_secs(2);

const DOING: &str = "taking part in the election";

/// This agent in the election.
pub(super) struct Candidate {
    context: Context,
    leases: Api<Lease>,
    leading: watch::Sender<bool>,
    seen: Option<Seen>,
    /// Until when this agent leads, if nothing is renewed; none for one that does not.
    until: Option<Instant>,
    /// Whether what it wrote last may have arrived, and was not waited for until it was answered.
    is_unanswered: bool,
}

impl Candidate {
    /// `leading` is told when this agent begins to lead and when it no longer does.
    pub(super) fn new(context: &Context, leading: watch::Sender<bool>) -> Self {
        let leases = Api::namespaced(context.cluster.client(), &context.identity.namespace);
        Self { context: context.clone(), leases, leading, seen: None, until: None, is_unanswered: false }
    }

    /// Takes part. Never ends; may be dropped at any time.
    pub(super) async fn stand(&mut self) {
        loop {
            let pause = self.turn().await;
            sleep(pause).await;
        }
    }

    /// Gives the Lease away, if this agent holds it, or may hold it without knowing.
    pub(super) async fn release(mut self) {
        if self.until.is_none() && !self.is_unanswered {
            return;
        }
        match timeout(RELEASE, self.give_away()).await {
            Ok(Ok(true)) => tracing::info!("the lease is free"),
            Ok(Ok(false)) => {}
            // Nothing is lost but time: the Lease runs out.
            Ok(Err(error)) => self.failed("releasing the lease", &Failed::from(&error)),
            Err(_) => self.failed("releasing the lease", &Failed::timed_out()),
        }
    }

    /// Reads the Lease anew: a write may have been under way when the end came. Whether it was this agent's.
    async fn give_away(&mut self) -> kube::Result<bool> {
        let lease = self.leases.get(AGENT).await?;
        let is_mine = lease::holder(&lease) == Some(self.context.identity.pod.as_str());
        if is_mine {
            self.leases.replace(AGENT, &writes(), &lease::released(lease, Timestamp::now())).await?;
        }
        Ok(is_mine)
    }

    /// One try, and how long to wait for the next.
    async fn turn(&mut self) -> Duration {
        let sent = Instant::now();
        // Nothing may be waited for beyond the end of the term: that has to be noticed.
        let limit = self.until.map_or(sent + PATIENCE, |until| until.min(sent + PATIENCE));
        let result = timeout_at(limit, self.hold()).await;
        match &result {
            Ok(Ok(_)) => self.context.troubles.over(DOING),
            Ok(Err(error)) => match Failed::from(error) {
                failed if failed.class.is_outdated() => {}
                failed => self.failed(DOING, &failed),
            },
            Err(_) => self.failed(DOING, &Failed::timed_out()),
        }
        match result {
            Ok(Ok(true)) => self.until = Some(sent + TERM),
            Ok(Ok(false)) => self.until = None,
            // What was written is not known, so the Lease is read again before the next try.
            Ok(Err(_)) | Err(_) if self.until.is_some() => self.seen = None,
            Ok(Err(_)) | Err(_) => {}
        }
        let now = Instant::now();
        self.until = self.until.filter(|until| now < *until);
        let leads = self.until.is_some();
        if self.leading.send_if_modified(|before| std::mem::replace(before, leads) != leads) {
            tracing::info!(pod = self.context.identity.pod, leads, "the election changed what this agent does");
        }
        match (self.until, result) {
            (Some(_), Ok(Ok(_))) => RENEW.saturating_sub(now.duration_since(sent)),
            (Some(until), _) => RETRY.min(until.duration_since(now)),
            // Not all at the same moment.
            (None, _) => LOOK.mul_f64(0.8 + 0.4 * fastrand::f64()),
        }
    }

    fn failed(&self, doing: &'static str, failed: &Failed) {
        self.context.cluster.note(failed.class);
        self.context.troubles.failed(doing, failed);
    }

    /// Takes, renews, leaves or releases the Lease. Whether it is this agent's now.
    async fn hold(&mut self) -> kube::Result<bool> {
        let me = self.context.identity.pod.as_str();
        // Whoever leads knows the version it wrote last.
        if self.until.is_none() || self.seen.is_none() {
            // From the API server's cache, which costs next to nothing however many agents look. Where that is old, what
            // is written is refused for its version.
            let params = if self.until.is_some() { GetParams::default() } else { GetParams::any() };
            // A copy, since this may be given up half way: what was seen is kept then.
            let before = self.seen.clone();
            self.seen = match self.leases.get_with(AGENT, &params).await {
                Ok(lease) => Some(lease::observe(before, lease, Instant::now())),
                Err(kube::Error::Api(status)) if status.code == 404 => None,
                Err(error) => return Err(error),
            };
        }
        let is_too_slow = self.until.is_none() && self.is_unanswered;
        let action = lease::decide(me, self.seen.as_ref(), is_too_slow, Instant::now());
        let now = Timestamp::now();
        let wanted = match (action, self.seen.as_ref().map(|seen| seen.lease.clone())) {
            (Action::Wait, _) => return Ok(false),
            (Action::Renew, Some(lease)) => lease::renewed(lease, me, now),
            (Action::Release, Some(lease)) => lease::released(lease, now),
            (Action::Take, Some(lease)) => lease::taken(lease, me, now),
            (_, _) => lease::created(AGENT, me, now),
        };
        // Stays so where this is given up half way, and not where it fails: whoever is answered is not too slow to lead.
        self.is_unanswered = true;
        let written = match self.seen {
            Some(_) => self.leases.replace(AGENT, &writes(), &wanted).await,
            None => self.leases.create(&writes(), &wanted).await,
        };
        self.is_unanswered = false;
        self.seen = Some(lease::observe(None, written?, Instant::now()));
        Ok(action != Action::Release)
    }
}

fn writes() -> PostParams {
    PostParams { field_manager: Some(AGENT.to_owned()), ..PostParams::default() }
}
