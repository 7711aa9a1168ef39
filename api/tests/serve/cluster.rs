//! An API server on a socket: what the API asks of one, over objects in memory.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

use bytes::Bytes;
use futures_util::{SinkExt as _, stream};
use http::header::{ACCEPT, CONNECTION, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL, UPGRADE};
use http::{Method, Request, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::{mpsc, watch};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::Role;

/// Where its objects are.
const NAMESPACE: &str = "/api/v1/namespaces/cofferdam-sessions/";

type Answer = Response<UnsyncBoxBody<Bytes, Infallible>>;

/// Somebody who is attached to a pod's terminal.
pub(crate) type Terminal = WebSocketStream<TokioIo<Upgraded>>;

/// A cluster; it ends with the test.
pub(crate) struct Cluster {
    server: Server,
    /// Whoever attaches to a terminal.
    pub(crate) attached: mpsc::UnboundedReceiver<Terminal>,
    folder: tempfile::TempDir,
}

#[derive(Clone)]
struct Server {
    state: Arc<Mutex<State>>,
    changed: watch::Sender<()>,
    attach: mpsc::UnboundedSender<Terminal>,
}

#[derive(Default)]
struct State {
    /// By kind and name.
    objects: BTreeMap<String, Value>,
    /// What happened, in order: its version is its place, from 1.
    events: Vec<(&'static str, String, Value)>,
    log: String,
    /// Why no pod can be made.
    refusal: Option<&'static str>,
    /// Whether nothing can be asked for.
    is_broken: bool,
}

impl Cluster {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (attach, attached) = mpsc::unbounded_channel();
        let server = Server { state: Arc::default(), changed: watch::Sender::new(()), attach };
        let its_server = server.clone();
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let server = its_server.clone();
                let answer = service_fn(move |request| {
                    let server = server.clone();
                    async move { Ok::<_, Infallible>(server.answer(request).await) }
                });
                tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), answer).with_upgrades());
            }
        });
        let folder = tempfile::tempdir().unwrap();
        let config = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "c",
            "clusters": [{"name": "c", "cluster": {"server": format!("http://{address}")}}],
            "users": [{"name": "c", "user": {}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "c"}}],
        });
        std::fs::write(folder.path().join("config"), config.to_string()).unwrap();
        Self { server, attached, folder }
    }

    /// How it is reached.
    pub(crate) fn config(&self) -> PathBuf {
        Path::join(self.folder.path(), "config")
    }

    /// An object: `pods/run-a`.
    pub(crate) fn object(&self, path: &str) -> Option<Value> {
        self.server.state().objects.get(path).cloned()
    }

    /// How many objects there are of a kind.
    pub(crate) fn count(&self, kind: &str) -> usize {
        self.server.state().objects.keys().filter(|path| path.split('/').next() == Some(kind)).count()
    }

    /// Changes an object as a kubelet would.
    pub(crate) fn merge(&self, which: &str, patch: &Value) {
        let mut object = self.object(which).unwrap();
        merge(&mut object, patch);
        self.server.put("MODIFIED", which, object);
    }

    /// No pod can be made from now on, in these words.
    pub(crate) fn refuses(&self, message: &'static str) {
        self.server.state().refusal = Some(message);
    }

    /// Nothing can be asked for, and no watch goes on; or again.
    pub(crate) fn breaks(&self, is_broken: bool) {
        self.server.state().is_broken = is_broken;
        self.server.changed.send_replace(());
    }

    /// A program has written something.
    pub(crate) fn logs(&self, text: &str) {
        self.server.state().log.push_str(text);
    }
}

impl Server {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// Something happens to an object; gives it as it is then.
    fn put(&self, what: &'static str, path: &str, mut object: Value) -> Value {
        let mut state = self.state();
        object["metadata"]["resourceVersion"] = json!((state.events.len() + 1).to_string());
        if what == "DELETED" {
            state.objects.remove(path);
        } else {
            state.objects.insert(path.to_owned(), object.clone());
        }
        state.events.push((what, path.to_owned(), object.clone()));
        drop(state);
        self.changed.send_replace(());
        object
    }

    async fn answer(self, request: Request<Incoming>) -> Answer {
        let accept = request.headers().get(ACCEPT).map_or("", |accept| accept.to_str().unwrap());
        let is_sparing = accept.contains("Partial");
        let query: BTreeMap<String, String> =
            form_urlencoded::parse(request.uri().query().unwrap_or_default().as_bytes()).into_owned().collect();
        let whole = request.uri().path().to_owned();
        let Some(path) = whole.strip_prefix(NAMESPACE).map(ToOwned::to_owned) else {
            assert_eq!(whole, "/apis/authentication.k8s.io/v1/tokenreviews");
            return review(&sent(request).await);
        };
        if self.state().is_broken {
            return failure(StatusCode::SERVICE_UNAVAILABLE, "ServiceUnavailable", "etcd of team-b is down");
        }
        let method = request.method().clone();
        match path.rsplit_once('/') {
            Some((_, "log")) => return plain(StatusCode::OK, self.state().log.clone().into()),
            Some((_, "attach")) => return self.attach(request),
            None if method == Method::GET && query.contains_key("watch") => {
                let from = query["resourceVersion"].parse().unwrap();
                return self.watch(path, from, is_sparing);
            }
            None if method == Method::GET => return self.list(&path, is_sparing),
            _ => {}
        }
        let sent = sent(request).await;
        let refusal = self.state().refusal.filter(|_| method == Method::POST && path == "pods");
        if let Some(message) = refusal {
            return failure(StatusCode::FORBIDDEN, "Forbidden", message);
        }
        if method == Method::POST {
            let key = format!("{path}/{}", sent["metadata"]["name"].as_str().unwrap());
            let mut object = sent;
            if path == "pods" {
                // As the webhook notes it.
                object["metadata"]["annotations"]["cofferdam.dev/hardened"] = json!("{}");
            }
            if query.contains_key("dryRun") {
                return plain(StatusCode::CREATED, object.to_string().into());
            }
            object["metadata"]["uid"] = json!(format!("uid-of-{key}"));
            return plain(StatusCode::CREATED, shown(self.put("ADDED", &key, object), is_sparing).to_string().into());
        }
        let Some(mut object) = self.state().objects.get(&path).cloned() else {
            let status =
                json!({"kind": "Status", "status": "Failure", "code": 404, "reason": "NotFound", "message": ""});
            return plain(StatusCode::NOT_FOUND, status.to_string().into());
        };
        if method == Method::PATCH {
            merge(&mut object, &sent);
            object = self.put("MODIFIED", &path, object);
        } else if method == Method::DELETE {
            object = self.put("DELETED", &path, object);
        }
        plain(StatusCode::OK, shown(object, is_sparing).to_string().into())
    }

    fn list(&self, kind: &str, is_sparing: bool) -> Answer {
        let state = self.state();
        let objects = state.objects.iter().filter(|(path, _)| path.split('/').next() == Some(kind));
        let items: Vec<_> = objects.map(|(_, object)| shown(object.clone(), is_sparing)).collect();
        let version = state.events.len().to_string();
        plain(StatusCode::OK, json!({"metadata": {"resourceVersion": version}, "items": items}).to_string().into())
    }

    fn watch(self, kind: String, from: usize, is_sparing: bool) -> Answer {
        let changed = self.changed.subscribe();
        let events = stream::unfold((self, changed, from), move |(server, mut changed, mut place)| {
            let kind = kind.clone();
            async move {
                loop {
                    if server.state().is_broken {
                        return None;
                    }
                    let next = server.state().events.get(place).cloned();
                    let Some((what, path, object)) = next else {
                        changed.changed().await.unwrap();
                        continue;
                    };
                    place += 1;
                    if path.split('/').next() == Some(&kind) {
                        let line = format!("{}\n", json!({"type": what, "object": shown(object, is_sparing)}));
                        let frame = Ok::<_, Infallible>(Frame::data(Bytes::from(line)));
                        return Some((frame, (server, changed, place)));
                    }
                }
            }
        });
        Response::new(StreamBody::new(events).boxed_unsync())
    }

    fn attach(self, request: Request<Incoming>) -> Answer {
        let key = derive_accept_key(request.headers()[SEC_WEBSOCKET_KEY].as_bytes());
        let mut answer = plain(StatusCode::SWITCHING_PROTOCOLS, Bytes::new());
        for (name, value) in [
            (CONNECTION, "Upgrade"),
            (UPGRADE, "websocket"),
            (SEC_WEBSOCKET_ACCEPT, key.as_str()),
            (SEC_WEBSOCKET_PROTOCOL, "v5.channel.k8s.io"),
        ] {
            answer.headers_mut().insert(name, value.parse().unwrap());
        }
        tokio::spawn(async move {
            let upgraded = TokioIo::new(hyper::upgrade::on(request).await.unwrap());
            let mut terminal = WebSocketStream::from_raw_socket(upgraded, Role::Server, None).await;
            terminal.send(Message::Binary(Bytes::from_static(b"\x01"))).await.unwrap();
            // A test that needs none has ended.
            let _ = self.attach.send(terminal);
        });
        answer
    }
}

/// Says of the token `<name>` that it is that pod's.
fn review(review: &Value) -> Answer {
    let token = review["spec"]["token"].as_str().unwrap();
    let user = json!({
        "username": "system:serviceaccount:cofferdam-sessions:default",
        "extra": {
            "authentication.kubernetes.io/pod-name": [token],
            "authentication.kubernetes.io/pod-uid": [format!("uid of {token}")],
        },
    });
    let status = json!({"authenticated": true, "audiences": review["spec"]["audiences"], "user": user});
    plain(StatusCode::CREATED, json!({"status": status}).to_string().into())
}

async fn sent(request: Request<Incoming>) -> Value {
    serde_json::from_slice(&request.into_body().collect().await.unwrap().to_bytes()).unwrap_or_default()
}

fn plain(status: StatusCode, body: Bytes) -> Answer {
    let mut answer = Response::new(Full::new(body).boxed_unsync());
    *answer.status_mut() = status;
    answer
}

fn failure(code: StatusCode, reason: &str, message: &str) -> Answer {
    let status =
        json!({"kind": "Status", "status": "Failure", "code": code.as_u16(), "reason": reason, "message": message});
    plain(code, status.to_string().into())
}

fn shown(object: Value, is_sparing: bool) -> Value {
    if is_sparing { json!({"metadata": object["metadata"]}) } else { object }
}

/// RFC 7396.
fn merge(object: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else { return *object = patch.clone() };
    if !object.is_object() {
        *object = json!({});
    }
    let object = object.as_object_mut().unwrap();
    for (key, value) in patch {
        if value.is_null() {
            object.remove(key);
        } else {
            merge(object.entry(key.clone()).or_insert(Value::Null), value);
        }
    }
}
