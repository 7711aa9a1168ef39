//! The Secret of a session, changed by what it is now.

use cofferdam_kubernetes::{Class, Failed, json};
use cofferdam_model::session::SessionId;
use serde_json::{Value, json};

use super::marks::Mark;
use super::record::secret_name;
use crate::cluster::Home;

/// Whoever else writes it is one of us: another replica, or another part of this one.
const ATTEMPTS: usize = 5;

/// Notes on it how the session ended, where that was not noted before; that somebody asked for it is noted beside any other
/// end, and beats it (defect D07). Gives what counts then.
///
/// # Errors
/// Of class [`Class::NotFound`] where there is no such session.
pub async fn mark(home: &Home, id: &SessionId, mark: &Mark) -> Result<Option<Mark>, Failed> {
    let secret = amend(home, id, |secret| {
        let counts = match Mark::read(secret) {
            None => true,
            Some(Mark::Refused { .. }) => matches!(mark, Mark::Stopped { .. }),
            Some(Mark::Stopped { .. }) => false,
        };
        counts.then(|| mark.on_secret())
    });
    Ok(Mark::read(&secret.await?))
}

/// Makes it go when the session's pod does, unless the session has ended, and the pod has nothing to go on for. Gives whether
/// it does.
///
/// # Errors
/// Of class [`Class::NotFound`] where there is no such session any more.
pub async fn own(home: &Home, id: &SessionId, pod: &Value) -> Result<bool, Failed> {
    let owner = owner(pod);
    let secret = amend(home, id, |secret| owned(secret, &owner)).await?;
    Ok(Mark::read(&secret).is_none())
}

/// The pod as an owner. It is no controller's, and keeps no pod from going: for that a right would be needed where clusters
/// check it (defect D19).
fn owner(pod: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "name": json::name(pod), "uid": json::uid(pod)})
}

/// The merge patch after which a Secret has that owner; none where it has, or is to be kept.
fn owned(secret: &Value, owner: &Value) -> Option<Value> {
    let is_done = json::owners(secret).any(|known| known["uid"] == owner["uid"]);
    (!is_done && Mark::read(secret).is_none()).then(|| json!({"metadata": {"ownerReferences": [owner]}}))
}

/// Changes the Secret by what `patch` makes of it as it is; gives it as it is then.
async fn amend(home: &Home, id: &SessionId, patch: impl Fn(&Value) -> Option<Value>) -> Result<Value, Failed> {
    let (resource, name) = (Home::secrets(), secret_name(id));
    let mut attempts = 0;
    loop {
        let secret = home.cluster.get(&resource, Some(&home.namespace), &name).await?;
        let Some(mut patch) = patch(&secret) else { return Ok(secret) };
        // Of two that change it at once the second finds another version, and looks again.
        patch["metadata"]["resourceVersion"] = secret["metadata"]["resourceVersion"].clone();
        attempts += 1;
        match home.cluster.merge(&resource, &home.namespace, &name, &patch).await {
            Err(failed) if failed.class == Class::Conflict && attempts < ATTEMPTS => {}
            done => return done,
        }
    }
}
