//! Which pod asks: its projected ServiceAccount token, bound to the audience of bodies, is checked by a `TokenReview`.

use std::pin::Pin;
use std::sync::Arc;

use cofferdam_kubernetes::{Cluster, Failed};

use crate::cluster::{User, user_of};

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
    Unavailable(Failed),
}

/// Says which pod a token is of.
pub type Identify = Arc<dyn Fn(String) -> Identifying + Send + Sync>;

/// That which pod it is is being found out.
pub type Identifying = Pin<Box<dyn Future<Output = Result<PodIdentity, Unidentified>> + Send>>;

/// Asks the API server, with tokens for `audience`.
#[must_use]
pub fn token_review(cluster: Cluster, audience: String) -> Identify {
    Arc::new(move |token| {
        let (cluster, audience) = (cluster.clone(), audience.clone());
        Box::pin(async move {
            // Also when it is we who may not ask: another attempt may find that repaired, and the log says it.
            let user = user_of(&cluster, &token, &audience).await.map_err(Unidentified::Unavailable)?;
            user.as_ref().and_then(pod_of).ok_or(Unidentified::Refused)
        })
    })
}

/// The pod whose token somebody has.
fn pod_of(user: &User) -> Option<PodIdentity> {
    let (namespace, _) = user.name()?.strip_prefix(SERVICE_ACCOUNT)?.split_once(':')?;
    Some(PodIdentity {
        namespace: namespace.to_owned(),
        name: user.extra(POD_NAME)?.to_owned(),
        uid: user.extra(POD_UID)?.to_owned(),
    })
}

#[cfg(test)]
mod tests;
