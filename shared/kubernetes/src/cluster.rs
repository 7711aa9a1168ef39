//! The API server, asked for objects of any kind: raw JSON, and errors by class.
//!
//! Objects stay JSON: a type that does not know a field of a newer API, or a filter of another vendor, would stop a whole
//! list (case B107).

use std::time::Duration;

use futures_util::{Stream, StreamExt as _};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use kube::client::{Body, ClientBuilder, ConfigExt};
use kube::core::params::{DeleteParams, Patch, PatchParams, PostParams, Preconditions, WatchParams};
use kube::core::{Request, WatchEvent};
use kube::{Client, Config};
use prometheus::{IntCounterVec, Opts, Registry};
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::Value;
use tower::{BoxError, ServiceExt as _};

use crate::Bounded;

mod failed;
mod pages;

pub use failed::{Class, Failed, Refusal};
pub use pages::{Page, Pages};

/// An answer that is not a watch may take so long.
const PATIENCE: Duration = Duration::from_secs(15);

/// A kind of objects, as the API server's paths name it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resource {
    /// In lower case and plural: `services`.
    pub name: &'static str,
    /// `/api/v1` or `/apis/<group>/<version>`.
    pub prefix: String,
    reading: Reading,
}

/// How much of each object is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reading {
    Whole,
    /// Each is small: of one that is not an [`outline`](crate::outline) is read.
    Small,
    /// Its metadata, and of that as of what is small.
    Metadata,
}

impl Resource {
    /// Of the core group.
    #[must_use]
    pub fn core(name: &'static str) -> Self {
        Self { name, prefix: "/api/v1".to_owned(), reading: Reading::Whole }
    }

    /// Of a group and version, such as `discovery.k8s.io/v1`.
    #[must_use]
    pub fn of(name: &'static str, group_version: &str) -> Self {
        Self { name, prefix: format!("/apis/{group_version}"), reading: Reading::Whole }
    }

    /// Of objects that are small unless somebody made them large.
    #[must_use]
    pub fn small(self) -> Self {
        Self { reading: Reading::Small, ..self }
    }

    /// Of whose objects the metadata alone is sent and read.
    #[must_use]
    pub fn metadata(self) -> Self {
        Self { reading: Reading::Metadata, ..self }
    }

    fn is_bounded(&self) -> bool {
        self.reading != Reading::Whole
    }

    fn is_metadata(&self) -> bool {
        self.reading == Reading::Metadata
    }

    fn path(&self, namespace: Option<&str>) -> String {
        match namespace {
            Some(namespace) => format!("{}/namespaces/{namespace}/{}", self.prefix, self.name),
            None => format!("{}/{}", self.prefix, self.name),
        }
    }
}

/// A request, if there can be such a one.
type Built = Result<http::Request<Vec<u8>>, kube::core::request::Error>;

/// The way to the API server. Clones share it.
#[derive(Clone)]
pub struct Cluster {
    client: Client,
    manager: &'static str,
    errors: IntCounterVec,
}

/// What selects some objects of a kind.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// In one namespace, or in all.
    pub namespace: Option<String>,
    /// A label selector; empty for all.
    pub labels: String,
    /// A field selector; empty for all.
    pub fields: String,
}

/// A client that does not wait before it sends a small request's last packet, as the library's own would.
///
/// # Errors
/// When the configuration's certificates or token cannot be used.
pub fn client(config: &Config) -> Result<Client, kube::Error> {
    let mut connector = HttpConnector::new();
    connector.enforce_http(false);
    connector.set_nodelay(true);
    connector.set_connect_timeout(config.connect_timeout);
    connector.set_keepalive(Some(Duration::from_secs(30)));
    let https = config.rustls_https_connector_with_connector(connector)?;
    let service = hyper_util::client::legacy::Client::builder(TokioExecutor::new()).build::<_, Body>(https);
    let service = service.map_err(BoxError::from);
    let namespace = config.default_namespace.clone();
    let builder = ClientBuilder::new(service, namespace).with_layer(&config.base_uri_layer());
    Ok(match config.auth_layer()? {
        Some(auth) => builder.with_layer(&auth).build(),
        None => builder.build(),
    })
}

impl Cluster {
    /// Speaks through `client`, and counts what goes wrong. What is written is written as `manager`, by which Kubernetes tells
    /// whose each field is (field manager).
    ///
    /// # Errors
    /// When the counter is registered already.
    pub fn new(client: Client, manager: &'static str, registry: &Registry) -> prometheus::Result<Self> {
        let errors = IntCounterVec::new(
            Opts::new("api_errors_total", "Requests to the API server that failed, by what kept them from success."),
            &["class"],
        )?;
        for class in Class::ALL {
            errors.with_label_values(&[class.as_str()]);
        }
        registry.register(Box::new(errors.clone()))?;
        Ok(Self { client, manager, errors })
    }

    /// The client itself.
    #[must_use]
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// One object.
    ///
    /// # Errors
    /// Of class [`Class::NotFound`] where it is not there.
    pub async fn get(&self, resource: &Resource, namespace: Option<&str>, name: &str) -> Result<Value, Failed> {
        let (request, params) = (Request::new(resource.path(namespace)), kube::api::GetParams::default());
        let request =
            if resource.is_metadata() { request.get_metadata(name, &params) } else { request.get(name, &params) };
        self.ask(resource, request).await
    }

    /// What happens to objects of a kind from a version on.
    ///
    /// # Errors
    /// When the watch does not begin.
    pub async fn watch(
        &self,
        resource: &Resource,
        selection: &Selection,
        from: &str,
        seconds: u32,
    ) -> Result<impl Stream<Item = Result<WatchEvent<Value>, Failed>> + Send + use<>, Failed> {
        let mut params = WatchParams::default().timeout(seconds);
        if !selection.labels.is_empty() {
            params = params.labels(&selection.labels);
        }
        if !selection.fields.is_empty() {
            params = params.fields(&selection.fields);
        }
        let request = Request::new(resource.path(selection.namespace.as_deref()));
        let request =
            if resource.is_metadata() { request.watch_metadata(&params, from) } else { request.watch(&params, from) };
        let request = request.map_err(|error| self.failed(&kube::Error::BuildRequest(error)))?;
        let itself = self.clone();
        let events = if resource.is_bounded() {
            let events = self.patiently(self.client.request_events::<Bounded>(request)).await?;
            events.map(|event| event.map(whole)).left_stream()
        } else {
            self.patiently(self.client.request_events::<Value>(request)).await?.right_stream()
        };
        Ok(events.map(move |event| event.map_err(|error| itself.failed(&error))))
    }

    /// Makes an object that must not be there yet.
    ///
    /// # Errors
    /// Of class [`Class::AlreadyExists`] where it is.
    pub async fn create(&self, resource: &Resource, namespace: &str, object: &Value) -> Result<Value, Failed> {
        let params = PostParams { field_manager: Some(self.manager.to_owned()), ..PostParams::default() };
        self.ask(
            resource,
            Request::new(resource.path(Some(namespace))).create(&params, object.to_string().into_bytes()),
        )
        .await
    }

    /// Makes of an object what it says, whoever else wrote it (Kubernetes: server-side apply).
    ///
    /// # Errors
    /// When the API server refuses.
    pub async fn apply(
        &self,
        resource: &Resource,
        namespace: &str,
        name: &str,
        object: &Value,
    ) -> Result<Value, Failed> {
        let params = PatchParams::apply(self.manager).force();
        self.ask(resource, Request::new(resource.path(Some(namespace))).patch(name, &params, &Patch::Apply(object)))
            .await
    }

    /// Changes a pod's status, and its annotations, by a strategic merge patch.
    ///
    /// # Errors
    /// When the API server refuses.
    pub async fn patch_pod_status(&self, namespace: &str, name: &str, patch: &Value) -> Result<Value, Failed> {
        let params = PatchParams { field_manager: Some(self.manager.to_owned()), ..PatchParams::default() };
        let request = Request::new(Resource::core("pods").path(Some(namespace)));
        self.request(request.patch_subresource("status", name, &params, &Patch::Strategic(patch))).await
    }

    /// Deletes that very object. One that is gone, or another one of its name, is a success: it is not there.
    ///
    /// # Errors
    /// When the API server refuses.
    pub async fn delete(&self, resource: &Resource, namespace: &str, name: &str, uid: &str) -> Result<(), Failed> {
        let only = Preconditions { uid: Some(uid.to_owned()), resource_version: None };
        match self.delete_if(resource, namespace, name, only).await {
            Err(failed) if matches!(failed.class, Class::NotFound | Class::Conflict) => Ok(()),
            done => done,
        }
    }

    /// Deletes an object of which that is true.
    ///
    /// # Errors
    /// Of class [`Class::Conflict`] where it is not.
    pub async fn delete_if(
        &self,
        resource: &Resource,
        namespace: &str,
        name: &str,
        only: Preconditions,
    ) -> Result<(), Failed> {
        let params = DeleteParams::background().preconditions(only);
        let request = Request::new(resource.path(Some(namespace))).delete(name, &params);
        self.request(request).await.map(|IgnoredAny| ())
    }

    /// The versions of a group that are served, the preferred one first; none where the group is not.
    ///
    /// # Errors
    /// When it cannot be asked for.
    pub async fn versions(&self, group: &str, resource: &str) -> Result<Vec<String>, Failed> {
        let groups = self.patiently(self.client.list_api_groups()).await?;
        let Some(found) = groups.groups.into_iter().find(|found| found.name == group) else { return Ok(Vec::new()) };
        let preferred = found.preferred_version.map(|version| version.version);
        let mut versions: Vec<String> = found.versions.into_iter().map(|version| version.version).collect();
        versions.sort_by_key(|version| Some(version) != preferred.as_ref());
        let mut serving = Vec::new();
        for version in versions {
            let group_version = format!("{group}/{version}");
            let resources = self.client.list_api_group_resources(&group_version);
            if self.patiently(resources).await?.resources.iter().any(|served| served.name == resource) {
                serving.push(version);
            }
        }
        Ok(serving)
    }

    /// Counts what kept a request from success, also one of somebody else who speaks to the same API server.
    pub fn note(&self, class: Class) {
        // What is asked to find out whether something is there has not failed.
        if !matches!(class, Class::NotFound | Class::AlreadyExists | Class::Expired) {
            self.errors.with_label_values(&[class.as_str()]).inc();
        }
    }

    /// Counts a list that took so long that its pages were too old: unlike a watch that is too old, nothing heals it.
    fn list_expired(&self) {
        self.errors.with_label_values(&[Class::Expired.as_str()]).inc();
    }

    async fn ask(&self, resource: &Resource, request: Built) -> Result<Value, Failed> {
        if resource.is_bounded() {
            return self.request(request).await.map(|Bounded(object)| object);
        }
        self.request(request).await
    }

    async fn request<T: DeserializeOwned>(&self, request: Built) -> Result<T, Failed> {
        let request = request.map_err(|error| self.failed(&kube::Error::BuildRequest(error)))?;
        self.patiently(self.client.request(request)).await
    }

    async fn patiently<T>(&self, asking: impl Future<Output = Result<T, kube::Error>>) -> Result<T, Failed> {
        match tokio::time::timeout(PATIENCE, asking).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(error)) => Err(self.failed(&error)),
            Err(_) => Err(self.count(Failed::timed_out())),
        }
    }

    fn failed(&self, error: &kube::Error) -> Failed {
        self.count(Failed::from(error))
    }

    fn count(&self, failed: Failed) -> Failed {
        self.note(failed.class);
        failed
    }
}

/// An event with what was read of its object.
fn whole(event: WatchEvent<Bounded>) -> WatchEvent<Value> {
    match event {
        WatchEvent::Added(Bounded(object)) => WatchEvent::Added(object),
        WatchEvent::Modified(Bounded(object)) => WatchEvent::Modified(object),
        WatchEvent::Deleted(Bounded(object)) => WatchEvent::Deleted(object),
        WatchEvent::Bookmark(bookmark) => WatchEvent::Bookmark(bookmark),
        WatchEvent::Error(status) => WatchEvent::Error(status),
    }
}

impl std::fmt::Debug for Cluster {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cluster").finish_non_exhaustive()
    }
}
