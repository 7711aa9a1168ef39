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
//! | a review of anything but the creation of a pod | denied, 400 | `unexpected` |
//! | a pod that cannot be read, or is too large | denied, 400 or 413 | `unreadable`, `too-heavy` |
//! | a pod that is none of our business | allowed | `not-a-session`, `exempt-namespace`, `mirror-pod` |
//! | a pod that can be made safe | allowed with a patch | `hardened` |
//! | a pod that cannot | denied, 403 | `refused` |
//! | a client that leaves in the middle | none | `abandoned` |
//! | a panic (caught where the connection is served) | 500 | `panicked` |
//!
//! "Denied" is an answer of HTTP status 200 with the request's uid on it. What an API server makes of any other status
//! is up to the `failurePolicy`, so nothing that we ourselves failed at is ever a denial.

use std::time::Duration;

use cofferdam_model::policy::Policy;
use cofferdam_model::{Hardened, Operation, Request as Question, Scope, User, Verdict, changes_annotation, harden};
use cofferdam_runtime::http::{BodyError, Budget, Reply, body, reply};
use http::header::{ALLOW, CONTENT_ENCODING, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderMap, Method, Request, StatusCode};
use hyper::body::Body;

use crate::metrics::Metrics;
use crate::record::Record;
use crate::review::{Answer, Malformed, Review, Status};
use crate::weight;

mod outcome;

pub use outcome::{Entry, Outcome};

/// An API server takes no object of more than 3 MiB. A review carries two of them, the object and on an update the old
/// one; 1 MiB more holds the rest.
pub const MAX_BODY_BYTES: usize = 7 * 1024 * 1024;

/// What all requests together may hold: half of the memory that the manifests give the container. The other half is
/// for connections, the policy and the program.
pub const MEMORY_BYTES: usize = 64 * 1024 * 1024;

/// What judging one pod may take of it, so that one creator cannot leave the others without. By [`weight::estimate`]
/// it holds every pod that etcd would store (1.5 MiB) of up to some 5,000 objects; pods have a few hundred.
pub const MAX_POD_BYTES: usize = MEMORY_BYTES / 4;

/// Judges reviews by one policy.
#[derive(Debug)]
pub struct Admission {
    policy: Policy,
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
    #[error("there are /mutate/enforced and /mutate/labelled here")]
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
    /// Judges by `policy`; a body may take `body_within` to arrive.
    #[must_use]
    pub fn new(policy: Policy, metrics: Metrics, body_within: Duration) -> Self {
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
                tracing::warn!(scope = entry.as_str(), problem = %problem, "a request could not be judged");
                (problem.outcome(), problem.reply())
            }
        };
        in_flight.end(outcome);
        reply
    }

    async fn judge<B: Body + Unpin>(&self, entry: Entry, request: Request<B>) -> Result<Decision, Problem> {
        let scope = entry.scope().ok_or(Problem::NotFound)?;
        if request.method() != Method::POST {
            return Err(Problem::WrongMethod);
        }
        if !is_plain_json(request.headers()) {
            return Err(Problem::WrongContentType);
        }
        let mut body = body::read(request.into_body(), MAX_BODY_BYTES, self.body_within, &self.memory).await?;
        let review = Review::parse(&body.bytes)?;
        let weight = weight::estimate(review.object_text());
        if weight > MAX_POD_BYTES {
            return Ok(too_heavy(entry, &review));
        }
        body.share.take(weight).map_err(BodyError::from)?;
        Ok(decide(entry, scope, &review, &self.policy))
    }
}

/// Decides about a review. Pure, and in one go: hardening a pod takes less time than handing it to another thread.
#[must_use]
pub fn decide(entry: Entry, scope: Scope, review: &Review<'_>, policy: &Policy) -> Decision {
    if !review.creates_a_pod() {
        let message = "Cofferdam judges the creation of pods and nothing else; correct the rules of its webhook \
                       configuration";
        return denied(Outcome::Unexpected, StatusCode::BAD_REQUEST, message.to_owned(), Record::new(entry, review));
    }
    let pod = match review.object() {
        Ok(pod) => pod,
        Err(unreadable) => {
            let message = format!("Cofferdam cannot read this pod: {unreadable}");
            return denied(Outcome::Unreadable, StatusCode::BAD_REQUEST, message, Record::new(entry, review));
        }
    };
    let verdict = harden(
        &Question {
            uid: Some(&review.uid),
            namespace: &review.namespace,
            scope,
            user: User { name: &review.user_info.username, groups: &review.user_info.groups },
            operation: Operation::Create,
            pod: &pod,
        },
        policy,
    );
    let record = Record::new(entry, review).of_pod(&pod).of_verdict(&verdict);
    match verdict {
        Verdict::Untouched(why) => {
            let outcome = Outcome::from(why);
            Decision { outcome, answer: Answer::allow(&review.uid), record: record.named(outcome), patch_bytes: None }
        }
        Verdict::Advised(advice) => {
            let mut answer = Answer::allow(&review.uid);
            answer.set_warnings(advice.warnings);
            Decision { outcome: Outcome::Hardened, answer, record, patch_bytes: None }
        }
        Verdict::Hardened(hardened) => hardened_as(review, hardened, policy, record),
        Verdict::Refused(refusal) => {
            let mut decision = denied(Outcome::Refused, StatusCode::FORBIDDEN, refusal.to_string(), record);
            decision.answer.annotate("refused-by", decision.record.rules());
            decision
        }
    }
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
    Decision { outcome: Outcome::Hardened, answer, record: record.named(Outcome::Hardened), patch_bytes }
}

fn too_heavy(entry: Entry, review: &Review<'_>) -> Decision {
    let message = "Cofferdam refuses this pod: it is too large to be judged; it has too many members";
    denied(Outcome::TooHeavy, StatusCode::PAYLOAD_TOO_LARGE, message.to_owned(), Record::new(entry, review))
}

fn denied(outcome: Outcome, code: StatusCode, message: String, record: Record) -> Decision {
    // The words of `metav1.StatusReason`.
    let reason = match code {
        StatusCode::FORBIDDEN => "Forbidden",
        StatusCode::PAYLOAD_TOO_LARGE => "RequestEntityTooLarge",
        _ => "BadRequest",
    };
    let answer = Answer::deny(record.uid(), Status { code: code.as_u16(), reason, message });
    Decision { outcome, answer, record: record.named(outcome), patch_bytes: None }
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
