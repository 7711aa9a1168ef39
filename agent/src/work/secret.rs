//! Values that nobody can guess.

use rustls::crypto::ring::default_provider;
use serde_json::Value;

use crate::desired::{PROBE_HEADER, PROOF_HEADER, Proof};

/// 128 random bits, as hexadecimal digits.
fn random() -> Option<String> {
    let mut bytes = [0; 16];
    default_provider().secure_random.fill(&mut bytes).ok()?;
    Some(format!("{:032x}", u128::from_be_bytes(bytes)))
}

/// A new proof; none where the system gives no random bits, and then a route has none.
pub(super) fn proof() -> Option<Proof> {
    Some(Proof { probe: random()?, proof: random()? })
}

/// The proof that a live route holds: one that is there stays, so that an agent that starts anew changes nothing.
pub(super) fn proof_of(route: &Value) -> Option<Proof> {
    let rule = route["spec"]["rules"].as_array()?.iter().find(|rule| rule["filters"].is_array())?;
    let matched = rule["matches"].as_array()?.iter().find_map(|matched| header(&matched["headers"], PROBE_HEADER));
    let mut filters = rule["filters"].as_array()?.iter();
    let proof = filters.find_map(|filter| header(&filter["responseHeaderModifier"]["set"], PROOF_HEADER));
    let is_ours = |value: &String| value.len() == 32 && value.bytes().all(|b| b.is_ascii_hexdigit());
    Some(Proof { probe: matched.filter(is_ours)?, proof: proof.filter(is_ours)? })
}

fn header(list: &Value, name: &str) -> Option<String> {
    let found = list.as_array()?.iter().find(|header| header["name"] == name)?;
    found["value"].as_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_proof_is_read_back_from_its_route_and_no_two_are_alike() {
        let (one, other) = (proof().unwrap(), proof().unwrap());
        assert_ne!(one, other);
        assert_ne!(one.probe, one.proof);
        let route = |proof: &Proof| {
            json!({"spec": {"rules": [
                {"matches": [{"headers": [{"name": PROBE_HEADER, "value": proof.probe}]}],
                 "filters": [{"responseHeaderModifier": {"set": [{"name": PROOF_HEADER, "value": proof.proof}]}}]},
                {"matches": [{}]},
            ]}})
        };
        assert_eq!(proof_of(&route(&one)), Some(one.clone()));
        // What somebody else wrote in its place is no secret of ours.
        assert_eq!(proof_of(&route(&Proof { probe: "x".to_owned(), ..one })), None);
        assert_eq!(proof_of(&json!({"spec": {}})), None);
    }
}
