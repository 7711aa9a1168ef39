use crate::{
    policy::{DefaultRequest, Policy, Requests, SlippedThrough, tests::profile},
    quantity::Quantity,
};

mod network;
mod routing;

/// That what is said about each of these files begins like this.
fn expect(wrong: &[(&str, &str)]) {
    for (text, message) in wrong {
        let error = Policy::parse("policy.yaml", text).unwrap_err().to_string();
        assert!(error.starts_with(message), "{text}\n{error}");
    }
}

/// The same of files that say only this about their default profile.
fn expect_of_profile(wrong: &[(&str, &str)]) {
    for (lines, message) in wrong {
        let error = profile(lines).unwrap_err().to_string();
        assert!(error.starts_with(message), "{lines}\n{error}");
    }
}

#[test]
fn a_wrong_value_fails_with_file_line_and_key() {
    expect_of_profile(&[
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
        ("seccomp:\n  localhostProfiles:\n    - ../../etc", "policy.yaml:5: `localhostProfiles` must hold paths"),
        ("scratch:\n  - path: /x\n    size: 1Mi", "policy.yaml:5: `name` is missing"),
        ("scratch:\n  - {name: A, path: /x, size: 1Mi}", "policy.yaml:4: `name` must be a short DNS label"),
        ("scratch:\n  - {name: body-token, path: /x, size: 1Mi}", "policy.yaml:4: `name` must be a short DNS label"),
        ("scratch:\n  - {name: a, path: x, size: 1Mi}", "policy.yaml:4: `path` must be an absolute path"),
        ("scratch:\n  - {name: a, path: /, size: 1Mi}", "policy.yaml:4: `path` must be an absolute path"),
        ("scratch:\n  - {name: a, path: /x/../y, size: 1Mi}", "policy.yaml:4: `path` must be an absolute path"),
        ("scratch:\n  - {name: a, path: /x, size: 0}", "policy.yaml:4: `size` must be more than 0"),
        ("scratch:\n  - {name: a, path: /x, size: 1Mi, env: {1A: ''}}", "policy.yaml:4: `env` must name"),
        ("scratch:\n  - {name: a, path: /etc, size: 1Mi}", "policy.yaml:4: `path` must be an absolute path"),
        ("scratch:\n  - {name: a, path: /proc/x, size: 1Mi}", "policy.yaml:4: `path` must be an absolute path"),
        ("scratch:\n  - {name: a, path: /x, size: 1Mi, env: {A: ../b}}", "policy.yaml:4: `A` must be a place below"),
        ("scratch:\n  - {name: a, path: /x, size: 1Mi, env: {A: $(B)}}", "policy.yaml:4: `A` must be a place below"),
        ("scratch:\n  - {name: a, path: /x, size: 1Mi, env: {A: }}", "policy.yaml:4: "),
        ("scratch:\n  - {name: a, path: /x, size: 1Mi, env: [A]}", "policy.yaml:4: `env` must be keys with values"),
        ("resources:\n  extended: [kubernetes.io/x]", "policy.yaml:4: `extended` holds a name that is no extended"),
        ("resources:\n  extended: [hugepages-x]", "policy.yaml:4: `extended` holds a name that is no extended"),
        ("hostUsers: never_", "policy.yaml:3: `hostUsers` is `never_`, but must be one of leave, never"),
        (
            "supplementalGroupsPolicy: strict",
            "policy.yaml:3: `supplementalGroupsPolicy` is `strict`, but must be one of",
        ),
        ("hostAliases: true", "policy.yaml:3: `hostAliases` is `true`, but must be one of allow, refuse"),
        ("readinessGate: maybe", "policy.yaml:3: `readinessGate` must be true or false"),
        ("command: [node, app.js]", "policy.yaml:3: `command` has no place for the entry; write `$(ENTRY)`"),
        ("command: ['', $(ENTRY)]", "policy.yaml:3: `command` begins with the program to run"),
        ("command: node $(ENTRY)", "policy.yaml:3: `command` must be a list"),
        ("pod:\n  containers: 0", "policy.yaml:4: `containers` must be at least 1"),
        ("pod:\n  sum: 4\n  sum: 5", "policy.yaml:5: `sum` stands here twice; remove one"),
    ]);
}

#[test]
fn values_that_contradict_each_other_fail_with_the_line_of_the_one_to_change() {
    expect_of_profile(&[
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
            "scratch:\n  - {name: a, path: /x, size: 1Mi, env: {A: x}}\n  - {name: b, path: /y, size: 1Mi, env: {A: y}}",
            "policy.yaml:5: `env` must name",
        ),
    ]);
}

#[test]
fn b65_scratch_a_body_and_logs_must_fit_the_ephemeral_storage_limit() {
    let take = "scratch directories, a body and 64Mi for logs take";
    for (text, blamed, needed) in [
        (
            "profiles:\n  default:\n    resources: {limits: {ephemeral-storage: 512Mi}}",
            "3: `ephemeral-storage`",
            "832Mi",
        ),
        ("profiles: {default: {scratch: [{name: a, path: /a, size: 1Gi}]}}", "1: `size`", "1344Mi"),
        ("profiles:\n  default:\nbodies:\n  size: 2Gi", "4: `size`", "2624Mi"),
        ("profiles:\n  default:\n    scratch: []\nbodies:\n  size: 1Gi", "5: `size`", "1088Mi"),
    ] {
        let error = Policy::parse("policy.yaml", text).unwrap_err().to_string();
        assert!(
            error.starts_with(&format!("policy.yaml:{blamed} leaves too little: {take} {needed}, more")),
            "{error}"
        );
    }
    for text in [
        "profiles: {default: {resources: {limits: {ephemeral-storage: 832Mi}}}}",
        "profiles: {default: {resources: {limits: {ephemeral-storage: 576Mi}}}}\nbodies: {enabled: false}",
        "profiles: {default: {resources: {limits: {ephemeral-storage: 321Mi}}, scratch: []}}",
    ] {
        assert!(Policy::parse("policy.yaml", text).is_ok(), "{text}");
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
    assert_eq!(limits.limits.cpu, Quantity::constant("1"));
    assert_eq!(limits.limits.memory, Quantity::constant("512Mi"));
    assert_eq!(limits.requests.cpu, DefaultRequest::Amount(Quantity::constant("500m")));
}

#[test]
fn who_may_use_a_profile_is_named_in_words_that_can_meet_somebody() {
    expect_of_profile(&[
        ("allow:\n  namespaces: [Team-A]", "policy.yaml:4: `namespaces` must name namespaces"),
        ("allow:\n  namespaces:\n    - a\n    - ''", "policy.yaml:6: `namespaces` must name namespaces"),
        ("allow:\n  users: ['*']", "policy.yaml:4: `users` must name each in full"),
        ("allow:\n  groups: ['']", "policy.yaml:4: `groups` must name each in full"),
    ]);
    let allow = profile("allow: {namespaces: ['team-*'], users: ['Jane Doe'], groups: ['cn=a,ou=b']}").unwrap().allow;
    assert_eq!((allow.namespaces.len(), allow.users.len(), allow.groups.len()), (1, 1, 1));
    expect(&[
        ("profiles: {default: {}}\ntrusted:\n  - ''", "policy.yaml:3: `trusted` must name each user in full"),
        ("profiles: {default: {}}\ntrusted: ['a b']", "policy.yaml:2: `trusted` must name each user in full"),
        ("profiles: {default: {}}\ntrusted: ['system:*']", "policy.yaml:2: `trusted` must name each user in full"),
    ]);
    assert!(Policy::parse("policy.yaml", "profiles: {default: {}}\ntrusted: []").unwrap().trusted().is_empty());
}

#[test]
fn image_patterns_can_mean_a_reference_in_full() {
    expect_of_profile(&[
        (
            "images:\n  allowed: [python]",
            "policy.yaml:4: `allowed` holds `python`, but is compared with references in full; did you mean \
             `docker.io/library/python`?",
        ),
        ("images:\n  allowed: ['python:3.12']", "policy.yaml:4: `allowed` holds `python:3.12`, but is compared"),
        (
            "images:\n  allowed: [bitnami/redis]",
            "policy.yaml:4: `allowed` holds `bitnami/redis`, but is compared with references in full; did you mean \
             `docker.io/bitnami/redis`?",
        ),
        (
            "images:\n  allowed: [docker.io/python]",
            "policy.yaml:4: `allowed` holds `docker.io/python`, but is compared with references in full; did you mean \
             `docker.io/library/python`?",
        ),
        (
            "images:\n  allowed: ['https://registry.example.com/a']",
            "policy.yaml:4: `allowed` must hold image references",
        ),
        ("images:\n  allowed:\n    - registry.example.com/a b", "policy.yaml:5: `allowed` must hold image references"),
        ("images:\n  allowed: ['']", "policy.yaml:4: `allowed` must hold image references"),
        ("images:\n  pullPolicy: IfNotPresent", "policy.yaml:4: `pullPolicy` is `IfNotPresent`, but must be one of"),
    ]);
    for allowed in
        ["", "'**'", "'*/library/python'", "docker.io/library/python:3.12", "localhost/a", "r.example:5000/**"]
    {
        assert!(profile(&format!("images: {{allowed: [{allowed}]}}")).is_ok(), "{allowed}");
    }
}

#[test]
fn a_tag_contradicts_a_policy_of_digests() {
    expect_of_profile(&[(
        "images:\n  digestOnly: true\n  allowed:\n    - r.example/a\n    - r.example/b:1.*",
        "policy.yaml:7: `allowed` holds `r.example/b:1.*`, which means images by tag",
    )]);
    for allowed in ["'**'", "r.example/a", "r.example/a@*:*", "r.example/a:1@sha256:*"] {
        assert!(profile(&format!("images: {{digestOnly: true, allowed: [{allowed}]}}")).is_ok(), "{allowed}");
    }
}

#[test]
fn scheduling_is_said_in_names_that_kubernetes_takes() {
    expect_of_profile(&[
        (
            "scheduling:\n  runtimeClass: inject",
            "policy.yaml:4: `runtimeClass` asks for the first of `runtimeClasses`, which lists none",
        ),
        ("scheduling:\n  runtimeClasses: [{name: gVisor}]", "policy.yaml:4: `name` must be the name of a RuntimeClass"),
        (
            "scheduling:\n  runtimeClasses:\n    - name: a\n    - name: a",
            "policy.yaml:6: `name` must be the name of a RuntimeClass",
        ),
        ("scheduling:\n  runtimeClasses: [{}]", "policy.yaml:4: `name` is missing"),
        (
            "scheduling:\n  nodeSelector: {pool: a}\n  runtimeClasses: [{name: kata, nodeSelector: {pool: b}}]",
            "policy.yaml:5: `pool` is another value than the profile's own `nodeSelector` has",
        ),
        ("scheduling:\n  schedulerNames: [a b]", "policy.yaml:4: `schedulerNames` must hold names"),
        ("scheduling:\n  imagePullSecrets:\n    - name: a", "policy.yaml:5: "),
        ("scheduling:\n  imagePullSecrets: [A]", "policy.yaml:4: `imagePullSecrets` must hold names"),
        ("scheduling:\n  nodeSelector:\n    a/b/c: x", "policy.yaml:5: `nodeSelector` must have keys"),
        (
            "scheduling:\n  nodeSelector:\n    example.com/pool: a b",
            "policy.yaml:5: `example.com/pool` must be a value",
        ),
        ("scheduling:\n  nodeLabels: ['pool=a']", "policy.yaml:4: `nodeLabels` must hold keys of labels"),
        (
            "scheduling:\n  tolerations:\n    - effect: NoSchedule",
            "policy.yaml:5: `tolerations` holds a toleration without key",
        ),
        (
            "scheduling:\n  allowedTolerations: [{}]",
            "policy.yaml:4: `allowedTolerations` holds a toleration without key",
        ),
        ("scheduling:\n  tolerations:\n    - key: a b", "policy.yaml:5: `key` must be a key that a taint can have"),
        (
            "scheduling:\n  tolerations:\n    - {key: a, operator: Exists, value: b}",
            "policy.yaml:5: `value` is for `operator: Equal`",
        ),
        (
            "scheduling:\n  tolerations:\n    - {key: a, value: b c}",
            "policy.yaml:5: `value` must be a value that a taint can have",
        ),
        (
            "scheduling:\n  tolerations:\n    - {key: a, operator: Is}",
            "policy.yaml:5: `operator` is `Is`, but must be one of Equal, Exists",
        ),
        (
            "scheduling:\n  tolerations:\n    - {key: a, effect: NoRun}",
            "policy.yaml:5: `effect` is `NoRun`, but must be one of",
        ),
        (
            "scheduling:\n  maxPriority: 2147483648",
            "policy.yaml:4: `maxPriority` must be a whole number from -2147483648 to",
        ),
    ]);
    let scheduling = profile(
        "scheduling:\n  nodeSelector: {a: ''}\n  runtimeClass: inject\n  runtimeClasses: [{name: gvisor, nodeSelector: {a: ''}}]\n  tolerations: \
         [{key: a, value: b, effect: NoExecute}, {operator: Exists}]\n  maxPriority: -5",
    )
    .unwrap()
    .scheduling;
    assert!(scheduling.inject_runtime_class);
    assert_eq!(scheduling.runtime_classes[0].node_selector["a"], "");
    let [equal, every] = &scheduling.tolerations[..] else { panic!("{scheduling:?}") };
    assert_eq!((equal.exists, equal.value.as_deref(), equal.effect.as_deref()), (false, Some("b"), Some("NoExecute")));
    assert_eq!((every.exists, &every.key), (true, &None));
    assert_eq!(scheduling.max_priority, -5);
}

#[test]
fn a_pod_is_not_more_than_kubernetes_counts() {
    expect_of_profile(&[
        (
            "resources: {limits: {memory: 4E}}",
            "policy.yaml:3: `memory` is 4E, and 4 times that is more than Kubernetes counts",
        ),
        ("resources: {limits: {cpu: 9P}}\npod: {sum: 5}", "policy.yaml:3: `cpu` is 9P, and 5 times"),
    ]);
}

#[test]
fn bodies_contradict_neither_scratch_nor_volume_types_nor_audiences() {
    expect(&[
        ("profiles: {default: {}}\nbodies:\n  path: app", "policy.yaml:3: `path` must be an absolute path"),
        ("profiles: {default: {}}\nbodies:\n  path: /run", "policy.yaml:3: `path` must be an absolute path"),
        ("profiles: {default: {}}\nbodies:\n  path: /etc", "policy.yaml:3: `path` must be an absolute path"),
        (
            "profiles: {default: {}}\nbodies:\n  path: /tmp/app",
            "policy.yaml:3: `path` has to be apart: bodies are unpacked into /tmp/app, and /tmp is a scratch directory",
        ),
        (
            "profiles:\n  default:\n    scratch: [{name: a, path: /app, size: 1Mi}]",
            "policy.yaml:3: `path` has to be apart",
        ),
        ("profiles: {default: {}}\nbodies:\n  size: 0", "policy.yaml:3: `size` must be more than 0"),
        ("profiles: {default: {}}\nbodies:\n  maxEntries: 0", "policy.yaml:3: `maxEntries` must be at least 1"),
        ("profiles: {default: {}}\nbodies:\n  maxEntries: -1", "policy.yaml:3: `maxEntries` must be a whole number"),
        ("profiles: {default: {}}\nbodies:\n  deadlineSeconds: 0", "policy.yaml:3: `deadlineSeconds` must be"),
        (
            "profiles: {default: {}}\nbodies:\n  audience: https://kubernetes.default.svc",
            "policy.yaml:3: `audience` must be an audience of its own",
        ),
        (
            "profiles: {default: {}}\nbodies:\n  audience: ''",
            "policy.yaml:3: `audience` must be an audience of its own",
        ),
        (
            "profiles:\n  default:\n    tokenAudiences: [cofferdam-bodies]",
            "policy.yaml:3: `tokenAudiences` is an audience of tokens that fetch",
        ),
        (
            "profiles:\n  default:\n    tokenAudiences: ['a,b']",
            "policy.yaml:3: `tokenAudiences` must hold audiences without",
        ),
    ]);
    let off = "profiles: {default: {volumeTypes: [emptyDir], tokenAudiences: [cofferdam-bodies]}}\nbodies: {enabled: false, \
               path: /tmp}";
    assert!(!Policy::parse("policy.yaml", off).unwrap().bodies().enabled);
}

#[test]
fn what_becomes_of_a_session_that_is_not_hardened_is_one_of_two_words() {
    expect_of_profile(&[(
        "slippedThrough: remove",
        "policy.yaml:3: `slippedThrough` is `remove`, but must be one of keep, delete",
    )]);
    assert_eq!(profile("slippedThrough: delete").unwrap().slipped_through, SlippedThrough::Delete);
    assert_eq!(profile("slippedThrough: keep").unwrap().slipped_through, SlippedThrough::Keep);
}

#[test]
fn a_finished_pod_is_kept_for_a_day_at_most() {
    let with = |seconds: &str| {
        Policy::parse("policy.yaml", &format!("profiles: {{default: {{}}}}\nfinishedGraceSeconds: {seconds}"))
    };
    for seconds in [0, 600, 86_400] {
        assert_eq!(with(&seconds.to_string()).unwrap().finished_grace_seconds(), seconds);
    }
    for wrong in ["86401", "-1", "4294967296", "9223372036854775807"] {
        let message = "policy.yaml:2: `finishedGraceSeconds` must be a whole number from 0 to 86400";
        assert_eq!(with(wrong).unwrap_err().to_string(), message);
    }
    let message = "policy.yaml:2: `finishedGraceSeconds` must be a whole number";
    assert_eq!(with("10m").unwrap_err().to_string(), message);
}
