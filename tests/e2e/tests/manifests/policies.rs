//! The admission policies: whom they judge, by which words, and what they say.

use std::collections::BTreeSet;

use cofferdam_model::keys;
use cofferdam_model::policy::Policy;
use cofferdam_model::rules::{Cel, RULES};

use crate::objects::{Objects, items, labels, selects, text};

#[test]
fn a_pod_is_judged_by_the_admission_policies_where_an_entry_shows_it_to_the_webhook() {
    let objects = Objects::of("overlays/cert-manager");
    let sessions = |name, value| labels(&[("kubernetes.io/metadata.name", name), ("cofferdam.dev/sessions", value)]);
    let ordinary = |name| labels(&[("kubernetes.io/metadata.name", name)]);
    let (plain, session) = (labels(&[("app", "x")]), labels(&[("cofferdam.dev/session", "")]));
    for (namespace, pod, kind) in [
        (sessions("team", "enforced"), &plain, Some("enforced")),
        (sessions("team", "enforced"), &session, Some("enforced")),
        (sessions("team", "warn"), &session, None),
        (ordinary("default"), &session, Some("labelled")),
        (ordinary("default"), &plain, None),
        (ordinary("kube-system"), &session, None),
        (sessions("cofferdam-system", "enforced"), &plain, None),
    ] {
        let judged: BTreeSet<_> = objects
            .kind("ValidatingAdmissionPolicyBinding")
            .filter(|binding| {
                let matched = &binding["spec"]["matchResources"];
                text(&binding["spec"]["policyName"]).starts_with("cofferdam-session-")
                    && matched.is_object()
                    && selects(&matched["namespaceSelector"], &namespace)
                    && selects(&matched["objectSelector"], pod)
            })
            .map(|binding| text(&binding["metadata"]["name"]))
            .collect();
        let expected: Vec<_> = ["containers", "pod", "resources"]
            .into_iter()
            .filter_map(|policy| kind.map(|kind| format!("cofferdam-session-{policy}-{kind}")))
            .collect();
        assert!(judged.iter().eq(&expected), "{namespace:?} {pod:?}: {judged:?}");
    }
    for (policy, words) in [
        ("cofferdam-keys", &[keys::SESSION, keys::PROFILE, keys::HARDENED, keys::CHANGES, keys::ENTRY][..]),
        ("cofferdam-keys", &[keys::BODY_URL, keys::BODY_SHA256, keys::BODY_TOKEN_SECRET]),
        ("cofferdam-reports", &[keys::ENDPOINTS, keys::STOPPED, keys::REFUSED]),
        ("cofferdam-session-containers", &[keys::PROFILE, keys::MIRROR_POD, keys::KUBELETS, keys::FETCH_CONTAINER]),
    ] {
        let policy = objects.named("ValidatingAdmissionPolicy", policy).expect("the policy is shipped").to_string();
        for word in words {
            assert!(policy.contains(&format!("'{word}'")), "{word} is not in {policy}");
        }
    }
}

#[test]
fn every_refusal_of_the_admission_policies_says_by_which_rule() {
    let objects = Objects::of("base");
    let mut stated = BTreeSet::new();
    for policy in objects.kind("ValidatingAdmissionPolicy") {
        assert_eq!(policy["spec"]["failurePolicy"], "Fail");
        for validation in items(&policy["spec"]["validations"]) {
            let message = text(&validation["message"]);
            let rule = message.rsplit_once(" (").and_then(|(_, rule)| rule.strip_suffix(')'));
            let rule = rule.unwrap_or_else(|| panic!("{message:?} names no rule"));
            assert!(message.contains(": ") && message.len() <= 256, "{message}");
            stated.insert(rule.to_owned());
        }
    }
    let mut known: BTreeSet<_> =
        RULES.iter().filter(|rule| !matches!(rule.cel, Cel::WebhookOnly(_))).map(|rule| rule.name.to_owned()).collect();
    // What keeps any rule from being applied, and what is no rule about a new pod.
    known.extend(["pod", "keys", "reports", "hosts", "endpoints", "agent-node"].map(str::to_owned));
    assert_eq!(stated, known);
}

#[test]
fn the_network_policy_for_those_who_apply_it_themselves_blocks_what_the_policy_does() {
    let objects = Objects::of("examples/network-policy");
    let egress = items(&objects.only("NetworkPolicy")["spec"]["egress"]);
    let internet = items(&egress.last().expect("it has rules")["to"]).iter();
    let blocked: Vec<_> = internet.flat_map(|peer| items(&peer["ipBlock"]["except"])).map(text).collect();
    assert_eq!(blocked, Policy::built_in().network().blocked, "in the policy, IPv4 comes first");
    let opened = items(&egress[1]["ports"]);
    assert_eq!(opened.len(), 1, "session pods reach one port of ours: {opened:?}");
}
