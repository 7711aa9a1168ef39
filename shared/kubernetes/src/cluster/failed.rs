//! What the API server's refusals come to: a closed set, which says nothing of the cluster.

use std::fmt;

/// What kept a request from success.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    /// The API server takes no connection, or breaks one off.
    Unreachable,
    /// It does not answer in time.
    Timeout,
    /// It asks for less.
    Throttled,
    /// The object is not what it was.
    Conflict,
    /// An object of that name is there.
    AlreadyExists,
    /// What is asked for is not there.
    NotFound,
    /// The version that is asked for is too old: list anew (Kubernetes: resource versions, 410 Gone).
    Expired,
    /// No permission.
    Forbidden,
    /// No more objects of that kind, or no more resources, in the namespace.
    Quota,
    /// The API server does not know us.
    Unauthenticated,
    /// A webhook, an admission policy or plugin refuses.
    Admission,
    /// An admission webhook does not answer, or not as one that the API server trusts (case B95).
    AdmissionUnreachable,
    /// The namespace's level of Pod Security refuses.
    PodSecurity,
    /// The object is not valid.
    Invalid,
    /// A fault of the API server.
    Server,
    /// Anything else.
    Other,
}

impl Class {
    /// Each of them.
    pub const ALL: [Self; 16] = [
        Self::Unreachable,
        Self::Timeout,
        Self::Throttled,
        Self::Conflict,
        Self::AlreadyExists,
        Self::NotFound,
        Self::Expired,
        Self::Forbidden,
        Self::Quota,
        Self::Unauthenticated,
        Self::Admission,
        Self::AdmissionUnreachable,
        Self::PodSecurity,
        Self::Invalid,
        Self::Server,
        Self::Other,
    ];

    /// Whether nothing is wrong with the request, so that the same one may succeed a moment later. A creation conflicts with
    /// others that a ResourceQuota counts at the same time.
    #[must_use]
    pub fn passes(self) -> bool {
        matches!(
            self,
            Self::Unreachable
                | Self::Timeout
                | Self::Throttled
                | Self::Conflict
                | Self::AdmissionUnreachable
                | Self::Server
        )
    }

    /// Whether the object was changed, deleted or made by somebody else meanwhile: for a write that holds for one version of
    /// it nothing is wrong then, and the next look shows what is to be done.
    #[must_use]
    pub fn is_outdated(self) -> bool {
        matches!(self, Self::Conflict | Self::NotFound | Self::AlreadyExists)
    }

    /// As a metric's label.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Unreachable => "unreachable",
            Self::Timeout => "timeout",
            Self::Throttled => "throttled",
            Self::Conflict => "conflict",
            Self::AlreadyExists => "already_exists",
            Self::NotFound => "not_found",
            Self::Expired => "expired",
            Self::Forbidden => "forbidden",
            Self::Quota => "quota",
            Self::Unauthenticated => "unauthenticated",
            Self::Admission => "admission",
            Self::AdmissionUnreachable => "admission_unreachable",
            Self::PodSecurity => "pod_security",
            Self::Invalid => "invalid",
            Self::Server => "server",
            Self::Other => "other",
        }
    }
}

/// A request that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failed {
    /// What kept it from success.
    pub class: Class,
    /// In the API server's or the library's words: for the log alone.
    pub detail: String,
}

impl Failed {
    /// No answer in time.
    #[must_use]
    pub fn timed_out() -> Self {
        Self { class: Class::Timeout, detail: "no answer in time".to_owned() }
    }

    /// An answer that is not what was asked for. Of the answer itself nothing is said: it may be a Secret.
    pub(super) fn unreadable(error: &serde_json::Error) -> Self {
        let (what, line, column) = (error.classify(), error.line(), error.column());
        Self { class: Class::Other, detail: format!("the answer cannot be read: {what:?} at {line}:{column}") }
    }

    /// What an API server's `Status` says.
    #[must_use]
    pub fn of_status(code: u16, reason: &str, message: &str) -> Self {
        // What plugins say comes after it; what it is about comes before, in words of whoever asks.
        let refused = message.split_once(" is forbidden: ").map(|(_, why)| why).unwrap_or_default();
        let class = match (code, reason) {
            // Webhooks and policies choose their own code for a refusal, and may repeat in its message what they were asked.
            _ if message.starts_with(WEBHOOK) && message.contains("\" denied the request") => Class::Admission,
            (400..=499, _) if refused.starts_with("ValidatingAdmissionPolicy '") => Class::Admission,
            (401, _) => Class::Unauthenticated,
            (403, _) if QUOTA.iter().any(|words| refused.starts_with(words)) => Class::Quota,
            (403, _) if refused.starts_with("violates PodSecurity") => Class::PodSecurity,
            // RBAC says who may not do what; what an admission plugin refuses has the same code (lesson L05).
            (403, _) if message.is_empty() || message.contains("cannot ") && message.contains(" in API group ") => {
                Class::Forbidden
            }
            (403, _) => Class::Admission,
            (404, _) => Class::NotFound,
            (409, "AlreadyExists") => Class::AlreadyExists,
            (409, _) => Class::Conflict,
            (410, _) | (_, "Expired" | "Gone") => Class::Expired,
            (429, _) => Class::Throttled,
            (408 | 504, _) => Class::Timeout,
            (400 | 422, _) => Class::Invalid,
            (500..=599, _) if message.contains("failed calling webhook") => Class::AdmissionUnreachable,
            (500..=599, _) => Class::Server,
            _ => Class::Other,
        };
        Self { class, detail: format!("{code} {reason}: {message}") }
    }

    /// The same without the API server's words, which may repeat what it was asked.
    pub(super) fn without_message(self) -> Self {
        let detail = self.detail.split_once(": ").map_or(self.detail.as_str(), |(what, _)| what).to_owned();
        Self { detail, ..self }
    }

    /// Which admission webhook refused, and with what words; none where none did, or said nothing.
    ///
    /// They may hold what the request held. Whose webhook it is, and so whether they may be shown, the reader knows.
    #[must_use]
    pub fn refusal(&self) -> Option<Refusal<'_>> {
        let (_, message) = self.detail.split_once(": ")?;
        let (webhook, message) = message.strip_prefix(WEBHOOK)?.split_once("\" denied the request: ")?;
        Some(Refusal { webhook, message })
    }
}

/// How it begins to say that a ResourceQuota does not allow it: used up, not computed yet, or more is to be said of what
/// counts there.
const QUOTA: [&str; 3] = ["exceeded quota", "status unknown for quota", "failed quota"];

/// How the API server begins to say that an admission webhook refused.
const WEBHOOK: &str = "admission webhook \"";

/// The refusal of an admission webhook.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal<'a> {
    /// Its name, such as `enforced.cofferdam.dev`.
    pub webhook: &'a str,
    /// What it says.
    pub message: &'a str,
}

impl From<&kube::Error> for Failed {
    fn from(error: &kube::Error) -> Self {
        let detail = || cofferdam_runtime::errors::with_causes(error);
        match error {
            kube::Error::Api(status) => Self::of_status(status.code, &status.reason, &status.message),
            kube::Error::Service(_) | kube::Error::HyperError(_) | kube::Error::ReadEvents(_) => {
                Self { class: Class::Unreachable, detail: detail() }
            }
            _ => Self { class: Class::Other, detail: detail() },
        }
    }
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.detail, self.class.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_are_told_apart_by_what_can_be_done_about_them() {
        for (code, reason, message, class) in [
            (
                403,
                "Forbidden",
                "services is forbidden: User \"u\" cannot create resource \"services\" in API group \"\" in the namespace \"n\"",
                Class::Forbidden,
            ),
            (403, "Forbidden", "services \"s\" is forbidden: exceeded quota: q, requested: services=1", Class::Quota),
            (
                403,
                "Forbidden",
                "services \"s\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no",
                Class::Admission,
            ),
            (409, "AlreadyExists", "services \"s\" already exists", Class::AlreadyExists),
            (409, "Conflict", "the object has been modified", Class::Conflict),
            (410, "Expired", "too old resource version", Class::Expired),
            (410, "Gone", "", Class::Expired),
            (403, "Forbidden", "services \"s\" is forbidden: failed quota: q: must specify limits.cpu", Class::Quota),
            (403, "Forbidden", "pods \"p\" is forbidden: status unknown for quota: q, resources: pods", Class::Quota),
            (
                403,
                "Forbidden",
                "pods \"p\" is forbidden: violates PodSecurity \"restricted:latest\": seccompProfile (...)",
                Class::PodSecurity,
            ),
            (403, "Forbidden", "pods \"p\" is forbidden: maximum cpu usage per Container is 1", Class::Admission),
            (403, "Forbidden", "", Class::Forbidden),
            (400, "BadRequest", "admission webhook \"w\" denied the request: no", Class::Admission),
            (
                422,
                "Invalid",
                "pods \"p\" is forbidden: ValidatingAdmissionPolicy 'p' denied request: no",
                Class::Admission,
            ),
            (409, "Conflict", "admission webhook \"w\" denied the request: not now", Class::Admission),
            (404, "NotFound", "admission webhook \"w\" denied the request without explanation", Class::Admission),
            // The pod says so, and nobody else.
            (422, "Invalid", "Pod \"p\" is invalid: spec.x: \"a\" denied the request", Class::Invalid),
            (
                403,
                "Forbidden",
                "admission webhook \"w\" denied the request: \"a is forbidden: exceeded quota\" is no image",
                Class::Admission,
            ),
            (422, "Invalid", "spec.ports: Required value", Class::Invalid),
            (500, "InternalError", "failed calling webhook \"w\": refused", Class::AdmissionUnreachable),
            (503, "ServiceUnavailable", "", Class::Server),
            (429, "TooManyRequests", "", Class::Throttled),
            (418, "", "", Class::Other),
        ] {
            assert_eq!(Failed::of_status(code, reason, message).class, class, "{code} {message}");
        }
    }

    #[test]
    fn b95_a_webhook_whose_certificate_is_not_trusted_yet_may_be_in_a_moment() {
        let message = "Internal error occurred: failed calling webhook \"enforced.cofferdam.dev\": failed to call webhook: \
                       Post \"https://w.n.svc:443/mutate/enforced?timeout=3s\": tls: failed to verify certificate: x509: \
                       certificate signed by unknown authority";
        let failed = Failed::of_status(500, "InternalError", message);
        assert_eq!((failed.class, failed.class.passes()), (Class::AdmissionUnreachable, true));
        assert_eq!(failed.refusal(), None);
    }

    #[test]
    fn which_webhook_refuses_and_why_is_told_by_its_own_words_alone() {
        let by = |message: &str| Failed::of_status(403, "Forbidden", message);
        let told = |webhook, message| Some(Refusal { webhook, message });
        for (message, refusal) in [
            ("admission webhook \"w.example\" denied the request: a: b", told("w.example", "a: b")),
            (
                "admission webhook \"w\" denied the request: \" denied the request: x",
                told("w", "\" denied the request: x"),
            ),
            ("admission webhook \"w\" denied the request without explanation", None),
            ("pods \"admission webhook \"w\" denied the request: x\" is forbidden: no", None),
            ("", None),
        ] {
            assert_eq!(by(message).refusal(), refusal, "{message}");
        }
    }
}
