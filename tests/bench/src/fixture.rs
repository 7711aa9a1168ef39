//! The review that is measured, and the pod behind it.
//!
//! `fixtures/pod.yaml` is the pod as its author writes it. `fixtures/admission-review.json` is what an API server 1.37
//! makes of it for a webhook: with its defaults, the volume of the `ServiceAccount` plugin, the two default tolerations
//! and `managedFields`. On the wire it has 9,969 bytes.

use anyhow::{Context, Result, ensure};
use cofferdam_model::policy::Policy;
use cofferdam_webhook::admit::{Decision, Entry, Outcome, decide};
use cofferdam_webhook::review::Review;
use k8s_openapi::api::core::v1::Pod;

const POD: &str = include_str!("../fixtures/pod.yaml");
const REVIEW: &str = include_str!("../fixtures/admission-review.json");

/// The path that the review is posted to.
pub const PATH: &str = "/mutate/enforced";

/// The body of the review, as an API server writes it.
#[must_use]
pub fn body() -> Vec<u8> {
    compact(REVIEW).into_bytes()
}

/// The pod as its author writes it.
///
/// # Errors
/// When the fixture is no pod.
pub fn pod() -> Result<Pod> {
    serde_saphyr::from_str(POD).context("fixtures/pod.yaml is no pod")
}

/// What the webhook decides about the review by the built-in policy.
///
/// # Errors
/// When the review is anything but one that gets a patch: the benchmarks would not measure what they say.
pub fn decision(body: &[u8]) -> Result<Decision> {
    let review = Review::parse(body)?;
    let entry = Entry::of_path(PATH).context("the webhook does not know the path")?;
    let decision = decide(entry, &review, &Policy::built_in());
    ensure!(decision.outcome == Outcome::Hardened, "the pod of the benchmarks is not hardened: {:?}", decision.answer);
    ensure!(decision.patch_bytes.is_some(), "the pod of the benchmarks needs no patch");
    Ok(decision)
}

/// The same JSON without the space between its parts.
fn compact(json: &str) -> String {
    let (mut in_string, mut escaped) = (false, false);
    let is_kept = |&character: &char| {
        let kept = in_string || !character.is_whitespace();
        if character == '"' && !escaped {
            in_string = !in_string;
        }
        escaped = in_string && character == '\\' && !escaped;
        kept
    };
    json.chars().filter(is_kept).collect()
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::{Container, PodSpec};
    use serde_json::Value;

    use super::*;

    #[test]
    fn the_review_has_ten_kilobytes_and_its_pod_is_hardened() {
        let body = body();
        assert_eq!(body.len(), 9969);
        assert_eq!(serde_json::from_slice::<Value>(&body).unwrap(), serde_json::from_str::<Value>(REVIEW).unwrap());
        decision(&body).unwrap();
    }

    #[test]
    fn the_review_shows_the_pod_that_is_created() {
        let review: Value = serde_json::from_str(REVIEW).unwrap();
        let shown: Pod = serde_json::from_value(review["request"]["object"].clone()).unwrap();
        let (shown, written) = (shown.spec.unwrap(), pod().unwrap().spec.unwrap());
        // The API server fills in what an author leaves open, but renames, adds and leaves out nothing of this.
        let names = |spec: PodSpec| -> Vec<String> {
            let of = |container: Container| {
                let env = container.env.unwrap_or_default().into_iter().map(|variable| variable.name);
                [container.name, container.image.unwrap()].into_iter().chain(env).collect::<Vec<_>>()
            };
            spec.containers.into_iter().flat_map(of).collect()
        };
        assert_eq!(names(shown), names(written));
    }

    #[test]
    fn space_inside_strings_stays() {
        assert_eq!(compact("{ \"a b\": \"\\\" c\\\\\" , \"d\" : [ 1 ]\n}"), "{\"a b\":\"\\\" c\\\\\",\"d\":[1]}");
    }
}
