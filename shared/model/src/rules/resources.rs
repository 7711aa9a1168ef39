//! resources: cpu, memory, ephemeral-storage: limits ≤ ceiling, requests ≤ limits, on every container and init
//! container; for a resource that the pod sets at pod level none is injected on containers (the sum would be invalid)
//! and the pod's is clamped to the pod's ceiling; one that it only requests there is limited there to what its
//! containers would get, unless they all have limits; zero means unlimited to a kubelet and counts as missing; other
//! resource names and `resourceClaims` only if the profile lists them, else refused; garbage or negative refused;
//! nothing of it on ephemeral containers (the API forbids it).
//!
//! A pod has ceilings too: so many containers that run together, and so many times a container's ceiling in sum. Since
//! no limit exceeds its ceiling and the sum holds as many ceilings as containers may run, counting them is enough.
//!
//! Of a pod that sets any resource as a whole, the API server makes the containers' requests in sum the pod's own, for
//! each resource that it does not set; a request alone is therefore nothing that anybody asked for. An API server
//! whose feature `PodLevelResources` is off drops what the pod sets as a whole after this rule has counted on it: such a
//! pod has no limits, and the admission policies, which see it last, are there to refuse it.

use super::{Inject, Refuse, Rule, Stated, Tighten};
use crate::{
    pod::{Draft, List, Path},
    policy::{DefaultRequest, Profile},
    quantity::Quantity,
    rules::Context,
};

pub(super) const RULE: Rule = Rule {
    name: "resources",
    holds: "every container has limits within the profile's ceilings, and requests within its limits",
    effects: &[Inject, Tighten, Refuse],
    source: "Kubernetes: Resource Management for Pods and Containers",
    reports: &[
        "https://github.com/linkerd/linkerd2/issues/2750",
        "https://github.com/kubernetes/kubernetes/issues/51430",
        "https://github.com/kyverno/policies/issues/1335",
    ],
    cel: Stated,
    audits: true,
    apply,
};

/// What a missing value becomes.
#[derive(Clone, Copy, Default)]
struct Fill {
    /// What a missing limit becomes, if anything.
    limit: Option<Quantity>,
    /// What a missing request becomes, if anything.
    request: Option<DefaultRequest>,
}

fn apply(pod: &mut Draft, context: &Context<'_>) {
    let profile = context.profile;
    let of_pod = Path::of(&["spec", "resources"]);
    listed_only(pod, &of_pod, profile);
    claims(pod, &Path::of(&["spec", "resourceClaims"]), profile);
    let containers: Vec<Path> = pod
        .containers()
        .iter()
        .filter(|container| container.list != List::EphemeralContainers)
        .map(|container| container.path.at(&["resources"]))
        .collect();
    for resources in &containers {
        listed_only(pod, resources, profile);
    }
    let together = run_together(pod);
    for (resource, ceiling, request) in profile.resources.limited() {
        // As if there were one where there is none: nothing would be a limit of zero, which is none to a kubelet.
        let (most, usual) = (ceiling.times(profile.pod.sum), ceiling.times(together.max(1)));
        let fill = if for_the_whole_pod(pod, &of_pod, &containers, resource, most, usual) {
            Fill::default()
        } else {
            Fill { limit: Some(ceiling), request: Some(request) }
        };
        for resources in &containers {
            bound(pod, resources, resource, ceiling, fill);
        }
    }
    not_too_many(pod, together, profile.pod.containers);
}

/// Bounds what the pod sets of a resource for all its containers, whether there is anything. `most` is the pod's
/// ceiling, and `usual` what its containers' own ceilings come to.
fn for_the_whole_pod(
    pod: &mut Draft,
    of_pod: &Path,
    containers: &[Path],
    resource: &'static str,
    most: Quantity,
    usual: Quantity,
) -> bool {
    let [limit, request] = ["limits", "requests"].map(|kind| of_pod.at(&[kind, resource]));
    if !pod.is_set(&limit) && !pod.is_set(&request) {
        return false;
    }
    let is_limited = |pod: &mut Draft, limit: &Path| pod.amount(limit).is_some_and(|limit| !limit.is_zero());
    let are_limited = containers.iter().all(|resources| is_limited(pod, &resources.at(&["limits", resource])));
    let fill = if are_limited && !pod.is_set(&limit) {
        Fill::default()
    } else {
        let asked = pod.amount(&request).unwrap_or(usual);
        Fill { limit: Some(if asked > usual { asked } else { usual }.min(most)), request: None }
    };
    bound(pod, of_pod, resource, most, fill);
    true
}

/// Keeps one resource within its ceiling, and the request within the limit.
fn bound(pod: &mut Draft, resources: &Path, resource: &'static str, ceiling: Quantity, fill: Fill) {
    let limit_field = resources.at(&["limits", resource]);
    let asked = pod.amount(&limit_field);
    let limit = match asked {
        Some(limit) if limit > ceiling => {
            pod.tighten(&limit_field, ceiling);
            ceiling
        }
        Some(limit) if !limit.is_zero() => limit,
        _ => {
            if let Some(limit) = fill.limit {
                pod.inject(&limit_field, limit);
            }
            fill.limit.unwrap_or(ceiling)
        }
    };
    let request_field = resources.at(&["requests", resource]);
    match pod.amount(&request_field) {
        // Where there is a limit and no request, the API server has made the limit the request: nobody asked for it.
        Some(request) if request > limit && asked == Some(request) => pod.inject(&request_field, limit),
        Some(request) if request > limit => pod.tighten(&request_field, limit),
        Some(request) if !request.is_zero() => {}
        _ => match fill.request {
            Some(DefaultRequest::Limit) => pod.inject(&request_field, limit),
            Some(DefaultRequest::Amount(amount)) => pod.inject(&request_field, amount.min(limit)),
            None => {}
        },
    }
}

/// Refuses every other resource that the profile does not list, and garbage in those that it does.
fn listed_only(pod: &mut Draft, resources: &Path, profile: &Profile) {
    for kind in ["limits", "requests"] {
        let amounts = resources.at(&[kind]);
        for resource in pod.members(&amounts) {
            let is_listed = profile.resources.extended.contains(&resource);
            let field = amounts.key(resource.clone());
            if is_listed {
                pod.amount(&field);
            } else if !profile.resources.limited().iter().any(|(limited, ..)| *limited == resource) {
                pod.refuse(&field, "is a resource that the profile does not list; remove it");
            }
        }
    }
    claims(pod, &resources.at(&["claims"]), profile);
}

fn claims(pod: &mut Draft, claims: &Path, profile: &Profile) {
    if !profile.resources.claims && !pod.items(claims).is_empty() {
        pod.refuse(claims, "claims devices, which the profile does not allow; remove it");
    }
}

/// Counts the pod's own containers and its native sidecars; other init containers run one after another, before.
fn run_together(pod: &mut Draft) -> u32 {
    let mut together = 0;
    for container in pod.containers().iter() {
        together += u32::from(container.list == List::Containers || pod.is_native_sidecar(container));
    }
    together
}

fn not_too_many(pod: &mut Draft, together: u32, most: u32) {
    if together > most {
        let message = format!(
            "and native sidecars are {together} containers that run together, and the profile allows {most}; use \
             fewer, or several pods"
        );
        pod.refuse(&Path::of(&["spec", "containers"]), message);
    }
}

#[cfg(test)]
mod tests;
