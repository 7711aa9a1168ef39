//! The review decoder and what is answered: any body is malformed, or gets an answer that an API server can use.

use std::sync::LazyLock;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use cofferdam_model::policy::Policy;
use cofferdam_webhook::{
    admit::{Entry, decide},
    review::{API_VERSION, KIND, Review},
};
use json_patch::Patch;
use serde_json::{Value, json};

/// Decodes the bytes as the body of an admission request, and answers it by the built-in policy.
///
/// # Panics
/// A promise is broken.
pub fn check(bytes: &[u8]) {
    static BUILT_IN: LazyLock<Policy> = LazyLock::new(Policy::built_in);

    let review = match Review::parse(bytes) {
        Ok(review) => review,
        Err(malformed) => return assert!(malformed.to_string().len() < 100, "quotes the body: {malformed}"),
    };
    check_members(&review, bytes);
    let answers = || Entry::ALL.map(|(_, entry)| decide(entry, &review, &BUILT_IN).answer.to_body());
    let first = answers();
    for answer in &first {
        check_answer(&review, answer);
    }
    assert_eq!(answers(), first, "a second answer is another one");
}

/// What was read is what any reader of JSON finds in the same bytes.
fn check_members(review: &Review<'_>, bytes: &[u8]) {
    // A generic reader stops at a nesting or a number that the review never looks at.
    let Ok(body) = serde_json::from_slice::<Value>(bytes) else { return };
    let request = &body["request"];
    // A list in place of an object is read as its members in order, for which no generic reader has names.
    if [&body, request, &request["resource"], &request["userInfo"]].into_iter().any(Value::is_array) {
        return;
    }
    let member = |name: &str| request[name].as_str().unwrap_or_default();
    assert!(!review.uid.is_empty(), "there is no uid");
    assert_eq!(review.uid, member("uid"));
    assert_eq!(review.namespace, member("namespace"));
    assert_eq!(review.name, member("name"));
    assert_eq!(review.operation, member("operation"));
    assert_eq!(review.sub_resource, member("subResource"));
    assert_eq!(review.user_info.username, request["userInfo"]["username"].as_str().unwrap_or_default());
    assert_eq!(json!(review.dry_run), request.get("dryRun").cloned().unwrap_or(json!(false)));
    assert_eq!(review.object.tree().as_ref(), Ok(&request["object"]));
    assert_eq!(review.old_object.tree().as_ref(), Ok(&request["oldObject"]));
}

fn check_answer(review: &Review<'_>, body: &[u8]) {
    let body: Value = serde_json::from_slice(body).unwrap_or_else(|error| panic!("the answer is no JSON: {error}"));
    let response = &body["response"];
    assert_eq!((&body["apiVersion"], &body["kind"]), (&json!(API_VERSION), &json!(KIND)));
    assert_eq!(response["uid"], json!(review.uid), "answers another request");
    if response["allowed"] != json!(true) {
        assert!(response["status"]["message"].as_str().is_some_and(|text| !text.is_empty()), "denied without a word");
        assert_eq!(response["patch"], Value::Null, "denied and patched");
        return;
    }
    if let Some(patch) = response["patch"].as_str() {
        assert_eq!(response["patchType"], json!("JSONPatch"));
        let patch = STANDARD.decode(patch).unwrap_or_else(|error| panic!("the patch is no base64: {error}"));
        let patch: Patch = serde_json::from_slice(&patch).unwrap_or_else(|error| panic!("no JSON patch: {error}"));
        let mut pod = review.object.tree().unwrap_or_else(|error| panic!("patched unread: {error}"));
        json_patch::patch(&mut pod, &patch).unwrap_or_else(|error| panic!("the patch does not apply: {error}"));
    }
}
