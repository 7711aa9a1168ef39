use std::time::SystemTime;

use cofferdam_certs::testing::Authority;
use http_body_util::BodyExt as _;
use rustls::ServerConfig;
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use super::*;

const PATIENCE: Duration = Duration::from_mins(1);

/// A server that says `hi` by https, with such a certificate; returns its port.
async fn serve(authority: &Authority, name: &str, from: SystemTime, until: SystemTime) -> u16 {
    let issued = authority.issue_for(name, from, until).unwrap();
    let chain = CertificateDer::pem_slice_iter(issued.chain.as_bytes()).collect::<Result<Vec<_>, _>>().unwrap();
    let key = PrivateKeyDer::from_pem_slice(issued.key.as_bytes()).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let Ok(mut stream) = TlsAcceptor::from(Arc::new(config.clone())).accept(stream).await else { continue };
            let mut request = vec![0; 4096];
            let _ = stream.read(&mut request).await;
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi").await;
            let _ = stream.flush().await;
        }
    });
    port
}

/// What such a server says, asked at `host`; or why it is not heard.
async fn hear(host: &str, port: u16, tls: &TlsConnector) -> Result<String, String> {
    let address = Address::parse(&format!("https://{host}:{port}/?hush")).unwrap();
    match send(request(Method::GET, &address), &address, tls, PATIENCE).await {
        Ok(answer) => {
            let body = answer.into_body().collect().await.unwrap().to_bytes();
            Ok(String::from_utf8(body.to_vec()).unwrap())
        }
        Err(Trouble::Lasting(failure)) => {
            assert_eq!(failure.exit_code(), 10);
            Err(failure.sentence())
        }
        Err(Trouble::Passing(why)) => panic!("{why}"),
    }
}

fn hours(number: u64) -> Duration {
    Duration::from_hours(number)
}

#[tokio::test]
async fn who_has_a_certificate_of_a_trusted_authority_is_heard() {
    let authority = Authority::new().unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(authority.root()).unwrap();
    let (ours, public) = (trusting(roots).unwrap(), tls().unwrap());
    let now = SystemTime::now();

    let good = serve(&authority, "localhost", now - hours(1), now + hours(1)).await;
    assert_eq!(hear("localhost", good, &ours).await.as_deref(), Ok("hi"));
    let by_address = serve(&authority, "127.0.0.1", now - hours(1), now + hours(1)).await;
    assert_eq!(hear("127.0.0.1", by_address, &ours).await.as_deref(), Ok("hi"));

    let late = serve(&authority, "localhost", now - hours(2), now - hours(1)).await;
    let early = serve(&authority, "localhost", now + hours(1), now + hours(2)).await;
    let other = serve(&authority, "other.example", now - hours(1), now + hours(1)).await;
    for (port, tls, why) in [
        (good, &public, "an authority that is not among"),
        (late, &ours, "has expired"),
        (early, &ours, "not valid yet by this node's clock"),
        (other, &ours, "for another name"),
    ] {
        let said = hear("localhost", port, tls).await.unwrap_err();
        assert!(said.contains(why) && said.starts_with("https://localhost:") && !said.contains("hush"), "{said}");
    }
}

#[tokio::test]
async fn a_port_without_tls_may_have_it_in_a_while() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
    });
    let address = Address::parse(&format!("https://localhost:{port}/")).unwrap();
    let answer = send(request(Method::GET, &address), &address, &tls().unwrap(), PATIENCE).await;
    assert!(matches!(answer, Err(Trouble::Passing(_))));
}
