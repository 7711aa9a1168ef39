//! A certificate is renewed while connections are open.

use std::time::{Duration, SystemTime};

use cofferdam_certs::testing::Authority;

use crate::client::NAME;
use crate::program::Program;

#[tokio::test]
async fn b93_a_renewed_certificate_is_shown_to_new_connections_and_open_ones_go_on() {
    let mut program = Program::start(&["--tls-poll-interval=10ms"]).await;
    let mut open = program.connect().await;
    open.good_request().await;
    let old = open.certificate();
    let expiry = program.metric("certificate_expiry_timestamp_seconds").await;

    for renewal in 1..=3u32 {
        let now = SystemTime::now();
        let later = now + Duration::from_hours(24) * renewal;
        let renewed = program.authority.issue_for(NAME, now, later).unwrap();
        program.volume.update(&renewed).unwrap();
        program.logged("serving a new certificate").await;
        let mut new = program.connect().await;
        new.good_request().await;
        assert_ne!(new.certificate(), old);
        open.good_request().await;
    }
    assert!(program.metric("certificate_expiry_timestamp_seconds").await > expiry);
    assert!(program.metric("certificate_reloads_total{outcome=\"swapped\"}").await > 2.5);
}

#[tokio::test]
async fn a_broken_renewal_keeps_the_old_certificate_and_says_so() {
    let mut program = Program::start(&["--tls-poll-interval=10ms"]).await;
    let old = program.connect().await.certificate();
    let now = SystemTime::now();
    let hour = Duration::from_hours(1);
    let expired = program.authority.issue_for(NAME, now - 2 * hour, now - hour).unwrap();
    program.volume.update(&expired).unwrap();
    let line = program.logged("the certificate was not renewed, the old one is still served").await;
    assert!(line["error"].as_str().unwrap().contains("expired at"), "{line}");
    let mut connection = program.connect().await;
    connection.good_request().await;
    assert_eq!(connection.certificate(), old);
    assert!(program.metric("certificate_reloads_total{outcome=\"failed\"}").await > 0.5);
}

#[tokio::test]
async fn a_client_that_does_not_trust_the_certificate_is_told_apart_in_log_and_metrics() {
    let mut program = Program::start(&[]).await;
    let stranger = crate::client::trust(&Authority::new().unwrap());
    let stream = program.tcp().await.unwrap();
    assert!(crate::client::Secure::over(stream, &stranger).await.is_err());
    program.logged("a client ended the TLS handshake; does it trust our certificate?").await;
    let sample = "tls_handshake_failures_total{listener=\"reviews\",reason=\"refused-by-client\"}";
    assert!(program.metric(sample).await > 0.5);
}
