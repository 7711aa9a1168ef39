//! What the API counts. The registry puts `cofferdam_api_` in front of every name.
//!
//! Labels have values from closed sets alone: a route is told by its template, never by what a client put into its place.

use std::time::Instant;

use http::StatusCode;
use prometheus::core::{Collector, Desc};
use prometheus::proto::MetricFamily;
use prometheus::{HistogramOpts, HistogramVec, IntCounterVec, IntGauge, IntGaugeVec, Opts, Registry};

use crate::http::tokens::Outcome;
use crate::http::verdicts::Verdict;

/// From what answers at once to what waits for the cluster.
const REQUEST_SECONDS: [f64; 11] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 2.5, 10.0];

/// The label of a request for no route of ours.
const NO_ROUTE: &str = "none";

/// All metrics of the API; clones share them.
#[derive(Clone, Debug)]
pub struct Metrics {
    requests: IntCounterVec,
    duration: HistogramVec,
    streams: IntGaugeVec,
    token_reloads: IntCounterVec,
    reviews: IntCounterVec,
    access: IntGaugeVec,
}

/// What the cluster said of a caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Review {
    /// It said that.
    Said(Verdict),
    /// It said nothing.
    Failed,
}

/// How many sessions there are, asked for by whoever reads the metrics.
pub struct SessionCount<F> {
    gauge: IntGaugeVec,
    /// Gives how many live, and how many have ended and are kept.
    count: F,
}

/// What stays open after its answer has begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// A session's events.
    Events,
    /// A session's terminal.
    Io,
}

/// A request that is being answered.
#[derive(Debug)]
pub struct Begun<'a> {
    metrics: &'a Metrics,
    route: &'static str,
    at: Instant,
}

/// An open stream, until it is dropped.
#[derive(Debug)]
pub struct OpenStream(IntGauge);

impl Metrics {
    /// Registers everything.
    ///
    /// # Errors
    /// When that was done before.
    pub fn register(registry: &Registry) -> prometheus::Result<Self> {
        let counters = |name: &str, help: &str, labels: &[&str]| IntCounterVec::new(Opts::new(name, help), labels);
        let metrics = Self {
            requests: counters("requests_total", "Requests answered.", &["route", "code"])?,
            duration: HistogramVec::new(
                HistogramOpts::new("request_duration_seconds", "From the head of a request to the head of its answer.")
                    .buckets(REQUEST_SECONDS.to_vec()),
                &["route"],
            )?,
            streams: IntGaugeVec::new(
                Opts::new("open_streams", "Streams of sessions that are open now."),
                &["stream"],
            )?,
            token_reloads: counters(
                "token_reloads_total",
                "Changes of the file of tokens, by whether they were taken up.",
                &["outcome"],
            )?,
            reviews: counters(
                "access_reviews_total",
                "Callers that the API server was asked about, by what it said; who called a moment ago is not asked about again.",
                &["outcome"],
            )?,
            access: IntGaugeVec::new(Opts::new("access_info", "How callers say who they are: --auth."), &["auth"])?,
        };
        for review in Review::ALL {
            metrics.reviews.with_label_values(&[review.as_str()]);
        }
        for stream in [Stream::Events, Stream::Io] {
            metrics.streams.with_label_values(&[stream.as_str()]);
        }
        for outcome in ["swapped", "kept"] {
            metrics.token_reloads.with_label_values(&[outcome]);
        }
        let collectors: [Box<dyn Collector>; 6] = [
            Box::new(metrics.requests.clone()),
            Box::new(metrics.duration.clone()),
            Box::new(metrics.streams.clone()),
            Box::new(metrics.token_reloads.clone()),
            Box::new(metrics.reviews.clone()),
            Box::new(metrics.access.clone()),
        ];
        for collector in collectors {
            registry.register(collector)?;
        }
        Ok(metrics)
    }

    /// A request for the route of that template has come.
    #[must_use]
    pub fn begin(&self, route: Option<&'static str>) -> Begun<'_> {
        Begun { metrics: self, route: route.unwrap_or(NO_ROUTE), at: Instant::now() }
    }

    /// A stream is open from now on.
    #[must_use]
    pub fn open(&self, stream: Stream) -> OpenStream {
        let gauge = self.streams.with_label_values(&[stream.as_str()]);
        gauge.inc();
        OpenStream(gauge)
    }

    /// That is how callers say who they are.
    pub fn access_is(&self, auth: &'static str) {
        self.access.with_label_values(&[auth]).set(1);
    }

    /// The cluster was asked about a caller.
    pub fn reviewed(&self, review: Review) {
        self.reviews.with_label_values(&[review.as_str()]).inc();
    }

    /// The file of tokens was looked at.
    pub fn tokens_looked_at(&self, outcome: Outcome) {
        let outcome = match outcome {
            Outcome::Unchanged => return,
            Outcome::Swapped => "swapped",
            Outcome::Kept => "kept",
        };
        self.token_reloads.with_label_values(&[outcome]).inc();
    }
}

impl Review {
    const ALL: [Self; 4] =
        [Self::Said(Verdict::Allowed), Self::Said(Verdict::Forbidden), Self::Said(Verdict::Unknown), Self::Failed];

    fn as_str(self) -> &'static str {
        match self {
            Self::Said(Verdict::Allowed) => "allowed",
            Self::Said(Verdict::Forbidden) => "forbidden",
            Self::Said(Verdict::Unknown) => "unauthenticated",
            Self::Failed => "failed",
        }
    }
}

impl<F: Fn() -> (usize, usize)> SessionCount<F> {
    /// Of those that `count` knows: how many live, and how many have ended and are kept.
    ///
    /// # Errors
    /// Never: its name is a good one.
    pub fn new(count: F) -> prometheus::Result<Self> {
        let gauge = Opts::new("sessions", "Sessions that live, and those that have ended and are kept.");
        Ok(Self { gauge: IntGaugeVec::new(gauge, &["state"])?, count })
    }
}

impl<F: Fn() -> (usize, usize) + Send + Sync> Collector for SessionCount<F> {
    fn desc(&self) -> Vec<&Desc> {
        self.gauge.desc()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let (live, ended) = (self.count)();
        for (state, count) in [("live", live), ("ended", ended)] {
            self.gauge.with_label_values(&[state]).set(i64::try_from(count).unwrap_or(i64::MAX));
        }
        self.gauge.collect()
    }
}

impl Begun<'_> {
    /// Its answer has begun.
    pub fn end(self, status: StatusCode) {
        self.metrics.requests.with_label_values(&[self.route, status.as_str()]).inc();
        self.metrics.duration.with_label_values(&[self.route]).observe(self.at.elapsed().as_secs_f64());
    }
}

impl Stream {
    fn as_str(self) -> &'static str {
        match self {
            Self::Events => "events",
            Self::Io => "io",
        }
    }
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        self.0.dec();
    }
}
