//! The host name of a session's port.

use sha2::{Digest, Sha256};

use crate::{
    glob::escaped,
    policy::Routing,
    session::{ALPHABET, SessionId},
};

/// Characters of a namespace's hash, all that a label has room for: 25 bits, so that namespaces of one cluster do not
/// meet by chance. Whoever may name namespaces at will can search for one that meets another. A Gateway then serves the
/// older route, and the newer one's probe finds no proof.
const HASH: usize = 5;

/// A regular expression, neither anchored nor minding case, that matches what can be the host of a session's port and
/// nothing else: a port and whatever stands behind it, one label below the base domain. None where routing is off.
pub(crate) fn pattern(routing: &Routing) -> Option<String> {
    let domain = routing.base_domain.as_ref().filter(|_| routing.is_on())?;
    Some(format!(r"(?i:[1-9][0-9]{{0,4}}-[a-z0-9-]+\.{})", escaped(domain)))
}

/// The host of a port: one label below the base domain, so that one wildcard record and certificate cover all
/// (case B127). In the one namespace that is home it is `<port>-<id>`, elsewhere `<port>-<id>--<hash of the namespace>`,
/// so that no two namespaces want the same. None where routing is off.
#[must_use]
pub fn host(port: u16, id: &SessionId, namespace: &str, routing: &Routing) -> Option<String> {
    let domain = routing.base_domain.as_ref().filter(|_| routing.is_on())?;
    if routing.home_namespace.as_deref() == Some(namespace) {
        return Some(format!("{port}-{id}.{domain}"));
    }
    let digest = Sha256::digest(namespace.as_bytes());
    let hash: String = digest.iter().take(HASH).map(|byte| char::from(ALPHABET[usize::from(byte % 32)])).collect();
    Some(format!("{port}-{id}--{hash}.{domain}"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use regex::Regex;

    use super::*;
    use crate::{
        names::{LABEL, is_dns_label, is_dns_name},
        policy::RoutingMode,
    };

    fn routing(domain: &str) -> Routing {
        Routing { base_domain: Some(domain.to_owned()), ..Routing::default() }
    }

    fn host_of(port: u16, id: &str, namespace: &str) -> String {
        host(port, &SessionId::parse(id).unwrap(), namespace, &routing("example.com")).unwrap()
    }

    #[test]
    fn rte_10_a_host_says_its_namespace_everywhere_but_at_home() {
        assert_eq!(host_of(3000, "abc", "cofferdam-sessions"), "3000-abc.example.com");
        // The same from release to release: people keep addresses, and agents of two releases run side by side.
        assert_eq!(host_of(3000, "abc", "team-a"), "3000-abc--wcimr.example.com");
    }

    #[test]
    fn there_is_no_host_where_nothing_routes() {
        let id = SessionId::parse("abc").unwrap();
        assert_eq!(host(3000, &id, "team-a", &Routing::default()), None);
        let off = Routing { mode: RoutingMode::None, ..routing("example.com") };
        assert_eq!(host(3000, &id, "team-a", &off), None);
    }

    fn pattern_of(routing: &Routing) -> Option<Regex> {
        pattern(routing).map(|pattern| Regex::new(&format!("^(?:{pattern})$")).unwrap())
    }

    #[test]
    fn what_is_no_host_of_a_session_is_not_taken_for_one() {
        let pattern = pattern_of(&routing("example.com")).unwrap();
        assert!(pattern.is_match("3000-abc.example.com") && pattern.is_match("3000-ABC--wcimr.Example.COM"));
        for free in [
            "*.example.com",
            "*.3000-abc.example.com",
            "a.3000-abc.example.com",
            "3000-a.b.example.com",
            "3000-abc.example.com.example.org",
            "3000-abc.exampleXcom",
            "3000-abc.other.com",
            "3000.example.com",
            "0-abc.example.com",
            "300000-abc.example.com",
            "web-3000.example.com",
            "example.com",
            "",
        ] {
            assert!(!pattern.is_match(free), "{free}");
        }
        assert!(pattern_of(&Routing { mode: RoutingMode::None, ..routing("example.com") }).is_none());
        assert!(pattern_of(&Routing::default()).is_none());
    }

    #[test]
    fn b115_the_longest_host_below_the_longest_domain_is_a_dns_name() {
        let labels = ["a".repeat(63), "b".repeat(63), "c".repeat(61)];
        let text = format!("profiles: {{default: {{}}}}\nrouting: {{baseDomain: {}}}", labels.join("."));
        let policy = crate::policy::Policy::parse("policy.yaml", &text).unwrap();
        let id = SessionId::parse(&"z".repeat(50)).unwrap();
        let longest = host(u16::MAX, &id, "team-a", policy.routing()).unwrap();
        assert_eq!(longest.len(), 253);
        assert!(is_dns_name(&longest), "{longest}");
    }

    fn id() -> impl Strategy<Value = SessionId> {
        prop_oneof!["[a-z0-9]{1,2}(-[a-z0-9]{1,2}){0,3}", "[a-z0-9]{50}", "[a-z0-9](-[a-z0-9]){24}"]
            .prop_map(|id| SessionId::parse(&id).unwrap())
    }

    /// Where a session is; at home among others.
    fn namespace() -> impl Strategy<Value = String> {
        prop_oneof![Just("cofferdam-sessions".to_owned()), "[a-z]{1,2}", "[a-z0-9][a-z0-9-]{0,61}[a-z0-9]"]
    }

    proptest! {
        #[test]
        fn b127_a_host_is_one_label_below_the_base_domain(port in 1_u16.., id in id(), namespace in namespace()) {
            let host = host(port, &id, &namespace, &routing("example.com")).unwrap();
            let label = host.strip_suffix(".example.com").unwrap();
            prop_assert!(is_dns_label(label, LABEL), "{}", label);
            prop_assert!(pattern_of(&routing("example.com")).unwrap().is_match(&host), "{}", host);
        }

        #[test]
        fn no_two_ports_sessions_or_namespaces_have_the_same_host(
            ports in (1_u16..100, 1_u16..100),
            ids in (id(), id()),
            namespaces in (namespace(), namespace()),
        ) {
            let routing = routing("example.com");
            let one = host(ports.0, &ids.0, &namespaces.0, &routing);
            for (port, id, namespace) in [
                (ports.1, &ids.1, &namespaces.1),
                (ports.1, &ids.0, &namespaces.0),
                (ports.0, &ids.1, &namespaces.0),
                (ports.0, &ids.0, &namespaces.1),
            ] {
                let is_same = (port, id, namespace) == (ports.0, &ids.0, &namespaces.0);
                prop_assert_eq!(host(port, id, namespace, &routing) == one, is_same);
            }
        }
    }
}
