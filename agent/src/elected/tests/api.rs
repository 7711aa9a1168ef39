//! An API server made by hand: objects in memory, versions, preconditions, pages, watches, selectors, metadata alone. Time is
//! tokio's, so that minutes pass at once.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use http::{Method, Request, Response};
use http_body_util::BodyExt;
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, timeout_at};

use super::line::Line;
use crate::testing::{answer, failure};

/// How long a watch waits for something new before it ends.
const WATCH: Duration = Duration::from_mins(4);

/// Plural, namespace, name.
type Key = (String, String, String);

/// Plural, namespace, selectors of labels and of fields.
type Selected = (String, String, Option<String>, Option<String>);

#[derive(Clone, Default)]
pub(super) struct Api(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    version: u64,
    objects: BTreeMap<Key, Value>,
    history: Vec<(u64, &'static str, Key, Value)>,
    writes: Vec<String>,
    refused: Option<&'static str>,
    unwatched: Option<&'static str>,
    /// What somebody has watched, and how often what was listed.
    watched: BTreeSet<Selected>,
    lists: BTreeMap<Selected, usize>,
    slow: Option<(&'static str, Duration)>,
    held: Option<&'static str>,
    /// Writes that are held.
    waiting: usize,
    released: Arc<Notify>,
    /// What happens once a list of that kind with that in its selectors has been answered.
    meanwhile: Option<(&'static str, &'static str, Meanwhile)>,
    /// What was listed with no limit, and what whole.
    unpaged: BTreeSet<String>,
    whole: BTreeMap<String, usize>,
    changed: Arc<Notify>,
}

type Meanwhile = Box<dyn FnOnce(&Api) + Send>;

impl Api {
    pub(super) fn client(&self, line: &Line) -> Client {
        let (api, line) = (self.clone(), line.clone());
        let service = tower::service_fn(move |request: Request<Body>| {
            let (api, line) = (api.clone(), line.clone());
            async move {
                line.sends().await?;
                let is_write = request.method() != Method::GET;
                let answer = api.answer(request).await;
                line.answers(is_write).await;
                Ok::<_, io::Error>(answer)
            }
        });
        Client::new(service, "default")
    }

    /// Puts an object there, as somebody else would.
    pub(super) fn put(&self, plural: &str, object: &Value) {
        let text = |name: &str| object["metadata"][name].as_str().unwrap_or_default().to_owned();
        self.state().store((plural.to_owned(), text("namespace"), text("name")), object.clone());
    }

    pub(super) fn get(&self, plural: &str, namespace: &str, name: &str) -> Option<Value> {
        self.state().objects.get(&(plural.to_owned(), namespace.to_owned(), name.to_owned())).cloned()
    }

    pub(super) fn remove(&self, plural: &str, namespace: &str, name: &str) {
        self.state().remove(&(plural.to_owned(), namespace.to_owned(), name.to_owned()));
    }

    /// What was written through clients since the last time this was asked, but for the Lease: verb, plural and name.
    pub(super) fn writes(&self) -> Vec<String> {
        let mut writes = std::mem::take(&mut self.state().writes);
        writes.retain(|write| !write.contains(" leases/"));
        writes
    }

    /// The kinds that somebody has asked for without saying how many at most.
    pub(super) fn unpaged(&self) -> BTreeSet<String> {
        self.state().unpaged.clone()
    }

    /// The kinds of which somebody has asked for more than metadata, and how often.
    pub(super) fn whole(&self) -> BTreeMap<String, usize> {
        self.state().whole.clone()
    }

    /// How many pages of that kind were listed with that in the selector of labels.
    pub(super) fn lists(&self, plural: &str, selector: &str) -> usize {
        let state = self.state();
        let has = |(kind, _, labels, _): &Selected| {
            kind == plural && labels.as_ref().is_some_and(|labels| labels.contains(selector))
        };
        state.lists.iter().filter(|(selected, _)| has(selected)).map(|(_, count)| count).sum()
    }

    /// Writes of that kind are forbidden from now on.
    pub(super) fn refuse(&self, plural: Option<&'static str>) {
        self.state().refused = plural;
    }

    /// Neither watches nor the lists that they begin with are answered for that kind from now on, so that what is known of it
    /// gets old.
    pub(super) fn blind(&self, plural: &'static str) {
        let mut state = self.state();
        state.unwatched = Some(plural);
        state.changed.notify_waiters();
    }

    fn is_blind(&self, plural: &str) -> bool {
        self.state().unwatched == Some(plural)
    }

    /// Writes of that kind take so long from now on.
    pub(super) fn slow(&self, plural: &'static str, each: Duration) {
        self.state().slow = Some((plural, each));
    }

    /// Writes of that kind wait from now on, until they are released.
    pub(super) fn hold(&self, plural: &'static str) {
        self.state().held = Some(plural);
    }

    /// How many do.
    pub(super) fn waiting(&self) -> usize {
        self.state().waiting
    }

    pub(super) fn release(&self) {
        let mut state = self.state();
        (state.held, state.waiting) = (None, 0);
        state.released.notify_waiters();
    }

    /// Does that, once, as soon as a list of that kind with `selector` in its selectors, of fields before those of labels, has
    /// been answered.
    pub(super) fn meanwhile(
        &self,
        plural: &'static str,
        selector: &'static str,
        then: impl FnOnce(&Self) + Send + 'static,
    ) {
        self.state().meanwhile = Some((plural, selector, Box::new(then)));
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    async fn answer(&self, request: Request<Body>) -> Response<Body> {
        let (parts, body) = request.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        let body: Value = serde_json::from_slice(&body).unwrap_or(Value::Null);
        let query: BTreeMap<String, String> =
            form_urlencoded::parse(parts.uri.query().unwrap_or_default().as_bytes()).into_owned().collect();
        let mut segments: Vec<_> = parts.uri.path().split('/').skip(1).collect();
        // "api" and a version, or "apis", a group and a version.
        segments.drain(..if segments[0] == "api" { 2 } else { 3 });
        let namespace = if segments[0] == "namespaces" && segments.len() > 2 {
            segments.drain(..2).nth(1).unwrap().to_owned()
        } else {
            String::new()
        };
        let plural = segments[0];
        let is_metadata =
            parts.headers.get("accept").is_some_and(|accept| accept.to_str().unwrap().contains("Metadata"));
        let shown = if is_metadata { metadata } else { Value::clone };
        if parts.method == Method::GET && !is_metadata {
            *self.state().whole.entry(plural.to_owned()).or_default() += 1;
        }
        if plural == "httproutes" {
            return failure(404, "NotFound");
        }
        let Some(name) = segments.get(1).map(|name| (*name).to_owned()) else {
            if parts.method == Method::POST {
                return self.write("POST", (plural.to_owned(), namespace, String::new()), &body, false);
            }
            let selector = |of: &str| query.get(of).cloned();
            let selected = (plural.to_owned(), namespace.clone(), selector("labelSelector"), selector("fieldSelector"));
            if query.contains_key("watch") {
                self.state().watched.insert(selected);
                return self.watch(plural, &query, shown).await;
            }
            if self.is_blind(plural) && self.state().watched.contains(&selected) {
                return failure(503, "ServiceUnavailable");
            }
            *self.state().lists.entry(selected).or_default() += 1;
            let answer = self.state().list(plural, &namespace, &query, shown);
            let of_fields_and_labels: Vec<_> =
                query.iter().filter(|(key, _)| key.ends_with("Selector")).map(|(_, value)| value.as_str()).collect();
            let selects = |text: &str| of_fields_and_labels.join(",").contains(text);
            let then = self.state().meanwhile.take_if(|(of, selector, _)| *of == plural && selects(selector));
            if let Some((.., then)) = then {
                then(self);
            }
            return answer;
        };
        if parts.method != Method::GET {
            self.let_through(plural).await;
        }
        let key = (plural.to_owned(), namespace, name);
        match parts.method {
            Method::GET => {
                self.state().objects.get(&key).map_or_else(|| failure(404, "NotFound"), |object| answer(&shown(object)))
            }
            Method::PUT => self.write("PUT", key, &body, false),
            Method::PATCH => {
                let is_apply = parts.headers["content-type"].to_str().unwrap().contains("apply");
                self.write(if is_apply { "APPLY" } else { "PATCH" }, key, &body, is_apply)
            }
            _ => self.write("DELETE", key, &body["preconditions"], false),
        }
    }

    /// Waits where writes of that kind are slow, or held.
    async fn let_through(&self, plural: &str) {
        let slow = self.state().slow.filter(|(kind, _)| *kind == plural);
        if let Some((_, each)) = slow {
            sleep(each).await;
        }
        let released = Arc::clone(&self.state().released);
        let released = released.notified();
        {
            let mut state = self.state();
            if state.held != Some(plural) {
                return;
            }
            state.waiting += 1;
        }
        released.await;
    }

    fn write(&self, verb: &str, mut key: Key, body: &Value, creates: bool) -> Response<Body> {
        let mut state = self.state();
        if key.2.is_empty() {
            key.2 = body["metadata"]["name"].as_str().unwrap_or("generated").to_owned();
        }
        state.writes.push(format!("{verb} {}/{}", key.0, key.2));
        if state.refused == Some(key.0.as_str()) {
            return failure(403, "Forbidden");
        }
        let before = state.objects.get(&key).cloned();
        let preconditions = if verb == "DELETE" { body } else { &body["metadata"] };
        let is_as_expected = |name: &str| match (&preconditions[name], &before) {
            (Value::Null, _) | (_, None) => true,
            (expected, Some(before)) => before["metadata"][name] == *expected,
        };
        match (verb, &before) {
            ("POST", Some(_)) => return failure(409, "AlreadyExists"),
            ("PUT" | "PATCH" | "DELETE", None) => return failure(404, "NotFound"),
            _ if !is_as_expected("uid") || !is_as_expected("resourceVersion") => return failure(409, "Conflict"),
            ("DELETE", Some(_)) => {
                state.remove(&key);
                return answer(&json!({"kind": "Status", "status": "Success"}));
            }
            _ => {}
        }
        let mut after = before.clone().filter(|_| verb == "PATCH" || creates).unwrap_or_else(|| body.clone());
        if verb == "PATCH" {
            merge_conditions(&mut after, body);
        } else if creates {
            let metadata = after["metadata"].clone();
            after = body.clone();
            after["metadata"] = metadata;
            for part in ["labels", "annotations"] {
                if let (Value::Object(into), Value::Object(from)) =
                    (&mut after["metadata"][part], &body["metadata"][part])
                {
                    into.extend(from.clone());
                }
            }
        }
        if before.as_ref() != Some(&after) {
            state.store(key.clone(), after);
        }
        answer(&state.objects[&key])
    }

    async fn watch(&self, plural: &str, query: &BTreeMap<String, String>, shown: Shown) -> Response<Body> {
        let from: u64 = query["resourceVersion"].parse().unwrap();
        let end = Instant::now() + WATCH;
        let notify = Arc::clone(&self.state().changed);
        loop {
            let changed = notify.notified();
            if self.is_blind(plural) {
                return failure(503, "ServiceUnavailable");
            }
            let events = self.state().since(from, plural, query, shown);
            if !events.is_empty() || timeout_at(end, changed).await.is_err() {
                return Response::new(Body::from(events.into_bytes()));
            }
        }
    }
}

impl State {
    fn store(&mut self, key: Key, mut object: Value) {
        self.version += 1;
        object["metadata"]["resourceVersion"] = self.version.to_string().into();
        object["metadata"]["namespace"] = key.1.clone().into();
        if object["metadata"]["uid"].is_null() {
            object["metadata"]["uid"] = format!("uid-{}", self.version).into();
        }
        let what = if self.objects.contains_key(&key) { "MODIFIED" } else { "ADDED" };
        self.history.push((self.version, what, key.clone(), object.clone()));
        self.objects.insert(key, object);
        self.changed.notify_waiters();
    }

    fn remove(&mut self, key: &Key) {
        let mut object = self.objects.remove(key).unwrap();
        self.version += 1;
        object["metadata"]["resourceVersion"] = self.version.to_string().into();
        self.history.push((self.version, "DELETED", key.clone(), object));
        self.changed.notify_waiters();
    }

    fn list(
        &mut self,
        plural: &str,
        namespace: &str,
        query: &BTreeMap<String, String>,
        shown: Shown,
    ) -> Response<Body> {
        let number = |name: &str| query.get(name).and_then(|number| number.parse::<usize>().ok());
        let (from, limit) = (number("continue").unwrap_or(0), number("limit").unwrap_or(usize::MAX));
        if limit == usize::MAX {
            self.unpaged.insert(plural.to_owned());
        }
        let mut rest = self
            .objects
            .iter()
            .filter(|(key, object)| key.0 == plural && selects(query, object))
            .filter(|(key, _)| namespace.is_empty() || key.1 == namespace)
            .map(|(_, object)| shown(object))
            .skip(from);
        let items: Vec<_> = rest.by_ref().take(limit).collect();
        let next = rest.next().map(|_| (from + limit).to_string());
        answer(&json!({
            "kind": "List", "apiVersion": "v1",
            "metadata": {"resourceVersion": self.version.to_string(), "continue": next},
            "items": items,
        }))
    }

    fn since(&self, from: u64, plural: &str, query: &BTreeMap<String, String>, shown: Shown) -> String {
        self.history
            .iter()
            .filter(|(version, _, key, object)| *version > from && key.0 == plural && selects(query, object))
            .map(|(_, what, _, object)| json!({"type": what, "object": shown(object)}).to_string() + "\n")
            .collect()
    }
}

/// How much of an object is answered.
type Shown = fn(&Value) -> Value;

fn metadata(object: &Value) -> Value {
    json!({"metadata": object["metadata"]})
}

/// As the API server's selectors, of which these are used: `a=b`, `a`, joined by commas.
fn selects(query: &BTreeMap<String, String>, object: &Value) -> bool {
    let terms = |name: &str| query.get(name).cloned().unwrap_or_default();
    let labels = terms("labelSelector").split(',').filter(|term| !term.is_empty()).all(|term| {
        let labels = &object["metadata"]["labels"];
        match term.split_once('=') {
            Some((key, value)) => labels[key] == value,
            None => labels[term].is_string(),
        }
    });
    let fields = terms("fieldSelector").split(',').filter(|term| !term.is_empty()).all(|term| {
        let (path, value) = term.split_once('=').unwrap();
        path.split('.').fold(object, |at, name| &at[name]) == value
    });
    labels && fields
}

fn merge_conditions(into: &mut Value, patch: &Value) {
    if !into["status"]["conditions"].is_array() {
        into["status"]["conditions"] = json!([]);
    }
    let conditions = into["status"]["conditions"].as_array_mut().unwrap();
    for new in patch["status"]["conditions"].as_array().unwrap() {
        match conditions.iter_mut().find(|old| old["type"] == new["type"]) {
            Some(old) => old.as_object_mut().unwrap().extend(new.as_object().unwrap().clone()),
            None => conditions.push(new.clone()),
        }
    }
}
