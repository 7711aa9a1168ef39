//! For tests: an API server in memory that does to objects what matters to the work on a session, and a crew that asks it.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard};

use cofferdam_kubernetes::Cluster;
use cofferdam_model::keys;
use cofferdam_runtime::stop::Stop;
use http::{Method, Request, Response};
use http_body_util::BodyExt;
use kube::Client;
use kube::client::Body;
use prometheus::Registry;
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::Crew;
use crate::desired::testing::NODE;
use crate::events::Events;
use crate::ground::Ground;
use crate::metrics::Metrics;
use crate::objects::{Kind, Live};
use crate::probe::Prober;
use crate::session::{Progress, Seen, Session};
use crate::testing::{answer, failure};
use crate::world::{Snapshot, Start, World};

#[derive(Clone, Default)]
pub(super) struct Api {
    state: Arc<Mutex<State>>,
    was_asked: Arc<Notify>,
}

#[derive(Default)]
struct State {
    /// By plural and name: all are of one namespace.
    objects: BTreeMap<(String, String), Value>,
    asked: Vec<String>,
    /// How often Services were read.
    reads: usize,
    /// Writes that are forbidden, as [`Api::asked`] tells them.
    refused: BTreeSet<String>,
    /// Writes that are taken and never answered.
    held: BTreeSet<String>,
    /// What somebody does to a Service once it was read.
    meanwhile: Option<Meanwhile>,
    /// An annotation that a webhook writes into everything.
    annotated: Option<String>,
    /// What begins the paths of a version that is not served.
    unserved: Option<&'static str>,
    version: u64,
}

type Meanwhile = Box<dyn FnOnce(&mut Value) + Send>;

impl Api {
    pub(super) fn crew(&self) -> Crew {
        let api = self.clone();
        let service = tower::service_fn(move |request| {
            let api = api.clone();
            async move { Ok::<_, Infallible>(api.answer(request).await) }
        });
        crew(Client::new(service, "default"), Stop::new())
    }

    /// What was written since this was asked last, but for Events: `VERB plural/name`.
    pub(super) fn asked(&self) -> Vec<String> {
        std::mem::take(&mut self.state().asked)
    }

    /// How often Services were read until now.
    pub(super) fn reads(&self) -> usize {
        self.state().reads
    }

    /// Waits until all of these were written; longer than a minute none would take.
    pub(super) async fn until(&self, writes: &[&str]) {
        let are_written = async {
            loop {
                let asked = self.was_asked.notified();
                if writes.iter().all(|write| self.state().asked.iter().any(|asked| asked == write)) {
                    return;
                }
                asked.await;
            }
        };
        let patience = std::time::Duration::from_mins(1);
        assert!(tokio::time::timeout(patience, are_written).await.is_ok(), "only {:?}", self.asked());
    }

    /// That write is forbidden from now on.
    pub(super) fn refuse(&self, write: &str) {
        self.state().refused.insert(write.to_owned());
    }

    /// It is not any more.
    pub(super) fn allow(&self, write: &str) {
        self.state().refused.remove(write);
    }

    /// What has a path that begins so is served no more.
    pub(super) fn unserve(&self, prefix: &'static str) {
        self.state().unserved = Some(prefix);
    }

    /// That write gets no answer from now on.
    pub(super) fn hold(&self, write: &str) {
        self.state().held.insert(write.to_owned());
    }

    /// Somebody changes a Service after it was read the next time.
    pub(super) fn meanwhile(&self, edit: impl FnOnce(&mut Value) + Send + 'static) {
        self.state().meanwhile = Some(Box::new(edit));
    }

    /// From now on every write gets an answer; those that were taken before get none.
    pub(super) fn answer_all(&self) {
        self.state().held.clear();
    }

    /// From now on each write has this annotation added to it.
    pub(super) fn annotate(&self, key: &str) {
        self.state().annotated = Some(key.to_owned());
    }

    /// Somebody changes an object.
    pub(super) fn edit(&self, object: &str, edit: impl FnOnce(&mut Value)) {
        let (plural, name) = object.split_once('/').unwrap();
        edit(self.state().objects.get_mut(&(plural.to_owned(), name.to_owned())).unwrap());
    }

    /// Somebody makes an object.
    pub(super) fn put(&self, object: &str, made: Value) {
        let (plural, name) = object.split_once('/').unwrap();
        self.state().objects.insert((plural.to_owned(), name.to_owned()), made);
    }

    /// Somebody removes an object.
    pub(super) fn remove(&self, object: &str) {
        let (plural, name) = object.split_once('/').unwrap();
        self.state().objects.remove(&(plural.to_owned(), name.to_owned())).unwrap();
    }

    /// What the agent knows: all that is there.
    pub(super) fn snapshot(&self, session: &Session) -> Snapshot {
        let state = self.state();
        let live = state.objects.iter().filter_map(|((plural, name), object)| {
            let kind = Kind::ALL.into_iter().find(|kind| kind.plural() == plural)?;
            let uid = object["metadata"]["uid"].as_str()?.to_owned();
            Some(Live { kind, name: name.clone(), uid, object: object.clone() })
        });
        let seen = seen(session);
        Snapshot {
            start: Start::new(&seen),
            seen: Arc::new(seen),
            live: live.collect(),
            is_protected: true,
            unreadable: std::collections::HashSet::new(),
            are_routes_known: true,
            route_version: None,
            wake: Arc::new(Notify::new()),
            is_node_lost: false,
            outages: 0,
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    async fn answer(&self, request: Request<Body>) -> Response<Body> {
        let (parts, body) = request.into_parts();
        if self.state().unserved.is_some_and(|prefix| parts.uri.path().starts_with(prefix)) {
            return failure(404, "NotFound");
        }
        let body: Value = serde_json::from_slice(&body.collect().await.unwrap().to_bytes()).unwrap_or_default();
        let path: Vec<&str> = parts.uri.path().split('/').skip_while(|part| *part != "namespaces").skip(2).collect();
        let name = path.get(1).copied().or(body["metadata"]["name"].as_str()).unwrap_or_default();
        let is_held = self.state().held.contains(&format!("{} {}/{name}", parts.method, path[0]));
        let answer = self.state().do_it(&parts.method, (path[0].to_owned(), name.to_owned()), body);
        self.was_asked.notify_waiters();
        if is_held { std::future::pending().await } else { answer }
    }
}

/// A crew that asks by this client.
pub(super) fn crew(client: Client, stop: Stop) -> Crew {
    let registry = Registry::new();
    let cluster = Cluster::new(client, keys::AGENT, &registry).unwrap();
    let metrics = Metrics::register(&registry, "digest", false).unwrap();
    let (events, sending) = Events::new(cluster.clone(), metrics.clone(), "cofferdam-system", "agent");
    tokio::spawn(sending);
    let prober = Prober::new(1, Metrics::probes(&registry, 1).unwrap());
    let world = Arc::new(World::new(Ground::default()));
    Crew::new(world, cluster, metrics, events, NODE.to_owned(), prober, stop)
}

pub(super) fn seen(session: &Session) -> Seen {
    let (session, owner, progress) = (session.clone(), String::new(), Progress::default());
    Seen { session, owner, is_unwelcome: false, resource_version: 0, progress }
}

impl State {
    fn do_it(&mut self, method: &Method, key: (String, String), body: Value) -> Response<Body> {
        let there = self.objects.get(&key).cloned();
        if method == Method::GET {
            if key.0 == "services" {
                self.reads += 1;
                if let (Some(meanwhile), Some(service)) = (self.meanwhile.take(), self.objects.get_mut(&key)) {
                    self.version += 1;
                    meanwhile(service);
                    service["metadata"]["resourceVersion"] = json!(self.version.to_string());
                }
            }
            return there.map_or_else(|| failure(404, "NotFound"), |object| answer(&object));
        }
        if key.0 == "events" {
            return answer(&body);
        }
        let write = format!("{method} {}/{}", key.0, key.1);
        let is_refused = self.refused.contains(&write);
        self.asked.push(write);
        match (method, there) {
            _ if is_refused => failure(403, "Forbidden"),
            (&Method::POST, Some(_)) => failure(409, "AlreadyExists"),
            (&Method::DELETE, None) => failure(404, "NotFound"),
            (&Method::DELETE, Some(there)) if there["metadata"]["uid"] != body["preconditions"]["uid"] => {
                failure(409, "Conflict")
            }
            (&Method::DELETE, Some(mut there)) => {
                self.objects.remove(&key);
                if there["metadata"]["finalizers"].is_array() {
                    there["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
                    self.objects.insert(key, there);
                }
                answer(&json!({"kind": "Status", "status": "Success"}))
            }
            (_, Some(there)) if is_another(&there, &body) => failure(409, "Conflict"),
            (_, there) => self.put(key, there, body),
        }
    }

    /// An apply of objects whose lists are all one value: what others wrote beside ours stays.
    fn put(&mut self, key: (String, String), there: Option<Value>, body: Value) -> Response<Body> {
        self.version += 1;
        let mut object = there.unwrap_or_else(|| json!({"metadata": {"uid": format!("uid-{}", self.version)}}));
        merge(&mut object, body);
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        if let Some(annotation) = &self.annotated {
            object["metadata"]["annotations"][annotation] = json!("yes");
        }
        self.objects.insert(key, object.clone());
        answer(&object)
    }
}

/// Whether an apply is of another object, or another version of it, than there is.
fn is_another(there: &Value, body: &Value) -> bool {
    ["uid", "resourceVersion"].iter().any(|only| {
        let of = &body["metadata"][only];
        !of.is_null() && *of != there["metadata"][only]
    })
}

fn merge(into: &mut Value, from: Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            from.into_iter().for_each(|(key, part)| merge(into.entry(key).or_insert(Value::Null), part));
        }
        (into, from) => *into = from,
    }
}
