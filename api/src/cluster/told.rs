//! What a client is told when the API server fails or refuses.
//!
//! Raw words name accounts, namespaces and other sessions. They go to the log alone, and a reference leads there.

use std::fmt;

use cofferdam_kubernetes::{Class, Failed};
use cofferdam_model::text::shown;

/// The names of our admission webhooks end so.
const OURS: &str = ".cofferdam.dev";

/// The longest of the webhook's reasons that is shown, in bytes: with stage and reference it fits a sentence.
const LONGEST: usize = 460;

/// Letters of a reference: none looks like another.
const LETTERS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

/// What kept us from what a client asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Trouble {
    /// The API server does not answer, or not now.
    Unreachable,
    /// A ResourceQuota of the namespace does not allow it.
    Quota,
    /// We may not do it.
    Forbidden,
    /// An admission webhook, policy or plugin refuses.
    Refused,
    /// An admission webhook does not answer.
    AdmissionUnreachable,
    /// The namespace's level of Pod Security refuses.
    PodSecurity,
    /// Nothing has hardened a pod that the API server took.
    Unhardened,
    /// Anything else.
    Other,
}

impl Trouble {
    /// Each of them.
    pub const ALL: [Self; 8] = [
        Self::Unreachable,
        Self::Quota,
        Self::Forbidden,
        Self::Refused,
        Self::AdmissionUnreachable,
        Self::PodSecurity,
        Self::Unhardened,
        Self::Other,
    ];

    /// What a failure is to a client.
    #[must_use]
    pub fn of(class: Class) -> Self {
        match class {
            Class::Unreachable | Class::Timeout | Class::Throttled | Class::Server => Self::Unreachable,
            Class::Quota => Self::Quota,
            Class::Forbidden | Class::Unauthenticated => Self::Forbidden,
            Class::Admission => Self::Refused,
            Class::AdmissionUnreachable => Self::AdmissionUnreachable,
            Class::PodSecurity => Self::PodSecurity,
            Class::Conflict
            | Class::AlreadyExists
            | Class::NotFound
            | Class::Expired
            | Class::Invalid
            | Class::Other => Self::Other,
        }
    }

    /// One sentence without its end; nothing in it comes from the cluster.
    #[must_use]
    pub fn sentence(self) -> &'static str {
        match self {
            Self::Unreachable => "the Kubernetes API server does not answer; try again in a moment",
            Self::Quota => {
                "a ResourceQuota of the namespace of sessions does not allow it; try again when other sessions have ended, \
                 and ask the operator where that does not help"
            }
            Self::Forbidden => "the Kubernetes API server does not permit it; the operator has to check the API's role",
            Self::Refused => "an admission rule of the cluster refuses it; the operator finds the reason in the log",
            Self::AdmissionUnreachable => "what checks pods before they run does not answer; try again in a moment",
            Self::PodSecurity => {
                "Pod Security of the namespace of sessions refuses it; the operator has to check that pods are hardened there"
            }
            Self::Unhardened => {
                "pods in the namespace of sessions are not hardened; the operator has to check its label and the webhook"
            }
            Self::Other => "the Kubernetes API server refuses it; the operator finds the reason in the log",
        }
    }
}

/// Tells the log all there is of a failure, and gives what a client is told. `doing` is what failed, as a log line begins:
/// `creating a pod`.
#[must_use]
pub fn tell(doing: &'static str, failed: &Failed) -> String {
    let reference = Reference::new();
    tracing::warn!(%reference, error = %failed, "{doing} failed");
    sentence(failed, &reference)
}

/// The same of a pod that the API server took as it was.
#[must_use]
pub fn tell_unhardened() -> String {
    let reference = Reference::new();
    tracing::error!(
        %reference,
        "a pod of ours was not hardened; the namespace of sessions needs the label cofferdam.dev/sessions=enforced, and the \
         cluster the webhook's configuration"
    );
    referring(Trouble::Unhardened.sentence(), &reference)
}

/// What our own webhook says is made for whoever wrote the pod, and holds nothing that could be secret. What others say may
/// hold anything.
fn sentence(failed: &Failed, reference: &Reference) -> String {
    let ours = failed.refusal().filter(|refusal| refusal.webhook.ends_with(OURS));
    match ours {
        Some(refusal) => referring(&shown(refusal.message, LONGEST), reference),
        None => referring(Trouble::of(failed.class).sentence(), reference),
    }
}

fn referring(sentence: &str, reference: &Reference) -> String {
    format!("{sentence} (reference {reference})")
}

/// What a client's sentence and a line of the log have in common.
struct Reference(String);

impl Reference {
    fn new() -> Self {
        let letter = |_| char::from(LETTERS[fastrand::usize(..LETTERS.len())]);
        Self((0..8).map(letter).collect())
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ACCOUNT: &str = "system:serviceaccount:cofferdam-system:cofferdam-api";

    fn told(code: u16, reason: &str, message: &str) -> String {
        let reference = Reference("abcd2345".to_owned());
        let text = sentence(&Failed::of_status(code, reason, message), &reference);
        text.strip_suffix(" (reference abcd2345)").unwrap().to_owned()
    }

    #[test]
    fn l04_every_message_of_an_api_server_comes_to_one_of_a_closed_set_of_sentences() {
        for (code, reason, message, trouble) in [
            (
                403,
                "Forbidden",
                format!("pods is forbidden: User \"{ACCOUNT}\" cannot create resource \"pods\" in API group \"\" in the namespace \"n\""),
                Trouble::Forbidden,
            ),
            (403, "Forbidden", String::new(), Trouble::Forbidden),
            (401, "Unauthorized", "Unauthorized".to_owned(), Trouble::Forbidden),
            (
                403,
                "Forbidden",
                "pods \"run-a\" is forbidden: exceeded quota: sessions, requested: pods=1, used: pods=32, limited: pods=32"
                    .to_owned(),
                Trouble::Quota,
            ),
            (
                403,
                "Forbidden",
                "pods \"run-a\" is forbidden: failed quota: sessions: must specify limits.cpu for: session".to_owned(),
                Trouble::Quota,
            ),
            (
                403,
                "Forbidden",
                "pods \"run-a\" is forbidden: violates PodSecurity \"restricted:latest\": runAsNonRoot != true (pod ...)"
                    .to_owned(),
                Trouble::PodSecurity,
            ),
            (
                403,
                "Forbidden",
                "admission webhook \"deny.vendor.example\" denied the request: token abc of team b".to_owned(),
                Trouble::Refused,
            ),
            (
                400,
                "BadRequest",
                "admission webhook \"not-cofferdam.dev\" denied the request: secret".to_owned(),
                Trouble::Refused,
            ),
            (
                422,
                "Invalid",
                "pods \"run-a\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no".to_owned(),
                Trouble::Refused,
            ),
            (
                500,
                "InternalError",
                "Internal error occurred: failed calling webhook \"enforced.cofferdam.dev\": failed to call webhook: Post \
                 \"https://cofferdam-webhook.cofferdam-system.svc:443/mutate/enforced?timeout=3s\": tls: failed to verify \
                 certificate: x509: certificate signed by unknown authority"
                    .to_owned(),
                Trouble::AdmissionUnreachable,
            ),
            (503, "ServiceUnavailable", "etcdserver: leader changed".to_owned(), Trouble::Unreachable),
            (429, "TooManyRequests", "too many requests".to_owned(), Trouble::Unreachable),
            (409, "AlreadyExists", "pods \"run-a\" already exists".to_owned(), Trouble::Other),
            (404, "NotFound", "namespaces \"n\" not found".to_owned(), Trouble::Other),
            (422, "Invalid", "Pod \"run-a\" is invalid: spec.x: Invalid value: \"secret\"".to_owned(), Trouble::Other),
        ] {
            assert_eq!(told(code, reason, &message), trouble.sentence(), "{message}");
        }
    }

    #[test]
    fn d11_what_our_own_webhook_says_is_told_and_cut_and_what_others_say_is_not() {
        let ours = "Cofferdam refuses this pod: spec.containers[0].image: is not allowed (image)";
        let by = |webhook: &str, message: &str| {
            told(403, "Forbidden", &format!("admission webhook \"{webhook}\" denied the request: {message}"))
        };
        assert_eq!(by("enforced.cofferdam.dev", ours), ours);
        assert_eq!(by("labelled.pods.cofferdam.dev", ours), ours);
        assert_eq!(by("cofferdam.dev.example", ours), Trouble::Refused.sentence());
        let long = by("enforced.cofferdam.dev", &"é\n".repeat(10_000));
        assert!(long.len() <= LONGEST && long.ends_with('…') && !long.contains('\n'), "{long}");
    }

    #[test]
    fn l06_who_never_answered_has_refused_nothing() {
        let refused = kube::Error::Service(Box::new(std::io::Error::from(std::io::ErrorKind::ConnectionRefused)));
        let text = sentence(&Failed::from(&refused), &Reference::new());
        assert!(text.starts_with(Trouble::Unreachable.sentence()), "{text}");
        assert_eq!(Trouble::ALL.map(Trouble::sentence).into_iter().collect::<std::collections::BTreeSet<_>>().len(), 8);
    }

    #[test]
    fn a_reference_is_another_each_time() {
        assert_ne!(Reference::new().to_string(), Reference::new().to_string());
    }
}
