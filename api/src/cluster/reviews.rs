//! What the API server says of callers: whose a token is (Kubernetes: `TokenReview`), and what somebody may do
//! (`SubjectAccessReview`). Only a plain yes is one.

use std::time::Duration;

use cofferdam_kubernetes::{Cluster, Failed, Resource};
use serde_json::{Map, Value, json};

/// An answer may take so long: somebody waits for it, and may ask again.
const PATIENCE: Duration = Duration::from_secs(5);

/// Somebody whom the API server knows, in its own words: the `user` of a `TokenReview`.
#[derive(Clone, PartialEq, Eq)]
pub struct User(Value);

/// Something that is done to pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PodAccess {
    /// As roles name it.
    pub verb: &'static str,
    /// Of pods; empty for the pods themselves.
    pub subresource: &'static str,
}

impl User {
    /// Its name, as roles are bound to it.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.0["username"].as_str()
    }

    /// The one value that the authenticator noted under that key; none where there are more.
    #[must_use]
    pub fn extra(&self, key: &str) -> Option<&str> {
        match self.0["extra"][key].as_array()?.as_slice() {
            [Value::String(value)] if !value.is_empty() => Some(value),
            _ => None,
        }
    }
}

/// Who has the token; none where it is nobody's, or for another audience.
///
/// # Errors
/// When the API server does not say it. Nothing in it is of the token.
pub async fn user_of(cluster: &Cluster, token: &str, audience: &str) -> Result<Option<User>, Failed> {
    let review = json!({
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenReview",
        "spec": {"token": token, "audiences": [audience]},
    });
    let answer = asked(cluster, &Resource::of("tokenreviews", "authentication.k8s.io/v1"), &review).await?;
    Ok(authenticated(&answer["status"], audience))
}

/// Whether somebody may do that to all pods of a namespace.
///
/// # Errors
/// When the API server does not say it.
pub async fn is_allowed(cluster: &Cluster, user: &User, namespace: &str, access: PodAccess) -> Result<bool, Failed> {
    let PodAccess { verb, subresource } = access;
    let mut spec = Map::new();
    for (theirs, ours) in [("username", "user"), ("uid", "uid"), ("groups", "groups"), ("extra", "extra")] {
        if let Some(value) = user.0.get(theirs) {
            spec.insert(ours.to_owned(), value.clone());
        }
    }
    let mut attributes =
        json!({"namespace": namespace, "verb": verb, "group": "", "version": "v1", "resource": "pods"});
    if !subresource.is_empty() {
        attributes["subresource"] = subresource.into();
    }
    spec.insert("resourceAttributes".to_owned(), attributes);
    let review = json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec});
    let answer = asked(cluster, &Resource::of("subjectaccessreviews", "authorization.k8s.io/v1"), &review).await?;
    let status = &answer["status"];
    Ok(status["allowed"] == true && status["denied"] != true)
}

async fn asked(cluster: &Cluster, resource: &Resource, review: &Value) -> Result<Value, Failed> {
    tokio::time::timeout(PATIENCE, cluster.review(resource, review)).await.unwrap_or_else(|_| Err(Failed::timed_out()))
}

fn authenticated(status: &Value, audience: &str) -> Option<User> {
    // An API server that knows nothing of audiences says yes to tokens for its own, and names none.
    let is_ours = status["audiences"].as_array().is_some_and(|known| known.iter().any(|known| known == audience));
    let user = &status["user"];
    let is_somebody = user["username"].as_str().is_some_and(|name| !name.is_empty());
    (status["authenticated"] == true && is_ours && is_somebody).then(|| User(user.clone()))
}

/// It names a person or a program.
impl std::fmt::Debug for User {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("User")
    }
}

#[cfg(test)]
mod tests;
