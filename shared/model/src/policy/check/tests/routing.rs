use std::net::IpAddr;

use crate::policy::{
    ParentGateway, Policy, PolicyError, ProbeAddress, ProbeHost, ProofMode, PublicUrl, Routing, RoutingMode, Scheme,
};
use crate::testing::CERTIFICATES;

/// The routing of a file that says only this about it; the first of these lines is the third.
fn routing(lines: &str) -> Result<Routing, PolicyError> {
    let text = format!("profiles: {{default: {{}}}}\nrouting:\n  {}\n", lines.replace('\n', "\n  "));
    Policy::parse("policy.yaml", &text).map(|policy| policy.routing().clone())
}

/// That what is said about each of these begins like this.
fn expect_of_routing(wrong: &[(&str, &str)]) {
    for (lines, message) in wrong {
        let error = routing(lines).unwrap_err().to_string();
        assert!(error.starts_with(message), "{lines}\n{error}");
    }
}

#[test]
fn a_file_of_before_there_were_agents_still_loads() {
    for mode in ["auto", "gateway", "ingress", "none"] {
        let routing = routing(&format!("baseDomain: example.com\nmode: {mode}")).unwrap();
        assert_eq!(
            routing,
            Routing { base_domain: routing.base_domain.clone(), mode: routing.mode, ..Routing::default() }
        );
    }
}

#[test]
fn rte_02_a_mode_is_one_of_four_and_auto_where_none_is_said() {
    for (said, mode) in [
        ("auto", RoutingMode::Auto),
        ("ingress", RoutingMode::Ingress),
        ("gateway", RoutingMode::Gateway),
        ("none", RoutingMode::None),
    ] {
        assert_eq!(routing(&format!("mode: {said}")).unwrap().mode, mode);
    }
    assert_eq!(routing("baseDomain: example.com").unwrap().mode, RoutingMode::Auto);
    for unknown in ["nginx", "Auto", "off", "''"] {
        let message = format!(
            "policy.yaml:3: `mode` is `{}`, but must be one of auto, gateway, ingress, none",
            unknown.trim_matches('\'')
        );
        expect_of_routing(&[(&format!("mode: {unknown}"), &message)]);
    }
}

#[test]
fn what_routes_are_made_of_is_said_in_names() {
    expect_of_routing(&[
        ("gateway:\n  name: Web", "policy.yaml:4: `name` must be the name of a Gateway, or empty"),
        (
            "gateway:\n  name: a\n  namespace: b.c",
            "policy.yaml:5: `namespace` must be the name of the Gateway's namespace",
        ),
        ("gateway:\n  name: a", "policy.yaml:4: `name` means nothing without the Gateway's `namespace`; add that"),
        (
            "gateway:\n  name: a\n  namespace: ''",
            "policy.yaml:4: `name` means nothing without the Gateway's `namespace`",
        ),
        (
            "gateway:\n  namespace: n\n  name: a\n  listener: b_c",
            "policy.yaml:6: `listener` must be the name of a listener",
        ),
        ("gateway:\n  namespace: a", "policy.yaml:4: `namespace` means nothing without the Gateway's `name`; add that"),
        ("gateway: {name: '', listener: a}", "policy.yaml:3: `listener` means nothing without the Gateway's `name`"),
        ("ingress:\n  className: a b", "policy.yaml:4: `className` must be the name of an IngressClass, or empty"),
        ("ingress:\n  tlsSecret: a/b", "policy.yaml:4: `tlsSecret` must be the name of a Secret, or empty"),
        ("homeNamespace: team-*", "policy.yaml:3: `homeNamespace` must be the name of one namespace, or empty"),
        ("homeNamespace: a, b", "policy.yaml:3: `homeNamespace` must be the name of one namespace, or empty"),
        ("homeNamespace: [a, b]", "policy.yaml:3: `homeNamespace` must be"),
        ("home: [a]", "policy.yaml:3: "),
    ]);
    let said = routing(
        "gateway: {name: web, namespace: infra, listener: https}\nhomeNamespace: a\ningress: {className: nginx}",
    );
    let said = said.unwrap();
    let parent = ParentGateway { name: "web".into(), namespace: "infra".into(), listener: Some("https".into()) };
    assert_eq!(said.gateway, Some(parent));
    assert_eq!((said.home_namespace.as_deref(), said.ingress_class.as_deref()), (Some("a"), Some("nginx")));
    let empty =
        "gateway: {name: '', namespace: '', listener: ''}\ningress: {className: '', tlsSecret: ''}\nhomeNamespace: ''";
    assert_eq!(routing(empty).unwrap(), Routing { home_namespace: None, ..Routing::default() });
}

#[test]
fn rte_08_a_secret_that_a_gateway_would_ignore_is_refused() {
    let message =
        "`tlsSecret` is for Ingresses, and the routes are a Gateway's: give its listener the certificate, and";
    for (lines, line) in [
        ("mode: gateway\ningress:\n  tlsSecret: a", 5),
        ("ingress: {tlsSecret: a}\nmode: gateway", 3),
        ("gateway: {name: web, namespace: infra}\ningress:\n  tlsSecret: a", 5),
        ("mode: auto\ningress: {className: nginx, tlsSecret: a}\ngateway: {name: web, namespace: infra}", 4),
    ] {
        expect_of_routing(&[(lines, &format!("policy.yaml:{line}: {message}"))]);
    }
    for lines in [
        "ingress: {tlsSecret: a}",
        "mode: ingress\ngateway: {name: web, namespace: infra}\ningress: {tlsSecret: a}",
        "mode: none\ngateway: {name: web, namespace: infra}\ningress: {tlsSecret: a}",
        "mode: gateway\ningress: {tlsSecret: ''}",
    ] {
        assert!(routing(lines).is_ok(), "{lines}");
    }
}

#[test]
fn rte_10_addresses_are_shown_as_browsers_spell_them() {
    expect_of_routing(&[
        ("publicURL:\n  scheme: ftp", "policy.yaml:4: `scheme` is `ftp`, but must be one of http, https"),
        ("publicURL:\n  port: 65536", "policy.yaml:4: `port` must be a whole number from 0 to 65535"),
        ("publicURL:\n  port: -1", "policy.yaml:4: `port` must be a whole number from 0 to 65535"),
    ]);
    for (lines, url) in [
        ("{}", "https://a.example.com/"),
        ("{port: 443}", "https://a.example.com/"),
        ("{port: 8443}", "https://a.example.com:8443/"),
        ("{scheme: http, port: 80}", "http://a.example.com/"),
        ("{scheme: http, port: 443}", "http://a.example.com:443/"),
        ("{scheme: https, port: 0}", "https://a.example.com/"),
    ] {
        let url_of: PublicUrl = routing(&format!("publicURL: {lines}")).unwrap().public_url;
        assert_eq!(url_of.of("a.example.com"), url, "{lines}");
    }
}

#[test]
fn a_proof_is_asked_for_in_words_that_some_readers_of_yaml_take_for_switches() {
    for (word, proof) in
        [("auto", ProofMode::Auto), ("on", ProofMode::On), ("'on'", ProofMode::On), ("off", ProofMode::Off)]
    {
        assert_eq!(routing(&format!("proof: {word}")).unwrap().proof, proof, "{word}");
    }
    expect_of_routing(&[
        ("proof: true", "policy.yaml:3: `proof` is `true`, but must be one of auto, on, off"),
        ("proof: 'yes'", "policy.yaml:3: `proof` is `yes`, but must be one of auto, on, off"),
    ]);
}

#[test]
fn a_deadline_and_failures_are_within_reason() {
    expect_of_routing(&[
        ("deadlineSeconds: 0", "policy.yaml:3: `deadlineSeconds` must be a whole number from 1 to 3600"),
        ("deadlineSeconds: 3601", "policy.yaml:3: `deadlineSeconds` must be a whole number from 1 to 3600"),
        ("failures: 0", "policy.yaml:3: `failures` must be a whole number from 1 to 100"),
        ("failures: 101", "policy.yaml:3: `failures` must be a whole number from 1 to 100"),
        ("failures: three", "policy.yaml:3: `failures` must be a whole number"),
    ]);
    let routing = routing("deadlineSeconds: 3600\nfailures: 1").unwrap();
    assert_eq!((routing.deadline_seconds, routing.failures), (3600, 1));
}

#[test]
fn a_probe_goes_to_an_address_or_to_a_name_with_a_port() {
    let by_number =
        |address: &str, port| ProbeAddress { host: ProbeHost::Address(address.parse::<IpAddr>().unwrap()), port };
    for (text, address) in [
        ("10.0.0.7", by_number("10.0.0.7", None)),
        ("10.0.0.7:8443", by_number("10.0.0.7", Some(8443))),
        ("fd00::7", by_number("fd00::7", None)),
        ("[fd00::7]:8443", by_number("fd00::7", Some(8443))),
        ("gw.example.com:443", ProbeAddress { host: ProbeHost::Name("gw.example.com".to_owned()), port: Some(443) }),
        ("localhost:1", ProbeAddress { host: ProbeHost::Name("localhost".to_owned()), port: Some(1) }),
    ] {
        assert_eq!(address.to_string(), text);
        assert_eq!(routing(&format!("probe: {{address: '{text}'}}")).unwrap().probe.address, Some(address));
    }
    for wrong in [
        "gw.example.com",
        "10.0.0.256",
        "10.0.0.256:80",
        "10.0.0.7:0",
        "10.0.0.7:65536",
        "10.0.0.7:+80",
        "10.0.0.7:",
        "[fd00::7]",
        "[10.0.0.7]:80",
        "[gw.example.com]:80",
        "fd00::7%eth0",
        "https://10.0.0.7",
        "https://gw.example.com:443",
        "gw.example.com:443/",
        "GW.example.com:443",
        ":443",
        " ",
    ] {
        let message = "policy.yaml:4: `address` must be an IP address, with or without a port, or a name with one";
        expect_of_routing(&[(&format!("probe:\n  address: '{wrong}'"), message)]);
    }
    // A colon before the last group reads as one of the address.
    assert_eq!(routing("probe: {address: 'fd00::7:80'}").unwrap().probe.address, Some(by_number("fd00::7:80", None)));
    assert_eq!(routing("probe: {address: ''}").unwrap().probe.address, None);
}

#[test]
fn a_probe_speaks_what_the_listener_speaks_or_what_is_said() {
    for (word, scheme) in [("''", None), ("http", Some(Scheme::Http)), ("https", Some(Scheme::Https))] {
        assert_eq!(routing(&format!("probe: {{scheme: {word}}}")).unwrap().probe.scheme, scheme);
    }
    expect_of_routing(&[
        ("probe:\n  scheme: htps", "policy.yaml:4: `scheme` must be http, https or empty; did you mean `https`?"),
        (
            "probe:\n  scheme: tls",
            "policy.yaml:4: `scheme` must be http, https or empty; leave it empty for what the listener speaks",
        ),
    ]);
}

#[test]
fn a_bundle_holds_certificates_and_nothing_secret() {
    let block = |kind: &str, body: &str| format!("-----BEGIN {kind}-----\n{body}\n-----END {kind}-----\n");
    let with = |bundle: &str| routing(&format!("probe:\n    caBundle: |\n      {}", bundle.replace('\n', "\n      ")));
    let [one, two] = CERTIFICATES;
    assert_eq!(with(one).unwrap().probe.ca_bundle.unwrap().trim_end(), one.trim_end());
    assert!(with(&format!("# subject: CN=root\n{one}{two}")).is_ok());
    assert!(with(&format!("{one}{}", block("X509 CRL", "MIIB"))).is_ok(), "what is no certificate is passed over");
    assert_eq!(routing("probe: {caBundle: ''}").unwrap().probe.ca_bundle, None);
    let no_certificates = "`caBundle` must hold certificates in PEM, each from `-----BEGIN CERTIFICATE-----` to";
    let none_at = |position| format!("`caBundle` must hold X.509 certificates, and the block at position {position}");
    let (first, second) = (none_at(1), none_at(2));
    for (bundle, message) in [
        ("MIIB".to_owned(), no_certificates),
        ("/etc/ssl/ca.crt".to_owned(), no_certificates),
        (block("CERTIFICATE", ""), &first),
        (block("CERTIFICATE", "MIIB"), &first),
        (block("CERTIFICATE", "bm8gY2VydGlmaWNhdGU="), &first),
        (format!("{one}{}", block("CERTIFICATE", "MIIB")), &second),
        (block("CERTIFICATE", "MII\u{a0}B"), no_certificates),
        (block("CERTIFICATE REQUEST", "MIIB"), no_certificates),
        (one.replace("END", "AND"), no_certificates),
        (format!("{two}-----BEGIN CERTIFICATE-----\nMIIB"), no_certificates),
        (format!("{one}{}", block("EC PRIVATE KEY", "s3cret")), "`caBundle` holds a private key"),
        (block("PRIVATE KEY", "s3cret"), "`caBundle` holds a private key"),
    ] {
        let error = with(&bundle).unwrap_err().to_string();
        assert!(error.starts_with(&format!("policy.yaml:5: {message}")), "{bundle}{error}");
        assert!(!error.contains("s3cret") && !error.contains("MII"), "{error}");
    }
    let plain = routing(&format!("probe:\n    scheme: http\n    caBundle: |\n      {}", one.replace('\n', "\n      ")))
        .unwrap_err()
        .to_string();
    assert!(plain.starts_with("policy.yaml:6: `caBundle` means nothing where `scheme` is http"), "{plain}");
}

#[test]
fn a_base_domain_leaves_room_for_the_longest_host() {
    let label = "a".repeat(62);
    let longest = format!("{label}.{label}.{label}");
    assert_eq!(longest.len(), 188);
    let with = |domain: &str| {
        Policy::parse("policy.yaml", &format!("profiles: {{default: {{}}}}\nrouting:\n  baseDomain: {domain}"))
    };
    for domain in [&longest, &format!("{longest}a"), "sessions.example.com", "localhost"] {
        assert_eq!(with(domain).unwrap().routing().base_domain.as_deref(), Some(domain), "{domain}");
        assert!(with(domain).unwrap().routing().is_on());
    }
    for domain in [
        &format!("{longest}aa"),
        "'*.example.com'",
        "Example.com",
        "example.com.",
        "https://example.com",
        "a_b.c",
        "'a b'",
    ] {
        let error = with(domain).unwrap_err().to_string();
        assert!(error.starts_with("policy.yaml:3: `baseDomain` must be a domain in lower case"), "{error}");
    }
    for nothing in ["", "''"] {
        assert!(!with(nothing).unwrap().routing().is_on());
    }
    let off = Policy::parse("policy.yaml", "profiles: {default: {}}\nrouting: {baseDomain: a.b, mode: none}").unwrap();
    assert_eq!(off.routing().mode, RoutingMode::None);
    assert!(!off.routing().is_on());
}
