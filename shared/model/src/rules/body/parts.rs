//! What delivers a body: the init container and its volumes, as they stand in a pod.

use serde_json::{Map, Value, json};

use super::{
    super::command::escape,
    annotations::{Delivery, asked},
};
use crate::{
    keys,
    pod::{Container, Draft, List, Path},
    policy::{Bodies, CREDENTIALS_DIRECTORY, DefaultRequest},
    quantity::Quantity,
    rules::Context,
};

/// The volume that the body is unpacked into.
pub(super) const BODY: &str = "cofferdam-body";

/// Volumes that only the init container may mount: the body's token, and the proof of who the pod is.
pub(crate) const CREDENTIALS: [&str; 2] = [TOKEN, IDENTITY];

const TOKEN: &str = "cofferdam-body-token";
const IDENTITY: &str = "cofferdam-body-identity";

/// Types of these volumes.
pub(super) const VOLUME_TYPES: [&str; 3] = ["emptyDir", "secret", "projected"];

/// Where the image has the program.
const PROGRAM: &str = "/usr/bin/cofferdam-fetch";

/// `r--r-----`: the pod's fsGroup reads it, whatever its user is.
const READ_BY_GROUP: u32 = 0o440;

/// The shortest time that the API lets a token live for, and longer than any fetching takes.
const IDENTITY_SECONDS: u32 = 600;

/// Limits that fetching needs, whatever the pod's containers make do with.
const ENOUGH: [&str; 3] = ["100m", "64Mi", "64Mi"];

/// What the annotations of this pod bring with them: the container without its resources, and the volumes.
pub(crate) fn expected(pod: &mut Draft, context: &Context<'_>) -> Option<(Value, Vec<Value>)> {
    let delivery = asked(pod, context).ok()??;
    let mut volumes = vec![body_volume(context)];
    volumes.extend(token_volumes(&delivery, context));
    Some((container(&delivery, context), volumes))
}

/// The init container, but for its resources.
pub(super) fn container(delivery: &Delivery, context: &Context<'_>) -> Value {
    let bodies = context.policy.bodies();
    let mut args = vec![
        format!("--url={}", delivery.url),
        format!("--sha256={}", delivery.sha256),
        format!("--into={}", bodies.path),
    ];
    let mut mounts = vec![json!({ "name": BODY, "mountPath": bodies.path })];
    if delivery.token_secret.is_some() {
        for (name, credential) in [(TOKEN, "token"), (IDENTITY, "identity")] {
            let directory = format!("{CREDENTIALS_DIRECTORY}/{credential}");
            args.push(format!("--{credential}-file={directory}/token"));
            mounts.push(json!({ "name": name, "mountPath": directory, "readOnly": true }));
        }
    }
    args.push(format!("--deadline={}s", bodies.deadline_seconds));
    args.push(format!("--max-bytes={}", size(context).whole_units()));
    args.push(format!("--max-entries={}", bodies.max_entries));
    let args: Vec<String> = args.iter().map(|arg| escape(arg)).collect();
    json!({
        "name": keys::FETCH_CONTAINER,
        "image": bodies.image,
        // The agent keeps the image on every node, so that no session waits for it.
        "imagePullPolicy": "IfNotPresent",
        "command": [PROGRAM],
        "args": args,
        "securityContext": {
            "privileged": false,
            "allowPrivilegeEscalation": false,
            "readOnlyRootFilesystem": true,
            "capabilities": { "drop": ["ALL"] },
        },
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": mounts,
    })
}

/// Whether this container has the name of that one, and stands where it would.
pub(crate) fn is_called_fetch(pod: &mut Draft, container: &Container) -> bool {
    container.list == List::InitContainers && pod.is(&container.path.at(&["name"]), keys::FETCH_CONTAINER)
}

/// Whether this is that container, whatever came to it on its way through an API server. Its resources are held by the
/// rule for them; pulling more often is what a cluster's own admission may ask for.
pub(crate) fn is_fetch(actual: &Value, expected: &Value) -> bool {
    let (Value::Object(actual), Value::Object(expected)) = (actual, expected) else { return false };
    expected.keys().all(|key| actual.contains_key(key))
        && actual.iter().all(|(key, value)| match key.as_str() {
            "resources" | "imagePullPolicy" => true,
            "terminationMessagePath" => value == "/dev/termination-log",
            key => expected.get(key) == Some(value),
        })
}

pub(super) fn body_volume(context: &Context<'_>) -> Value {
    json!({ "name": BODY, "emptyDir": { "sizeLimit": size(context).to_string() } })
}

/// A body that anyone may fetch has no token, and nobody to prove anything to.
pub(super) fn token_volumes(delivery: &Delivery, context: &Context<'_>) -> Vec<Value> {
    let Some(secret) = &delivery.token_secret else { return Vec::new() };
    let items = json!([{ "key": "token", "path": "token" }]);
    let token = json!({
        "name": TOKEN,
        "secret": { "secretName": secret, "items": items, "defaultMode": READ_BY_GROUP },
    });
    vec![token, identity_volume(context.policy.bodies())]
}

/// The volume with the proof of who the pod is.
pub(crate) fn identity_volume(bodies: &Bodies) -> Value {
    let token = json!({ "audience": bodies.audience, "expirationSeconds": IDENTITY_SECONDS, "path": "token" });
    let sources = json!([{ "serviceAccountToken": token }]);
    json!({ "name": IDENTITY, "projected": { "sources": sources, "defaultMode": READ_BY_GROUP } })
}

/// As much as a body may be, and no more than an emptyDir of this profile.
fn size(context: &Context<'_>) -> Quantity {
    context.policy.bodies().size.min(context.profile.resources.limits.ephemeral_storage)
}

/// What the container gets. It runs before the pod's containers, so what it requests costs nothing as long as they
/// request as much together: no more is requested. Where their requests are their limits, so are these, or the pod would
/// lose its class (Guaranteed). A quota counts every container, so none of the three is left out, but for what the pod
/// limits as a whole.
pub(super) fn resources(pod: &mut Draft, context: &Context<'_>) -> Value {
    let (mut limits, mut requests) = (Map::new(), Map::new());
    for ((resource, ceiling, default), enough) in context.profile.resources.limited().into_iter().zip(ENOUGH) {
        // A request alone is what the API server made of the containers' own, which all have limits then.
        if pod.is_set(&Path::of(&["spec", "resources", "limits", resource])) {
            continue;
        }
        let together = sum(pod, "limits", resource).unwrap_or(ceiling);
        let limit = together.max(Quantity::constant(enough)).min(ceiling);
        let requested = sum(pod, "requests", resource).unwrap_or(together);
        let request = match default {
            DefaultRequest::Amount(amount) if requested != together => amount.min(limit),
            DefaultRequest::Amount(_) | DefaultRequest::Limit => limit,
        };
        limits.insert(resource.to_owned(), limit.to_string().into());
        requests.insert(resource.to_owned(), request.min(requested).to_string().into());
    }
    json!({ "limits": limits, "requests": requests })
}

/// What the pod's containers have together; nothing where one has none.
fn sum(pod: &mut Draft, kind: &'static str, resource: &'static str) -> Option<Quantity> {
    let containers = pod.items(&Path::of(&["spec", "containers"]));
    let mut amounts = containers.iter().map(|at| pod.amount(&at.at(&["resources", kind, resource])));
    let first = amounts.next()??;
    amounts.try_fold(first, |sum, amount| Some(sum.plus(amount?)))
}
