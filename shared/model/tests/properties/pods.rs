//! Pods as a hostile or a careless author writes them.

use proptest::{prelude::*, sample::select};
use serde_json::{Map, Value, json};

use crate::placed;

/// A member that may be there.
pub(crate) type Member = (&'static str, BoxedStrategy<Option<Value>>);

/// Any JSON at all.
pub(crate) fn junk() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
        select(vec!["", "0", "-1", "1Gi", "Always", "ALL", "unconfined", "cofferdam-tmp"]).prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-zA-Z/.~]{0,8}", inner, 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// One of these values, or nothing.
pub(crate) fn one_of(name: &'static str, values: &[Value]) -> Member {
    (name, prop::option::of(select(values.to_vec())).boxed())
}

/// What gets a pod refused, or else most pods would be.
pub(crate) fn rarely(name: &'static str, value: impl Strategy<Value = Value> + 'static) -> Member {
    (name, prop::option::weighted(0.02, value).boxed())
}

fn switch(name: &'static str) -> Member {
    one_of(name, &[json!(true), json!(false), json!(null)])
}

fn maybe(name: &'static str, value: impl Strategy<Value = Value> + 'static) -> Member {
    (name, prop::option::of(value).boxed())
}

fn sometimes(name: &'static str, value: impl Strategy<Value = Value> + 'static) -> Member {
    (name, prop::option::weighted(0.2, value).boxed())
}

fn always(name: &'static str, value: impl Strategy<Value = Value> + 'static) -> Member {
    (name, value.prop_map(Some).boxed())
}

/// What a newer Kubernetes may know and we do not.
pub(crate) fn future() -> Member {
    let values = [json!(1.5), json!("x"), json!({ "deep": [{ "er": null }] }), json!([]), json!(false)];
    ("unknownToUs", prop::option::weighted(0.2, select(values.to_vec())).boxed())
}

pub(crate) fn object(members: Vec<Member>) -> impl Strategy<Value = Value> {
    let (names, values): (Vec<_>, Vec<_>) = members.into_iter().unzip();
    values.prop_map(move |values| {
        let members = names.iter().zip(values).filter_map(|(name, value)| Some(((*name).to_owned(), value?)));
        Value::Object(members.collect::<Map<_, _>>())
    })
}

pub(crate) fn list(item: impl Strategy<Value = Value>, most: usize) -> impl Strategy<Value = Value> {
    prop::collection::vec(item, 0..=most).prop_map(Value::from)
}

fn amounts() -> impl Strategy<Value = Value> {
    let values = [
        json!("0"),
        json!(0),
        json!("10m"),
        json!("1"),
        json!(1),
        json!(0.25),
        json!("500k"),
        json!("64Mi"),
        json!("64Gi"),
        json!("2254857830400m"),
        json!("1e3"),
        json!("9E"),
        json!(null),
    ];
    object(vec![one_of("cpu", &values), one_of("memory", &values), one_of("ephemeral-storage", &values)])
}

fn resources() -> impl Strategy<Value = Value> {
    object(vec![maybe("limits", amounts()), maybe("requests", amounts()), future()])
}

fn id(name: &'static str) -> Member {
    one_of(name, &[json!(0), json!(1), json!(1000), json!(65534)])
}

fn security(more: Vec<Member>) -> impl Strategy<Value = Value> {
    let mut members = vec![
        switch("runAsNonRoot"),
        id("runAsUser"),
        id("runAsGroup"),
        maybe(
            "seccompProfile",
            object(vec![
                one_of("type", &[json!("RuntimeDefault"), json!("Unconfined"), json!("Localhost")]),
                one_of("localhostProfile", &[json!("a.json")]),
                future(),
            ]),
        ),
        maybe("appArmorProfile", object(vec![one_of("type", &[json!("RuntimeDefault"), json!("Unconfined")])])),
        maybe(
            "seLinuxOptions",
            object(vec![
                one_of("type", &[json!("container_t"), json!("spc_t")]),
                one_of("user", &[json!(""), json!("u")]),
                one_of("level", &[json!("s0:c1")]),
            ]),
        ),
        future(),
    ];
    members.extend(more);
    object(members)
}

/// What of its volume a mount shows, and to whom.
fn paths() -> impl Strategy<Value = Value> {
    let sub_path = |name| {
        prop_oneof![300 => Just(None), 60 => select(vec!["a", "a/b"]).prop_map(Some), 2 => Just(Some("a/../../b"))]
            .prop_map(move |path| (name, path))
    };
    let propagation = prop::option::weighted(0.3, select(vec!["None", "HostToContainer", "Bidirectional"]));
    let propagation = propagation.prop_map(|propagation| ("mountPropagation", propagation));
    (sub_path("subPath"), sub_path("subPathExpr"), propagation).prop_map(|(path, expression, propagation)| {
        let members = [path, expression, propagation].into_iter();
        members.filter_map(|(name, value)| Some((name.to_owned(), json!(value?)))).collect()
    })
}

/// What a kubelet does to see how a container is.
fn handler() -> impl Strategy<Value = Value> {
    let host = || one_of("host", &[json!(""), json!("10.0.0.1"), json!("localhost"), json!(null)]);
    object(vec![
        maybe("httpGet", object(vec![always("port", Just(json!(80))), host(), future()])),
        maybe("tcpSocket", object(vec![always("port", Just(json!(80))), host(), future()])),
        one_of("terminationGracePeriodSeconds", &[json!(1), json!(600)]),
        future(),
    ])
}

/// A container of any list.
pub(crate) fn container() -> impl Strategy<Value = Value> {
    let capabilities =
        |name| one_of(name, &[json!([]), json!(["ALL"]), json!(["all"]), json!(["CAP_NET_RAW", "SYS_ADMIN"])]);
    let context = security(vec![
        switch("privileged"),
        switch("allowPrivilegeEscalation"),
        switch("readOnlyRootFilesystem"),
        one_of("procMount", &[json!("Default"), json!("Unmasked")]),
        maybe("capabilities", object(vec![capabilities("add"), capabilities("drop"), future()])),
    ]);
    let mount = object(vec![
        (
            "name",
            prop_oneof![
                60 => select(vec![json!("v"), json!("kube-api-access-abcde")]),
                1 => select(vec![json!("cofferdam-body-token"), json!("cofferdam-body-identity")]),
            ]
            .prop_map(Some)
            .boxed(),
        ),
        always(
            "mountPath",
            select(vec![json!("/app"), json!("/tmp"), json!("/home"), json!("/tmp/x/"), json!("/data"), json!("/")]),
        ),
    ]);
    let mount = (mount, paths()).prop_map(|(mut mount, paths)| {
        if let (Some(mount), Value::Object(paths)) = (mount.as_object_mut(), paths) {
            mount.extend(paths);
        }
        mount
    });
    let env = object(vec![
        always("name", select(vec![json!("HOME"), json!("PASSWORD")])),
        always("value", Just(json!("hunter2-xyz"))),
    ]);
    let port = object(vec![
        always("containerPort", Just(json!(80))),
        ("hostPort", prop::option::weighted(0.02, select(vec![json!(0), json!(80)])).boxed()),
        future(),
    ]);
    let hooks = object(vec![maybe("postStart", handler()), maybe("preStop", handler()), future()]);
    object(vec![
        always("name", "[a-z]{1,8}".prop_map(Value::from)),
        one_of("image", &[json!("python"), json!("registry.example.com/app:1")]),
        one_of("imagePullPolicy", &[json!("Always"), json!("IfNotPresent"), json!("Never")]),
        sometimes("livenessProbe", handler()),
        sometimes("readinessProbe", handler()),
        sometimes("startupProbe", handler()),
        sometimes("lifecycle", hooks),
        maybe("securityContext", context),
        maybe("resources", resources()),
        maybe("volumeMounts", list(mount, 3)),
        maybe("env", list(env, 2)),
        maybe("ports", list(port, 2)),
        one_of("restartPolicy", &[json!("Always"), json!("Never"), json!("OnFailure"), json!(null)]),
        ("restartPolicyRules", prop::option::weighted(0.1, Just(json!([{ "action": "Restart" }]))).boxed()),
        future(),
    ])
}

/// What the `ServiceAccount` plugin puts into a pod.
pub(crate) fn plugins_volume(name: &str) -> Value {
    let namespace =
        json!({ "fieldRef": { "apiVersion": "v1", "fieldPath": "metadata.namespace" }, "path": "namespace" });
    let root = json!({ "items": [{ "key": "ca.crt", "path": "ca.crt" }], "name": "kube-root-ca.crt" });
    let sources = json!([
        { "serviceAccountToken": { "expirationSeconds": 3607, "path": "token" } },
        { "configMap": root },
        { "downwardAPI": { "items": [namespace] } },
    ]);
    json!({ "name": name, "projected": { "defaultMode": 420, "sources": sources } })
}

fn volume() -> impl Strategy<Value = Value> {
    let plugins = plugins_volume("kube-api-access-abcde");
    let mut copied = plugins_volume("kube-api-access-abcde");
    copied["projected"]["defaultMode"] = json!(256);
    let token = json!({ "serviceAccountToken": { "path": "token", "expirationSeconds": 3607 } });
    let root = json!({ "configMap": { "name": "kube-root-ca.crt" } });
    let authors = json!({ "name": "p", "projected": { "sources": [root, token, { "podCertificate": {} }] } });
    let empty_dir = object(vec![
        one_of("sizeLimit", &[json!("0"), json!("1Mi"), json!("64Gi"), json!(5)]),
        one_of("medium", &[json!(""), json!("Memory")]),
        future(),
    ]);
    prop_oneof![
        8 => empty_dir.prop_map(|dir| json!({ "name": "v", "emptyDir": dir })),
        2 => Just(json!({ "name": "n" })),
        2 => Just(json!({ "name": "c", "configMap": { "name": "c" } })),
        2 => Just(json!({ "name": "i", "image": { "reference": "python", "pullPolicy": "Never" } })),
        3 => Just(plugins),
        1 => Just(copied),
        3 => Just(authors),
        1 => Just(json!({ "name": "cofferdam-tmp", "emptyDir": { "sizeLimit": "256Mi" } })),
        1 => select(vec![
            json!({ "name": "h", "hostPath": { "path": "/" } }),
            json!({ "name": "x", "invented": {} }),
            json!({ "name": "cofferdam-x", "emptyDir": {} }),
        ]),
    ]
}

fn spec() -> impl Strategy<Value = Value> {
    let context = security(vec![
        id("fsGroup"),
        one_of("supplementalGroupsPolicy", &[json!("Merge"), json!("Strict")]),
        maybe("supplementalGroups", list(select(vec![json!(0), json!(7)]), 3)),
        maybe("sysctls", list(Just(json!({ "name": "net/ipv4/tcp_syncookies", "value": "1" })), 1)),
    ]);
    let mut members = vec![
        always("containers", prop::collection::vec(container(), 1..=2).prop_map(Value::from)),
        maybe("initContainers", list(container(), 2)),
        maybe("ephemeralContainers", list(container(), 1)),
        maybe("securityContext", context),
        ("resources", prop::option::weighted(0.2, resources()).boxed()),
        maybe("volumes", list(volume(), 3)),
        switch("automountServiceAccountToken"),
        switch("enableServiceLinks"),
        switch("shareProcessNamespace"),
        one_of("activeDeadlineSeconds", &[json!(60), json!(3600), json!(86_400)]),
        one_of("terminationGracePeriodSeconds", &[json!(0), json!(30), json!(600)]),
        one_of("restartPolicy", &[json!("Always"), json!("OnFailure"), json!("Never")]),
        switch("hostUsers"),
        one_of("hostAliases", &[json!([]), json!([{ "ip": "10.0.0.1", "hostnames": ["db"] }])]),
        rarely("hostNetwork", Just(json!(true))),
        rarely("nodeName", Just(json!("node-1"))),
        rarely("os", Just(json!({ "name": "windows" }))),
        future(),
    ];
    members.extend(placed::members());
    object(members)
}

/// Annotations that ask for a body; now and then for one that is none.
fn body() -> impl Strategy<Value = Vec<(&'static str, String)>> {
    let url = prop_oneof![
        9 => Just("https://example.com/b.tgz?s=$(PASSWORD)".to_owned()),
        1 => ".{0,20}",
    ];
    (url, prop::option::of(Just("s-abc".to_owned()))).prop_map(|(url, secret)| {
        let mut body = vec![("cofferdam.dev/body-url", url), ("cofferdam.dev/body-sha256", "0a".repeat(32))];
        body.extend(secret.map(|secret| ("cofferdam.dev/body-token-secret", secret)));
        body
    })
}

/// A pod, well formed enough to be hardened more often than not.
pub(crate) fn pod() -> impl Strategy<Value = Value> {
    let marks = object(vec![
        one_of("cofferdam.dev/hardened", &[json!("true")]),
        one_of("cofferdam.dev/changes", &[json!("[]"), json!("forged")]),
        one_of("cofferdam.dev/endpoints", &[json!("{}")]),
        one_of("cofferdam.dev/stopped", &[json!("2026-01-02T03:04:05Z")]),
        one_of("cofferdam.dev/refused", &[json!("{}")]),
        one_of("seccomp.security.alpha.kubernetes.io/pod", &[json!("unconfined"), json!("runtime/default")]),
        one_of("team~a/b", &[json!("blue")]),
        ("cofferdam.dev/entry", prop::option::weighted(0.1, select(vec![json!("a/b.js"), json!("../c")])).boxed()),
    ]);
    let marks = (marks, prop::option::weighted(0.3, body())).prop_map(|(mut marks, body)| {
        for (key, value) in body.into_iter().flatten() {
            marks[key] = json!(value);
        }
        marks
    });
    let owners =
        list(object(vec![switch("controller"), always("kind", select(vec![json!("Job"), json!("ReplicaSet")]))]), 1);
    let metadata = object(vec![
        always("generateName", Just(json!("s-"))),
        maybe("annotations", marks),
        maybe("labels", object(vec![one_of("cofferdam.dev/session", &[json!(""), json!("abc-1")])])),
        maybe("ownerReferences", owners),
        future(),
    ]);
    object(vec![
        always("apiVersion", Just(json!("v1"))),
        always("kind", Just(json!("Pod"))),
        always("metadata", metadata),
        always("spec", spec()),
        future(),
    ])
}

/// Every place in a document, as JSON pointers.
pub(crate) fn pointers(value: &Value, here: &mut String, found: &mut Vec<String>) {
    found.push(here.clone());
    each_member(value, here, &mut |value, here| pointers(value, here, found));
}

/// The values of all members that nobody knows, in order.
pub(crate) fn unknown<'v>(value: &'v Value, here: &mut String, found: &mut Vec<&'v Value>) {
    if here.ends_with("/unknownToUs") {
        found.push(value);
    } else {
        each_member(value, here, &mut |value, here| unknown(value, here, found));
    }
}

fn each_member<'v>(value: &'v Value, here: &mut String, visit: &mut dyn FnMut(&'v Value, &mut String)) {
    let members: Vec<(String, &Value)> = match value {
        Value::Object(members) => {
            members.iter().map(|(name, value)| (name.replace('~', "~0").replace('/', "~1"), value)).collect()
        }
        Value::Array(items) => items.iter().enumerate().map(|(index, value)| (index.to_string(), value)).collect(),
        _ => Vec::new(),
    };
    let length = here.len();
    for (name, value) in members {
        here.push('/');
        here.push_str(&name);
        visit(value, here);
        here.truncate(length);
    }
}
