//! Which pod asks: its projected ServiceAccount token, bound to the audience of bodies, is checked by a `TokenReview`.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use http::header::CONTENT_TYPE;
use serde_json::{Value, json};

/// An answer may take so long; the init container tries again.
const PATIENCE: Duration = Duration::from_secs(5);

const TOKEN_REVIEWS: &str = "/apis/authentication.k8s.io/v1/tokenreviews";

/// What the API server puts into every token that is bound to a pod (Kubernetes: bound ServiceAccount tokens).
const POD_NAME: &str = "authentication.kubernetes.io/pod-name";
const POD_UID: &str = "authentication.kubernetes.io/pod-uid";

/// What the name of a ServiceAccount's user begins with, before namespace and name.
const SERVICE_ACCOUNT: &str = "system:serviceaccount:";

/// A pod, as the API server says it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodIdentity {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its uid.
    pub uid: String,
}

/// Why it is not known which pod asks.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unidentified {
    /// The token is no pod's, or for another audience.
    #[error("the API server does not know the token as a pod's, for this audience")]
    Refused,
    /// The API server cannot be asked, or not now.
    #[error("the API server does not review the token: {0}")]
    Unavailable(String),
}

/// Says which pod a token is of.
pub type Identify = Arc<dyn Fn(String) -> Identifying + Send + Sync>;

/// That which pod it is is being found out.
pub type Identifying = Pin<Box<dyn Future<Output = Result<PodIdentity, Unidentified>> + Send>>;

/// Asks the API server, with tokens for `audience`.
#[must_use]
pub fn token_review(client: kube::Client, audience: String) -> Identify {
    Arc::new(move |token| {
        let (client, audience) = (client.clone(), audience.clone());
        Box::pin(async move {
            let review = json!({
                "apiVersion": "authentication.k8s.io/v1",
                "kind": "TokenReview",
                "spec": { "token": token, "audiences": [audience] },
            });
            let request = http::Request::post(TOKEN_REVIEWS)
                .header(CONTENT_TYPE, "application/json")
                .body(review.to_string().into_bytes())
                .map_err(|error| Unidentified::Unavailable(error.to_string()))?;
            let answer = match tokio::time::timeout(PATIENCE, client.request::<Value>(request)).await {
                Ok(Ok(answer)) => answer,
                // Also when it is we who may not ask: another attempt may find that repaired, and the log says it.
                Ok(Err(error)) => return Err(Unidentified::Unavailable(why(&error))),
                Err(_) => return Err(Unidentified::Unavailable("no answer in time".to_owned())),
            };
            reviewed(&answer, &audience).ok_or(Unidentified::Refused)
        })
    })
}

/// What went wrong, without what the API server says of the request: an error of reading quotes the answer.
fn why(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) => format!("{} {}", status.code, status.reason),
        kube::Error::SerdeError(_) => "an answer that cannot be read".to_owned(),
        error => cofferdam_runtime::errors::with_causes(error),
    }
}

/// The pod of an answer.
fn reviewed(answer: &Value, audience: &str) -> Option<PodIdentity> {
    let status = answer.get("status")?;
    if status.get("authenticated")?.as_bool() != Some(true) {
        return None;
    }
    // An API server that knows nothing of audiences says yes to tokens for its own, and names none.
    if !status.get("audiences")?.as_array()?.iter().any(|known| known == audience) {
        return None;
    }
    let user = status.get("user")?;
    let (namespace, _) = user.get("username")?.as_str()?.strip_prefix(SERVICE_ACCOUNT)?.split_once(':')?;
    let extra = |key: &str| match user.get("extra")?.get(key)?.as_array()?.as_slice() {
        [Value::String(value)] if !value.is_empty() => Some(value.clone()),
        _ => None,
    };
    Some(PodIdentity { namespace: namespace.to_owned(), name: extra(POD_NAME)?, uid: extra(POD_UID)? })
}

#[cfg(test)]
mod tests;
