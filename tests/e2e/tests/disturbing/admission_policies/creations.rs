//! Pods that are created: the policies refuse one if, and only if, an audit has something against it.

use std::collections::BTreeSet;

use cofferdam_e2e::dry_run::{self, Answer};
use cofferdam_model::audit;
use cofferdam_model::rules::{Cel, RULES};
use serde_json::{Value, json};

use super::loosened::{self, Loosened};
use super::{NAMESPACE, hardened_by, hardened_pod, policy, refused_by, stage};

/// What a refusal by one of the policies says.
const OURS: &str = "ValidatingAdmissionPolicy 'cofferdam-session-";

fn ask(pods: &[Value]) -> Vec<Answer> {
    dry_run::create(stage(), NAMESPACE, pods).unwrap()
}

/// The rules that the policies state and that have something against the pod; `pod` for what keeps any from being
/// applied.
fn findings(pod: &Value) -> BTreeSet<&'static str> {
    let stated = |name: &str| {
        name == "pod" || RULES.iter().any(|rule| rule.name == name && !matches!(rule.cel, Cel::WebhookOnly(_)))
    };
    audit(pod, policy()).iter().map(|reason| reason.rule).filter(|rule| stated(rule)).collect()
}

/// What an author would write of a pod that the API server stores.
fn written(mut pod: Value) -> Value {
    pod.as_object_mut().unwrap().remove("status");
    let metadata = pod["metadata"].as_object_mut().unwrap();
    metadata.retain(|key, _| ["name", "labels", "annotations"].contains(&key.as_str()));
    pod
}

/// The hardened pod, with everything that the API server fills in.
fn base(profile: &str) -> Value {
    let mut hard = hardened_by(profile, &loosened::spec());
    hard["metadata"]["name"] = json!("corpus");
    let stored = ask(&[hard]).remove(0).unwrap();
    assert_eq!(findings(&stored), BTreeSet::new());
    written(stored)
}

#[test]
fn what_is_loosened_is_refused_by_the_rule_that_an_audit_names() {
    let (mut wrong, mut seen) = (Vec::new(), BTreeSet::from(["profile".to_owned()]));
    let [strict, _] = loosened::strict();
    for (profile, rows) in [("default", loosened::all()), ("strict", strict)] {
        let base = base(profile);
        let answers = ask(&rows.iter().map(|row| row.applied_to(&base)).collect::<Vec<_>>());
        println!("{} pods, loosened from profile {profile}", rows.len());
        for (row, answer) in rows.iter().zip(answers) {
            match judged(row, &base, answer) {
                Ok(true) => drop(seen.insert(row.rule.clone())),
                // An older API server does not know the field.
                Ok(false) => {}
                Err(words) => wrong.push(format!("{row:?}: {words}")),
            }
        }
    }
    assert!(wrong.is_empty(), "{}:\n{}", wrong.len(), wrong.join("\n"));
    for rule in RULES.iter().filter(|rule| !matches!(rule.cel, Cel::WebhookOnly(_))) {
        assert!(seen.contains(rule.name), "nothing was refused by {}", rule.name);
    }
}

/// Whether it was refused as it has to be; `false` where the API server took the edit back before.
fn judged(row: &Loosened, base: &Value, answer: Answer) -> Result<bool, String> {
    let sent = row.applied_to(base);
    let found = findings(&sent);
    match answer {
        Ok(stored) => {
            let dropped = row.edits.iter().all(|(pointer, value)| stored.pointer(pointer) != Some(value));
            let left = findings(&stored);
            if dropped && left.is_empty() { Ok(false) } else { Err(format!("accepted; an audit finds {left:?}")) }
        }
        Err(words) if !words.contains(OURS) => Err(words),
        Err(words) if !found.contains(row.rule.as_str()) => Err(format!("an audit finds {found:?} only: {words}")),
        Err(words) if !names_one(&words, &found) => Err(format!("an audit finds {found:?}: {words}")),
        Err(_) => Ok(true),
    }
}

/// Whether a refusal names one of these rules.
fn names_one(words: &str, rules: &BTreeSet<&str>) -> bool {
    rules.iter().any(|rule| words.contains(&format!("({rule})")))
}

#[test]
fn what_is_not_loosened_is_accepted() {
    let mut wrong = Vec::new();
    let [_, strict] = loosened::strict();
    for (profile, rows) in [("default", loosened::harmless()), ("strict", strict)] {
        let base = base(profile);
        let answers = ask(&rows.iter().map(|row| row.applied_to(&base)).collect::<Vec<_>>());
        for (row, answer) in rows.iter().zip(answers) {
            match answer {
                Err(words) => wrong.push(format!("{row:?}: {words}")),
                Ok(stored) if !findings(&stored).is_empty() => wrong.push(format!("{row:?}: {:?}", findings(&stored))),
                Ok(_) => {}
            }
        }
    }
    assert!(wrong.is_empty(), "{}:\n{}", wrong.len(), wrong.join("\n"));
}

/// Who creates a pod is seen when it is created, so no audit looks at it.
#[test]
fn a_profile_is_used_by_whom_and_where_the_policy_says() {
    let create = |profile: &str, edit: Option<(&str, Value)>, who: &[&str]| {
        let mut pod = base("default");
        pod["metadata"]["labels"]["cofferdam.dev/profile"] = json!(profile);
        if let Some((pointer, value)) = edit {
            loosened::set(&mut pod, pointer, value);
        }
        let arguments = ["create", "--dry-run=server", "--namespace", NAMESPACE, "--filename=-"];
        stage().kubectl.ask(arguments.iter().chain(who).copied(), &pod.to_string()).unwrap()
    };
    let jane = ["--as=jane", "--as-group=system:masters"];
    let owner = json!([{"apiVersion": "batch/v1", "kind": "Job", "name": "o", "uid": "u", "controller": true}]);
    let answer = create("hers", None, &jane);
    assert!(answer.success, "{}", answer.stderr);
    for answer in [
        create("elsewhere", None, &jane),
        create("hers", None, &[]),
        create("hers", Some(("/metadata/ownerReferences", owner)), &jane),
    ] {
        refused_by("session-pod", &answer).unwrap();
        assert!(answer.stderr.contains("(profile)"), "{}", answer.stderr);
    }
    // Only one of the pod's images is named by its digest.
    let answer = create("pinned", None, &[]);
    refused_by("session-containers", &answer).unwrap();
    assert!(answer.stderr.contains("(image)"), "{}", answer.stderr);
}

/// With several things at once, by the thousands of ways that people combine them.
#[test]
fn a_pod_as_people_write_it_is_refused_where_an_audit_finds_something_and_passes_once_it_is_hardened() {
    let pods = loosened::mixed(300);
    let mut wrong = Vec::new();
    let mut refused = 0;
    for (pod, answer) in pods.iter().zip(ask(&pods)) {
        match answer {
            Ok(stored) if findings(&stored).is_empty() => {}
            Ok(stored) => wrong.push(format!("accepted, and an audit finds {:?}: {pod}", findings(&stored))),
            Err(words) if !words.contains(OURS) => {}
            // Whatever keeps the rules from being applied, the policies are all asked.
            Err(words) if names_one(&words, &findings(pod)) || findings(pod).contains("pod") => refused += 1,
            Err(words) => wrong.push(format!("an audit finds {:?}: {words}", findings(pod))),
        }
    }
    let hard: Vec<Value> = pods.iter().filter_map(hardened_pod).collect();
    let mut accepted = 0;
    for (pod, answer) in hard.iter().zip(ask(&hard)) {
        match answer {
            Ok(_) => accepted += 1,
            Err(words) if !words.contains(OURS) => {}
            Err(words) => wrong.push(format!("hardened: {words}: {pod}")),
        }
    }
    assert!(wrong.is_empty(), "{}:\n{}", wrong.len(), wrong.join("\n"));
    assert!(refused > 150 && accepted > 150, "{refused} refused; {accepted} of {} accepted", hard.len());
}
