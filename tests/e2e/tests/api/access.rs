//! Who may call, where the cluster says it (`--auth=review`), and where nobody does.

use std::io::Read as _;

use anyhow::ensure;
use cofferdam_e2e::api::{self, TOKEN};
use cofferdam_e2e::images::SHELL;
use cofferdam_e2e::install::{self, IMAGE, SESSIONS};
use cofferdam_e2e::namespace::PATIENCE;
use cofferdam_e2e::permissions::{self, Program, Right};
use cofferdam_e2e::stage::Stage;
use cofferdam_e2e::wait::until;
use serde_json::{Value, json};

use crate::client::{Client, UPGRADE, head, status};
use crate::installed;

/// Where callers come from.
const PEOPLE: &str = "people";

/// The audience of callers' tokens.
const AUDIENCE: &str = "--audience=cofferdam-api";

/// Applies another of the API's overlays.
fn apply(stage: &mut Stage, overlay: &str) {
    stage.manifests = install::render_overlay(&stage.kubectl, overlay, IMAGE).unwrap();
    stage.kubectl.run_with(["apply", "--filename=-"], &stage.manifests).unwrap();
    // What was applied has another one.
    let image = format!("COFFERDAM_API_DEFAULT_IMAGE={SHELL}");
    stage.system(&["set", "env", "deployment/cofferdam-api", &image]).unwrap();
    api::serves(&stage.kubectl).unwrap();
}

/// A ServiceAccount, and what it may do to pods of sessions, as `kubectl create role` takes it.
fn person(stage: &Stage, name: &str, rights: &[(&str, &str)]) {
    let (from, at) = (format!("--namespace={PEOPLE}"), format!("--namespace={SESSIONS}"));
    stage.kubectl.run([&from, "create", "serviceaccount", name]).unwrap();
    for (resource, verbs) in rights {
        let role = format!("{name}-{}", resource.replace('/', "-"));
        let (verbs, resource) = (format!("--verb={verbs}"), format!("--resource={resource}"));
        stage.kubectl.run([&at, "create", "role", &role, &verbs, &resource]).unwrap();
        let (of, account) = (format!("--role={role}"), format!("--serviceaccount={PEOPLE}:{name}"));
        stage.kubectl.run([&at, "create", "rolebinding", &role, &of, &account]).unwrap();
    }
}

/// A token of that ServiceAccount.
fn token(stage: &Stage, name: &str, more: &[&str]) -> String {
    let from = format!("--namespace={PEOPLE}");
    stage.kubectl.run([&[from.as_str(), "create", "token", name], more].concat()).unwrap().trim().to_owned()
}

/// Status and body of the answer to a request with these header lines.
fn ask(client: &Client, method: &str, path: &str, headers: &str, body: &Value) -> (u16, Value) {
    let answer = client.ask_as(method, path, headers, body);
    (answer.status, answer.body)
}

fn bearer(token: &str) -> String {
    format!("Authorization: Bearer {token}\r\n")
}

/// What a request by who has the token comes to: its status, and the code of a refusal.
fn outcome(client: &Client, method: &str, path: &str, token: &str) -> (u16, String) {
    let body = if method == "POST" { wanted() } else { Value::Null };
    let (status, answer) = ask(client, method, path, &bearer(token), &body);
    (status, answer["error"].as_str().unwrap_or_default().to_owned())
}

/// A session that goes on.
fn wanted() -> Value {
    json!({
        "bundle": {"entryRelativePath": "main.sh", "files": [
            {"relativePath": "main.sh", "contents": "echo ready-to-serve; exec sleep 3600"},
        ]},
        "env": {},
        "ports": [],
        "config": {"image": SHELL, "pullPolicy": "missing"},
    })
}

/// Begins one; its id, and what opens its streams.
fn create(client: &Client, token: &str) -> (String, String) {
    client.ask_as("POST", "/v1/sessions", &bearer(token), &wanted()).session()
}

/// The code that a terminal is closed with; 0 where it begins.
fn terminal(client: &Client, path: &str, headers: &str) -> u16 {
    let mut stream = client.send("GET", path, &format!("{UPGRADE}{headers}"), "");
    assert_eq!(status(&head(&mut stream)), 101);
    let mut frame = [0; 4];
    stream.read_exact(&mut frame).unwrap();
    if frame[0] == 0x88 { u16::from_be_bytes([frame[2], frame[3]]) } else { 0 }
}

#[test]
fn whom_the_cluster_knows_may_do_to_sessions_what_roles_let_it_do_to_their_pods() {
    let mut stage = api::start("e2e-api-access", None, &[]).unwrap();
    apply(&mut stage, "api-review");
    stage.kubectl.run(["create", "namespace", PEOPLE]).unwrap();
    person(&stage, "maker", &[("pods", "create,get,delete")]);
    person(&stage, "reader", &[("pods", "get,list,watch")]);
    person(&stage, "typist", &[("pods", "get"), ("pods/attach", "create")]);
    person(&stage, "stranger", &[]);
    let of = |name: &str| token(&stage, name, &[AUDIENCE]);
    let (maker, reader, typist, stranger) = (of("maker"), of("reader"), of("typist"), of("stranger"));

    let client = installed::client(&stage);
    let (id, stream_token) = create(&client, &maker);
    client.terminal(&id, &stream_token).until("ready-to-serve");
    let (session, events) = (format!("/v1/sessions/{id}"), format!("/v1/sessions/{id}/events"));
    for (method, path, token, expected) in [
        ("GET", session.as_str(), &reader, (200, "")),
        ("GET", "/v1/capabilities", &reader, (200, "")),
        ("POST", "/v1/sessions", &reader, (403, "forbidden")),
        ("POST", "/v1/probe", &reader, (403, "forbidden")),
        ("DELETE", &session, &reader, (403, "forbidden")),
        ("GET", &session, &stranger, (403, "forbidden")),
        ("POST", "/v1/sessions", &stranger, (403, "forbidden")),
        ("GET", &events, &stranger, (403, "forbidden")),
        ("DELETE", &session, &stranger, (403, "forbidden")),
        // What callers send elsewhere.
        ("GET", &session, &TOKEN.to_owned(), (401, "unauthenticated")),
        ("GET", &session, &stream_token, (401, "unauthenticated")),
        ("DELETE", &session, &stream_token, (401, "unauthenticated")),
    ] {
        let (status, code) = outcome(&client, method, path, token);
        assert_eq!((status, code.as_str()), expected, "{method} {path}");
    }
    let io = format!("{session}/io");
    for (token, code) in [(&reader, 4403), (&maker, 4403), (&stranger, 4403), (&typist, 0), (&stream_token, 4401)] {
        assert_eq!(terminal(&client, &io, &bearer(token)), code);
    }

    tokens_that_open_nothing(&stage, &client, &session, &maker);
    let (other, other_token) = create(&client, &maker);
    a_stream_token_opens_the_streams_of_its_session_alone(&client, &id, &other_token);
    a_token_that_was_taken_back_opens_nothing_after_a_moment(&stage, &client, &session);
    a_cluster_that_may_not_be_asked_says_yes_to_nobody(&stage, &client, &session);

    // Another API: what it was not told it finds, and of three sessions two have room.
    assert_eq!(outcome(&client, "DELETE", &format!("/v1/sessions/{other}"), &maker).0, 204);
    stage.system(&["set", "env", "deployment/cofferdam-api", "COFFERDAM_API_SESSIONS=2"]).unwrap();
    api::serves(&stage.kubectl).unwrap();
    let client = installed::client(&stage);
    client.terminal(&id, &stream_token).until("ready-to-serve");
    let (_, third_token) = create(&client, &maker);
    installed::gone(&stage, &other);
    let secret = format!("secret/s-{other}");
    stage.kubectl.run(["wait", &format!("--namespace={SESSIONS}"), &secret, "--for=delete", "--timeout=2m"]).unwrap();

    let log = stage.system(&["logs", "deployment/cofferdam-api"]).unwrap();
    for secret in [&maker, &reader, &typist, &stranger, &stream_token, &third_token] {
        assert!(!log.contains(secret.as_str()), "{log}");
    }
    let (asked, wrong) = permissions::asked(Program::Api, &stage.cluster.audit().unwrap());
    assert!(wrong.is_empty(), "{wrong:#?}");
    let unseen = permissions::unseen(Program::Api, &asked, why_unseen);
    assert!(unseen.is_empty(), "documented, and asked for by nobody: {unseen:?}");
    where_nobody_is_asked_everybody_may_call_and_it_is_said(&mut stage);
}

/// Whatever is sent in place of a token of the API's audience.
fn tokens_that_open_nothing(stage: &Stage, client: &Client, session: &str, maker: &str) {
    // Kubernetes' own, as every pod has one; that of bodies, as pods of sessions have one; and one for somebody else.
    let others = [&[][..], &["--audience=cofferdam-bodies"], &["--audience=cofferdam-api.example"]]
        .map(|audience| bearer(&token(stage, "maker", audience)));
    let (payload, longer) = (maker.split('.').nth(1).unwrap(), format!("{maker}{}", "x".repeat(20_000)));
    let broken = [
        String::new(),
        "Authorization: Bearer \r\n".to_owned(),
        format!("Authorization: {maker}\r\n"),
        format!("Authorization: Basic {maker}\r\n"),
        format!("{}{}", bearer(maker), bearer(maker)),
        format!("{}{}", bearer("other"), bearer(maker)),
        bearer(&maker[..maker.len() - 8]),
        // Not signed by anybody.
        bearer(&format!("eyJhbGciOiJub25lIn0.{payload}.")),
        bearer(&longer),
    ];
    for headers in others.iter().chain(&broken) {
        let (status, answer) = ask(client, "GET", session, headers, &Value::Null);
        let shown: String = headers.chars().take(40).collect();
        assert_eq!((status, &answer["error"]), (401, &json!("unauthenticated")), "{shown}");
    }
    for path in [format!("{session}?access_token={maker}"), format!("{session}/events?access_token={maker}")] {
        assert_eq!(ask(client, "GET", &path, "", &Value::Null).0, 401, "a URL is written to logs");
    }
    assert_eq!(ask(client, "GET", session, &format!("authorization: bEARER  {maker}\r\n"), &Value::Null).0, 200);
}

fn a_stream_token_opens_the_streams_of_its_session_alone(client: &Client, id: &str, other_token: &str) {
    for path in ["events", "io"].map(|stream| format!("/v1/sessions/{id}/{stream}?access_token={other_token}")) {
        if path.contains("/io") {
            assert_eq!(terminal(client, &path, ""), 4401);
        } else {
            assert_eq!(ask(client, "GET", &path, "", &Value::Null).0, 401);
        }
    }
    let path = format!("/v1/sessions/{id}?access_token={other_token}");
    assert_eq!(ask(client, "GET", &path, "", &Value::Null).0, 401);
}

fn a_token_that_was_taken_back_opens_nothing_after_a_moment(stage: &Stage, client: &Client, session: &str) {
    person(stage, "leaver", &[("pods", "get")]);
    let leaver = token(stage, "leaver", &[AUDIENCE]);
    assert_eq!(outcome(client, "GET", session, &leaver).0, 200);
    stage.kubectl.run([&format!("--namespace={PEOPLE}"), "delete", "serviceaccount", "leaver"]).unwrap();
    until("a token whose account is gone is nobody's", PATIENCE, || {
        let (status, code) = outcome(client, "GET", session, &leaver);
        ensure!((status, code.as_str()) == (401, "unauthenticated"), "{status} {code}");
        Ok(())
    })
    .unwrap();
    person(stage, "demoted", &[("pods", "get")]);
    let demoted = token(stage, "demoted", &[AUDIENCE]);
    assert_eq!(outcome(client, "GET", session, &demoted).0, 200);
    stage.kubectl.run([&format!("--namespace={SESSIONS}"), "delete", "rolebinding", "demoted-pods"]).unwrap();
    until("who lost its role may no more", PATIENCE, || {
        let (status, code) = outcome(client, "GET", session, &demoted);
        ensure!((status, code.as_str()) == (403, "forbidden"), "{status} {code}");
        Ok(())
    })
    .unwrap();
}

fn a_cluster_that_may_not_be_asked_says_yes_to_nobody(stage: &Stage, client: &Client, session: &str) {
    // Nobody was asked about it yet.
    person(stage, "late", &[("pods", "get"), ("pods/attach", "create")]);
    let late = || token(stage, "late", &[AUDIENCE]);
    stage.kubectl.run(["delete", "clusterrolebinding", "cofferdam-api"]).unwrap();
    until("the API may not ask who calls", PATIENCE, || {
        let (status, answer) = ask(client, "GET", session, &bearer(&late()), &Value::Null);
        ensure!((status, &answer["error"]) == (503, &json!("review_unavailable")), "{status}");
        let told = answer["message"].as_str().unwrap_or_default();
        ensure!(told.starts_with("the Kubernetes API server does not permit it"), "{told}");
        ensure!(!told.contains("cofferdam-api"), "{told} names an account");
        Ok(())
    })
    .unwrap();
    assert_eq!(terminal(client, &format!("{session}/io"), &bearer(&late())), 1013);
    let account = "--serviceaccount=cofferdam-system:cofferdam-api";
    let binding = ["create", "clusterrolebinding", "cofferdam-api", "--clusterrole=cofferdam-api", account];
    stage.kubectl.run(binding).unwrap();
    let late = late();
    until("it may ask again", PATIENCE, || {
        let status = outcome(client, "GET", session, &late).0;
        ensure!(status == 200, "{status}");
        Ok(())
    })
    .unwrap();
}

/// Why a right that no request showed is needed all the same; none for one that is not.
fn why_unseen((_, resource, verb): &Right) -> Option<&'static str> {
    match (resource.as_str(), verb.as_str()) {
        ("pods", "get") => Some("asked for by name only where a creation was not answered"),
        ("pods/attach", "create") => Some("asked for together with `get`, under which it is logged"),
        _ => None,
    }
}

fn where_nobody_is_asked_everybody_may_call_and_it_is_said(stage: &mut Stage) {
    // An apply leaves what others set.
    stage.system(&["set", "env", "deployment/cofferdam-api", "COFFERDAM_API_SESSIONS-"]).unwrap();
    apply(stage, "api-compatibility");
    let client = installed::client(stage);
    let (status, answer) = ask(&client, "POST", "/v1/sessions", "", &wanted());
    assert_eq!((status, &answer["streamToken"]), (201, &Value::Null), "{answer}");
    let session = format!("/v1/sessions/{}", answer["sessionId"].as_str().unwrap());
    assert_eq!(terminal(&client, &format!("{session}/io"), ""), 0);
    assert_eq!(ask(&client, "GET", &session, "", &Value::Null).0, 200);
    assert_eq!(ask(&client, "DELETE", &session, "", &Value::Null).0, 204);
    let log = stage.system(&["logs", "deployment/cofferdam-api"]).unwrap();
    assert!(log.contains("--auth=none: whoever reaches the port may start sessions"), "{log}");
}
