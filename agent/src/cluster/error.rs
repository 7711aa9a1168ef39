//! What the API server's refusals come to: a closed set, whose words are safe to show.

use std::fmt;

/// What kept a request from success.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Class {
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
    /// A webhook or an admission policy refuses.
    Admission,
    /// The object is not valid.
    Invalid,
    /// A fault of the API server.
    Server,
    /// Anything else.
    Other,
}

impl Class {
    /// Each of them.
    pub(crate) const ALL: [Self; 14] = [
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
        Self::Invalid,
        Self::Server,
        Self::Other,
    ];

    /// Whether nothing is wrong with the request, so that the same one may succeed a moment later. A creation conflicts with
    /// others that a ResourceQuota counts at the same time.
    #[must_use]
    pub(crate) fn passes(self) -> bool {
        matches!(self, Self::Unreachable | Self::Timeout | Self::Throttled | Self::Server | Self::Conflict)
    }

    /// Whether the object was changed, deleted or made by somebody else meanwhile: for a write that holds for one version of
    /// it nothing is wrong then, and the next look shows what is to be done.
    #[must_use]
    pub(crate) fn is_outdated(self) -> bool {
        matches!(self, Self::Conflict | Self::NotFound | Self::AlreadyExists)
    }

    /// As a metric's label.
    #[must_use]
    pub(crate) fn as_str(self) -> &'static str {
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
            Self::Invalid => "invalid",
            Self::Server => "server",
            Self::Other => "other",
        }
    }

    /// One sentence for the owner of a session; nothing in it comes from the cluster (lesson L04).
    #[must_use]
    pub(crate) fn sentence(self) -> &'static str {
        match self {
            Self::Unreachable | Self::Timeout | Self::Server => "the API server does not answer; it is tried again",
            Self::Throttled => "the API server asks for fewer requests; it is tried again",
            Self::Conflict | Self::AlreadyExists | Self::Expired => "the object changed meanwhile; it is tried again",
            Self::NotFound => "the namespace or the kind of object is not there",
            Self::Forbidden => "the agent has no permission for it; docs/permissions.md lists what it needs",
            Self::Quota => "a ResourceQuota of the namespace is used up",
            Self::Unauthenticated => "the API server does not accept the agent's token",
            Self::Admission => "an admission webhook or policy of the cluster refuses it; the agent's log says which",
            Self::Invalid => "the API server calls it invalid; the agent's log says why",
            Self::Other => "the API server refuses it; the agent's log says why",
        }
    }
}

/// A request that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failed {
    /// What kept it from success.
    pub class: Class,
    /// In the API server's or the library's words: for the log alone.
    pub detail: String,
}

impl Failed {
    /// No answer in time.
    #[must_use]
    pub(crate) fn timed_out() -> Self {
        Self { class: Class::Timeout, detail: "no answer in time".to_owned() }
    }

    /// What an API server's `Status` says.
    #[must_use]
    pub(crate) fn of_status(code: u16, reason: &str, message: &str) -> Self {
        let class = match (code, reason) {
            (401, _) => Class::Unauthenticated,
            (403, _) if message.contains("exceeded quota") || message.contains("failed quota") => Class::Quota,
            // RBAC says who may not do what; what an admission plugin refuses has the same code (lesson L05).
            (403, _) if message.contains("cannot ") && message.contains(" in API group ") => Class::Forbidden,
            (403, _) => Class::Admission,
            (404, _) => Class::NotFound,
            (410, _) | (_, "Expired" | "Gone") => Class::Expired,
            (429, _) => Class::Throttled,
            (408 | 504, _) => Class::Timeout,
            // A webhook or policy may choose its own code for a refusal.
            (400 | 409 | 422, _)
                if message.contains("denied the request") || message.contains("ValidatingAdmissionPolicy") =>
            {
                Class::Admission
            }
            (400 | 422, _) => Class::Invalid,
            (409, "AlreadyExists") => Class::AlreadyExists,
            (409, _) => Class::Conflict,
            (500, _) if message.contains("failed calling webhook") => Class::Admission,
            (500..=599, _) => Class::Server,
            _ => Class::Other,
        };
        Self { class, detail: format!("{code} {reason}: {message}") }
    }
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
            (400, "BadRequest", "admission webhook \"w\" denied the request: no", Class::Admission),
            (409, "Conflict", "admission webhook \"w\" denied the request: not now", Class::Admission),
            (422, "Invalid", "spec.ports: Required value", Class::Invalid),
            (500, "InternalError", "failed calling webhook \"w\": refused", Class::Admission),
            (503, "ServiceUnavailable", "", Class::Server),
            (429, "TooManyRequests", "", Class::Throttled),
            (418, "", "", Class::Other),
        ] {
            assert_eq!(Failed::of_status(code, reason, message).class, class, "{code} {message}");
        }
    }

    #[test]
    fn what_a_person_is_told_holds_nothing_of_the_cluster() {
        for class in Class::ALL {
            assert!(
                !class.sentence().contains(char::is_uppercase)
                    || class.sentence().contains("API server")
                    || class.sentence().contains("ResourceQuota"),
                "{class:?}"
            );
        }
    }
}
