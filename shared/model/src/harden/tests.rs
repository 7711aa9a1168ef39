use serde_json::json;

use super::*;
use crate::quantity::Quantity;
use crate::testing::{UID, create, fields, hardened, pod, refused};

fn plain() -> Value {
    pod(json!({ "containers": [{ "name": "a", "image": "nginx" }] }))
}

fn decide(namespace: &str, scope: Scope, groups: &[&str], pod: &Value) -> Verdict {
    let groups: Vec<String> = groups.iter().map(|&group| group.to_owned()).collect();
    let user = User { name: "jane", groups: &groups };
    harden(&Request { namespace, scope, user, ..create(pod) }, &Policy::built_in())
}

fn labelled(id: &Value) -> Value {
    let mut pod = plain();
    pod["metadata"]["labels"] = json!({ keys::SESSION: id });
    pod
}

fn operations(hardened: &Hardened) -> Vec<(String, String)> {
    let patch = serde_json::to_value(&hardened.patch).unwrap();
    let text = |operation: &Value, key: &str| operation[key].as_str().unwrap().to_owned();
    patch.as_array().unwrap().iter().map(|operation| (text(operation, "op"), text(operation, "path"))).collect()
}

#[test]
fn exempt_namespaces_are_left_alone_whatever_is_in_them() {
    for namespace in ["kube-system", "cofferdam-system"] {
        for scope in [Scope::Enforced, Scope::Labelled] {
            let verdict = decide(namespace, scope, &[], &json!("no pod"));
            assert!(matches!(verdict, Verdict::Untouched(Untouched::ExemptNamespace)), "{verdict:?}");
        }
    }
}

#[test]
fn an_installation_elsewhere_leaves_its_own_namespace_alone_and_not_the_default_one() {
    let policy = Policy::built_in().with_system_namespace("guard");
    let pod = plain();
    let verdict = |namespace| harden(&Request { namespace, ..create(&pod) }, &policy);
    for namespace in ["kube-system", "guard"] {
        assert!(matches!(verdict(namespace), Verdict::Untouched(Untouched::ExemptNamespace)), "{namespace}");
    }
    assert!(matches!(verdict("cofferdam-system"), Verdict::Hardened(_)));
}

#[test]
fn an_update_that_takes_the_label_away_is_judged_like_any_other() {
    let old = labelled(&json!("abc"));
    let mut new = plain();
    new["spec"]["containers"][0]["securityContext"] = json!({ "privileged": true });
    let update =
        Request { scope: Scope::Labelled, operation: Operation::Update { old: &old }, uid: None, ..create(&new) };
    assert!(matches!(harden(&update, &Policy::built_in()), Verdict::Refused(_)));
}

#[test]
fn advice_names_each_rule_once() {
    let pod = pod(json!({
        "hostNetwork": true,
        "hostPID": true,
        "containers": [{ "name": "a" }],
        "volumes": [{ "name": "h", "hostPath": { "path": "/" } }],
    }));
    match decide("n", Scope::Warn, &[], &pod) {
        Verdict::Advised(advice) => {
            assert_eq!((advice.rules, advice.would_refuse), (vec!["host", "volume-types"], true));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn outside_enforced_namespaces_only_the_label_makes_a_session() {
    let verdict = decide("default", Scope::Labelled, &[], &plain());
    assert!(matches!(verdict, Verdict::Untouched(Untouched::NotASession)), "{verdict:?}");
    for id in ["", "abc"] {
        let verdict = decide("default", Scope::Labelled, &[], &labelled(&json!(id)));
        assert!(matches!(verdict, Verdict::Hardened(_)), "{verdict:?}");
    }
    let verdict = decide("default", Scope::Enforced, &[], &plain());
    assert!(matches!(verdict, Verdict::Hardened(_)), "{verdict:?}");
}

#[test]
fn labels_that_cannot_be_read_are_refused_and_not_skipped() {
    let mut pod = plain();
    pod["metadata"]["labels"] = json!("cofferdam.dev/session");
    match decide("default", Scope::Labelled, &[], &pod) {
        Verdict::Refused(refusal) => assert_eq!(fields(&refusal), ["metadata.labels"]),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_mirror_pod_is_a_kubelets_business_and_nobody_elses() {
    let mut pod = plain();
    pod["metadata"]["annotations"] = json!({ keys::MIRROR_POD: "abc", "kubernetes.io/config.source": "file" });
    let verdict = decide("n", Scope::Enforced, &["system:nodes", "system:authenticated"], &pod);
    assert!(matches!(verdict, Verdict::Untouched(Untouched::MirrorPod)), "{verdict:?}");
    match decide("n", Scope::Enforced, &["system:authenticated"], &pod) {
        Verdict::Refused(refusal) => {
            assert_eq!(fields(&refusal), ["metadata.annotations[kubernetes.io/config.mirror]"]);
        }
        other => panic!("{other:?}"),
    }
    let mut source_only = plain();
    source_only["metadata"]["annotations"] = json!({ "kubernetes.io/config.source": "file" });
    assert!(matches!(decide("n", Scope::Enforced, &["system:nodes"], &source_only), Verdict::Hardened(_)));
}

#[test]
fn a_brought_id_is_kept_an_empty_one_derived_and_a_bad_one_refused() {
    assert_eq!(hardened(&labelled(&json!("abc-1"))).session, SessionId::parse("abc-1").ok());
    let derived = SessionId::derive(UID);
    for pod in [plain(), labelled(&json!("")), labelled(&json!(null))] {
        let hardened = hardened(&pod);
        assert_eq!(hardened.session.as_ref(), Some(&derived));
        assert_eq!(hardened.pod["metadata"]["labels"][keys::SESSION], json!(derived.as_str()));
    }
    for bad in [json!("A"), json!("a--b"), json!(5)] {
        assert_eq!(fields(&refused(&labelled(&bad))), ["metadata.labels[cofferdam.dev/session]"]);
    }
}

#[test]
fn a_profile_that_the_policy_lacks_is_refused_with_the_ones_it_has() {
    let mut pod = plain();
    pod["metadata"]["labels"] = json!({ keys::PROFILE: "defualt" });
    let text = refused(&pod).to_string();
    assert!(
        text.contains(
            "metadata.labels[cofferdam.dev/profile]: names no profile of the policy; did you mean `default`?"
        ),
        "{text}"
    );
    pod["metadata"]["labels"] = json!({ keys::PROFILE: "gpu" });
    assert!(refused(&pod).to_string().contains("there are: app, default, workspace"));
    pod["metadata"]["labels"] = json!({ keys::PROFILE: "default" });
    assert_eq!(hardened(&pod).profile, "default");
}

#[test]
fn one_answer_names_every_reason() {
    let pod = pod(json!({
        "hostNetwork": true,
        "containers": [{ "name": "a", "ports": [{ "containerPort": 80, "hostPort": 80 }] }],
        "volumes": [{ "name": "h", "hostPath": { "path": "/" } }],
    }));
    let text = refused(&pod).to_string();
    for field in ["spec.hostNetwork: ", "spec.containers[0].ports[0].hostPort: ", "spec.volumes[0].hostPath: "] {
        assert!(text.contains(field), "{text}");
    }
    assert!(!text.contains('\n'));
}

#[test]
fn what_is_no_pod_is_refused_by_the_part_that_is_missing() {
    for (pod, missing) in [
        (json!(null), &["the pod"][..]),
        (json!([]), &["the pod"]),
        (json!({}), &["spec"]),
        (json!({ "metadata": {} }), &["spec"]),
        (json!({ "metadata": {}, "spec": [] }), &["spec"]),
        (json!({ "metadata": 5, "spec": {} }), &["metadata"]),
    ] {
        assert_eq!(fields(&refused(&pod)), missing, "{pod}");
    }
}

#[test]
fn b01_a_missing_annotations_map_is_added_as_an_object_with_all_our_keys() {
    let hardened = hardened(&plain());
    assert!(hardened.pod["metadata"]["annotations"].is_object());
    let annotations: Vec<_> =
        operations(&hardened).into_iter().filter(|(_, path)| path.starts_with("/metadata/annotations")).collect();
    assert_eq!(annotations, [("add".to_owned(), "/metadata/annotations".to_owned())]);
}

#[test]
fn b03_an_existing_map_gets_one_operation_per_key_and_keeps_its_own() {
    let mut pod = plain();
    pod["metadata"]["annotations"] = json!({ "team": "blue", "a~b/c": "7" });
    let hardened = hardened(&pod);
    assert_eq!(hardened.pod["metadata"]["annotations"]["team"], json!("blue"));
    assert_eq!(hardened.pod["metadata"]["annotations"]["a~b/c"], json!("7"));
    let annotations: Vec<_> =
        operations(&hardened).into_iter().filter(|(_, path)| path.starts_with("/metadata/annotations")).collect();
    assert_eq!(
        annotations,
        [
            ("add".to_owned(), "/metadata/annotations/cofferdam.dev~1hardened".to_owned()),
            ("add".to_owned(), "/metadata/annotations/cofferdam.dev~1changes".to_owned()),
        ]
    );
}

#[test]
fn b04_keys_are_escaped_once_tilde_before_slash() {
    let mut pod = plain();
    pod["metadata"]["annotations"] = json!({ "seccomp.security.alpha.kubernetes.io/~1x": "unconfined" });
    let hardened = hardened(&pod);
    let pointer = "/metadata/annotations/seccomp.security.alpha.kubernetes.io~1~01x";
    assert!(operations(&hardened).contains(&("remove".to_owned(), pointer.to_owned())));
    json_patch::patch(&mut pod, &hardened.patch).unwrap();
    assert_eq!(pod, hardened.pod);
}

#[test]
fn b08_a_second_pass_changes_nothing_and_a_newcomer_alone_is_hardened() {
    let first = hardened(&pod(json!({
        "containers": [{ "name": "a", "securityContext": { "privileged": true } }],
        "initContainers": [{ "name": "s", "restartPolicy": "Always" }],
    })));
    // A reinvocation comes with another uid.
    let again = Request { uid: Some("another"), ..create(&first.pod) };
    match harden(&again, &Policy::built_in()) {
        Verdict::Hardened(second) => {
            assert!(second.patch.0.is_empty(), "{:?}", second.patch);
            assert!(second.warnings.is_empty() && second.changes.is_empty());
            assert_eq!(second.session, first.session);
        }
        other => panic!("{other:?}"),
    }

    let mut joined = first.pod.clone();
    joined["spec"]["containers"].as_array_mut().unwrap().push(json!({ "name": "proxy" }));
    let second = hardened(&joined);
    assert!(second.changes.iter().all(|change| change.path.starts_with("spec.containers[1].")), "{:?}", second.changes);
    assert_eq!(second.pod["spec"]["containers"][0], first.pod["spec"]["containers"][0]);
    assert_eq!(second.pod["spec"]["volumes"], first.pod["spec"]["volumes"]);
    assert_eq!(second.pod["spec"]["containers"][1]["volumeMounts"][0]["name"], json!("cofferdam-tmp"));
    // What the first pass did is still on the pod.
    let changes = second.pod["metadata"]["annotations"][keys::CHANGES].as_str().unwrap();
    assert!(changes.contains(r#""path":"spec.containers[0].securityContext.privileged","action":"tighten""#));
    assert!(changes.contains(r#""path":"spec.containers[1].securityContext.privileged","action":"inject""#));
}

#[test]
fn b16_members_that_we_do_not_know_are_carried_along() {
    let future = json!({ "deep": [{ "er": null }, 1.5, "x"] });
    let mut pod = pod(json!({
        "future": future,
        "securityContext": { "future": future, "seccompProfile": { "type": "Unconfined", "future": future } },
        "containers": [{ "name": "a", "future": future, "resources": { "future": future } }],
        "volumes": [{ "name": "v", "emptyDir": { "future": future } }],
    }));
    pod["future"] = future.clone();
    pod["metadata"]["future"] = future.clone();
    let hardened = hardened(&pod);
    for pointer in [
        "/future",
        "/metadata/future",
        "/spec/future",
        "/spec/securityContext/future",
        "/spec/securityContext/seccompProfile/future",
        "/spec/containers/0/future",
        "/spec/containers/0/resources/future",
        "/spec/volumes/0/emptyDir/future",
    ] {
        assert_eq!(hardened.pod.pointer(pointer), Some(&future), "{pointer}");
    }
}

#[test]
fn b65_the_ephemeral_storage_limit_covers_the_scratch_and_the_logs() {
    let hardened = hardened(&plain());
    let quantity = |value: &Value| Quantity::from_json(value).unwrap();
    let sizes = hardened.pod["spec"]["volumes"].as_array().unwrap().iter();
    let sizes = sizes.fold(Quantity::ZERO, |sum, volume| sum.plus(quantity(&volume["emptyDir"]["sizeLimit"])));
    let limit = quantity(&hardened.pod["spec"]["containers"][0]["resources"]["limits"]["ephemeral-storage"]);
    assert!(sizes > Quantity::ZERO && limit >= sizes.plus(quantity(&json!("64Mi"))));
}

#[test]
fn no_secret_of_an_author_is_told() {
    const SECRET: &str = "hunter2-xyz";
    let mut secretive = pod(json!({
        "containers": [{
            "name": "a",
            "args": [SECRET],
            "env": [{ "name": "PASSWORD", "value": SECRET }],
            "securityContext": {
                "privileged": true,
                "capabilities": { "add": [SECRET] },
                "seccompProfile": { "type": SECRET, "localhostProfile": SECRET },
                "appArmorProfile": { "type": SECRET },
                "seLinuxOptions": { "user": SECRET, "type": SECRET },
                "procMount": SECRET,
            },
            "livenessProbe": { "httpGet": { "port": 80, "host": SECRET, "path": SECRET } },
            "volumeMounts": [{ "name": "v", "mountPath": SECRET, "mountPropagation": SECRET }],
        }],
        "tolerations": [{ "key": SECRET, "value": SECRET }],
        "restartPolicy": SECRET,
    }));
    secretive["metadata"]["annotations"] = json!({
        "seccomp.security.alpha.kubernetes.io/pod": SECRET,
        keys::ENDPOINTS: SECRET,
        keys::STOPPED: SECRET,
        keys::REFUSED: SECRET,
        keys::CHANGES: SECRET,
    });
    let told = hardened(&secretive);
    assert!(told.warnings.len() >= 10, "{:?}", told.warnings);
    assert!(!format!("{:?}{:?}", told.warnings, told.changes).contains(SECRET));
    assert!(!told.pod["metadata"]["annotations"].to_string().contains(SECRET));
    let refusal = refused(&pod(json!({
        "nodeName": SECRET,
        "runtimeClassName": SECRET,
        "schedulerName": SECRET,
        "nodeSelector": { "x": SECRET },
        "affinity": { "nodeAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": { "nodeSelectorTerms": [
            { "matchExpressions": [{ "key": SECRET }], "matchFields": [{ "key": SECRET }] },
        ] } } },
        "initContainers": [{ "volumeMounts": [{ "subPath": "/hunter2-xyz" }] }],
        "containers": [{ "resources": { "limits": { "cpu": SECRET } }, "volumeMounts": SECRET }],
        "securityContext": { "sysctls": [{ "name": SECRET, "value": SECRET }], "runAsUser": SECRET },
    })));
    assert!(!refusal.to_string().contains(SECRET), "{refusal}");
}

/// The verdict about a live pod that gets these containers for debugging.
fn debug(old: &Value, containers: Value) -> Verdict {
    let mut new = old.clone();
    new["spec"]["ephemeralContainers"] = containers;
    harden(&Request { operation: Operation::AddEphemeralContainers { old }, ..create(&new) }, &Policy::built_in())
}

#[test]
fn b28_a_container_for_debugging_is_hardened_when_it_comes_and_nothing_else_is_touched() {
    // One pod that was hardened, and one from before there was a webhook.
    for old in [hardened(&plain()).pod, plain()] {
        let privileged = json!({ "name": "d", "image": "b", "securityContext": { "privileged": true } });
        let Verdict::Hardened(hardened) = debug(&old, json!([privileged])) else { panic!() };
        let security = &hardened.pod["spec"]["ephemeralContainers"][0]["securityContext"];
        assert_eq!(security["privileged"], json!(false));
        assert_eq!(security["capabilities"]["drop"], json!(["ALL"]));
        assert_eq!(hardened.warnings.len(), 1, "{:?}", hardened.warnings);
        let below = "/spec/ephemeralContainers/0/";
        assert!(operations(&hardened).iter().all(|(_, path)| path.starts_with(below)), "{:?}", hardened.patch);
        // A second one later does not bring the first back into view.
        let mut both = hardened.pod.clone();
        both["spec"]["ephemeralContainers"][0]["securityContext"]["privileged"] = json!(true);
        let first = both["spec"]["ephemeralContainers"][0].clone();
        let Verdict::Hardened(second) = debug(&both, json!([first, { "name": "e", "image": "b" }])) else { panic!() };
        let below = "/spec/ephemeralContainers/1/";
        assert!(operations(&second).iter().all(|(_, path)| path.starts_with(below)), "{:?}", second.patch);
    }
}

#[test]
fn a_container_for_debugging_is_judged_in_the_pod_that_lives_and_not_in_one_that_the_request_shows() {
    // The API server drops all but the list, once the webhooks have seen the rest.
    let old = plain();
    let mut shown = old.clone();
    shown["metadata"]["labels"] = json!({ "cofferdam.dev/profile": "lax" });
    shown["spec"]["securityContext"] = json!({
        "runAsNonRoot": true, "runAsUser": 1000, "runAsGroup": 1000, "seccompProfile": { "type": "RuntimeDefault" },
    });
    shown["spec"]["ephemeralContainers"] = json!([{ "name": "d", "image": "b" }]);
    let policy = "profiles: {default: {runAs: {user: 2000, group: 2000}}, lax: {images: {allowed: [\"**\"]}}}";
    let policy = Policy::parse("policy.yaml", policy).unwrap();
    let operation = Operation::AddEphemeralContainers { old: &old };
    let Verdict::Hardened(hardened) = harden(&Request { operation, ..create(&shown) }, &policy) else { panic!() };
    assert_eq!(hardened.profile, "default");
    let mut patched = shown.clone();
    json_patch::patch(&mut patched, &hardened.patch).unwrap();
    let security = &patched["spec"]["ephemeralContainers"][0]["securityContext"];
    assert_eq!(security["runAsNonRoot"], json!(true));
    assert_eq!(security["runAsUser"], json!(2000));
    assert_eq!(security["seccompProfile"]["type"], json!("RuntimeDefault"));
}

#[test]
fn where_no_container_comes_for_debugging_the_pod_is_left_to_the_letter() {
    let old = hardened(&pod(json!({ "containers": [{ "name": "a" }] }))).pod;
    let operation = Operation::AddEphemeralContainers { old: &old };
    let verdict = harden(&Request { operation, ..create(&old) }, &Policy::built_in());
    let Verdict::Hardened(hardened) = verdict else { panic!() };
    assert_eq!((hardened.pod, hardened.patch.0.len()), (old, 0));
}

#[test]
fn b30_a_container_for_debugging_gets_nothing_that_the_api_forbids_it() {
    let old = hardened(&plain()).pod;
    let Verdict::Hardened(hardened) = debug(&old, json!([{ "name": "d", "image": "b" }])) else { panic!() };
    let members = hardened.pod["spec"]["ephemeralContainers"][0].as_object().unwrap();
    let members: Vec<&str> = members.keys().map(String::as_str).collect();
    assert_eq!(members, ["image", "name", "securityContext"]);
}
