//! Values that nobody can guess.

use rustls::crypto::ring::default_provider;

use crate::desired::Proof;

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

#[cfg(test)]
mod tests {
    use cofferdam_model::ports::Ports;

    use super::*;
    use crate::desired::testing::{NODE, gateway, routing, session};
    use crate::desired::{desired, proof_of};

    #[test]
    fn no_two_proofs_are_alike_and_each_is_read_back_from_its_route() {
        let (one, other) = (proof().unwrap(), proof().unwrap());
        assert_ne!(one, other);
        assert_ne!(one.probe, one.proof);
        let (session, ports) = (session("3000"), Ports::parse("3000").unwrap());
        let wanted = desired(&session, &ports, &gateway(true), &routing(), NODE, &|_| one.clone());
        assert_eq!(proof_of(&wanted[2].object), Some(one));
    }
}
