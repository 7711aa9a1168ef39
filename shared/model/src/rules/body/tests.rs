use serde_json::{Value, json};

use super::RULE;
use crate::{
    audit,
    harden::{Verdict, harden},
    keys,
    policy::{Bodies, Ceilings, DefaultRequest, Policy, Profile, Requests},
    quantity::Quantity,
    request::{Operation, Request, Template},
    rules::Occasion,
    testing::{apply_under, create, fields, hardened, hardened_by, pod, refused, refused_by},
};

/// Makes something of ours into something else.
type Spoil = fn(&mut Value);

const DIGEST: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

fn asking(annotations: Value, spec: Value) -> Value {
    let mut pod = pod(spec);
    pod["metadata"]["annotations"] = annotations;
    pod
}

fn annotations(url: &str) -> Value {
    json!({ keys::BODY_URL: url, keys::BODY_SHA256: DIGEST })
}

/// A pod with a body that anyone may fetch.
fn public(spec: Value) -> Value {
    asking(annotations("https://example.com/b.tgz?signature=tok-123"), spec)
}

/// A pod with a body that needs a token.
fn private(spec: Value) -> Value {
    let mut pod = public(spec);
    pod["metadata"]["annotations"][keys::BODY_TOKEN_SECRET] = json!("s-abc");
    pod
}

fn plain() -> Value {
    json!({ "containers": [{ "name": "a", "image": "nginx" }] })
}

fn names(list: &Value) -> Vec<&str> {
    list.as_array().into_iter().flatten().map(|item| item["name"].as_str().unwrap()).collect()
}

fn fetch(pod: &Value) -> &Value {
    let inits = pod["spec"]["initContainers"].as_array().unwrap();
    inits.iter().find(|container| container["name"] == "cofferdam-fetch").unwrap()
}

/// What a real API server makes of a pod between two calls of a webhook: it fills in its defaults.
fn with_defaults(pod: &Value) -> Value {
    let mut pod = pod.clone();
    for list in ["initContainers", "containers"] {
        for container in pod["spec"][list].as_array_mut().into_iter().flatten() {
            container["terminationMessagePath"] = json!("/dev/termination-log");
            if container.get("terminationMessagePolicy").is_none() {
                container["terminationMessagePolicy"] = json!("File");
            }
        }
    }
    pod
}

#[test]
fn a_body_that_anyone_may_fetch_comes_without_a_token_and_without_an_identity() {
    let hardened = hardened(&public(plain()));
    let spec = &hardened.pod["spec"];
    assert_eq!(names(&spec["volumes"]), ["cofferdam-tmp", "cofferdam-home", "cofferdam-body"]);
    assert_eq!(spec["volumes"][2]["emptyDir"], json!({ "sizeLimit": "256Mi" }));
    let fetch = fetch(&hardened.pod);
    assert_eq!(
        fetch["args"],
        json!([
            "--url=https://example.com/b.tgz?signature=tok-123",
            format!("--sha256={DIGEST}"),
            "--into=/app",
            "--deadline=90s",
            "--max-bytes=268435456",
            "--max-entries=20000",
        ])
    );
    assert_eq!(fetch["command"], json!(["/usr/bin/cofferdam-fetch"]));
    assert_eq!(fetch["volumeMounts"], json!([{ "name": "cofferdam-body", "mountPath": "/app" }]));
    assert_eq!(names(&spec["containers"][0]["volumeMounts"]).last(), Some(&"cofferdam-body"));
    assert!(hardened.warnings.is_empty(), "{:?}", hardened.warnings);
}

#[test]
fn a_token_and_the_pods_identity_reach_the_init_container_alone() {
    let hardened = hardened(&private(plain()));
    let spec = &hardened.pod["spec"];
    assert_eq!(
        spec["volumes"].as_array().unwrap()[3..],
        [
            json!({ "name": "cofferdam-body-token", "secret": {
                "secretName": "s-abc", "defaultMode": 288, "items": [{ "key": "token", "path": "token" }],
            } }),
            json!({ "name": "cofferdam-body-identity", "projected": { "defaultMode": 288, "sources": [
                { "serviceAccountToken": { "audience": "cofferdam-bodies", "expirationSeconds": 600, "path": "token" } },
            ] } }),
        ]
    );
    let fetch = fetch(&hardened.pod);
    assert_eq!(
        fetch["volumeMounts"].as_array().unwrap()[1..],
        [
            json!({ "name": "cofferdam-body-token", "mountPath": "/run/cofferdam/token", "readOnly": true }),
            json!({ "name": "cofferdam-body-identity", "mountPath": "/run/cofferdam/identity", "readOnly": true }),
        ]
    );
    let args = fetch["args"].as_array().unwrap();
    assert!(args.contains(&json!("--token-file=/run/cofferdam/token/token")), "{args:?}");
    assert!(args.contains(&json!("--identity-file=/run/cofferdam/identity/token")), "{args:?}");
    assert!(names(&spec["containers"][0]["volumeMounts"]).iter().all(|name| !name.starts_with("cofferdam-body-")));
    assert_eq!(audit(&hardened.pod, &Policy::built_in()), []);
}

#[test]
fn b81_it_runs_after_the_sidecars_that_lead_and_before_everything_else() {
    let sidecar = |name: &str| json!({ "name": name, "restartPolicy": "Always" });
    for (inits, order, mounted) in [
        (json!(null), vec!["cofferdam-fetch"], 1),
        (json!([{ "name": "i" }]), vec!["cofferdam-fetch", "i"], 2),
        (json!([sidecar("mesh")]), vec!["mesh", "cofferdam-fetch"], 1),
        (json!([sidecar("mesh"), { "name": "i" }, sidecar("late")]), vec!["mesh", "cofferdam-fetch", "i", "late"], 3),
    ] {
        let mut spec = plain();
        spec["initContainers"] = inits;
        let pod = hardened(&public(spec)).pod;
        assert_eq!(names(&pod["spec"]["initContainers"]), order);
        let all = [&pod["spec"]["initContainers"], &pod["spec"]["containers"]].into_iter();
        let with_body = all
            .flat_map(|list| list.as_array().unwrap())
            .filter(|at| names(&at["volumeMounts"]).contains(&"cofferdam-body") && at["name"] != "cofferdam-fetch");
        assert_eq!(with_body.count(), mounted);
    }
}

#[test]
fn b61_a_container_that_mounts_the_path_itself_has_it_once() {
    for (mounted, count) in [("/app", 1), ("/app/", 1), ("/", 2), ("/app/data", 2), ("/application", 2)] {
        let own = json!({ "name": "v", "mountPath": mounted });
        let security = json!({ "readOnlyRootFilesystem": true });
        let container = json!({ "name": "a", "volumeMounts": [own], "securityContext": security });
        let spec = json!({ "volumes": [{ "name": "v", "emptyDir": {} }], "containers": [container] });
        let pod = hardened(&public(spec)).pod;
        let mounts = pod["spec"]["containers"][0]["volumeMounts"].as_array().unwrap();
        assert_eq!(mounts.len(), count, "{mounted}");
    }
}

#[test]
fn b08_a_second_pass_knows_its_own_whatever_the_server_filled_in() {
    for pod in [public(plain()), private(plain())] {
        let first = hardened(&pod);
        let mut between = with_defaults(&first.pod);
        let second = hardened(&between);
        assert!(second.patch.0.is_empty(), "{:?}", second.patch);
        // What a cluster's own admission does.
        between["spec"]["initContainers"][0]["imagePullPolicy"] = json!("Always");
        between["spec"]["initContainers"][0]["resources"]["requests"]["cpu"] = json!("20m");
        assert!(hardened(&between).patch.0.is_empty());
    }
}

#[test]
fn a_container_that_came_before_it_since_stays_there_and_goes_without() {
    let mut pod = hardened(&private(plain())).pod;
    let mut newcomer = pod["spec"]["containers"][0].clone();
    newcomer["name"] = json!("mesh");
    newcomer["volumeMounts"] = json!([]);
    pod["spec"]["initContainers"].as_array_mut().unwrap().insert(0, newcomer);
    let again = hardened(&pod);
    assert!(again.patch.0.is_empty(), "{:?}", again.patch);

    let mut late = pod["spec"]["initContainers"][0].clone();
    late["name"] = json!("late");
    pod["spec"]["initContainers"].as_array_mut().unwrap().push(late);
    let again = hardened(&pod);
    assert_eq!(names(&again.pod["spec"]["initContainers"]), ["mesh", "cofferdam-fetch", "late"]);
    assert_eq!(names(&again.pod["spec"]["initContainers"][2]["volumeMounts"]), ["cofferdam-body"]);
    assert_eq!(again.changes.len(), 1, "{:?}", again.changes);
}

#[test]
fn what_is_named_like_ours_and_is_anything_else_is_refused() {
    let ours = hardened(&private(plain())).pod;
    let broken: [(&str, Spoil); 9] = [
        ("spec.initContainers[0].name", |pod| pod["metadata"]["annotations"][keys::BODY_URL] = json!("https://evil/b")),
        ("spec.initContainers[0].name", |pod| pod["spec"]["initContainers"][0]["image"] = json!("evil")),
        ("spec.initContainers[0].name", |pod| {
            pod["spec"]["initContainers"][0]["env"] = json!([{ "name": "HTTPS_PROXY" }]);
        }),
        ("spec.initContainers[0].name", |pod| pod["spec"]["initContainers"][0]["terminationMessagePath"] = json!("/x")),
        ("spec.initContainers[0].name", |pod| {
            pod["spec"]["initContainers"][0].as_object_mut().unwrap().remove("args");
        }),
        ("spec.volumes[3].name", |pod| pod["spec"]["volumes"][3]["secret"]["secretName"] = json!("another")),
        ("spec.volumes[4].name", |pod| {
            pod["spec"]["volumes"][4]["projected"]["sources"][0]["serviceAccountToken"]["audience"] = json!("vault");
        }),
        ("spec.containers[0].name", |pod| pod["spec"]["containers"][0]["name"] = json!("cofferdam-fetch")),
        ("spec.initContainers[0].name", |pod| {
            let annotations = pod["metadata"]["annotations"].as_object_mut().unwrap();
            annotations.retain(|key, _| !key.contains("body"));
        }),
    ];
    for (field, spoil) in broken {
        let mut pod = ours.clone();
        spoil(&mut pod);
        let refusal = refused(&pod);
        assert_eq!(fields(&refusal)[0], field, "{refusal}");
        assert!(!refusal.to_string().contains("evil"), "{refusal}");
    }
}

#[test]
fn what_fetches_is_an_init_container_and_no_other() {
    let mut pod = hardened(&public(plain())).pod;
    let copy = fetch(&pod).clone();
    pod["spec"]["containers"].as_array_mut().unwrap().push(copy);
    assert_eq!(fields(&refused(&pod)), ["spec.containers[1].name"]);
}

#[test]
fn no_author_gets_at_the_token_or_the_identity() {
    for volume in ["cofferdam-body-token", "cofferdam-body-identity"] {
        for mount in [
            json!({ "name": volume, "mountPath": "/x" }),
            json!({ "name": volume, "mountPath": "/x", "subPath": "token", "readOnly": true }),
        ] {
            for list in ["containers", "initContainers"] {
                let mut spec = plain();
                spec[list] = json!([{ "name": "thief", "volumeMounts": [mount] }]);
                let refusal = refused(&private(spec));
                assert_eq!(fields(&refusal), [format!("spec.{list}[0].volumeMounts[0].name")], "{refusal}");
            }
            let old = hardened(&private(plain())).pod;
            let mut new = old.clone();
            new["spec"]["ephemeralContainers"] = json!([{ "name": "thief", "volumeMounts": [mount] }]);
            let request = Request { operation: Operation::AddEphemeralContainers { old: &old }, ..create(&new) };
            match harden(&request, &Policy::built_in()) {
                Verdict::Refused(refusal) => {
                    assert_eq!(fields(&refusal), ["spec.ephemeralContainers[0].volumeMounts[0].name"]);
                }
                other => panic!("{other:?}"),
            }
            // Nor does one whose pod slipped through.
            let found = audit(&new, &Policy::built_in());
            assert!(found.iter().any(|reason| reason.field.ends_with("volumeMounts[0].name")), "{found:?}");
        }
    }
}

#[test]
fn a_live_pod_of_an_earlier_policy_is_no_finding() {
    let live = hardened(&private(plain())).pod;
    let bodies = Bodies { size: Quantity::parse("1Mi").unwrap(), image: "cofferdam:2".to_owned(), ..Bodies::default() };
    assert_eq!(audit(&live, &Policy::built_in().with_bodies(bodies)), []);
}

#[test]
fn a_kubelet_puts_nothing_into_a_url() {
    let pod = asking(annotations("https://example.com/$(PASSWORD)?a=$$b"), plain());
    let hardened = hardened(&pod);
    assert_eq!(fetch(&hardened.pod)["args"][0], json!("--url=https://example.com/$$(PASSWORD)?a=$$$$b"));
}

#[test]
fn a_digest_may_be_written_in_capitals() {
    let url = "https://example.com/b";
    let pod = asking(json!({ keys::BODY_URL: url, keys::BODY_SHA256: DIGEST.to_uppercase() }), plain());
    assert_eq!(fetch(&hardened(&pod).pod)["args"][1], json!(format!("--sha256={DIGEST}")));
}

#[test]
fn annotations_that_cannot_be_followed_are_refused_unquoted_and_all_at_once() {
    let field = |key: &str| format!("metadata.annotations[{key}]");
    let url = field(keys::BODY_URL);
    let long = format!("https://example.com/{}", "a".repeat(2048));
    for bad in [
        "",
        "hunter2-xyz",
        "ftp://hunter2-xyz/b",
        "https://",
        "https:///b",
        "file:///hunter2-xyz",
        "//hunter2-xyz/b",
        "https://user:hunter2-xyz@example.com/b",
        "https://hunter2-xyz@example.com",
        "https://example.com/\nhunter2-xyz",
        "https://example.com/ b",
        "https://example.com\\@hunter2-xyz/b",
        "https://example.com/ä",
        &long,
    ] {
        let refusal = refused(&asking(annotations(bad), plain()));
        assert_eq!(fields(&refusal), [url.as_str()], "{bad:?}");
        assert!(!refusal.to_string().contains("hunter2-xyz"), "{refusal}");
    }
    for (annotations, named) in [
        (json!({ keys::BODY_URL: "http://example.com/b" }), vec![field(keys::BODY_SHA256)]),
        (json!({ keys::BODY_SHA256: DIGEST }), vec![field(keys::BODY_SHA256)]),
        (
            json!({ keys::BODY_SHA256: DIGEST, keys::BODY_TOKEN_SECRET: "s" }),
            vec![field(keys::BODY_SHA256), field(keys::BODY_TOKEN_SECRET)],
        ),
        (
            json!({ keys::BODY_URL: "x", keys::BODY_SHA256: "x", keys::BODY_TOKEN_SECRET: "X" }),
            vec![field(keys::BODY_URL), field(keys::BODY_SHA256), field(keys::BODY_TOKEN_SECRET)],
        ),
        (json!({ keys::BODY_URL: 5 }), vec![field(keys::BODY_URL)]),
    ] {
        assert_eq!(fields(&refused(&asking(annotations, plain()))), named);
    }
    for digest in [&DIGEST[1..], &format!("{DIGEST}0"), &DIGEST.replace('e', "g"), "", "sha256:"] {
        let pod = asking(json!({ keys::BODY_URL: "https://a/b", keys::BODY_SHA256: digest }), plain());
        assert_eq!(fields(&refused(&pod)), [field(keys::BODY_SHA256)], "{digest}");
    }
    for secret in ["", "-a", "a-", "a..b", "a/b", "a b", "A", &"a".repeat(254)] {
        let mut pod = private(plain());
        pod["metadata"]["annotations"][keys::BODY_TOKEN_SECRET] = json!(secret);
        assert_eq!(fields(&refused(&pod)), [field(keys::BODY_TOKEN_SECRET)], "{secret}");
    }
}

#[test]
fn bodies_that_the_policy_or_the_profile_does_not_allow_are_refused() {
    let field = ["metadata.annotations[cofferdam.dev/body-url]"];
    let off = Policy::built_in().with_bodies(Bodies { enabled: false, ..Bodies::default() });
    assert_eq!(refused_by(&off, &public(plain())), field);
    let narrow = Profile { volume_types: vec!["emptyDir".to_owned()], ..Profile::default() };
    let narrow = Policy::built_in().with_default(narrow);
    // One reason each for the Secret and for the pod's identity.
    assert_eq!(refused_by(&narrow, &private(plain())), [field[0], field[0]]);
    hardened_by(&narrow, &public(plain()));
}

#[test]
fn a_template_gets_nothing_but_hears_what_is_wrong() {
    let policy = Policy::built_in();
    let template = Occasion::Template(Template::RunsForever);
    let apply = |pod: &Value| apply_under(&[RULE], pod, &Profile::default(), &policy, template);
    assert!(apply(&private(plain())).unwrap().changes.is_empty());
    assert!(apply(&asking(annotations("x"), plain())).is_err());
}

#[test]
fn b74_it_is_limited_and_requests_no_more_than_the_pod_does() {
    let amount = |value: &Value| Quantity::from_json(value).unwrap();
    assert_eq!(
        fetch(&hardened(&public(plain())).pod)["resources"],
        json!({
            "limits": { "cpu": "500m", "memory": "512Mi", "ephemeral-storage": "1Gi" },
            "requests": { "cpu": "50m", "memory": "512Mi", "ephemeral-storage": "64Mi" },
        })
    );
    for own in [
        json!({ "requests": { "cpu": "1m", "memory": "1Mi", "ephemeral-storage": "1Mi" } }),
        json!({ "limits": { "cpu": "1m", "memory": "1Mi", "ephemeral-storage": "1Mi" } }),
        json!({ "limits": { "cpu": "2", "memory": "2Gi", "ephemeral-storage": "9Gi" } }),
        json!({ "limits": { "memory": "200Mi" }, "requests": { "memory": "100Mi" } }),
    ] {
        let pod = hardened(&public(json!({ "containers": [{ "name": "a", "resources": own }] }))).pod;
        let (ours, its) = (&fetch(&pod)["resources"], &pod["spec"]["containers"][0]["resources"]);
        for (resource, ceiling) in [("cpu", "500m"), ("memory", "512Mi"), ("ephemeral-storage", "1Gi")] {
            let (limit, request) = (amount(&ours["limits"][resource]), amount(&ours["requests"][resource]));
            assert!(limit <= amount(&json!(ceiling)) && !limit.is_zero(), "{resource} {limit}");
            assert!(request <= limit && request <= amount(&its["requests"][resource]), "{resource} {request}");
        }
        assert!(amount(&ours["limits"]["memory"]) >= amount(&json!("64Mi")));
    }
}

#[test]
fn b74_a_pod_whose_requests_are_its_limits_keeps_its_class() {
    let own = json!({ "cpu": "200m", "memory": "100Mi" });
    let container = json!({ "name": "a", "resources": { "limits": own, "requests": own } });
    let asked = hardened(&public(json!({ "containers": [container] }))).pod;
    let limit = DefaultRequest::Limit;
    let mut guaranteed = Profile::default();
    guaranteed.resources.requests = Requests { cpu: limit, memory: limit, ephemeral_storage: limit };
    let given = hardened_by(&Policy::built_in().with_default(guaranteed), &public(plain())).pod;
    for pod in [asked, given] {
        let ours = &fetch(&pod)["resources"];
        for resource in ["cpu", "memory"] {
            assert_eq!(ours["limits"][resource], ours["requests"][resource]);
        }
    }
}

#[test]
fn it_fits_a_profile_of_little_storage_and_a_pod_that_sets_its_resources_as_a_whole() {
    let mut small = Profile::default();
    small.resources.limits = Ceilings { ephemeral_storage: Quantity::parse("32Mi").unwrap(), ..small.resources.limits };
    small.scratch.clear();
    let policy = Policy::built_in().with_default(small);
    let first = hardened_by(&policy, &public(plain()));
    assert_eq!(first.pod["spec"]["volumes"][0]["emptyDir"]["sizeLimit"], json!("32Mi"));
    assert!(fetch(&first.pod)["args"].as_array().unwrap().contains(&json!("--max-bytes=33554432")));
    assert_eq!(fetch(&first.pod)["resources"]["limits"]["ephemeral-storage"], json!("32Mi"));
    assert!(hardened_by(&policy, &first.pod).patch.0.is_empty());

    let own =
        json!({ "name": "a", "resources": { "limits": { "memory": "200Mi" }, "requests": { "memory": "50Mi" } } });
    for (of_pod, ours) in [
        (json!({ "limits": { "memory": "256Mi" } }), json!(null)),
        // The pod's limit is then what its containers' come to, so all of them need one.
        (json!({ "requests": { "memory": "64Mi" } }), json!("200Mi")),
    ] {
        let first = hardened(&public(json!({ "resources": of_pod, "containers": [own] })));
        let resources = &fetch(&first.pod)["resources"];
        assert_eq!(resources["limits"]["memory"], ours, "{of_pod}");
        assert_ne!(resources["requests"]["memory"], json!("200Mi"));
        assert_eq!(resources["limits"]["cpu"], json!("500m"));
        assert!(hardened(&first.pod).patch.0.is_empty(), "{of_pod}");
    }
}

#[test]
fn b101_a_urls_query_is_told_nowhere() {
    let hardened = hardened(&private(plain()));
    assert!(!format!("{:?}{:?}", hardened.warnings, hardened.changes).contains("tok-123"));
    assert!(!hardened.pod["metadata"]["annotations"][keys::CHANGES].to_string().contains("tok-123"));
}
