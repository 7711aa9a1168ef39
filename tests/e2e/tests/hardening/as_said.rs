//! What is stored is what the rules say, for many pods as people write them: the API server, its own plugins, the webhook,
//! the admission policies and Pod Security agree about each.

use cofferdam_e2e::dry_run;
use cofferdam_e2e::namespace::Sessions;
use cofferdam_e2e::stage::Stage;
use cofferdam_model::policy::Policy;
use cofferdam_model::{Operation, Request, Scope, User, Verdict, audit, harden, keys};
use serde_json::{Value, json};

use crate::loosened;
use crate::session::namespace;

/// What the webhook is shown: the pod with what the API server and its plugins fill in.
fn shown(stored: &Value) -> Value {
    let mut pod = stored.clone();
    pod.as_object_mut().unwrap().remove("status");
    for filled_in_later in ["uid", "creationTimestamp", "generation", "managedFields", "namespace"] {
        pod["metadata"].as_object_mut().unwrap().remove(filled_in_later);
    }
    pod["metadata"]["labels"][keys::SESSION] = json!("said");
    pod
}

/// Takes out what a version that does not know it yet drops, but only after it has shown it to the webhook.
fn forget_what_is_dropped(pod: &mut Value, stored: &Value) {
    for list in ["containers", "initContainers"] {
        for (index, container) in pod["spec"][list].as_array_mut().into_iter().flatten().enumerate() {
            for member in ["restartPolicy", "restartPolicyRules"] {
                if stored["spec"][list][index][member].is_null() {
                    container.as_object_mut().unwrap().remove(member);
                }
            }
        }
    }
}

/// Spec, labels and annotations. What a pod asks for as a whole the API server sums up anew after every patch.
fn comparable(mut pod: Value) -> Value {
    if pod["spec"].as_object_mut().unwrap().remove("resources").is_some() {
        pod["metadata"]["annotations"].as_object_mut().unwrap().remove(keys::CHANGES);
    }
    json!([pod["spec"], pod["metadata"]["labels"], pod["metadata"]["annotations"]])
}

#[test]
fn what_is_stored_is_what_the_rules_say() {
    let (ordinary, enforced) = (namespace("as-said-plain", Sessions::None), namespace("as-said", Sessions::Enforced));
    let stage = Stage::shared();
    let pods = loosened::mixed(200);
    // What would be stored where nobody hardens: that is what the webhook is shown elsewhere.
    let plain = dry_run::create(stage, ordinary.name(), &pods).unwrap();
    let valid: Vec<Value> = plain.iter().flatten().map(shown).collect();
    assert!(valid.len() > 100, "{} of {} are valid", valid.len(), pods.len());
    let labelled: Vec<Value> = pods
        .iter()
        .zip(&plain)
        .filter(|(_, plain)| plain.is_ok())
        .map(|(pod, plain)| {
            let mut pod = pod.clone();
            forget_what_is_dropped(&mut pod, plain.as_ref().unwrap());
            pod["metadata"]["labels"][keys::SESSION] = json!("said");
            pod
        })
        .collect();
    let answers = dry_run::create(stage, enforced.name(), &labelled).unwrap();
    let (mut wrong, mut hardened, mut refused) = (Vec::new(), 0, 0);
    for (pod, answer) in valid.iter().zip(answers) {
        let user = User { name: "kubernetes-admin", groups: &[] };
        let (namespace, scope, operation) = (enforced.name(), Scope::Enforced, Operation::Create);
        let request = Request { uid: Some("u-1"), namespace, scope, user, operation, pod };
        match (harden(&request, &Policy::built_in()), answer) {
            (Verdict::Hardened(said), Ok(stored)) => {
                hardened += 1;
                let (said, kept) = (comparable(said.pod), comparable(stored.clone()));
                if said != kept {
                    wrong.push(format!("said {said}\nstored {kept}"));
                }
                let found = audit(&stored, &Policy::built_in());
                if !found.is_empty() {
                    wrong.push(format!("an audit finds {found:?}: {stored}"));
                }
            }
            (Verdict::Refused(refusal), Err(words)) if words.contains(&refusal.to_string()) => refused += 1,
            (verdict, answer) => wrong.push(format!("said {verdict:?}\nanswered {answer:?}")),
        }
    }
    assert!(wrong.is_empty(), "{}:\n{}", wrong.len(), wrong.join("\n"));
    assert!(hardened > 80 && refused > 10, "{hardened} were hardened, {refused} refused");
}
