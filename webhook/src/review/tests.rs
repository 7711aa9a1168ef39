use proptest::prelude::*;
use serde_json::json;

use super::*;

fn parse(body: &str) -> Result<Review<'_>, Malformed> {
    Review::parse(body.as_bytes())
}

fn body(request: &Value) -> String {
    json!({"apiVersion": API_VERSION, "kind": KIND, "request": request}).to_string()
}

#[test]
fn a_review_is_read_with_members_that_later_versions_may_add() {
    let text = body(&json!({
        "uid": "u-1",
        "kind": {"group": "", "version": "v1", "kind": "Pod"},
        "resource": {"group": "", "version": "v1", "resource": "pods"},
        "namespace": "sessions",
        "operation": "CREATE",
        "userInfo": {"username": "ann", "groups": ["a", "b"], "extra": {"k": ["v"]}},
        "object": {"metadata": {"name": "p"}},
        "oldObject": null,
        "dryRun": true,
        "fromTheFuture": {"deep": [1, 2]},
    }));
    let review = parse(&text).unwrap();
    assert_eq!((review.uid.as_str(), review.namespace.as_str()), ("u-1", "sessions"));
    assert_eq!((review.user_info.username.as_str(), review.user_info.groups.len()), ("ann", 2));
    assert!(review.dry_run && review.old_object.is_missing());
    assert_eq!(review.object.tree().unwrap(), json!({"metadata": {"name": "p"}}));
}

#[test]
fn every_way_of_being_no_review_has_its_sentence() {
    for (text, error) in [
        ("", Malformed::NotJson { line: 1, column: 0 }),
        ("{\n\"kind\":", Malformed::NotJson { line: 2, column: 7 }),
        ("\u{feff}{}", Malformed::NotJson { line: 1, column: 1 }),
        ("[]", Malformed::NotAReview { line: 1, column: 2 }),
        ("{}", Malformed::WrongKind),
        (r#"{"apiVersion":"admission.k8s.io/v1beta1","kind":"AdmissionReview"}"#, Malformed::WrongKind),
        (r#"{"apiVersion":"admission.k8s.io/v1","kind":"Pod"}"#, Malformed::WrongKind),
        (r#"{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}"#, Malformed::NoRequest),
        (r#"{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":null}"#, Malformed::NoRequest),
        (r#"{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{}}"#, Malformed::NoUid),
    ] {
        assert_eq!(parse(text).unwrap_err(), error, "{text}");
    }
}

#[test]
fn b101_the_sentence_about_a_wrong_type_does_not_quote_the_value() {
    let text = body(&json!({"uid": "u-1", "dryRun": "hunter2-xyz"}));
    let error = parse(&text).unwrap_err();
    assert!(matches!(error, Malformed::NotAReview { .. }));
    assert!(!error.to_string().contains("hunter2"), "{error}");
}

#[test]
fn b07_nesting_is_no_danger_and_the_uid_survives_it() {
    let deep = format!("{}1{}", r#"{"a":"#.repeat(20_000), "}".repeat(20_000));
    for member in ["object", "oldObject", "unknown"] {
        let text = format!(
            r#"{{"apiVersion":"{API_VERSION}","kind":"{KIND}","request":{{"uid":"u-1","{member}":{deep}}},"x":{deep}}}"#
        );
        assert_eq!(parse(&text).unwrap().uid, "u-1");
    }
    let text = format!(r#"{{"apiVersion":"{API_VERSION}","kind":"{KIND}","request":{{"uid":"u-1","object":{deep}}}}}"#);
    assert_eq!(parse(&text).unwrap().object.tree(), Err(Unreadable));
}

#[test]
fn the_old_object_is_read_like_the_new_one() {
    let text = body(&json!({"uid": "u", "object": {"new": 1}, "oldObject": {"old": 1}}));
    let review = parse(&text).unwrap();
    assert_eq!(review.object.tree().unwrap(), json!({"new": 1}));
    assert_eq!(review.old_object.tree().unwrap(), json!({"old": 1}));
    assert_eq!(review.old_object.text(), br#"{"old":1}"#);
}

fn written(answer: &Answer) -> Value {
    serde_json::from_slice(&answer.to_body()).unwrap()
}

#[test]
fn b17_every_answer_carries_the_uid() {
    let status = Status { code: 403, reason: "Forbidden", message: "no".to_owned() };
    for answer in [Answer::allow("u-1"), Answer::deny("u-1", status)] {
        assert_eq!(written(&answer)["response"]["uid"], "u-1");
    }
}

#[test]
fn an_allowed_answer_says_nothing_that_it_need_not() {
    let expected = json!({"apiVersion": API_VERSION, "kind": KIND, "response": {"uid": "u-1", "allowed": true}});
    assert_eq!(written(&Answer::allow("u-1")), expected);
}

#[test]
fn a_patch_is_a_base64_string_beside_its_type() {
    let patch: Patch = serde_json::from_value(json!([{"op": "add", "path": "/spec", "value": {}}])).unwrap();
    let mut answer = Answer::allow("u-1");
    let bytes = answer.set_patch(&patch);
    let response = written(&answer)["response"].take();
    assert_eq!(response["patchType"], "JSONPatch");
    let sent = STANDARD.decode(response["patch"].as_str().unwrap()).unwrap();
    assert_eq!(sent.len(), bytes);
    assert_eq!(serde_json::from_slice::<Patch>(&sent).unwrap(), patch);
}

#[test]
fn a_denial_says_code_reason_and_message() {
    let status = Status { code: 403, reason: "Forbidden", message: "no".to_owned() };
    let response = written(&Answer::deny("u-1", status))["response"].take();
    assert_eq!(response["allowed"], false);
    assert_eq!(response["status"], json!({"code": 403, "reason": "Forbidden", "message": "no"}));
}

/// JSON that resembles a review, with wrong types and values in every place.
fn almost_a_review() -> impl Strategy<Value = String> {
    const MEMBERS: [&str; 9] =
        ["uid", "resource", "subResource", "operation", "namespace", "userInfo", "object", "oldObject", "dryRun"];
    let leaf = prop_oneof![
        Just("null".to_owned()),
        Just("{}".to_owned()),
        Just("[[]]".to_owned()),
        Just(r#""\ud800""#.to_owned()),
        Just("1e999".to_owned()),
        Just(r#""CREATE""#.to_owned()),
        Just(r#"{"metadata":{"labels":1},"spec":{"containers":{}}}"#.to_owned()),
        ".*".prop_map(|text| Value::String(text).to_string()),
    ];
    proptest::collection::vec((proptest::sample::select(MEMBERS.to_vec()), leaf), 0..8).prop_map(|members| {
        let members: Vec<_> = members.iter().map(|(key, value)| format!(r#""{key}":{value}"#)).collect();
        format!(r#"{{"apiVersion":"{API_VERSION}","kind":"{KIND}","request":{{{}}}}}"#, members.join(","))
    })
}

proptest! {
    #[test]
    fn no_bytes_panic_the_parser(bytes in proptest::collection::vec(any::<u8>(), 0..512)) {
        if let Ok(review) = Review::parse(&bytes) {
            let _ = (review.object.tree(), review.old_object.tree());
        }
    }

    #[test]
    fn nothing_that_resembles_a_review_panics_the_parser(text in almost_a_review(), cut in any::<prop::sample::Index>()) {
        if let Ok(review) = parse(&text) {
            prop_assert!(!review.uid.is_empty());
            let _ = (review.object.tree(), review.old_object.tree());
        }
        let bytes = text.as_bytes();
        prop_assert!(Review::parse(&bytes[..cut.index(bytes.len())]).is_err());
    }
}
