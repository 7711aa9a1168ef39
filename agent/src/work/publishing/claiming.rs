//! The Service's name is the claim of a session's id: whoever makes it first has it, until it ends.

use std::time::{Duration, Instant};

use cofferdam_kubernetes::{Class, Failed, Resource, json};
use cofferdam_model::{is_object_name, keys};
use serde_json::Value;

use super::{Attempt, Holder, named, slot};
use crate::desired::Wanted;
use crate::objects::{Kind, resource};
use crate::plan::{Claim, claim, leaving};
use crate::report::Hindrance;
use crate::session::{Session, has_ended};
use crate::work::Crew;

/// What does not end by itself is looked at again after so long.
const FOREIGN: Duration = Duration::from_secs(30);
/// What is being deleted.
const LEAVING: Duration = Duration::from_secs(4);

/// Makes the Service, taking it over from who has no use for it any more. Where the name `is_taken`, as far as was found last,
/// what has it is read first: a ResourceQuota counts also what is made in vain, and for minutes.
///
/// # Errors
/// What is in the way.
pub(super) async fn take(
    crew: &Crew,
    session: &Session,
    service: &Wanted,
    is_taken: &mut bool,
) -> Result<Value, Attempt> {
    let services = resource(Kind::Service, "v1");
    let failed = |failed| Attempt::Failed(slot(service), failed);
    // Made twice: once more after the one in the way was deleted.
    for is_made in std::iter::repeat_n(false, usize::from(*is_taken)).chain([true, true]) {
        if is_made {
            match crew.cluster.create(&services, &session.namespace, &service.object).await {
                Ok(answer) => return Ok(answer),
                Err(error) if error.class == Class::AlreadyExists => *is_taken = true,
                Err(error) => return Err(failed(error)),
            }
        }
        let there = match crew.cluster.get(&services, Some(&session.namespace), &service.name).await {
            Ok(there) => there,
            Err(error) if error.class == Class::NotFound => {
                *is_taken = false;
                continue;
            }
            Err(error) => return Err(failed(error)),
        };
        let whose = claim(&there, &session.uid);
        // To delete it once more would be no help.
        if whose != Claim::Ours
            && let Some(finalizers) = leaving(&there)
        {
            let object = named(&slot(service));
            return Err(in_the_way(Hindrance::Terminating { object, finalizers }, LEAVING));
        }
        // Made by an agent before this one, or stripped of our labels, or of what says whose it is, so that nobody might delete it:
        // from now on it is as it ought to be. Unless another pod's has been quicker: what was read is what is written over.
        let is_bare = matches!(whose, Claim::Nobody { .. }) && json::annotation(&there, keys::NODE).is_none();
        if whose == Claim::Ours || is_bare {
            let mut object = service.object.clone();
            object["metadata"]["uid"] = there["metadata"]["uid"].clone();
            if is_bare {
                object["metadata"]["resourceVersion"] = there["metadata"]["resourceVersion"].clone();
            }
            let answer = crew.cluster.apply(&services, &session.namespace, &service.name, &object).await;
            *is_taken = answer.is_err();
            match answer {
                Err(error) if error.class == Class::Conflict => continue,
                answer => return answer.map_err(failed),
            }
        }
        let uid = match whose {
            Claim::Ours | Claim::Foreign => return Err(in_the_way(Hindrance::NameTaken, FOREIGN)),
            // Another node's agent takes its own away when its pod ends, and the elected one what no agent cares for; nobody
            // else may.
            Claim::Nobody { .. } if is_of_another_node(&there, &crew.node) => return Err(another()),
            Claim::Nobody { service } => service,
            // Owners' names are not looked at by the API server, and it would become a part of a path.
            Claim::Of { name, .. } if !is_object_name(&name) => {
                return Err(in_the_way(Hindrance::NameTaken, FOREIGN));
            }
            Claim::Of { name, uid, service } => {
                let is_here = json::annotation(&there, keys::NODE) == Some(crew.node.as_str());
                if !is_here || lives(crew, &session.namespace, &name, &uid).await.map_err(failed)? {
                    // Whose end is seen here need not be asked for.
                    let is_seen = is_here && crew.world.is_live(&uid) == Some(true);
                    let uid = is_seen.then_some(uid);
                    let service = is_here.then_some(service);
                    return Err(Attempt::Taken(Holder { name: Some(name), uid, service, is_seen: false }));
                }
                service
            }
        };
        crew.cluster.delete(&services, &session.namespace, &service.name, &uid).await.map_err(failed)?;
        *is_taken = false;
    }
    // Another was quicker.
    Err(another())
}

/// It is taken by somebody whose end is not seen here.
fn another() -> Attempt {
    Attempt::Taken(Holder { name: None, uid: None, service: None, is_seen: false })
}

/// A part of the pause is chance: those who wait for one thing do not come all at once.
fn in_the_way(hindrance: Hindrance, pause: Duration) -> Attempt {
    Attempt::Hindered(hindrance, Instant::now() + pause.mul_f64(0.75 + fastrand::f64() / 2.0))
}

/// Whether its own agent will take it away, which others may not.
fn is_of_another_node(service: &Value, node: &str) -> bool {
    json::annotation(service, keys::NODE).is_some_and(|its| its != node)
}

/// Whether that very pod is there and neither finished nor being deleted.
async fn lives(crew: &Crew, namespace: &str, name: &str, uid: &str) -> Result<bool, Failed> {
    if let Some(is_live) = crew.world.is_live(uid) {
        return Ok(is_live);
    }
    match crew.cluster.get(&Resource::core("pods"), Some(namespace), name).await {
        Ok(pod) => Ok(json::uid(&pod) == uid && !json::is_leaving(&pod) && !has_ended(&pod)),
        Err(error) if error.class == Class::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_another_nodes_agent_made_is_told_from_ones_own() {
        let of = |node: &str| json!({"metadata": {"annotations": {"cofferdam.dev/node": node}}});
        assert!(is_of_another_node(&of("node-1"), "node-2"));
        assert!(!is_of_another_node(&of("node-2"), "node-2"));
        assert!(!is_of_another_node(&json!({"metadata": {}}), "node-2"));
    }
}
