//! A session is ended, or forgotten.

use cofferdam_kubernetes::{Class, Failed};
use cofferdam_model::session::SessionId;
use k8s_openapi::jiff::Timestamp;
use kube::core::params::Preconditions;

use super::marks::Mark;
use super::pod::pod_name;
use super::record::secret_name;
use super::secret;
use crate::cluster::Home;

/// A program that is ended gets so many seconds, so that whoever watches sees the pod go after it was marked.
pub const GRACE_SECONDS: u32 = 2;

/// Stops a session that has not ended. One that nobody knows is a success.
///
/// # Errors
/// As [`end`]'s.
pub async fn stop(home: &Home, id: &SessionId, now: Timestamp) -> Result<(), Failed> {
    end(home, id, &Mark::Stopped { at: now }).await
}

/// Ends a session that has not ended: marks its pod, so that its end is told as what it is; writes the same down on its
/// Secret, where it stays when the pod is gone, and keeps one from being made; and deletes the pod.
///
/// # Errors
/// When the API server fails or refuses. What was done by then is not undone, and the same call goes on from there.
pub async fn end(home: &Home, id: &SessionId, mark: &Mark) -> Result<(), Failed> {
    found(home.cluster.merge(&Home::pods(), &home.namespace, &pod_name(id), &mark.on_pod()).await)?;
    found(secret::mark(home, id, mark).await)?;
    home.cluster.delete_pod(&home.namespace, &pod_name(id), GRACE_SECONDS).await
}

/// Takes away all that there is of a session.
///
/// # Errors
/// When the API server fails or refuses; the same call goes on from there.
pub async fn forget(home: &Home, id: &SessionId) -> Result<(), Failed> {
    home.cluster.delete_pod(&home.namespace, &pod_name(id), GRACE_SECONDS).await?;
    let (name, any) = (secret_name(id), Preconditions::default());
    found(home.cluster.delete_if(&Home::secrets(), &home.namespace, &name, any).await)
}

/// What is not there is as good as done.
fn found<T>(done: Result<T, Failed>) -> Result<(), Failed> {
    match done {
        Err(failed) if failed.class == Class::NotFound => Ok(()),
        done => done.map(drop),
    }
}
