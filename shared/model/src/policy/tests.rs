use super::*;

fn error(text: &str) -> String {
    Policy::parse("policy.yaml", text).unwrap_err().to_string()
}

/// The default profile of a file that says only this about it.
fn profile(lines: &str) -> Result<Profile, PolicyError> {
    let indented = lines.replace('\n', "\n    ");
    let policy = Policy::parse("policy.yaml", &format!("profiles:\n  default:\n    {indented}\n"))?;
    Ok(policy.profile("default").unwrap().clone())
}

#[test]
fn the_built_in_policy_is_valid_and_says_what_the_defaults_say() {
    let policy = Policy::parse(BUILT_IN_NAME, BUILT_IN).unwrap();
    assert_eq!(policy.profile("default"), Some(&Profile::default()));
    assert_eq!(policy, Policy::built_in());
    let empty = Policy::parse("policy.yaml", "profiles: {default: {}}").unwrap();
    assert_eq!(empty.profile("default"), Some(&Profile::default()));
    let null = Policy::parse("policy.yaml", "profiles:\n  default:\n").unwrap();
    assert_eq!(null.profile("default"), Some(&Profile::default()));
}

#[test]
fn the_built_in_policy_writes_every_key() {
    // The file is the reference: a key that it does not show is a key that nobody finds.
    for key in [
        "resources",
        "limits",
        "cpu",
        "memory",
        "ephemeral-storage",
        "requests",
        "extended",
        "claims",
        "pod",
        "containers",
        "sum",
        "lifetime",
        "deadlineSeconds",
        "graceSeconds",
        "runAs",
        "user",
        "group",
        "fsGroup",
        "volumeTypes",
        "scratch",
        "name",
        "path",
        "size",
        "env",
        "seccomp",
        "localhostProfiles",
        "appArmor",
        "sysctls",
        "tokenAudiences",
    ] {
        let written = BUILT_IN.lines().filter(|line| !line.trim_start().starts_with('#'));
        assert!(
            written.clone().any(|line| line.trim_start().trim_start_matches("- ").starts_with(&format!("{key}:"))),
            "{key}"
        );
    }
}

#[test]
fn the_digest_is_short_and_changes_with_the_text() {
    let one = Policy::parse("a", "profiles: {default: {}}").unwrap();
    let two = Policy::parse("a", "profiles: {default: {}} # two").unwrap();
    assert_eq!(one.digest().len(), 12);
    assert!(one.digest().bytes().all(|b| b.is_ascii_hexdigit()));
    assert_ne!(one.digest(), two.digest());
    assert_eq!(one.digest(), Policy::parse("b", "profiles: {default: {}}").unwrap().digest());
}

#[test]
fn an_unknown_key_fails_with_file_line_key_and_the_key_that_was_meant() {
    assert_eq!(
        error("profiles:\n  default:\n    lifetime:\n      deadlineSecond: 5\n"),
        "policy.yaml:4: unknown key `deadlineSecond`; did you mean `deadlineSeconds`?"
    );
    assert_eq!(
        error("profiles:\n  default:\n    resources:\n      requests:\n        cpus: 50m\n"),
        "policy.yaml:5: unknown key `cpus`; did you mean `cpu`?"
    );
    assert_eq!(
        error("profiles:\n  default:\n    pod: {sidecars: 5}\n"),
        "policy.yaml:3: unknown key `sidecars`; known here are containers, sum"
    );
    assert_eq!(error("profile: {}\n"), "policy.yaml:1: unknown key `profile`; did you mean `profiles`?");
}

#[test]
fn a_wrong_value_fails_with_file_line_and_key() {
    for (lines, message) in [
        ("lifetime:\n  deadlineSeconds: soon", "policy.yaml:4: `deadlineSeconds` "),
        ("lifetime:\n  deadlineSeconds: 0", "policy.yaml:4: `deadlineSeconds` must be a whole number from 1 to"),
        ("lifetime:\n  graceSeconds: -1", "policy.yaml:4: `graceSeconds` must be a whole number from 1 to"),
        ("runAs:\n  user: 0", "policy.yaml:4: `user` must be a whole number from 1 to"),
        ("runAs: {user: 1, group: 2, fsGroup: 0}", "policy.yaml:3: `fsGroup` must be"),
        ("resources:\n  limits:\n    memory: 512K", "policy.yaml:5: `memory` has no known suffix"),
        ("resources:\n  limits:\n    cpu: 0", "policy.yaml:5: `cpu` must be more than 0"),
        ("resources:\n  requests: limit", "policy.yaml:4: `requests` "),
        ("resources:\n  requests:\n    cpu: much", "policy.yaml:5: `cpu` is no quantity"),
        ("resources:\n  requests:\n    cpu: 0", "policy.yaml:5: `cpu` must be more than 0"),
        ("resources:\n  extended: [gpu]", "policy.yaml:4: `extended` holds a name that is no extended resource"),
        (
            "volumeTypes: [emptyDir, configmap]",
            "policy.yaml:3: `volumeTypes` holds `configmap`, which is no volume type; did you mean `configMap`?",
        ),
        ("appArmor: always", "policy.yaml:3: `appArmor` is `always`, but must be one of leave, inject"),
        ("sysctls: [net/ipv4/ip_forward]", "policy.yaml:3: `sysctls` must name each sysctl in full"),
        ("sysctls: ['net.*']", "policy.yaml:3: `sysctls` must name each sysctl in full"),
        (
            "tokenAudiences: ['https://kubernetes.default.svc.cluster.local']",
            "policy.yaml:3: `tokenAudiences` holds the API server's own",
        ),
        ("tokenAudiences: ['']", "policy.yaml:3: `tokenAudiences` holds the API server's own"),
        ("seccomp:\n  localhostProfiles:\n    - ../../etc", "policy.yaml:5: `localhostProfiles` holds a path"),
        ("scratch:\n  - path: /x\n    size: 1Mi", "policy.yaml:5: `name` is missing"),
        ("scratch:\n  - {name: A, path: /x, size: 1Mi}", "policy.yaml:4: `name` must be a short DNS label"),
        ("scratch:\n  - {name: a, path: x, size: 1Mi}", "policy.yaml:4: `path` must be an absolute path"),
        ("scratch:\n  - {name: a, path: /, size: 1Mi}", "policy.yaml:4: `path` must be an absolute path"),
        ("scratch:\n  - {name: a, path: /x/../y, size: 1Mi}", "policy.yaml:4: `path` must be an absolute path"),
        ("scratch:\n  - {name: a, path: /x, size: 0}", "policy.yaml:4: `size` must be more than 0"),
        ("scratch:\n  - {name: a, path: /x, size: 1Mi, env: [1A]}", "policy.yaml:4: `env` must name"),
        ("pod:\n  containers: 0", "policy.yaml:4: `containers` must be at least 1"),
        ("pod:\n  sum: 4\n  sum: 5", "policy.yaml:5: `sum` stands here twice; remove one"),
    ] {
        let error = profile(lines).unwrap_err().to_string();
        assert!(error.starts_with(message), "{lines}\n{error}");
    }
}

#[test]
fn values_that_contradict_each_other_fail_with_the_line_of_the_one_to_change() {
    for (lines, message) in [
        (
            "resources:\n  limits:\n    cpu: 100m\n  requests:\n    cpu: 200m",
            "policy.yaml:7: `cpu` requests 200m, which is more than its limit of 100m",
        ),
        (
            "pod:\n  containers: 5",
            "policy.yaml:4: `containers` does not fit: 5 containers at their ceilings are more than a `sum` of 4",
        ),
        (
            "pod:\n  sum: 3",
            "policy.yaml:4: `sum` does not fit: 4 containers at their ceilings are more than a `sum` of 3",
        ),
        ("volumeTypes: [secret]", "policy.yaml:3: `volumeTypes` lacks `emptyDir`"),
        (
            "scratch:\n  - {name: a, path: /x, size: 1Mi}\n  - {name: a, path: /y, size: 1Mi}",
            "policy.yaml:5: `name` must be",
        ),
        (
            "scratch:\n  - {name: a, path: /x, size: 1Mi}\n  - {name: b, path: /x/y, size: 1Mi}",
            "policy.yaml:5: `path` must be",
        ),
        (
            "scratch:\n  - {name: a, path: /x, size: 1Mi, env: [A]}\n  - {name: b, path: /y, size: 1Mi, env: [A]}",
            "policy.yaml:5: `env` must name",
        ),
    ] {
        let error = profile(lines).unwrap_err().to_string();
        assert!(error.starts_with(message), "{lines}\n{error}");
    }
}

#[test]
fn b65_scratch_and_logs_must_fit_the_ephemeral_storage_limit() {
    let error = profile("resources:\n  limits:\n    ephemeral-storage: 512Mi").unwrap_err().to_string();
    assert!(
        error.starts_with(
            "policy.yaml:5: `ephemeral-storage` is 512Mi, but the scratch directories and 64Mi for logs take 576Mi"
        ),
        "{error}"
    );
    assert!(profile("resources:\n  limits:\n    ephemeral-storage: 576Mi").is_ok());
    assert!(profile("resources: {limits: {ephemeral-storage: 65Mi}}\nscratch: []").is_ok());
}

#[test]
fn a_file_that_is_no_policy_fails_with_file_and_line() {
    for (text, beginning) in [
        ("", "policy.yaml:"),
        ("profiles: [", "policy.yaml:"),
        ("profiles: {app: {}}", "policy.yaml:1: `profiles` has no `default`"),
        ("profiles: {default: {}, 'a b': {}}", "policy.yaml:1: `a b` cannot name a profile"),
        ("profiles:\n  default: 5", "policy.yaml:2: `default` "),
        ("\u{0}", "policy.yaml:"),
    ] {
        let error = error(text);
        assert!(error.starts_with(beginning), "{text:?}: {error}");
        assert!(!error.contains('\n'), "{error}");
    }
}

#[test]
fn a_default_request_never_exceeds_a_lowered_limit() {
    let profile = profile("resources: {limits: {cpu: 20m}}").unwrap();
    assert_eq!(profile.resources.requests.cpu, DefaultRequest::Limit);
}

#[test]
fn requests_limits_means_as_much_as_the_limit_for_each() {
    let profile = profile("resources: {requests: limits}").unwrap();
    let requests = Requests {
        cpu: DefaultRequest::Limit,
        memory: DefaultRequest::Limit,
        ephemeral_storage: DefaultRequest::Limit,
    };
    assert_eq!(profile.resources.requests, requests);
}

#[test]
fn b15_a_number_in_the_file_is_a_quantity() {
    let limits = profile("resources: {limits: {cpu: 1, memory: 536870912}, requests: {cpu: 0.5}}").unwrap().resources;
    assert_eq!(limits.limits.cpu, constant("1"));
    assert_eq!(limits.limits.memory, constant("512Mi"));
    assert_eq!(limits.requests.cpu, DefaultRequest::Amount(constant("500m")));
}

#[test]
fn a_message_is_one_line_whatever_the_file_holds() {
    for (text, said) in [
        ("profiles:\n  \"de\\nfault\": {}\n", r"`de\nfault`"),
        ("profiles:\n  default: {\"li\\r\\e[2J\": {}}\n", r"`li\r\u{1b}[2J`"),
        ("profiles: \u{16}\n", r"\u{16}"),
    ] {
        let message = error(text);
        assert!(message.contains(said) && !message.contains(char::is_control), "{message:?}");
    }
}
