use std::time::{Duration, SystemTime};

use cofferdam_certs::testing::{Authority, Issued};
use cofferdam_model::policy::ProbeHost;
use rustls::pki_types::PrivateKeyDer;

use super::*;
use crate::probe::Via;
use crate::probe::head::{Question, Unanswered, WITHIN, ask};
use crate::probe::testing::{answer, listen, serve, serve_tls};

const HOST: &str = "3000-abc.example.com";

#[tokio::test]
async fn a_certificate_that_the_bundle_signed_is_taken() {
    let authority = Authority::new().unwrap();
    let answered = asked(&authority.issue(HOST).unwrap(), Some(&bundle(&authority))).await;
    assert_eq!(answered, Ok(204));
}

#[tokio::test]
async fn without_a_bundle_any_certificate_is_taken() {
    let authority = Authority::new().unwrap();
    assert_eq!(asked(&authority.issue("other.example.com").unwrap(), None).await, Ok(204));
}

#[tokio::test]
async fn a_certificate_of_somebody_else_is_not() {
    let (ours, theirs) = (Authority::new().unwrap(), Authority::new().unwrap());
    let answered = asked(&theirs.issue(HOST).unwrap(), Some(&bundle(&ours))).await;
    let why = "routing.probe.caBundle does not hold the issuer of the gateway's certificate";
    assert_eq!(answered, Err(Unanswered::Tls(why)));
}

#[tokio::test]
async fn a_certificate_for_other_hosts_is_not() {
    let authority = Authority::new().unwrap();
    let answered = asked(&authority.issue("other.example.com").unwrap(), Some(&bundle(&authority))).await;
    assert_eq!(answered, Err(Unanswered::Tls("the gateway's certificate is for other hosts")));
}

#[tokio::test]
async fn an_expired_certificate_is_not() {
    let authority = Authority::new().unwrap();
    let hour = Duration::from_hours(1);
    let now = SystemTime::now();
    let expired = authority.issue_for(HOST, now - 2 * hour, now - hour).unwrap();
    let answered = asked(&expired, Some(&bundle(&authority))).await;
    assert_eq!(answered, Err(Unanswered::Tls("the gateway's certificate has expired")));
}

#[tokio::test]
async fn who_speaks_no_tls_is_told_so() {
    let via = Via::from(serve(|_| answer(200, "")).await);
    let tls = Tls::new(None);
    let question = Question { via: &via, tls: Some(&tls), host: HOST, proof: None };
    // The server reads until the end of a head, which never comes: what it does is up to the deadline.
    assert_eq!(ask(&question, Duration::from_millis(300)).await, Err(Unanswered::TimedOut));

    let (listener, address) = listen().await;
    tokio::spawn(async move {
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.read_u8().await.unwrap();
        stream.write_all(&answer(400, "")).await.unwrap();
        // Kept open: unread input would turn the end into a reset.
        let _ = stream.read_to_end(&mut Vec::new()).await;
    });
    let question = Question { via: &Via::from(address), ..question };
    let why = "the gateway does not speak TLS on that port";
    assert_eq!(ask(&question, WITHIN).await, Err(Unanswered::Tls(why)));
}

#[tokio::test]
async fn who_hangs_up_on_the_handshake_is_told_so() {
    let (listener, address) = listen().await;
    tokio::spawn(async move { drop(listener.accept().await.unwrap()) });
    let tls = Tls::new(None);
    let question = Question { via: &Via::from(address), tls: Some(&tls), host: HOST, proof: None };
    let why = "the gateway closes the connection during the handshake";
    assert_eq!(ask(&question, WITHIN).await, Err(Unanswered::Tls(why)));
}

#[tokio::test]
async fn a_bundle_that_holds_no_certificates_is_an_error() {
    let why = "routing.probe.caBundle holds what is no certificate of an authority";
    let nobody = Via::from(std::net::SocketAddr::from(([127, 0, 0, 1], 1)));
    let block = |text: &str| format!("-----BEGIN CERTIFICATE-----\n{text}\n-----END CERTIFICATE-----\n");
    for bundle in ["", "no PEM at all", &block("!"), &block("AAAA")] {
        let tls = Tls::new(Some(bundle));
        assert_eq!(tls.error().map(ToString::to_string).as_deref(), Some(why));
        let asked = ask(&Question { via: &nobody, tls: Some(&tls), host: HOST, proof: None }, WITHIN).await;
        assert_eq!(asked, Err(Unanswered::Tls(why)), "it is told without asking anybody");
    }
}

#[test]
fn a_policy_that_is_read_again_changes_nothing() {
    let bundles = [None, Some(bundle(&Authority::new().unwrap())), Some(bundle(&Authority::new().unwrap()))];
    for (index, one) in bundles.iter().enumerate() {
        for (other_index, other) in bundles.iter().enumerate() {
            let (one, other) = (Tls::new(one.as_deref()), Tls::new(other.as_deref()));
            assert_eq!(one == other, index == other_index);
        }
    }
}

/// The status that a gateway with this certificate answers, asked for [`HOST`].
async fn asked(certificate: &Issued, ca_bundle: Option<&str>) -> Result<u16, Unanswered> {
    let via = Via::from(serve_tls(|_| answer(204, ""), server(certificate)).await);
    assert!(matches!(via.host, ProbeHost::Address(_)));
    let tls = Tls::new(ca_bundle);
    ask(&Question { via: &via, tls: Some(&tls), host: HOST, proof: None }, WITHIN).await.map(|answer| answer.status)
}

fn server(issued: &Issued) -> rustls::ServerConfig {
    let chain = CertificateDer::pem_slice_iter(issued.chain.as_bytes()).collect::<Result<_, _>>().unwrap();
    let key = PrivateKeyDer::from_pem_slice(issued.key.as_bytes()).unwrap();
    rustls::ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .unwrap()
}

fn bundle(authority: &Authority) -> String {
    use base64::Engine;
    let root = base64::engine::general_purpose::STANDARD.encode(authority.root());
    format!("-----BEGIN CERTIFICATE-----\n{root}\n-----END CERTIFICATE-----\n")
}
