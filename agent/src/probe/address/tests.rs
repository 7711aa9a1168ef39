use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::desired::Proof;
use crate::probe::head::WITHIN;
use crate::probe::testing::{answer, closed, header, serve};

const HOST: &str = "3000-abcdefghijkl.example.com";

#[tokio::test]
async fn nobody_knows_where_to_ask() {
    let target = Target { via: None, ..target(closed(), true) };
    assert_eq!(probe(&target, closed(), WITHIN).await.verdict, Some(Err(Failure::NoProbeAddress)));
}

#[tokio::test]
async fn the_route_that_holds_the_proof_is_reached() {
    let gateway = serve(gateway(200)).await;
    assert_eq!(probed(gateway, closed(), true).await, Ok(Identity::Proved));
}

#[tokio::test]
async fn b134_b140_somebody_elses_200_and_the_gateways_404_are_not_the_route() {
    for status in [200, 404, 500] {
        let gateway = serve(move |_| answer(status, "")).await;
        assert_eq!(probed(gateway, closed(), true).await, Err(Failure::NotRouted(status)));
    }
}

#[tokio::test]
async fn a_proof_on_the_gateways_own_503_proves_no_backend() {
    let gateway = serve(gateway(503)).await;
    let healthy = serve(|_| answer(200, "")).await;
    let failing = serve(|head| {
        assert_eq!(header(head, "host"), Some(HOST));
        assert_eq!(header(head, "x-cofferdam-probe"), None, "the program has no use for it");
        answer(503, "")
    });
    assert_eq!(probed(gateway, healthy, true).await, Err(Failure::BadGateway(503)));
    assert_eq!(probed(gateway, closed(), true).await, Err(Failure::BadGateway(503)));
    assert_eq!(probed(gateway, failing.await, true).await, Ok(Identity::Proved));
}

#[tokio::test]
async fn a_pod_that_needs_no_asking_is_not_asked() {
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&asked);
    let pod = serve(move |_| {
        counted.fetch_add(1, Ordering::Relaxed);
        answer(503, "")
    })
    .await;
    assert_eq!(probed(serve(gateway(404)).await, pod, true).await, Ok(Identity::Proved));
    assert_eq!(asked.load(Ordering::Relaxed), 0);
    assert_eq!(probed(serve(gateway(503)).await, pod, true).await, Ok(Identity::Proved));
    assert_eq!(asked.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn without_a_proof_the_answer_differs_from_that_for_nobody() {
    let routed = |status| {
        move |head: &str| if header(head, "host") == Some(HOST) { answer(status, "") } else { answer(404, "") }
    };
    assert_eq!(probed(serve(routed(200)).await, closed(), false).await, Ok(Identity::Unproved));
    assert_eq!(probed(serve(routed(404)).await, closed(), false).await, Err(Failure::NotRouted(404)));
    assert_eq!(probed(serve(routed(502)).await, closed(), false).await, Err(Failure::BadGateway(502)));
}

#[tokio::test]
async fn a_gateway_that_repeats_the_host_to_everybody_routes_nothing() {
    for host in [HOST, "1-a.example.com"] {
        let gateway = serve(|head| {
            let host = header(head, "host").unwrap();
            let length = host.len();
            format!("HTTP/1.1 308 Moved\r\nlocation: https://{host}/\r\ncontent-length: {length}\r\n\r\n").into_bytes()
        });
        let target = Target { host: host.to_owned(), ..target(gateway.await, false) };
        assert_eq!(probe(&target, closed(), WITHIN).await.verdict, Some(Err(Failure::NotRouted(308))));
    }
}

#[tokio::test]
async fn what_nobody_answers_is_told() {
    let failure = Failure::NoAnswer("refuses the connection");
    assert_eq!(probed(closed(), closed(), true).await, Err(failure.clone()));
    assert_eq!(probed(closed(), closed(), false).await, Err(failure));
}

#[test]
fn nobodys_host_stays_the_same_and_no_session_can_have_it() {
    let host = nobody(HOST, "example.com");
    assert_eq!(host, nobody(HOST, "example.com"));
    assert_eq!(host.len(), HOST.len());
    assert!(host.starts_with(|first: char| first.is_ascii_lowercase()) && host.ends_with(".example.com"));
    assert_eq!(nobody("1-a.example.com", "example.com").len(), 12 + ".example.com".len());
    let long = format!("65535-{}.example.com", "a".repeat(80));
    assert_eq!(nobody(&long, "example.com").len(), 63 + ".example.com".len());
}

/// What a gateway does with a route that holds the proof, whatever becomes of the request.
fn gateway(status: u16) -> impl Fn(&str) -> Vec<u8> {
    move |head| {
        let ours = header(head, "host") == Some(HOST) && header(head, "x-cofferdam-probe") == Some("one");
        answer(status, if ours { "x-cofferdam-proof: two\r\n" } else { "" })
    }
}

fn target(gateway: SocketAddr, has_proof: bool) -> Target {
    Target {
        via: Some(Via::from(gateway)),
        tls: None,
        host: HOST.to_owned(),
        base_domain: "example.com".to_owned(),
        proof: has_proof.then(|| Proof { probe: "one".to_owned(), proof: "two".to_owned() }),
    }
}

async fn probed(gateway: SocketAddr, pod: SocketAddr, has_proof: bool) -> Result<Identity, Failure> {
    probe(&target(gateway, has_proof), pod, WITHIN).await.verdict.expect("the question can be put")
}
