//! Who made a pod, as far as admission can tell. No rule: what several of them ask.

use crate::{
    pod::{Draft, Path},
    rules::{Context, Occasion},
};

/// As whom the `DaemonSet` controller creates pods, with credentials of its own and without.
const DAEMON_SET_CONTROLLERS: [&str; 2] =
    ["system:serviceaccount:kube-system:daemon-set-controller", "system:kube-controller-manager"];

/// Whether a Deployment's `ReplicaSet`, a Job or any other controller made the pod: it counts on its restart policy.
pub(super) fn is_made_by_controller(pod: &mut Draft, context: &Context<'_>) -> bool {
    matches!(context.occasion, Occasion::Template(_))
        || controllers(pod).iter().any(|[group, kind]| makes_pods(group, kind))
}

/// Whether the `DaemonSet` controller made the pod, for the node that it names. An owner alone proves nothing where a
/// pod is created, since anybody may name any; of a live pod no more is known.
pub(super) fn is_made_by_daemon_set(pod: &mut Draft, context: &Context<'_>) -> bool {
    context.user.is_none_or(|user| DAEMON_SET_CONTROLLERS.contains(&user.name))
        && controllers(pod).iter().any(|[group, kind]| group == "apps" && kind == "DaemonSet")
}

/// API group and kind of the owners that the pod calls its controller.
fn controllers(pod: &mut Draft) -> Vec<[String; 2]> {
    let owners = pod.items(&Path::of(&["metadata", "ownerReferences"]));
    owners
        .iter()
        .filter_map(|owner| {
            let is_controller = pod.switch(&owner.at(&["controller"])) == Some(true);
            let [version, kind] = ["apiVersion", "kind"].map(|key| pod.text(&owner.at(&[key])).unwrap_or_default());
            let group = version.split_once('/').map_or("", |(group, _)| group);
            is_controller.then(|| [group.to_owned(), kind])
        })
        .collect()
}

/// Whether an owner is of a kind that makes pods. Anybody may name any object as the controller of their pod, and one of
/// Kubernetes' other kinds, such as a `ConfigMap`, is named only for what it lets the pod keep. A custom resource may
/// well have a controller that makes pods.
fn makes_pods(group: &str, kind: &str) -> bool {
    match group {
        "" => kind == "ReplicationController",
        "apps" | "batch" => true,
        group => group.contains('.') && (!group.ends_with(".k8s.io") || group.ends_with(".x-k8s.io")),
    }
}
