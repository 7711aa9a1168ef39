use bytes::Bytes;
use cofferdam_runtime::metrics::Metrics as Program;
use http_body_util::{BodyExt, Full};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::review::{API_VERSION, KIND};

mod subjects;

const WITHIN: Duration = Duration::from_secs(10);

/// An admission with the built-in policy, and the text of its metrics.
struct Desk {
    admission: Admission,
    program: Program,
}

impl Desk {
    fn open() -> Self {
        let program = Program::new("cofferdam_webhook", "0").unwrap();
        let policy = Policy::built_in();
        let metrics = Metrics::register(program.registry(), policy.digest()).unwrap();
        let policy = Arc::new(ArcSwap::from_pointee(policy));
        Self { admission: Admission::new(policy, metrics, WITHIN), program }
    }

    async fn ask(&self, request: Request<Full<Bytes>>) -> (StatusCode, HeaderMap, String) {
        let (parts, body) = self.admission.answer(request).await.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        (parts.status, parts.headers, String::from_utf8(body.to_vec()).unwrap())
    }

    /// Posts a review and returns the response in the answer.
    async fn review(&self, path: &str, request: &Value) -> Value {
        let (status, headers, body) = self.ask(post(path, &review(request))).await;
        assert_eq!(status, StatusCode::OK, "{body}");
        assert_eq!(headers[CONTENT_TYPE], "application/json");
        serde_json::from_str::<Value>(&body).unwrap()["response"].take()
    }

    /// Whether one request was counted so; by a mutating webhook, if the scope is one.
    fn counted(&self, scope: &str, outcome: &str) -> bool {
        self.counted_by(if scope == "none" { "none" } else { "mutating" }, scope, outcome)
    }

    fn counted_by(&self, webhook: &str, scope: &str, outcome: &str) -> bool {
        let text = String::from_utf8(self.program.encode().unwrap()).unwrap();
        let labels = format!("outcome=\"{outcome}\",scope=\"{scope}\",webhook=\"{webhook}\"");
        let sample = format!("cofferdam_webhook_requests_total{{{labels}}} 1\n");
        text.contains(&sample) && text.contains("cofferdam_webhook_in_flight_requests 0\n")
    }
}

fn post(path: &str, body: &str) -> Request<Full<Bytes>> {
    Request::post(path).header(CONTENT_TYPE, "application/json").body(Full::from(body.to_owned())).unwrap()
}

fn review(request: &Value) -> String {
    json!({"apiVersion": API_VERSION, "kind": KIND, "request": request}).to_string()
}

/// A request to create `pod`.
fn create(pod: &Value) -> Value {
    json!({
        "uid": "u-1",
        "resource": {"group": "", "version": "v1", "resource": "pods"},
        "operation": "CREATE",
        "namespace": "sessions",
        "userInfo": {"username": "ann"},
        "object": pod,
    })
}

fn plain_pod() -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "sessions"},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    })
}

#[tokio::test]
async fn a_plain_pod_in_an_enforced_namespace_gets_a_patch_and_an_audit_trail() {
    let desk = Desk::open();
    let response = desk.review("/mutate/enforced", &create(&plain_pod())).await;
    assert_eq!((&response["uid"], &response["allowed"]), (&json!("u-1"), &json!(true)));
    assert_eq!(response["patchType"], "JSONPatch");
    assert_eq!(response["auditAnnotations"]["profile"], "default");
    assert_eq!(response["auditAnnotations"]["policy"], Policy::built_in().digest());
    assert!(desk.counted("enforced", "hardened"));
}

#[tokio::test]
async fn the_audit_trail_holds_what_was_done_and_nothing_that_the_author_wrote() {
    let desk = Desk::open();
    let mut pod = plain_pod();
    let forged = r#"[{"rule":"privilege","path":"spec.lie","action":"tighten"}]"#;
    pod["metadata"]["annotations"] = json!({"cofferdam.dev/changes": forged});
    pod["spec"]["containers"][0]["securityContext"] = json!({"privileged": true});
    let response = desk.review("/mutate/enforced", &create(&pod)).await;
    let changes = response["auditAnnotations"]["changes"].as_str().unwrap();
    assert!(changes.contains("securityContext.privileged") && !changes.contains("lie"), "{changes}");
}

#[tokio::test]
async fn a_pod_without_the_label_is_let_through_where_only_labels_count() {
    let desk = Desk::open();
    // An API server that adds a deadline to the address is not a different path.
    let response = desk.review("/mutate/labelled?timeout=3s", &create(&plain_pod())).await;
    assert_eq!(response, json!({"uid": "u-1", "allowed": true}));
    assert!(desk.counted("labelled", "not-a-session"));
}

#[tokio::test]
async fn the_namespaces_that_must_come_up_by_themselves_are_let_through_and_counted() {
    let desk = Desk::open();
    let mut request = create(&plain_pod());
    request["namespace"] = json!("kube-system");
    assert_eq!(desk.review("/mutate/enforced", &request).await, json!({"uid": "u-1", "allowed": true}));
    assert!(desk.counted("enforced", "exempt-namespace"));
}

#[tokio::test]
async fn a_refusal_is_forbidden_and_says_why() {
    let desk = Desk::open();
    let mut pod = plain_pod();
    pod["metadata"]["labels"] = json!({"cofferdam.dev/session": "Not A Name"});
    let response = desk.review("/mutate/enforced", &create(&pod)).await;
    assert_eq!(response["allowed"], false);
    assert_eq!((&response["status"]["code"], &response["status"]["reason"]), (&json!(403), &json!("Forbidden")));
    let message = response["status"]["message"].as_str().unwrap();
    assert!(message.contains("metadata.labels") && message.contains("Cofferdam refuses this pod"), "{message}");
    assert!(response.get("patch").is_none() && response.get("patchType").is_none());
    assert!(desk.counted("enforced", "refused"));
}

#[tokio::test]
async fn b07_a_pod_that_is_nested_too_deep_is_denied_with_its_uid() {
    let desk = Desk::open();
    for (levels, outcome) in [(5_000, "unreadable"), (20_000, "too-heavy")] {
        let deep = format!("{}1{}", r#"{"a":"#.repeat(levels), "}".repeat(levels));
        let body = review(&create(&json!("DEEP"))).replace("\"DEEP\"", &deep);
        let (status, _, answer) = desk.ask(post("/mutate/enforced", &body)).await;
        let answer: Value = serde_json::from_str(&answer).unwrap();
        assert_eq!((status, &answer["response"]["uid"]), (StatusCode::OK, &json!("u-1")));
        assert_eq!(answer["response"]["allowed"], false);
        assert!(desk.counted("enforced", outcome));
    }
}

#[tokio::test]
async fn a_pod_that_would_fill_the_memory_is_denied_before_it_is_built() {
    let desk = Desk::open();
    let mut pod = plain_pod();
    pod["spec"]["containers"] = vec![json!({"name": "c"}); 100_000].into();
    let response = desk.review("/mutate/enforced", &create(&pod)).await;
    assert_eq!((&response["uid"], &response["status"]["code"]), (&json!("u-1"), &json!(413)));
    assert!(desk.counted("enforced", "too-heavy"));
}

#[tokio::test]
async fn what_holds_memory_leaves_less_for_others_until_it_is_answered() {
    let desk = Desk::open();
    let mut others = desk.admission.memory.share();
    others.take(MEMORY_BYTES).unwrap();
    let (status, headers, _) = desk.ask(post("/mutate/enforced", &review(&create(&plain_pod())))).await;
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(headers[RETRY_AFTER], "1");
    assert!(desk.counted("enforced", "overloaded"));
    drop(others);
    assert_eq!(desk.review("/mutate/enforced", &create(&plain_pod())).await["allowed"], true);
    // All of it came back.
    desk.admission.memory.share().take(MEMORY_BYTES).unwrap();
}

#[tokio::test]
async fn what_is_no_question_gets_its_status_and_one_sentence() {
    let good = review(&create(&plain_pod()));
    let get = Request::get("/mutate/enforced").body(Full::default()).unwrap();
    let untyped = Request::post("/mutate/enforced").body(Full::from(good.clone())).unwrap();
    let text =
        Request::post("/mutate/enforced").header(CONTENT_TYPE, "text/json").body(Full::from(good.clone())).unwrap();
    let mut zipped = post("/mutate/enforced", &good);
    zipped.headers_mut().insert(CONTENT_ENCODING, http::HeaderValue::from_static("gzip"));
    for (request, expected, scope, outcome) in [
        (post("/", &good), StatusCode::NOT_FOUND, "none", "not-found"),
        (post("/mutate", &good), StatusCode::NOT_FOUND, "none", "not-found"),
        (post("/validate/", &good), StatusCode::NOT_FOUND, "none", "not-found"),
        (get, StatusCode::METHOD_NOT_ALLOWED, "enforced", "wrong-method"),
        (untyped, StatusCode::UNSUPPORTED_MEDIA_TYPE, "enforced", "wrong-content-type"),
        (text, StatusCode::UNSUPPORTED_MEDIA_TYPE, "enforced", "wrong-content-type"),
        (zipped, StatusCode::UNSUPPORTED_MEDIA_TYPE, "enforced", "wrong-content-type"),
        (post("/mutate/enforced", "{"), StatusCode::BAD_REQUEST, "enforced", "malformed"),
        (post("/mutate/labelled", "{}"), StatusCode::BAD_REQUEST, "labelled", "malformed"),
        (post("/mutate/enforced", &good[..good.len() - 1]), StatusCode::BAD_REQUEST, "enforced", "malformed"),
    ] {
        let desk = Desk::open();
        let described = format!("{request:?}");
        let (status, _, body) = desk.ask(request).await;
        assert_eq!(status, expected, "{described}");
        assert!(body.ends_with('\n') && body.lines().count() == 1, "{body}");
        assert!(desk.counted(scope, outcome), "{described}");
    }
}

#[tokio::test]
async fn a_content_type_may_have_parameters_and_any_case() {
    let desk = Desk::open();
    let mut request = post("/mutate/enforced", &review(&create(&plain_pod())));
    request.headers_mut().insert(CONTENT_TYPE, http::HeaderValue::from_static("Application/JSON; charset=utf-8"));
    assert_eq!(desk.ask(request).await.0, StatusCode::OK);
}

#[tokio::test]
async fn a_client_that_leaves_is_counted_as_such() {
    let desk = Desk::open();
    drop(desk.admission.metrics.begin(Entry::of_path("/mutate/enforced")));
    assert!(desk.counted("enforced", "abandoned"));
}

#[test]
fn a_panic_is_counted_as_such() {
    let desk = Desk::open();
    let metrics = desk.admission.metrics.clone();
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(move || {
        let _in_flight = metrics.begin(Entry::of_path("/mutate/labelled"));
        panic!("on purpose");
    }));
    assert!(panicked.is_err());
    assert!(desk.counted("labelled", "panicked"));
}

#[test]
fn likely_series_exist_from_the_start() {
    let desk = Desk::open();
    let text = String::from_utf8(desk.program.encode().unwrap()).unwrap();
    for sample in [
        "cofferdam_webhook_requests_total{outcome=\"refused\",scope=\"labelled\",webhook=\"mutating\"} 0\n",
        "cofferdam_webhook_requests_total{outcome=\"advised-refusal\",scope=\"warn\",webhook=\"validating\"} 0\n",
        "cofferdam_webhook_requests_total{outcome=\"not-found\",scope=\"none\",webhook=\"none\"} 0\n",
        "cofferdam_webhook_request_duration_seconds_bucket{scope=\"enforced\",webhook=\"mutating\",le=\"0.001\"} 0\n",
        "cofferdam_webhook_in_flight_requests 0\n",
        "cofferdam_webhook_patch_bytes_count 0\n",
        "cofferdam_webhook_certificate_reloads_total{outcome=\"failed\"} 0\n",
        "cofferdam_webhook_policy_reloads_total{outcome=\"failed\"} 0\n",
        "cofferdam_webhook_policy_last_reload_successful 1\n",
        &format!("cofferdam_webhook_policy_info{{digest=\"{}\"}} 1\n", Policy::built_in().digest()),
    ] {
        assert!(text.contains(sample), "{sample} is not in\n{text}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_object_gets_an_answer_with_its_uid(
        object in any_json(),
        old in any_json(),
        (_, entry) in proptest::sample::select(Entry::ALL.to_vec()),
        (resource, operation) in proptest::sample::select(subjects::KINDS.to_vec()),
    ) {
        let text = review(&subjects::request(resource, operation, &object, &old));
        let review = Review::parse(text.as_bytes()).unwrap();
        let decision = decide(entry, &review, &Policy::built_in());
        let answer: Value = serde_json::from_slice(&decision.answer.to_body()).unwrap();
        let response = &answer["response"];
        prop_assert_eq!(&response["uid"], &json!("u-1"));
        prop_assert_eq!(response.get("patch").is_some(), response.get("patchType").is_some());
        // Only a mutating webhook may patch, and only where something is enforced.
        let may_patch = entry.webhook == Webhook::Mutating && entry.scope != cofferdam_model::Scope::Warn;
        prop_assert!(may_patch || response.get("patch").is_none());
    }
}

/// JSON in which the members of a pod occur in places where they do and do not belong.
fn any_json() -> impl Strategy<Value = Value> {
    const KEYS: [&str; 8] =
        ["metadata", "labels", "annotations", "spec", "containers", "name", "securityContext", "volumes"];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[a-z0-9/.-]{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 48, 6, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::vec((proptest::sample::select(KEYS.to_vec()), inner), 0..6)
                .prop_map(|members| members.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()),
        ]
    })
}
