//! What is counted of bodies.

use prometheus::{IntCounter, IntCounterVec, IntGauge, Opts, Registry};

/// The metrics of bodies. Clones share them.
#[derive(Clone, Debug)]
pub struct Counts {
    requests: IntCounterVec,
    evictions: IntCounter,
    bytes: IntGauge,
}

/// What became of a request for a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// All of the body is sent.
    Sent,
    /// A part of it is.
    Resumed,
    /// Its pod has it.
    Acknowledged,
    /// It is not for who asks.
    Refused,
    /// The store or the API server does not answer.
    Unavailable,
}

impl Outcome {
    const ALL: [Self; 5] = [Self::Sent, Self::Resumed, Self::Acknowledged, Self::Refused, Self::Unavailable];

    fn as_str(self) -> &'static str {
        match self {
            Self::Sent => "sent",
            Self::Resumed => "resumed",
            Self::Acknowledged => "acknowledged",
            Self::Refused => "refused",
            Self::Unavailable => "unavailable",
        }
    }
}

impl Counts {
    /// Registers the families. Fails only if that was done before.
    pub fn register(registry: &Registry) -> prometheus::Result<Self> {
        let requests = IntCounterVec::new(
            Opts::new("body_requests_total", "Requests for bodies, by what became of them."),
            &["outcome"],
        )?;
        for outcome in Outcome::ALL {
            requests.with_label_values(&[outcome.as_str()]);
        }
        let evictions = IntCounter::new("body_evictions_total", "Bodies whose time was over, or that no session has.")?;
        let bytes = IntGauge::new("body_store_bytes", "Bytes in the body store, when it was last looked through.")?;
        registry.register(Box::new(requests.clone()))?;
        registry.register(Box::new(evictions.clone()))?;
        registry.register(Box::new(bytes.clone()))?;
        Ok(Self { requests, evictions, bytes })
    }

    pub(super) fn request(&self, outcome: Outcome) {
        self.requests.with_label_values(&[outcome.as_str()]).inc();
    }

    pub(super) fn swept(&self, swept: super::store::Swept) {
        self.evictions.inc_by(swept.removed);
        self.bytes.set(i64::try_from(swept.bytes).unwrap_or(i64::MAX));
    }
}
