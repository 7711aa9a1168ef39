//! What the owner of a session is told of a write that failed.

use cofferdam_kubernetes::Class;

/// One sentence; nothing in it comes from the cluster (lesson L04).
#[must_use]
pub(super) fn sentence(class: Class) -> &'static str {
    match class {
        Class::Unreachable | Class::Timeout | Class::Server => "the API server does not answer; it is tried again",
        Class::Throttled => "the API server asks for fewer requests; it is tried again",
        Class::Conflict | Class::AlreadyExists | Class::Expired => "the object changed meanwhile; it is tried again",
        Class::NotFound => "the namespace or the kind of object is not there",
        Class::Forbidden => "the agent has no permission for it; docs/permissions.md lists what it needs",
        Class::Quota => "a ResourceQuota of the namespace is used up",
        Class::Unauthenticated => "the API server does not accept the agent's token",
        Class::Admission | Class::PodSecurity => {
            "an admission webhook or policy of the cluster refuses it; the agent's log says which"
        }
        Class::AdmissionUnreachable => {
            "an admission webhook of the cluster does not answer; it is tried again, and the agent's log says which"
        }
        Class::Invalid => "the API server calls it invalid; the agent's log says why",
        Class::Other => "the API server refuses it; the agent's log says why",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_person_is_told_holds_nothing_of_the_cluster() {
        for class in Class::ALL {
            let sentence = sentence(class);
            assert!(
                !sentence.contains(char::is_uppercase)
                    || sentence.contains("API server")
                    || sentence.contains("ResourceQuota"),
                "{class:?}"
            );
        }
    }
}
