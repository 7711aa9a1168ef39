//! Against an API server on a socket: what it sends over a WebSocket, and the log that it has.

use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use cofferdam_kubernetes::Cluster;
use futures_util::{SinkExt as _, StreamExt as _};
use http::header::{CONNECTION, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL, UPGRADE};
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use prometheus::Registry;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::Role;

use super::*;
use crate::wire::TerminalSize;

const RUNNING: Program = Program::Running { address: None };

type Socket = WebSocketStream<TokioIo<Upgraded>>;

/// What the API server has.
#[derive(Clone)]
struct Pod {
    log: Arc<Mutex<String>>,
    /// What is on the terminal as soon as one is attached to it; nothing where nobody can be.
    greeting: Option<&'static str>,
    /// What the program writes while somebody is being attached to it.
    meanwhile: &'static str,
    /// How many are attached to it and were not sent that yet: the log is read after it.
    ungreeted: watch::Sender<u32>,
}

/// A program, and somebody who follows its terminal.
struct Scene {
    pod: Pod,
    attached: mpsc::UnboundedReceiver<Socket>,
    program: watch::Sender<Program>,
    input: mpsc::Sender<TerminalInput>,
    output: Arc<Mutex<Vec<u8>>>,
    following: JoinHandle<()>,
}

impl Scene {
    async fn new(log: &str, greeting: Option<&'static str>, program: Program) -> Self {
        Self::with(log, "", greeting, program).await
    }

    async fn with(log: &str, meanwhile: &'static str, greeting: Option<&'static str>, program: Program) -> Self {
        let log = Arc::new(Mutex::new(log.to_owned()));
        let pod = Pod { log, greeting, meanwhile, ungreeted: watch::Sender::new(0) };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (attach, attached) = mpsc::unbounded_channel();
        let its_pod = pod.clone();
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let (pod, attach) = (its_pod.clone(), attach.clone());
                let answer = service_fn(move |request| {
                    let (pod, attach) = (pod.clone(), attach.clone());
                    async move { Ok::<_, Infallible>(answer(pod, attach, request).await) }
                });
                tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), answer).with_upgrades());
            }
        });
        let config = kube::Config::new(url.parse().unwrap());
        let client = cofferdam_kubernetes::client(&config).unwrap();
        let home =
            Home { cluster: Cluster::new(client, "tests", &Registry::new()).unwrap(), namespace: "n".to_owned() };
        let (program, its_program) = watch::channel(program);
        let (input, its_input) = mpsc::channel(8);
        let output = Arc::new(Mutex::new(Vec::new()));
        let its_output = Arc::clone(&output);
        let following = tokio::spawn(async move {
            let id = SessionId::parse("abc234").unwrap();
            let output = move |_, bytes: &[u8]| its_output.lock().unwrap().extend_from_slice(bytes);
            run(&home, &id, Io::Tty, its_program, its_input, output).await;
        });
        Self { pod, attached, program, input, output, following }
    }

    fn logs(&self, text: &str) {
        self.pod.log.lock().unwrap().push_str(text);
    }

    fn output(&self) -> String {
        String::from_utf8(self.output.lock().unwrap().clone()).unwrap()
    }

    async fn until_output(&self, text: &str) {
        while !self.output().contains(text) {
            assert!(!self.following.is_finished(), "{text:?} is not in {:?}", self.output());
            tokio::task::yield_now().await;
        }
    }

    /// The program ends; all that it wrote.
    async fn ends(self) -> String {
        self.program.send(Program::Ended).unwrap();
        self.following.await.unwrap();
        String::from_utf8(self.output.lock().unwrap().clone()).unwrap()
    }
}

async fn answer(pod: Pod, attach: mpsc::UnboundedSender<Socket>, request: Request<Incoming>) -> Response<Full<Bytes>> {
    let (path, query) = (request.uri().path().to_owned(), request.uri().query().unwrap_or_default().to_owned());
    let mut response = Response::new(Full::default());
    match path.strip_prefix("/api/v1/namespaces/n/pods/run-abc234/") {
        Some("log") => {
            pod.ungreeted.subscribe().wait_for(|ungreeted| *ungreeted == 0).await.unwrap();
            *response.body_mut() = Bytes::from(pod.log.lock().unwrap().clone()).into();
        }
        Some("attach") => {
            let Some(greeting) = pod.greeting else {
                *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
                return response;
            };
            pod.ungreeted.send_modify(|ungreeted| *ungreeted += 1);
            pod.log.lock().unwrap().push_str(pod.meanwhile);
            assert!(query.contains("stdin=true") && query.contains("tty=true") && query.contains("container=session"));
            let key = derive_accept_key(request.headers()[SEC_WEBSOCKET_KEY].as_bytes());
            *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
            let headers = [
                (CONNECTION, "Upgrade"),
                (UPGRADE, "websocket"),
                (SEC_WEBSOCKET_ACCEPT, &key),
                (SEC_WEBSOCKET_PROTOCOL, "v5.channel.k8s.io"),
            ];
            response.headers_mut().extend(headers.map(|(name, value)| (name, value.parse().unwrap())));
            tokio::spawn(async move {
                let upgraded = TokioIo::new(hyper::upgrade::on(request).await.unwrap());
                let mut socket = WebSocketStream::from_raw_socket(upgraded, Role::Server, None).await;
                // As each stream begins.
                socket.send(binary(b"\x01")).await.unwrap();
                socket.send(binary(&[b"\x01", greeting.as_bytes()].concat())).await.unwrap();
                pod.ungreeted.send_modify(|ungreeted| *ungreeted -= 1);
                let _ = attach.send(socket);
            });
        }
        _ => *response.status_mut() = StatusCode::NOT_FOUND,
    }
    response
}

fn binary(bytes: &[u8]) -> Message {
    Message::Binary(Bytes::copy_from_slice(bytes))
}

/// What was sent to the program next, but for pings.
async fn sent(socket: &mut Socket) -> Vec<u8> {
    loop {
        if let Message::Binary(bytes) = socket.next().await.unwrap().unwrap() {
            return bytes.to_vec();
        }
    }
}

#[tokio::test]
async fn pty_01_what_a_program_writes_is_given_once_from_its_first_word_to_its_last() {
    let mut scene = Scene::new("one\ntwo\n", Some(""), Program::Waiting).await;
    scene.program.send(RUNNING).unwrap();
    let mut socket = scene.attached.recv().await.unwrap();
    scene.until_output("two\r\n").await;
    socket.send(binary(b"\x01> ")).await.unwrap();
    scene.until_output("> ").await;
    let size = TerminalSize { columns: 80, rows: 24 };
    for input in [TerminalInput::Bytes(Bytes::from_static(b"hi")), TerminalInput::Size(size)] {
        scene.input.send(input).await.unwrap();
    }
    assert_eq!(sent(&mut socket).await, b"\x00hi");
    assert_eq!(sent(&mut socket).await, b"\x04{\"Height\":24,\"Width\":80}");
    // The connection breaks, and the program goes on.
    drop(socket);
    scene.logs("> hi\nthree\n");
    let mut socket = scene.attached.recv().await.unwrap();
    scene.until_output("three\r\n").await;
    socket.send(binary(b"\x01four")).await.unwrap();
    scene.until_output("four").await;
    scene.logs("four\n");
    socket.send(binary(b"\x03{\"status\":\"Success\"}")).await.unwrap();
    assert_eq!(scene.ends().await, "one\r\ntwo\r\n> hi\r\nthree\r\nfour");
}

#[tokio::test]
async fn what_is_in_the_log_and_on_the_terminal_is_given_once() {
    // Of what was written since one is attached some is in the log before it is on the terminal.
    for (greeting, later) in
        [("two\r\nthree\r\n", ""), ("tw", "o\r\nthree\r\n"), ("two\r\n", "three\r\n"), ("three\r\n", "")]
    {
        let mut scene = Scene::with("one\n", "two\nthree\n", Some(greeting), RUNNING).await;
        // It is never closed.
        let mut socket = scene.attached.recv().await.unwrap();
        scene.until_output("three\r\n").await;
        socket.send(binary(format!("\x01{later}four\r\n").as_bytes())).await.unwrap();
        scene.until_output("four\r\n").await;
        scene.logs("four\nfive\n");
        assert_eq!(scene.ends().await, "one\r\ntwo\r\nthree\r\nfour\r\nfive\r\n");
    }
}

#[tokio::test]
async fn d04_of_a_program_that_ended_before_anybody_was_attached_the_log_is_given() {
    let mut scene = Scene::new("one\ntwo\n", Some(""), Program::Ended).await;
    (&mut scene.following).await.unwrap();
    assert_eq!(scene.output(), "one\r\ntwo\r\n");
    assert!(scene.attached.try_recv().is_err());
}

#[tokio::test]
async fn pty_02_a_terminal_that_cannot_be_attached_to_says_so_and_whole_lines_are_given_all_the_same() {
    let scene = Scene::new("one\n", None, RUNNING).await;
    scene.until_output("[attach: ").await;
    scene.logs("two\n");
    scene.until_output("two\r\n").await;
    scene.logs("three\n");
    let output = scene.ends().await;
    let (before, after) = output.split_once("\r\n[attach: the Kubernetes API server does not answer").unwrap();
    assert_eq!((before, after.split_once("]\r\n").unwrap().1), ("one\r\n", "two\r\nthree\r\n"));
}
