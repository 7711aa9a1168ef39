use super::expect;
use crate::policy::{Network, NetworkMode, Policy};

fn network(text: &str) -> Network {
    Policy::parse("policy.yaml", &format!("profiles: {{default: {{}}}}\nnetwork: {text}")).unwrap().network().clone()
}

#[test]
fn what_is_left_out_is_what_the_shipped_file_says() {
    assert_eq!(network("{}"), Network::default());
    assert_eq!(network("{mode: manual}"), Network { mode: NetworkMode::Manual, ..Network::default() });
    let blocked = network("{blocked: [203.0.113.0/24, '2001:DB8::/32']}").blocked;
    assert_eq!(blocked, ["203.0.113.0/24", "2001:db8::/32"]);
    assert!(network("{blocked: []}").blocked.is_empty());
    assert_eq!(
        network("{dataPlaneNamespaces: [envoy-gateway-system]}").data_plane_namespaces,
        ["envoy-gateway-system"]
    );
}

#[test]
fn what_is_blocked_is_said_as_a_network_policy_takes_it() {
    for wrong in [
        "10.0.0.0",
        "10.0.0.0/33",
        "10.0.0/8",
        "010.0.0.0/8",
        "10.0.0.0/08",
        "10.0.0.0/+8",
        "10.0.0.0/-1",
        "10.0.0.0/8/8",
        "fc00::/129",
        "::ffff:10.0.0.0/104",
        "fe80::%eth0/10",
        "example.com/8",
        "10.0.0.0/255.0.0.0",
        "",
        "/",
    ] {
        expect(&[(
            &format!("profiles: {{default: {{}}}}\nnetwork:\n  blocked:\n    - 10.0.0.0/8\n    - '{wrong}'"),
            "policy.yaml:5: `blocked` must hold CIDRs, such as 10.0.0.0/8 or fc00::/7",
        )]);
    }
    for (wrong, message) in [
        ("0.0.0.0/0", "cannot hold all addresses at once; write two halves, such as 0.0.0.0/1 and 128.0.0.0/1, or"),
        ("::/0", "cannot hold all addresses at once; write two halves"),
        ("10.1.2.3/8", "holds a CIDR with an address that does not end with its prefix; did you mean 10.0.0.0/8?"),
        ("10.0.0.1/31", "holds a CIDR with an address that does not end with its prefix; did you mean 10.0.0.0/31?"),
        ("fd00::1/8", "holds a CIDR with an address that does not end with its prefix; did you mean fd00::/8?"),
    ] {
        expect(&[(
            &format!("profiles: {{default: {{}}}}\nnetwork: {{blocked: ['{wrong}']}}"),
            &format!("policy.yaml:2: `blocked` {message}"),
        )]);
    }
    for right in ["0.0.0.0/1", "128.0.0.0/1", "10.0.0.1/32", "::/1", "8000::/1", "2001:db8::1/128"] {
        assert_eq!(network(&format!("{{blocked: ['{right}']}}")).blocked, [right]);
    }
}

#[test]
fn a_mode_and_namespaces_are_words_of_their_own() {
    expect(&[
        (
            "profiles: {default: {}}\nnetwork:\n  mode: auto",
            "policy.yaml:3: `mode` is `auto`, but must be one of managed, manual",
        ),
        (
            "profiles: {default: {}}\nnetwork:\n  dataPlaneNamespaces:\n    - 'envoy-*'",
            "policy.yaml:4: `dataPlaneNamespaces` must name namespaces in full, of a-z, 0-9 and `-`",
        ),
    ]);
}
