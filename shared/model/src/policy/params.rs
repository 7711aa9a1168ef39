//! The policy as flat parameters, for admission policies whose CEL reads a `ConfigMap`.

use std::{collections::BTreeMap, fmt::Write as _};

use super::{
    AppArmor, HostUsers, Policy, Profile, SupplementalGroups, image_pattern,
    kubernetes::{DEFAULT_SCHEDULER, SAFE_SYSCTLS},
};
use crate::{
    glob::{self, escaped},
    host,
};

/// An RE2 regular expression that matches nothing, not even the empty text.
const NOTHING: &str = r"[^\x00-\x{10FFFF}]";

/// What admission policies read of the policy: the `data` of a `ConfigMap`.
///
/// All values are texts. A *list* is joined by `,` without spaces, in the policy's order, and is the empty text if there
/// is nothing in it (CEL: `''.split(',')` is `['']`, so look for a name that is not empty). No item holds a `,`. A
/// *switch* is `true` or `false`. A *number* is decimal. A *quantity* is Kubernetes' (CEL: `quantity(…)`). A *regex* is
/// an RE2 expression, anchored on both sides (CEL: `text.matches(…)`); where nothing is allowed it matches nothing.
/// Every key is always there, and every profile of `profiles` has all of its keys.
///
/// | key | value |
/// | --- | --- |
/// | `digest` | 12 hex digits: which policy this is of |
/// | `profiles` | list of the profiles' names; `default` is always among them |
/// | `trusted` | list of user names that may set what is otherwise written by us alone |
/// | `routing.hosts` | regex of what can be the host of a session's port, in any case; matches nothing where routing is off |
/// | `bodies.audience` | the audience of the token that the init container `cofferdam-fetch` mounts; empty where bodies are off |
/// | `<profile>.allow.namespaces` | regex of namespaces that may use the profile; matches all if all may |
/// | `<profile>.allow.users` | regex of user names that may use the profile; matches all if all may |
/// | `<profile>.allow.groups` | regex of groups whose members may as well |
/// | `<profile>.images` | regex of image references *in full*: `docker.io/library/python:latest` for `python`; the id of an image, `sha256:…` without a name, as it is |
/// | `<profile>.digest-only` | switch: references must hold `@` |
/// | `<profile>.pull-policy` | `Always` (every container's `imagePullPolicy` is), or `leave` (nothing is asked) |
/// | `<profile>.cpu`, `.memory`, `.ephemeral-storage` | quantity: the most a container's limit may be, which it must have |
/// | `<profile>.sum.cpu`, `.sum.memory`, `.sum.ephemeral-storage` | quantity: the most `spec.resources.limits` may be |
/// | `<profile>.containers` | number: containers that run at the same time, native sidecars included |
/// | `<profile>.extended` | list of other resource names that may be asked for |
/// | `<profile>.claims` | switch: `spec.resourceClaims` may be used |
/// | `<profile>.deadline-seconds` | number: the most `activeDeadlineSeconds`, which a pod must have |
/// | `<profile>.grace-seconds` | number: the most `terminationGracePeriodSeconds` |
/// | `<profile>.volume-types` | list of members of `spec.volumes[*]` |
/// | `<profile>.seccomp-localhost-profiles` | list of `localhostProfile`s that may stand in for `RuntimeDefault` |
/// | `<profile>.app-armor` | `inject` (asked for `RuntimeDefault` where the pod says nothing), or `leave` |
/// | `<profile>.sysctls` | list of sysctls that may be set, spelled with dots: Kubernetes' safe ones, then the profile's |
/// | `<profile>.token-audiences` | list of audiences that a projected token may have, besides `bodies.audience` in the init container |
/// | `<profile>.host-users` | `never` (`spec.hostUsers` is false), or `leave` |
/// | `<profile>.supplemental-groups-policy` | `Strict` (`spec.securityContext.supplementalGroupsPolicy` is), or `leave` |
/// | `<profile>.host-aliases` | `allow`, or `refuse` (`spec.hostAliases` is empty) |
/// | `<profile>.scheduler-names` | list of what `spec.schedulerName` may be; `default-scheduler` first |
/// | `<profile>.runtime-classes` | list of what `spec.runtimeClassName` may be, if set |
/// | `<profile>.runtime-class` | the runtime class of pods that name none; empty for none |
/// | `<profile>.node-labels` | list of keys that a node selector and node affinity may use: those that may be chosen by, those of the profile's own node selector and of its runtime classes' |
/// | `<profile>.max-priority` | number: the most `spec.priority` |
#[must_use]
pub fn params(policy: &Policy) -> BTreeMap<String, String> {
    let bodies = policy.bodies();
    let mut params = BTreeMap::from([
        ("digest".to_owned(), policy.digest().to_owned()),
        ("profiles".to_owned(), list(policy.profile_names())),
        ("trusted".to_owned(), list(policy.trusted())),
        ("routing.hosts".to_owned(), any_of(host::pattern(policy.routing()))),
        ("bodies.audience".to_owned(), if bodies.enabled { bodies.audience.clone() } else { String::new() }),
    ]);
    for (name, profile) in &policy.profiles {
        params.extend(of_profile(profile).into_iter().map(|(key, value)| (format!("{name}.{key}"), value)));
    }
    params
}

/// [`params`] as the YAML of a `ConfigMap`, ready to be applied.
#[must_use]
pub fn params_config_map(policy: &Policy, name: &str, namespace: &str) -> String {
    let mut yaml = format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {}\n  namespace: {}\n  labels:\n    \
         app.kubernetes.io/component: policy\ndata:\n",
        quoted(name),
        quoted(namespace),
    );
    for (key, value) in params(policy) {
        // Writing to a string cannot fail.
        let _ = writeln!(yaml, "  {key}: {}", quoted(&value));
    }
    yaml
}

/// A text as YAML that nothing reads as a number or a switch: a JSON string is one.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

fn of_profile(profile: &Profile) -> Vec<(&'static str, String)> {
    let Profile {
        allow,
        images,
        scheduling,
        resources,
        pod,
        lifetime,
        run_as: _,
        volume_types,
        scratch: _,
        seccomp_localhost_profiles,
        app_armor,
        sysctls,
        token_audiences,
        host_users,
        supplemental_groups,
        host_aliases,
        command: _,
        readiness_gate: _,
        slipped_through: _,
    } = profile;
    let limits = resources.limits;
    let everywhere = ["*".to_owned()];
    let namespaces = if allow.namespaces.is_empty() { &everywhere[..] } else { &allow.namespaces };
    let users: Vec<String> = if allow.users.is_empty() && allow.groups.is_empty() {
        vec![".*".to_owned()]
    } else {
        allow.users.iter().map(|user| escaped(user)).collect()
    };
    let runtime_classes = &scheduling.runtime_classes;
    let injected = runtime_classes.first().filter(|_| scheduling.inject_runtime_class);
    let selectors = std::iter::once(&scheduling.node_selector)
        .chain(runtime_classes.iter().map(|class| &class.node_selector))
        .flat_map(BTreeMap::keys);
    vec![
        ("allow.namespaces", any_of(namespaces.iter().map(|pattern| glob::regex(pattern)))),
        ("allow.users", any_of(users)),
        ("allow.groups", any_of(allow.groups.iter().map(|group| escaped(group)))),
        ("images", any_of(images.allowed.iter().map(|pattern| image_pattern::regex(pattern)))),
        ("digest-only", images.digest_only.to_string()),
        ("pull-policy", if images.always_pull { "Always" } else { "leave" }.to_owned()),
        ("cpu", limits.cpu.to_string()),
        ("memory", limits.memory.to_string()),
        ("ephemeral-storage", limits.ephemeral_storage.to_string()),
        ("sum.cpu", limits.cpu.times(pod.sum).to_string()),
        ("sum.memory", limits.memory.times(pod.sum).to_string()),
        ("sum.ephemeral-storage", limits.ephemeral_storage.times(pod.sum).to_string()),
        ("containers", pod.containers.to_string()),
        ("extended", list(&resources.extended)),
        ("claims", resources.claims.to_string()),
        ("deadline-seconds", lifetime.deadline_seconds.to_string()),
        ("grace-seconds", lifetime.grace_seconds.to_string()),
        ("volume-types", list(volume_types)),
        ("seccomp-localhost-profiles", list(seccomp_localhost_profiles)),
        ("app-armor", if *app_armor == AppArmor::Inject { "inject" } else { "leave" }.to_owned()),
        ("sysctls", list(SAFE_SYSCTLS.into_iter().chain(sysctls.iter().map(String::as_str)))),
        ("token-audiences", list(token_audiences)),
        ("host-users", if *host_users == HostUsers::Never { "never" } else { "leave" }.to_owned()),
        (
            "supplemental-groups-policy",
            if *supplemental_groups == SupplementalGroups::Strict { "Strict" } else { "leave" }.to_owned(),
        ),
        ("host-aliases", if *host_aliases { "allow" } else { "refuse" }.to_owned()),
        (
            "scheduler-names",
            list(std::iter::once(DEFAULT_SCHEDULER).chain(scheduling.scheduler_names.iter().map(String::as_str))),
        ),
        ("runtime-classes", list(runtime_classes.iter().map(|class| &class.name))),
        ("runtime-class", injected.map(|class| class.name.clone()).unwrap_or_default()),
        ("node-labels", list(scheduling.node_labels.iter().chain(selectors))),
        ("max-priority", scheduling.max_priority.to_string()),
    ]
}

/// Joined by commas, each once.
fn list<S: AsRef<str>>(items: impl IntoIterator<Item = S>) -> String {
    let mut list: Vec<String> = Vec::new();
    for item in items {
        let item = item.as_ref();
        if !list.iter().any(|before| before == item) {
            list.push(item.to_owned());
        }
    }
    list.join(",")
}

/// An anchored expression that matches what any of these match.
fn any_of(expressions: impl IntoIterator<Item = String>) -> String {
    let expressions: Vec<String> = expressions.into_iter().collect();
    if expressions.is_empty() { NOTHING.to_owned() } else { format!("^(?s:{})$", expressions.join("|")) }
}

#[cfg(test)]
mod tests {
    use regex::Regex;

    use super::*;
    use crate::policy::{Allow, RuntimeClass};

    /// The parameters of this profile, as `default`.
    fn of(profile: Profile) -> BTreeMap<String, String> {
        let mut policy = Policy::built_in();
        policy.profiles.insert("default".to_owned(), profile);
        params(&policy)
    }

    #[test]
    fn every_key_is_documented_and_may_stand_in_a_config_map() {
        let documentation = include_str!("params.rs");
        for (key, value) in params(&Policy::built_in()) {
            assert!(key.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._".contains(&b)), "{key}");
            assert!(!value.contains('\n'), "{key}");
            let name = key.strip_prefix("default.").unwrap_or(&key);
            let row = documentation.lines().any(|line| {
                let cell = line.strip_prefix("/// | ").and_then(|row| row.split(" | ").next()).unwrap_or_default();
                cell.split(", ").any(|known| {
                    let known = known.trim_matches('`');
                    known == name || known.trim_start_matches("<profile>").strip_prefix('.') == Some(name)
                })
            });
            assert!(row || Policy::built_in().profile_names().any(|p| p != "default" && key.starts_with(p)), "{key}");
        }
    }

    #[test]
    fn the_built_in_policy_says_what_the_defaults_are() {
        let params = params(&Policy::built_in());
        for (key, value) in [
            ("default.cpu", "500m"),
            ("default.memory", "512Mi"),
            ("default.sum.cpu", "2"),
            ("default.sum.memory", "2Gi"),
            ("default.sum.ephemeral-storage", "4Gi"),
            ("default.containers", "4"),
            ("default.deadline-seconds", "3600"),
            ("default.claims", "false"),
            ("default.extended", ""),
            ("default.scheduler-names", "default-scheduler"),
            ("default.node-labels", "kubernetes.io/arch,kubernetes.io/os"),
            ("default.runtime-class", ""),
            ("default.images", "^(?s:.*(?:[:@][^/]+)?)$"),
            ("bodies.audience", "cofferdam-bodies"),
            ("routing.hosts", NOTHING),
        ] {
            assert_eq!(params.get(key).map(String::as_str), Some(value), "{key}");
        }
    }

    #[test]
    fn labels_of_runtime_classes_may_be_chosen_by_and_none_stands_twice() {
        let mut profile = Profile::default();
        let label = |key: &str| BTreeMap::from([(key.to_owned(), "x".to_owned())]);
        profile.scheduling.node_selector = label("example.com/pool");
        profile.scheduling.runtime_classes = ["one", "two"]
            .map(|name| RuntimeClass {
                name: name.to_owned(),
                node_selector: label("sandbox"),
                tolerations: Vec::new(),
            })
            .to_vec();
        profile.scheduling.inject_runtime_class = true;
        let params = of(profile);
        assert_eq!(params["default.node-labels"], "kubernetes.io/arch,kubernetes.io/os,example.com/pool,sandbox");
        assert_eq!(params["default.runtime-classes"], "one,two");
        assert_eq!(params["default.runtime-class"], "one");
    }

    #[test]
    fn expressions_are_anchored_and_an_empty_list_matches_nothing() {
        let mut profile = Profile::default();
        profile.images.allowed = vec!["a.example/x".to_owned(), "b.example/**".to_owned()];
        profile.allow.namespaces = vec!["team-*".to_owned(), "a.b".to_owned()];
        let params = of(profile.clone());
        let images = Regex::new(&params["default.images"]).unwrap();
        assert!(images.is_match("a.example/x:1") && images.is_match("b.example/y/z"));
        assert!(
            !images.is_match("a.example/xy") && !images.is_match("evil/b.example/y") && !images.is_match("aXexample/x")
        );
        let namespaces = Regex::new(&params["default.allow.namespaces"]).unwrap();
        assert!(namespaces.is_match("team-a") && namespaces.is_match("a.b"));
        assert!(!namespaces.is_match("my-team-a") && !namespaces.is_match("aXb"));
        profile.images.allowed.clear();
        let nothing = Regex::new(&of(profile)["default.images"]).unwrap();
        assert!(!nothing.is_match("") && !nothing.is_match("a"));
    }

    #[test]
    fn hosts_of_sessions_are_those_below_the_base_domain() {
        let text = "profiles: {default: {}}\nrouting: {baseDomain: a.example}";
        let hosts = &params(&Policy::parse("policy.yaml", text).unwrap())["routing.hosts"];
        assert_eq!(hosts, r"^(?s:(?i:[1-9][0-9]{0,4}-[a-z0-9-]+\.a\.example))$");
    }

    #[test]
    fn users_are_all_unless_users_or_groups_are_named() {
        let may = |users: &[&str], groups: &[&str], user: &str, group: &str| {
            let own = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
            let allow = Allow { users: own(users), groups: own(groups), ..Allow::default() };
            let params = of(Profile { allow, ..Profile::default() });
            let is_match = |key: &str, text| Regex::new(&params[key]).unwrap().is_match(text);
            is_match("default.allow.users", user) || is_match("default.allow.groups", group)
        };
        assert!(may(&[], &[], "jane", "staff"));
        assert!(may(&["jane"], &[], "jane", "staff") && !may(&["jane"], &[], "janet", "staff"));
        assert!(may(&[], &["cn=a,ou=b"], "jane", "cn=a,ou=b") && !may(&[], &["staff"], "staff", "other"));
    }

    #[test]
    fn the_config_map_reads_back_as_the_parameters() {
        let policy = Policy::built_in();
        let yaml = params_config_map(&policy, "cofferdam-policy-params", "cofferdam-system");
        let object: serde_json::Value = serde_saphyr::from_str(&yaml).unwrap();
        assert_eq!(object["kind"], "ConfigMap");
        assert_eq!(object["metadata"]["name"], "cofferdam-policy-params");
        assert_eq!(object["metadata"]["namespace"], "cofferdam-system");
        let data: BTreeMap<String, String> = serde_json::from_value(object["data"].clone()).unwrap();
        assert_eq!(data, params(&policy));
    }
}
