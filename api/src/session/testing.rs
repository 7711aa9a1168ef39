//! For tests: what an API server does with Secrets and pods, and what goes wrong there.

use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard};

use cofferdam_kubernetes::Cluster;
use cofferdam_model::keys;
use http::{Method, Request, Response};
use http_body_util::BodyExt as _;
use kube::Client;
use kube::client::Body;
use prometheus::Registry;
use serde_json::{Value, json};

use crate::cluster::Home;

/// An API server. Clones share it.
#[derive(Clone, Default)]
pub(crate) struct Api(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    /// By kind and name.
    objects: BTreeMap<String, Value>,
    /// What the next creations of pods come to; all others go well.
    creations: VecDeque<Creation>,
    version: u64,
    /// Method and what it was about, in order.
    asked: Vec<String>,
}

/// What a creation of a pod comes to.
pub(crate) enum Creation {
    /// It is refused so: code and message.
    Refused(u16, &'static str),
    /// It is made, and nobody hardens it.
    Unhardened,
    /// It is made, and that is not told.
    MadeUnanswered,
    /// Somebody else does that first; what it comes to is the next one's.
    After(Box<dyn FnOnce(&Api) + Send>),
}

impl Api {
    /// The way there.
    pub(crate) fn home(&self) -> Home {
        let api = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let api = api.clone();
            async move { Ok::<_, Infallible>(api.answer(request).await) }
        });
        let cluster = Cluster::new(Client::new(service, "n"), "cofferdam-api", &Registry::new()).unwrap();
        Home { cluster, namespace: "n".to_owned() }
    }

    /// The next creations of pods come to these.
    pub(crate) fn creations(&self, creations: impl IntoIterator<Item = Creation>) {
        self.state().creations.extend(creations);
    }

    /// An object: `pods/run-a`.
    pub(crate) fn object(&self, path: &str) -> Option<Value> {
        self.state().objects.get(path).cloned()
    }

    /// What was asked for, such as `POST pods`.
    pub(crate) fn asked(&self) -> Vec<String> {
        self.state().asked.clone()
    }

    /// Changes an object as somebody else would.
    pub(crate) fn merge(&self, which: &str, patch: &Value) {
        let mut server = self.state();
        server.version += 1;
        let version = server.version;
        let object = server.objects.get_mut(which).unwrap();
        merge(object, patch);
        object["metadata"]["resourceVersion"] = json!(version.to_string());
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    async fn answer(&self, request: Request<Body>) -> Response<Body> {
        let (parts, body) = request.into_parts();
        let path = parts.uri.path().strip_prefix("/api/v1/namespaces/n/").unwrap().to_owned();
        let sent: Value = serde_json::from_slice(&body.collect().await.unwrap().to_bytes()).unwrap_or_default();
        self.state().asked.push(format!("{} {path}", parts.method));
        let is_sparing = |object: &Value| json!({"metadata": object["metadata"]});
        let wants_metadata =
            parts.headers.get("accept").is_some_and(|accept| accept.to_str().unwrap().contains("Partial"));
        assert!(wants_metadata || !path.starts_with("secrets") || parts.method == Method::DELETE, "values came back");
        match self.done(&parts.method, &path, sent) {
            Ok(object) if wants_metadata => reply(200, &is_sparing(&object)),
            Ok(object) => reply(200, &object),
            Err((code, reason, message)) => {
                let status =
                    json!({"kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": message});
                reply(code, &status)
            }
        }
    }

    /// What the next creation of a pod comes to, after what comes first.
    fn creation(&self) -> Option<Creation> {
        loop {
            let next = self.state().creations.pop_front();
            match next {
                Some(Creation::After(act)) => act(self),
                next => return next,
            }
        }
    }

    fn done(&self, method: &Method, path: &str, sent: Value) -> Result<Value, (u16, &'static str, String)> {
        let missing = || (404, "NotFound", "not found".to_owned());
        if method == Method::POST {
            let creation = if path == "pods" { self.creation() } else { None };
            let is_hardened = !matches!(creation, Some(Creation::Unhardened));
            let is_answered = match creation {
                Some(Creation::Refused(code, message)) => return Err((code, "", message.to_owned())),
                Some(Creation::MadeUnanswered) => false,
                Some(Creation::Unhardened | Creation::After(_)) | None => true,
            };
            let key = format!("{path}/{}", sent["metadata"]["name"].as_str().unwrap());
            if self.state().objects.contains_key(&key) {
                return Err((409, "AlreadyExists", "already exists".to_owned()));
            }
            let mut object = sent;
            object["metadata"]["uid"] = json!(format!("uid of {key}"));
            // As the webhook notes it; who is not asked notes nothing.
            if path == "pods" && is_hardened {
                object["metadata"]["annotations"][keys::HARDENED] = json!("{}");
            }
            self.state().objects.insert(key.clone(), object);
            self.merge(&key, &json!({}));
            return if is_answered { Ok(self.object(&key).unwrap()) } else { Err((504, "Timeout", String::new())) };
        }
        let found = self.object(path).ok_or_else(missing)?;
        if method == Method::DELETE {
            self.state().objects.remove(path);
        } else if method == Method::PATCH {
            let version = &sent["metadata"]["resourceVersion"];
            if !version.is_null() && *version != found["metadata"]["resourceVersion"] {
                return Err((409, "Conflict", "the object has been modified".to_owned()));
            }
            self.merge(path, &sent);
        }
        Ok(self.object(path).unwrap_or(found))
    }
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

fn reply(code: u16, body: &Value) -> Response<Body> {
    Response::builder().status(code).body(Body::from(body.to_string().into_bytes())).unwrap()
}
