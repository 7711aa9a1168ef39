use super::*;
use crate::testing::Authority;

const NAME: &str = "webhook.example.svc";
const HOUR: Duration = Duration::from_hours(1);

fn names() -> Vec<ServerName<'static>> {
    vec![ServerName::try_from(NAME).unwrap()]
}

fn check(contents: &Contents) -> Result<Certificate, CertificateError> {
    Certificate::check(contents, &names(), SystemTime::now())
}

fn valid_between(from: SystemTime, until: SystemTime) -> Contents {
    Authority::new().unwrap().issue_for(NAME, from, until).unwrap().contents()
}

#[test]
fn a_good_pair_is_served_and_says_when_it_expires() {
    let now = SystemTime::now();
    let certificate = check(&valid_between(now - HOUR, now + HOUR)).unwrap();
    assert_eq!(certificate.expires_unix_seconds(), seconds(now + HOUR));
}

#[test]
fn a_chain_expires_with_its_first_certificate() {
    let now = SystemTime::now();
    let mut contents = valid_between(now - HOUR, now + 5 * HOUR);
    contents.chain.extend(valid_between(now - HOUR, now + 2 * HOUR).chain);
    assert_eq!(check(&contents).unwrap().expires_unix_seconds(), seconds(now + 2 * HOUR));
    contents.chain.extend(valid_between(now - 2 * HOUR, now - HOUR).chain);
    assert!(matches!(check(&contents), Err(CertificateError::Expired { position: 3, .. })));
}

#[test]
fn an_expired_certificate_is_refused() {
    let now = SystemTime::now();
    let error = check(&valid_between(now - 2 * HOUR, now - HOUR)).unwrap_err();
    assert!(matches!(error, CertificateError::Expired { position: 1, .. }), "{error}");
}

#[test]
fn b87_a_clock_that_is_a_little_ahead_is_forgiven_and_one_far_ahead_is_not() {
    let now = SystemTime::now();
    check(&valid_between(now + CLOCK_SKEW / 2, now + HOUR)).unwrap();
    let error = check(&valid_between(now + 2 * CLOCK_SKEW, now + HOUR)).unwrap_err();
    assert!(matches!(error, CertificateError::NotYetValid { .. }), "{error}");
}

#[test]
fn the_key_of_another_certificate_is_refused() {
    let authority = Authority::new().unwrap();
    let (one, other) = (authority.issue(NAME).unwrap().contents(), authority.issue(NAME).unwrap().contents());
    let mixed = Contents { chain: one.chain, key: other.key };
    assert!(matches!(check(&mixed), Err(CertificateError::Mismatch)));
}

#[test]
fn a_certificate_for_another_name_is_refused() {
    let contents = Authority::new().unwrap().issue("other.example.svc").unwrap().contents();
    let error = check(&contents).unwrap_err();
    assert_eq!(error.to_string(), "the certificate is not for webhook.example.svc; add that to its DNS names");
}

#[test]
fn what_is_no_certificate_or_key_is_refused() {
    let good = Authority::new().unwrap().issue(NAME).unwrap().contents();
    let chain = |bytes: &[u8]| check(&Contents { chain: bytes.to_vec(), key: good.key.clone() }).unwrap_err();
    let key = |bytes: &[u8]| check(&Contents { chain: good.chain.clone(), key: bytes.to_vec() }).unwrap_err();
    assert!(matches!(chain(b""), CertificateError::NoCertificate));
    assert!(matches!(chain(&good.key), CertificateError::NoCertificate));
    assert!(matches!(chain(&good.chain[..good.chain.len() / 2]), CertificateError::ChainPem(_)));
    let nonsense = b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    assert!(matches!(chain(nonsense), CertificateError::Malformed { position: 1 }));
    assert!(matches!(key(b""), CertificateError::KeyPem(_)));
    assert!(matches!(key(&good.chain), CertificateError::KeyPem(_)));
    let nonsense = b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n";
    assert!(matches!(key(nonsense), CertificateError::Key(_)));
}
