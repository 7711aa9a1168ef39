use proptest::prelude::*;

use super::*;

pub(super) mod policies;

/// What is said about this file.
fn error(text: &str) -> String {
    Policy::parse("policy.yaml", text).unwrap_err().to_string()
}

/// The default profile of a file that says only this about it.
pub(in crate::policy) fn profile(lines: &str) -> Result<Profile, PolicyError> {
    let indented = lines.replace('\n', "\n    ");
    let policy = Policy::parse("policy.yaml", &format!("profiles:\n  default:\n    {indented}\n"))?;
    Ok(policy.profile("default").unwrap().clone())
}

#[test]
fn the_built_in_policy_is_valid_and_says_what_the_defaults_say() {
    let policy = Policy::parse(BUILT_IN_NAME, BUILT_IN).unwrap();
    assert_eq!(policy, Policy::built_in());
    assert_eq!(policy.profile("default"), Some(&Profile::default()));
    for text in ["profiles: {default: {}}", "profiles:\n  default:\n"] {
        let least = Policy::parse("policy.yaml", text).unwrap();
        assert_eq!(least.profile("default"), Some(&Profile::default()));
        assert_eq!(least.routing(), policy.routing());
        assert_eq!(least.network(), policy.network());
        assert_eq!(least.finished_grace_seconds(), policy.finished_grace_seconds());
        assert_eq!(least.bodies(), policy.bodies());
        assert_eq!(least.trusted(), policy.trusted());
    }
}

#[test]
fn what_a_profile_leaves_out_is_what_the_shipped_default_has_whatever_its_name() {
    let policy = Policy::parse("policy.yaml", "profiles: {default: {}, app: {}, workspace:}").unwrap();
    for name in ["default", "app", "workspace"] {
        assert_eq!(policy.profile(name), Some(&Profile::default()), "{name}");
    }
}

#[test]
fn the_built_in_profiles_differ_from_the_default_in_what_they_are_for() {
    let policy = Policy::built_in();
    assert_eq!(policy.profile_names().collect::<Vec<_>>(), ["app", "default", "workspace"]);
    let app = Profile { lifetime: Lifetime { deadline_seconds: 21_600, grace_seconds: 30 }, ..Profile::default() };
    assert_eq!(policy.profile("app"), Some(&app));
    let workspace = Profile { pod: PodCeilings { containers: 8, sum: 8 }, ..Profile::default() };
    assert_eq!(policy.profile("workspace"), Some(&workspace));
}

#[test]
fn the_built_in_policy_writes_every_key() {
    // The file is the reference: a key that it does not show is a key that nobody finds.
    let written: serde_json::Value = serde_saphyr::from_str(BUILT_IN).unwrap();
    let full: serde_json::Value = serde_saphyr::from_str(&Policy::built_in().show()).unwrap();
    for part in ["/profiles/default", "/routing", "/network", "/finishedGraceSeconds", "/bodies", "/trusted"] {
        assert_eq!(written.pointer(part), full.pointer(part), "{part}");
    }
    assert_eq!(written.as_object().unwrap().len(), full.as_object().unwrap().len());
}

#[test]
fn the_image_is_not_the_files_to_say() {
    let policy = Policy::built_in().with_image("registry.example.com/cofferdam:1");
    assert_eq!(policy.bodies().image, "registry.example.com/cofferdam:1");
    assert!(error("profiles: {default: {}}\nbodies: {image: a}").starts_with("policy.yaml:2: unknown key `image`"));
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
    for (text, message) in [
        ("profile: {}", "policy.yaml:1: unknown key `profile`; did you mean `profiles`?"),
        (
            "profiles:\n  default:\n    pod: {sidecars: 5}",
            "policy.yaml:3: unknown key `sidecars`; known here are containers, sum",
        ),
        (
            "profiles:\n  default:\n    resources:\n      requests:\n        cpus: 50m",
            "policy.yaml:5: unknown key `cpus`; did you mean `cpu`?",
        ),
        ("profiles: {default: {}}\nrooting: {}", "policy.yaml:2: unknown key `rooting`; did you mean `routing`?"),
        (
            "profiles: {default: {}}\nrouting:\n  basedomain: a",
            "policy.yaml:3: unknown key `basedomain`; did you mean `baseDomain`?",
        ),
        (
            "profiles: {default: {}}\nrouting:\n  publicUrl: {}",
            "policy.yaml:3: unknown key `publicUrl`; did you mean `publicURL`?",
        ),
        (
            "profiles: {default: {}}\nrouting:\n  gateway:\n    sectionName: a",
            "policy.yaml:4: unknown key `sectionName`; known here are name, namespace, listener",
        ),
        (
            "profiles: {default: {}}\nnetwork: {block: []}",
            "policy.yaml:2: unknown key `block`; did you mean `blocked`?",
        ),
        ("profiles: {default: {}}\nbodies:\n  sizes: 1", "policy.yaml:3: unknown key `sizes`; did you mean `size`?"),
    ] {
        assert_eq!(error(text), message);
    }
}

#[test]
fn an_unknown_key_fails_at_every_level_of_a_profile() {
    for (lines, key, meant) in [
        ("image: {}", "image", "images"),
        ("allow: {user: []}", "user", "users"),
        ("images: {allow: []}", "allow", "allowed"),
        ("scheduling: {runtimeClasse: leave}", "runtimeClasse", "runtimeClass"),
        ("scheduling: {runtimeClasses: [{name: a, nodeselector: {}}]}", "nodeselector", "nodeSelector"),
        ("scheduling: {runtimeClasses: [{name: a, tolerations: [{keys: a}]}]}", "keys", "key"),
        ("scheduling: {allowedTolerations: [{efect: NoExecute}]}", "efect", "effect"),
        ("resources: {limit: {}}", "limit", "limits"),
        ("resources: {limits: {ephemeral_storage: 1Gi}}", "ephemeral_storage", "ephemeral-storage"),
        ("resources: {requests: {memroy: 1Gi}}", "memroy", "memory"),
        ("pod: {container: 1}", "container", "containers"),
        ("lifetime: {deadlineSecond: 5}", "deadlineSecond", "deadlineSeconds"),
        ("runAs: {users: 5}", "users", "user"),
        ("scratch: [{name: a, path: /a, sizes: 1Mi}]", "sizes", "size"),
        ("seccomp: {localhostProfile: []}", "localhostProfile", "localhostProfiles"),
    ] {
        let error = profile(lines).unwrap_err().to_string();
        assert_eq!(error, format!("policy.yaml:3: unknown key `{key}`; did you mean `{meant}`?"));
    }
}

#[test]
fn a_file_that_is_no_policy_fails_with_file_and_line() {
    for (text, beginning) in [
        ("", "policy.yaml:1: "),
        ("profiles: [", "policy.yaml:1: "),
        ("profiles: {app: {}}", "policy.yaml:1: `profiles` has no `default`"),
        ("profiles: {default: {}, 'a b': {}}", "policy.yaml:1: `a b` cannot name a profile"),
        ("profiles:\n  default:\n  A:\n", "policy.yaml:3: `A` cannot name a profile"),
        ("profiles:\n  default: 5", "policy.yaml:2: `default` must be keys with values"),
        ("profiles:\n  default: {}\n---\nprofiles:\n  default: {}", "policy.yaml:"),
        ("\u{0}", "policy.yaml:1: "),
    ] {
        let error = error(text);
        assert!(error.starts_with(beginning), "{text:?}: {error}");
        assert!(!error.contains('\n'), "{error}");
    }
}

/// The shipped file, a little spoiled: a line that is missing, doubled, shifted or somewhere else, or letters replaced.
fn spoiled() -> impl Strategy<Value = String> {
    let line = 0..BUILT_IN.lines().count();
    let spoil = prop_oneof![
        Just(String::new()),
        "[ ]{1,4}".prop_map(|indent| format!("{indent}LINE")),
        Just("LINE\nLINE".to_owned()),
        Just("LINE: 0".to_owned()),
        "[-\\[\\]{}:,&*!#|>'\"%@`~ a-z0-9]{0,8}".prop_map(|text| format!("LINE{text}")),
        "[ ]{0,8}[a-zA-Z]{1,10}: [-\\[\\]{}0-9a-zA-Z*/.~]{0,8}",
    ];
    prop::collection::vec((line, spoil), 1..4).prop_map(|spoils| {
        let mut lines: Vec<String> = BUILT_IN.lines().map(str::to_owned).collect();
        for (line, spoil) in spoils {
            lines[line] = spoil.replace("LINE", &lines[line]);
        }
        lines.join("\n")
    })
}

proptest! {
    #[test]
    fn a_spoiled_file_is_a_policy_or_an_error_with_the_line_of_what_is_wrong(text in spoiled()) {
        if let Err(error) = Policy::parse("policy.yaml", &text) {
            let error = error.to_string();
            let line = error.strip_prefix("policy.yaml:").and_then(|rest| rest.split(':').next()).unwrap();
            let line: usize = line.parse().unwrap();
            prop_assert!((1..=text.lines().count() + 1).contains(&line), "{}", error);
            prop_assert!(!error.contains('\n'), "{}", error);
        }
    }

    #[test]
    fn a_policy_that_is_written_out_reads_as_the_same_policy(policy in policies::policy()) {
        let text = policy.show();
        let fail = |error| TestCaseError::fail(format!("{error}\n{text}"));
        let mut read = Policy::parse("policy.yaml", &text).map_err(fail)?;
        read.digest.clone_from(&policy.digest);
        prop_assert_eq!(&read, &policy, "{}", text);
        prop_assert_eq!(read.show(), text);
    }
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
