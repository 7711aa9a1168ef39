//! The API server, asked for objects of any kind: raw JSON, and errors by class.
//!
//! Objects stay JSON: a type that does not know a field of a newer API, or a filter of another vendor, would stop a whole
//! list (case B107).

use std::time::Duration;

use futures_util::{Stream, StreamExt as _};
use http::header::{ACCEPT, HeaderValue};
use kube::Client;
use kube::core::params::{DeleteParams, GetParams, Patch, PatchParams, PostParams, Preconditions, WatchParams};
use kube::core::{Request, WatchEvent};
use prometheus::{IntCounterVec, Opts, Registry};
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::Value;

use crate::Bounded;

mod client;
mod failed;
mod pages;
mod resource;

pub use client::client;
pub use failed::{Class, Failed, Refusal};
pub use pages::{Page, Pages};
pub use resource::{Resource, Selection};

/// An answer that is not a watch may take so long.
const PATIENCE: Duration = Duration::from_secs(15);

/// Asks for an object's metadata alone (Kubernetes: alternate representations of resources).
const METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";

/// A request, if there can be such a one.
type Built = Result<http::Request<Vec<u8>>, kube::core::request::Error>;

/// The way to the API server. Clones share it.
#[derive(Clone)]
pub struct Cluster {
    client: Client,
    manager: &'static str,
    errors: IntCounterVec,
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
        self.ask(resource, Request::new(resource.path(namespace)).get(name, &GetParams::default())).await
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

    /// Whether an object could be made; none is (Kubernetes: dry run). Gives it as it would be.
    ///
    /// # Errors
    /// With what making it would fail by.
    pub async fn try_out(&self, resource: &Resource, namespace: &str, object: &Value) -> Result<Value, Failed> {
        let params = PostParams { dry_run: true, field_manager: Some(self.manager.to_owned()) };
        self.ask(
            resource,
            Request::new(resource.path(Some(namespace))).create(&params, object.to_string().into_bytes()),
        )
        .await
    }

    /// Asks the API server for its judgement, such as a `TokenReview`: of what is sent nothing is kept, and the answer has a
    /// status. What is sent may be secret, so a failure says its code and reason alone.
    ///
    /// # Errors
    /// When the API server gives none.
    pub async fn review(&self, resource: &Resource, review: &Value) -> Result<Value, Failed> {
        let request = Request::new(resource.path(None)).create(&PostParams::default(), review.to_string().into_bytes());
        self.request(request).await.map_err(Failed::without_message)
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

    /// Changes what `patch` names of an object, by a merge patch (RFC 7396).
    ///
    /// # Errors
    /// Of class [`Class::NotFound`] where it is not there.
    pub async fn merge(
        &self,
        resource: &Resource,
        namespace: &str,
        name: &str,
        patch: &Value,
    ) -> Result<Value, Failed> {
        let params = PatchParams { field_manager: Some(self.manager.to_owned()), ..PatchParams::default() };
        self.ask(resource, Request::new(resource.path(Some(namespace))).patch(name, &params, &Patch::Merge(patch)))
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
        self.delete_by(resource, namespace, name, &DeleteParams::background().preconditions(only)).await
    }

    /// Deletes the pod of that name; its processes get so many seconds to end. One that is gone is a success.
    ///
    /// # Errors
    /// When the API server refuses.
    pub async fn delete_pod(&self, namespace: &str, name: &str, grace_seconds: u32) -> Result<(), Failed> {
        let params = DeleteParams::background().grace_period(grace_seconds);
        match self.delete_by(&Resource::core("pods"), namespace, name, &params).await {
            Err(failed) if failed.class == Class::NotFound => Ok(()),
            done => done,
        }
    }

    async fn delete_by(
        &self,
        resource: &Resource,
        namespace: &str,
        name: &str,
        params: &DeleteParams,
    ) -> Result<(), Failed> {
        let request = Request::new(resource.path(Some(namespace))).delete(name, params);
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
        if !resource.is_bounded() {
            return self.request(request).await;
        }
        let request = request.map(|mut request| {
            if resource.is_metadata() {
                request.headers_mut().insert(ACCEPT, HeaderValue::from_static(METADATA));
            }
            request
        });
        self.request(request).await.map(|Bounded(object)| object)
    }

    async fn request<T: DeserializeOwned>(&self, request: Built) -> Result<T, Failed> {
        let request = request.map_err(|error| self.failed(&kube::Error::BuildRequest(error)))?;
        // The library's own reading would write what it cannot read into the log, and with it what a Secret holds.
        let text = self.patiently(self.client.request_text(request)).await?;
        serde_json::from_str(&text).map_err(|error| self.count(Failed::unreadable(&error)))
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

#[cfg(test)]
mod tests;
