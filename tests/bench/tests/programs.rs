//! The benchmark's programs: that they still run, and that they would notice a wrong answer. No figure is judged.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use cofferdam_bench::connection::{Connection, NAME, post, trust};
use cofferdam_bench::fixture;
use cofferdam_bench::load::{Exchange, arrive, saturate, schedule};
use cofferdam_bench::server::Server;
use cofferdam_certs::testing::{Authority, SecretVolume};

/// The bare server, and two connections to it.
fn bare() -> (Server, Vec<Connection>) {
    let authority = Authority::new().unwrap();
    let volume = SecretVolume::mount(&authority.issue(NAME).unwrap()).unwrap();
    let server = Server::start(Path::new(env!("CARGO_BIN_EXE_cofferdam-bench-bare")), &[], &volume.files()).unwrap();
    let trust = trust(&authority).unwrap();
    let connections = (0..2).map(|_| Connection::open(server.address, &trust).unwrap()).collect();
    (server, connections)
}

#[test]
fn the_bare_server_answers_what_the_webhook_would_under_both_kinds_of_load() {
    let (server, mut connections) = bare();
    let body = fixture::body();
    let (request, answer) = (post(&body), fixture::decision(&body).unwrap().answer.to_body());
    let exchange = Exchange { request: &request, answer: &answer };
    assert!(saturate(&mut connections, exchange, Duration::from_millis(50)).unwrap() > 0);
    let latencies = arrive(&mut connections, exchange, &schedule(100.0, Duration::from_millis(200))).unwrap();
    assert!(latencies.within(1000) > 0.0);
    assert!(server.processor_time().unwrap() > Duration::ZERO);
    assert!(server.peak_mebibytes().unwrap() > 0.5);
}

#[test]
fn an_answer_of_other_bytes_ends_the_measurement() {
    let (_server, mut connections) = bare();
    let request = post(&fixture::body());
    let exchange = Exchange { request: &request, answer: b"{}" };
    let error = saturate(&mut connections, exchange, Duration::from_millis(50)).unwrap_err();
    assert!(error.to_string().contains("answered something else"), "{error}");
}

#[test]
fn every_stage_of_a_review_is_timed_and_its_allocations_are_counted() {
    let output = Command::new(env!("CARGO_BIN_EXE_cofferdam-bench")).args(["review", "--smoke"]).output().unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    for row in ["yardstick", "whole way", "decode: the pod", "harden", "encode: patch"] {
        assert!(printed.contains(row), "{row} is missing:\n{printed}");
    }
}
