//! Every kind of input becomes an answer here.
//!
//! | input | answer | outcome |
//! | --- | --- | --- |
//! | another path | 404 | `not-found` |
//! | another method | 405 | `wrong-method` |
//! | no JSON by its content type, or compressed | 415 | `wrong-content-type` |
//! | a body over the bound, declared or not | 413 | `too-large` |
//! | a body that takes too long | 408 | `too-slow` |
//! | a body that breaks off | 400 | `broken-off` |
//! | more memory than all requests may hold together | 503 | `overloaded` |
//! | no JSON, no `AdmissionReview` v1, no request, no uid | 400 | `malformed` |
//! | a review of what its path is not registered for, or of an update without the old object | denied, 400 | `unexpected` |
//! | a pod that cannot be read, or is too large | denied, 400 or 413 | `unreadable`, `too-heavy` |
//! | a pod that is none of our business | allowed | `not-a-session`, `exempt-namespace`, `mirror-pod` |
//! | a pod, or a container for debugging, that can be made safe | allowed with a patch | `hardened` |
//! | one that cannot | denied, 403 | `refused` |
//! | an update of a pod, its resources or the rest, that loosens nothing | allowed | `nothing-loosened` |
//! | one that does | denied, 403 | `refused` |
//! | any of these in a namespace that only wants to know | allowed with warnings | `advised`, `advised-refusal` |
//! | a workload | allowed with warnings about its pods | the same, or the words for pods that nothing is done to |
//! | a client that leaves in the middle | none | `abandoned` |
//! | a panic (caught where the connection is served) | 500 | `panicked` |
//!
//! | path | what it is registered for |
//! | --- | --- |
//! | `/mutate/{enforced,warn,labelled}` | CREATE `pods`, UPDATE `pods/ephemeralcontainers` and `pods/resize` |
//! | `/validate/{enforced,warn,labelled}` | UPDATE `pods`; CREATE and UPDATE of whatever has a template of pods |
//!
//! "Denied" is an answer of HTTP status 200 with the request's uid on it. What an API server makes of any other status
//! is up to the `failurePolicy`, so nothing that we ourselves failed at is ever a denial.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use cofferdam_model::policy::Policy;
use cofferdam_model::{Hardened, Request as Question, User, Verdict, advice, changes_annotation, harden};
use cofferdam_runtime::http::{BodyError, Budget, Reply, body, reply};
use http::header::{ALLOW, CONTENT_ENCODING, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderMap, Method, Request, StatusCode};
use hyper::body::Body;
use serde_json::Value;

use crate::metrics::Metrics;
use crate::record::Record;
use crate::review::{Answer, Malformed, Review, Status};
use crate::weight;

mod entry;
mod outcome;
mod subject;

pub use entry::{Entry, Webhook};
pub use outcome::Outcome;
pub use subject::Subject;

/// An API server takes no object of more than 3 MiB. A review carries two of them, the object and on an update the old
/// one; 1 MiB more holds the rest.
pub const MAX_BODY_BYTES: usize = 7 * 1024 * 1024;

/// What all requests together may hold: half of the memory that the manifests give the container. The other half is
/// for connections, the policy and the program.
pub const MEMORY_BYTES: usize = 64 * 1024 * 1024;

/// What judging one pod may take of it, so that one creator cannot leave the others without; an update shows two. By
/// [`weight::estimate`] it holds every pod that etcd would store (1.5 MiB) of up to some 5,000 objects; pods have a few
/// hundred.
pub const MAX_POD_BYTES: usize = MEMORY_BYTES / 4;

/// Judges reviews by the policy of the moment.
#[derive(Debug)]
pub struct Admission {
    policy: Arc<ArcSwap<Policy>>,
    metrics: Metrics,
    memory: Budget,
    body_within: Duration,
}

/// What is decided about a review that could be read.
#[derive(Debug)]
pub struct Decision {
    /// The word for metrics.
    pub outcome: Outcome,
    /// What the API server gets.
    pub answer: Answer,
    /// What the log gets.
    pub record: Record,
    /// How long the patch is, where there is one.
    pub patch_bytes: Option<usize>,
}

/// Why a request gets no review as an answer.
#[derive(Debug, thiserror::Error)]
enum Problem {
    #[error("there are /mutate/ and /validate/ here, each with enforced, warn and labelled below it")]
    NotFound,
    #[error("only POST is answered here")]
    WrongMethod,
    #[error("the content type must be application/json, and not compressed")]
    WrongContentType,
    #[error(transparent)]
    Body(#[from] BodyError),
    #[error(transparent)]
    Malformed(#[from] Malformed),
}

impl Admission {
    /// Judges each request by what is in `policy` when it has arrived; a body may take `body_within` to arrive.
    #[must_use]
    pub fn new(policy: Arc<ArcSwap<Policy>>, metrics: Metrics, body_within: Duration) -> Self {
        Self { policy, metrics, memory: Budget::new(MEMORY_BYTES), body_within }
    }

    /// Answers one HTTP request.
    pub async fn answer<B: Body + Unpin>(&self, request: Request<B>) -> Reply {
        let entry = Entry::of_path(request.uri().path());
        let in_flight = self.metrics.begin(entry);
        let (outcome, reply) = match self.judge(entry, request).await {
            Ok(decision) => {
                decision.record.write();
                if let Some(bytes) = decision.patch_bytes {
                    self.metrics.patched(bytes);
                }
                (decision.outcome, reply::json(StatusCode::OK, decision.answer.to_body()))
            }
            Err(problem) => {
                let [webhook, scope] = Entry::words(entry);
                tracing::warn!(webhook, scope, problem = %problem, "a request could not be judged");
                (problem.outcome(), problem.reply())
            }
        };
        in_flight.end(outcome);
        reply
    }

    async fn judge<B: Body + Unpin>(&self, entry: Option<Entry>, request: Request<B>) -> Result<Decision, Problem> {
        let entry = entry.ok_or(Problem::NotFound)?;
        if request.method() != Method::POST {
            return Err(Problem::WrongMethod);
        }
        if !is_plain_json(request.headers()) {
            return Err(Problem::WrongContentType);
        }
        let mut body = body::read(request.into_body(), MAX_BODY_BYTES, self.body_within, &self.memory).await?;
        let review = Review::parse(&body.bytes)?;
        let weights = weigh(entry, &review);
        if weights.iter().all(|weight| *weight <= MAX_POD_BYTES) {
            body.share.take(weights.iter().sum()).map_err(BodyError::from)?;
        }
        Ok(decide(entry, &review, &self.policy.load()))
    }
}

/// What the objects in a review may cost in memory, each for itself; an old one only where it is looked at.
fn weigh(entry: Entry, review: &Review<'_>) -> [usize; 2] {
    let old = Subject::of(entry, review).is_some_and(Subject::needs_old);
    [weight::estimate(review.object.text()), if old { weight::estimate(review.old_object.text()) } else { 0 }]
}

/// Decides about a review. Pure, and in one go: hardening a pod takes less time than handing it to another thread.
#[must_use]
pub fn decide(entry: Entry, review: &Review<'_>, policy: &Policy) -> Decision {
    let record = Record::new(entry, review);
    let Some(subject) = Subject::of(entry, review) else {
        let message =
            "Cofferdam is not registered for this at this path; correct the rules of its webhook configurations";
        return denied(Outcome::Unexpected, message.to_owned(), record);
    };
    if subject.needs_old() && review.old_object.is_missing() {
        let message = "Cofferdam cannot judge the update of a pod without the pod that was there before";
        return denied(Outcome::Unexpected, message.to_owned(), record);
    }
    if weigh(entry, review).iter().any(|weight| *weight > MAX_POD_BYTES) {
        let problem = "it is too large to be judged; it has too many members";
        return given_up(subject, Outcome::TooHeavy, problem, record);
    }
    let objects = review.object.tree().and_then(|object| {
        let old = if subject.needs_old() { review.old_object.tree()? } else { Value::Null };
        Ok((object, old))
    });
    let (object, old) = match objects {
        Ok(objects) => objects,
        Err(unreadable) => return given_up(subject, Outcome::Unreadable, &unreadable.to_string(), record),
    };
    let verdict = harden(
        &Question {
            uid: Some(&review.uid),
            namespace: &review.namespace,
            scope: subject.scope(entry),
            user: User { name: &review.user_info.username, groups: &review.user_info.groups },
            operation: subject.operation(&old),
            pod: subject.pod(&object),
        },
        policy,
    );
    let record = record.of_object(&object).of_verdict(&verdict);
    if subject.is_template() {
        return advised(review, &verdict, subject.path(), record);
    }
    match verdict {
        Verdict::Untouched(_) | Verdict::Advised(_) => advised(review, &verdict, "", record),
        Verdict::Hardened(hardened) => hardened_as(review, hardened, policy, record),
        Verdict::Refused(refusal) => denied(Outcome::Refused, refusal.to_string(), record),
    }
}

/// Allowed as it is, with what there is to say.
fn advised(review: &Review<'_>, verdict: &Verdict, at: &str, record: Record) -> Decision {
    let outcome = match verdict {
        Verdict::Untouched(why) => Outcome::from(*why),
        Verdict::Refused(_) => Outcome::AdvisedRefusal,
        Verdict::Advised(advice) if advice.would_refuse => Outcome::AdvisedRefusal,
        Verdict::Hardened(_) | Verdict::Advised(_) => Outcome::Advised,
    };
    let mut answer = Answer::allow(&review.uid);
    answer.set_warnings(advice(verdict, at));
    Decision { outcome, answer, record: record.of_outcome(outcome), patch_bytes: None }
}

fn hardened_as(review: &Review<'_>, hardened: Hardened, policy: &Policy, record: Record) -> Decision {
    let mut answer = Answer::allow(&review.uid);
    let patch = &hardened.patch;
    let patch_bytes = (!patch.is_empty()).then(|| answer.set_patch(patch));
    if let Some(session) = &hardened.session {
        answer.annotate("session", session.as_str());
    }
    answer.annotate("profile", hardened.profile);
    answer.annotate("policy", policy.digest());
    // Not what the pod carries: its author can write there.
    if let Some(changes) = changes_annotation(&hardened.changes) {
        answer.annotate("changes", changes);
    }
    answer.set_warnings(hardened.warnings);
    Decision { outcome: Outcome::Hardened, answer, record: record.of_outcome(Outcome::Hardened), patch_bytes }
}

/// A pod that is not understood is not let through; a workload is no pod yet.
fn given_up(subject: Subject, outcome: Outcome, problem: &str, record: Record) -> Decision {
    if !subject.is_template() {
        return denied(outcome, format!("Cofferdam refuses this pod: {problem}"), record);
    }
    let mut answer = Answer::allow(record.uid());
    answer.set_warnings(vec![format!("Cofferdam cannot tell what becomes of these pods: {problem}")]);
    Decision { outcome, answer, record: record.of_outcome(outcome), patch_bytes: None }
}

fn denied(outcome: Outcome, message: String, record: Record) -> Decision {
    // The words of `metav1.StatusReason`.
    let (code, reason) = match outcome {
        Outcome::Refused => (StatusCode::FORBIDDEN, "Forbidden"),
        Outcome::TooHeavy => (StatusCode::PAYLOAD_TOO_LARGE, "RequestEntityTooLarge"),
        _ => (StatusCode::BAD_REQUEST, "BadRequest"),
    };
    let mut answer = Answer::deny(record.uid(), Status { code: code.as_u16(), reason, message });
    if !record.rules().is_empty() {
        answer.annotate("refused-by", record.rules());
    }
    Decision { outcome, answer, record: record.of_outcome(outcome), patch_bytes: None }
}

impl Problem {
    fn outcome(&self) -> Outcome {
        match self {
            Self::NotFound => Outcome::NotFound,
            Self::WrongMethod => Outcome::WrongMethod,
            Self::WrongContentType => Outcome::WrongContentType,
            Self::Body(BodyError::TooLarge { .. }) => Outcome::TooLarge,
            Self::Body(BodyError::TooSlow { .. }) => Outcome::TooSlow,
            Self::Body(BodyError::Exhausted) => Outcome::Overloaded,
            Self::Body(BodyError::Broken) => Outcome::BrokenOff,
            Self::Malformed(_) => Outcome::Malformed,
        }
    }

    fn reply(&self) -> Reply {
        let status = match self {
            Self::NotFound => StatusCode::NOT_FOUND,
            Self::WrongMethod => StatusCode::METHOD_NOT_ALLOWED,
            Self::WrongContentType => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::Body(BodyError::TooLarge { .. }) => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Body(BodyError::TooSlow { .. }) => StatusCode::REQUEST_TIMEOUT,
            Self::Body(BodyError::Exhausted) => StatusCode::SERVICE_UNAVAILABLE,
            Self::Body(BodyError::Broken) | Self::Malformed(_) => StatusCode::BAD_REQUEST,
        };
        let reply = reply::text(status, &self.to_string());
        match self {
            // The whole body was read, so the next request is where it should be.
            Self::Malformed(_) => reply,
            Self::WrongMethod => reply::closing(reply::with_header(reply, ALLOW, "POST")),
            Self::Body(BodyError::Exhausted) => reply::closing(reply::with_header(reply, RETRY_AFTER, "1")),
            Self::NotFound | Self::WrongContentType | Self::Body(_) => reply::closing(reply),
        }
    }
}

fn is_plain_json(headers: &HeaderMap) -> bool {
    let value = |name| headers.get(name).map(|value: &http::HeaderValue| value.to_str().unwrap_or("?"));
    let media_type = value(CONTENT_TYPE).and_then(|text| text.split(';').next()).unwrap_or_default();
    let encoding = value(CONTENT_ENCODING).unwrap_or("identity");
    media_type.trim().eq_ignore_ascii_case("application/json") && encoding.eq_ignore_ascii_case("identity")
}

#[cfg(test)]
mod tests;
