//! The policy loader: any text is a policy that works, or an error that a person can act on.

use std::sync::LazyLock;

use cofferdam_model::{
    keys,
    policy::{Policy, params, params_config_map},
};
use serde_json::{Value, json};

use crate::harden;

/// Loads the bytes as a policy, writes it out in full and as parameters, and hardens pods by each of its profiles.
///
/// # Panics
/// A promise is broken.
pub fn check(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    match Policy::parse("policy.yaml", text) {
        Ok(policy) => check_policy(&policy),
        Err(error) => {
            let message = error.to_string();
            assert!(message.starts_with("policy.yaml:"), "does not say where: {message:?}");
            assert!(!message.chars().any(char::is_control), "is not one line: {message:?}");
        }
    }
}

fn check_policy(policy: &Policy) {
    static PODS: LazyLock<[Value; 2]> = LazyLock::new(|| {
        [include_str!("../corpus/harden/plain.json"), include_str!("../corpus/harden/tightened.json")]
            .map(|text| serde_json::from_str(text).unwrap_or_else(|error| panic!("a seed is no JSON: {error}")))
    });

    assert!(policy.profile(keys::DEFAULT_PROFILE).is_some(), "there is no default profile");
    let shown = policy.show();
    match Policy::parse("shown.yaml", &shown) {
        Ok(again) => assert_eq!(again.show(), shown, "it is shown as another policy"),
        Err(error) => panic!("it is shown as none: {error}"),
    }
    let config_map = params_config_map(policy, "params", "cofferdam-system");
    let read: Value = serde_saphyr::from_str(&config_map).unwrap_or_else(|error| panic!("no YAML: {error}"));
    assert_eq!(read["data"], json!(params(policy)), "its parameters read differently as a ConfigMap");
    for name in policy.profile_names() {
        for pod in PODS.iter() {
            let mut pod = pod.clone();
            pod["metadata"]["labels"][keys::PROFILE] = json!(name);
            harden::check_creation(&pod, policy);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_policies_to_begin_with_load() {
        // One that does not is judged no further, and what is grown from it mostly does not load either.
        for policy in [include_str!("../corpus/policy/full.json"), include_str!("../corpus/policy/two-profiles.yaml")] {
            assert!(Policy::parse("policy.yaml", policy).is_ok(), "{policy}");
        }
    }
}
