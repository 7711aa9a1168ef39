//! What a server may answer, and what becomes of it.

use std::process::Command;

use crate::archive::Tar;
use crate::fetch::{PLACED, Pod, body, noise, served};
use crate::server::{Answer, End, Server, nobody, sha256};

#[test]
fn the_version_is_told() {
    let output = Command::new(env!("CARGO_BIN_EXE_cofferdam-fetch")).arg("--version").output().unwrap();
    assert!(output.status.success());
    assert_eq!(output.stdout, format!("cofferdam-fetch {}\n", env!("CARGO_PKG_VERSION")).as_bytes());
}

#[test]
fn a_command_line_that_cannot_be_used_ends_with_2() {
    let pod = Pod::new();
    // Without a command line there is no other file than a kubelet's for the reason.
    let ended = pod.run(&["--url=http://a.example/?hush"]);
    assert_eq!(ended.code, 2);
    assert!(ended.log.contains("--sha256") && !ended.log.contains("hush"), "{}", ended.log);
    pod.fetch("ftp://a.example/hush", b"").failed(2, "--url must begin with http:// or https://");
    pod.fetch_with("http://127.0.0.1:9/", b"", &["--token-file=/not/there"]).failed(2, "--token-file");
}

#[test]
fn what_passes_is_waited_for() {
    let body = body();
    let passing = [408, 429, 500, 502, 503, 504].map(Answer::new);
    let server = Server::start(passing.into_iter().chain([Answer::whole(&body)]).collect());
    let pod = Pod::new();
    pod.fetch(&server.url("/body"), &body).well();
    assert_eq!(pod.names(), PLACED);
    assert_eq!(server.asked().len(), 7);
}

#[test]
fn b81_who_never_answers_is_not_reached_and_the_reason_says_what_was_seen() {
    let pod = Pod::new();
    let url = format!("http://{}/?hush", nobody());
    let ended = pod.fetch_with(&url, b"", &["--deadline=300ms"]);
    ended.failed(10, "within 300ms");
    assert!(ended.reason.contains("no network yet"), "{}", ended.reason);
    assert!(!ended.log.contains("hush"), "{}", ended.log);
    assert_eq!(pod.names(), [""; 0]);

    let ended = pod.fetch_with("http://name.invalid/", b"", &["--deadline=300ms"]);
    assert_eq!(ended.code, 10);
    let server = Server::start(vec![Answer::new(503)]);
    pod.fetch_with(&server.url("/"), b"", &["--deadline=300ms"]).failed(10, "answered 503");
    let archive = body();
    let page = b"<html>Log in first".repeat(100);
    // What began to come, be it an archive or not.
    for begun in [archive.as_slice(), &page] {
        let stuck = Server::start(vec![Answer::begun(begun, 1000, End::Never)]);
        pod.fetch_with(&stuck.url("/"), &archive, &["--deadline=900ms"]).failed(10, "within 900ms");
    }
    assert_eq!(pod.names(), [""; 0]);
}

#[test]
fn what_hangs_where_no_clock_is_looked_at_is_ended_after_the_deadline() {
    let (body, server) = served();
    let pod = Pod::new();
    let fifo = pod.file("fifo", "");
    std::fs::remove_file(&fifo).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, rustix::fs::Mode::RUSR).unwrap();
    let flags = ["--deadline=300ms", &format!("--token-file={fifo}")];
    pod.fetch_with(&server.url("/"), &body, &flags).failed(10, "not unpacked within 300ms");
}

#[test]
fn d18_what_is_refused_is_not_asked_for_again() {
    for (status, why) in
        [(404, "first pod that asked"), (401, "token"), (403, "may not have it"), (410, "any more"), (204, "204")]
    {
        let server = Server::start(vec![Answer::new(status), Answer::whole(&body())]);
        let pod = Pod::new();
        let ended = pod.fetch(&server.url("/body?hush"), &body());
        ended.failed(11, why);
        assert!(ended.reason.contains(&server.address.to_string()), "{}", ended.reason);
        assert!(!ended.log.contains("hush"), "{}", ended.log);
        assert_eq!((server.asked().len(), pod.names()), (1, Vec::new()));
    }
}

#[test]
fn a_broken_connection_is_gone_on_with_where_it_broke() {
    let body = body();
    let server = Server::start(vec![
        Answer::begun(&body, 3000, End::Cut).header("etag", "\"one\""),
        Answer::new(503),
        Answer::rest(&body, 3000).header("etag", "\"one\""),
    ]);
    let pod = Pod::new();
    pod.fetch(&server.url("/body"), &body).well();
    assert_eq!(pod.names(), PLACED);
    let asked = server.asked();
    assert_eq!((asked[0].header("range"), asked[0].header("if-range")), (None, None));
    assert_eq!((asked[2].header("range"), asked[2].header("if-range")), (Some("bytes=3000-"), Some("\"one\"")));
}

#[test]
fn a_server_that_sends_less_than_it_was_asked_for_is_asked_for_the_rest() {
    let body = body();
    let server = Server::start(vec![
        Answer::begun(&body, 3000, End::Cut),
        Answer::part(&body, 3000..6000),
        Answer::rest(&body, 6000),
    ]);
    let pod = Pod::new();
    pod.fetch(&server.url("/body"), &body).well();
    assert_eq!(pod.names(), PLACED);
    let asked = server.asked();
    assert_eq!((asked[1].header("range"), asked[2].header("range")), (Some("bytes=3000-"), Some("bytes=6000-")));
}

#[test]
fn a_server_without_ranges_is_read_again_from_the_beginning() {
    let body = body();
    let server = Server::start(vec![
        Answer::begun(&body, 3000, End::Cut),
        Answer::begun(&body, 1000, End::Cut),
        Answer::whole(&body),
    ]);
    let pod = Pod::new();
    pod.fetch(&server.url("/body"), &body).well();
    assert_eq!((pod.names(), server.asked().len()), (PLACED.map(str::to_owned).to_vec(), 3));
}

#[test]
fn who_stops_sending_is_asked_again() {
    let body = body();
    let server = Server::start(vec![Answer::begun(&body, 3000, End::Never), Answer::rest(&body, 3000)]);
    let pod = Pod::new();
    // A sixth of it is how long one silence may be.
    pod.fetch_with(&server.url("/body"), &body, &["--deadline=30s"]).well();
    assert_eq!(pod.names(), PLACED);
}

#[test]
fn a_body_that_changed_in_between_is_begun_anew() {
    let body = body();
    let older = Tar::new().file("older", &noise(2)).gzip();
    let changed = |second: Answer| {
        let server = Server::start(vec![
            Answer::begun(&older, 300, End::Cut).header("etag", "\"old\""),
            second,
            Answer::whole(&body),
        ]);
        let pod = Pod::new();
        pod.fetch(&server.url("/body"), &body).well();
        assert_eq!(pod.names(), PLACED);
        server.asked().len()
    };
    // Said by the server, or seen: by another version, by other bytes, by a length.
    assert_eq!(changed(Answer::whole(&body).header("etag", "\"new\"")), 3);
    assert_eq!(changed(Answer::rest(&body, 300).header("etag", "\"new\"")), 3);
    assert_eq!(changed(Answer::rest(&body, 200)), 3);
    assert_eq!(changed(Answer::new(416)), 3);
    // Not said at all: only the digest shows it.
    assert!(changed(Answer::rest(&body, 300)) >= 3);
}

#[test]
fn another_digest_is_not_the_body() {
    let (body, server) = served();
    let pod = Pod::new();
    let ended = pod.fetch(&server.url("/body?hush"), b"something else");
    ended.failed(12, &sha256(&body));
    assert!(ended.reason.contains(&sha256(b"something else")), "{}", ended.reason);
    assert_eq!((pod.names(), server.asked().len()), (Vec::new(), 1));
    // A page instead of an archive is something else, too, and not an unsafe archive.
    let page = Server::start(vec![Answer::new(200).body(b"<html>Log in first</html>")]);
    pod.fetch(&page.url("/body"), &body).failed(12, "SHA-256");
}

#[test]
fn an_archive_that_holds_what_it_may_not_is_unsafe_and_leaves_nothing() {
    let archive = Tar::new().file("a", "a").symlink("d", "/srv").gzip();
    let server = Server::start(vec![Answer::whole(&archive)]);
    let pod = Pod::new();
    pod.fetch(&server.url("/body"), &archive).failed(13, "\"d\" is a symbolic link with an absolute target");
    assert_eq!(pod.names(), [""; 0]);
    let page = b"<html></html>";
    let server = Server::start(vec![Answer::whole(page)]);
    pod.fetch(&server.url("/body"), page).failed(13, "no whole tar.gz");
}

#[test]
fn b85_a_bomb_is_too_large_and_leaves_nothing() {
    let bomb = Tar::new().file("small", "").entry("zeros", b'0', 0o644, "", &vec![0; 8 << 20]).gzip();
    let server = Server::start(vec![Answer::whole(&bomb)]);
    let pod = Pod::new();
    pod.fetch_with(&server.url("/"), &bomb, &["--max-bytes=1048576"]).failed(14, "more than 1048576 bytes");
    pod.fetch_with(&server.url("/"), &bomb, &["--max-entries=1"]).failed(14, "more than 1 files");
    // What is large before it is unpacked is not even read.
    let large = Server::start(vec![Answer::new(200).header("content-length", "9999999999").end(End::Never)]);
    pod.fetch(&large.url("/"), b"").failed(14, "the archive is larger than");
    assert_eq!(pod.names(), [""; 0]);
}
