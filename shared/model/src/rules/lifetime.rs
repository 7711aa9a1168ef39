//! lifetime: activeDeadlineSeconds ≤ ceiling; terminationGracePeriodSeconds ≤ 30 (a kubelet waits that long after the
//! deadline), and no hook sleeps for longer (the API refuses that); restartPolicy Never unless a controller owns the pod,
//! and then no container-level restart rules either; native sidecars keep `Always`.
//!
//! A probe's own grace counts like the pod's: a kubelet that waits for a container to end after a failed probe does not
//! look at the deadline meanwhile, so the whole pod outlives it.

use super::{Inject, Rule, Stated, Tighten, owner::is_made_by_controller};
use crate::{
    change::{Action, Told},
    pod::{Container, Draft, List, Path},
    request::Template,
    rules::{Context, Occasion},
};

pub(super) const RULE: Rule = Rule {
    name: "lifetime",
    holds: "the pod ends at its deadline, ends quickly, and is not restarted in place",
    effects: &[Inject, Tighten],
    source: "Kubernetes: Pod Lifecycle; Jobs, Job termination and cleanup",
    reports: &[],
    cel: Stated,
    audits: true,
    apply,
};

/// What the API server fills in.
const DEFAULT_GRACE_SECONDS: i64 = 30;

/// The probes of a container. The API knows no grace of a readiness probe yet.
const PROBES: [&str; 3] = ["livenessProbe", "readinessProbe", "startupProbe"];

/// The hooks of a container.
const HOOKS: [&str; 2] = ["postStart", "preStop"];

fn apply(pod: &mut Draft, context: &Context<'_>) {
    let ceilings = context.profile.lifetime;
    let deadline = Path::of(&["spec", "activeDeadlineSeconds"]);
    match pod.number(&deadline) {
        // Its controller forbids it there; the pods get theirs when they are admitted.
        None if context.occasion == Occasion::Template(Template::RunsForever) => {}
        None => pod.inject(&deadline, ceilings.deadline_seconds),
        Some(seconds) if seconds > ceilings.deadline_seconds => pod.tighten(&deadline, ceilings.deadline_seconds),
        Some(_) => {}
    }
    let grace = Path::of(&["spec", "terminationGracePeriodSeconds"]);
    if pod.number(&grace).unwrap_or(DEFAULT_GRACE_SECONDS) > ceilings.grace_seconds {
        pod.require_over(&grace, ceilings.grace_seconds, DEFAULT_GRACE_SECONDS);
    }
    for container in pod.containers().iter() {
        for probe in PROBES {
            let grace = container.path.at(&[probe, "terminationGracePeriodSeconds"]);
            if pod.number(&grace).is_some_and(|seconds| seconds > ceilings.grace_seconds) {
                pod.tighten(&grace, ceilings.grace_seconds);
            }
        }
        // The API refuses a hook that sleeps for longer than the pod's grace.
        for hook in HOOKS {
            let sleep = container.path.at(&["lifecycle", hook, "sleep", "seconds"]);
            if pod.number(&sleep).is_some_and(|seconds| seconds > ceilings.grace_seconds) {
                pod.tighten(&sleep, ceilings.grace_seconds);
            }
        }
    }
    if !is_made_by_controller(pod, context) {
        pod.require_over(&Path::of(&["spec", "restartPolicy"]), "Never", "Always");
        for container in pod.containers().iter() {
            restart_in_place(pod, container);
        }
    }
}

/// Since 1.34 a container may have a restart policy of its own, which would outrank the pod's.
fn restart_in_place(pod: &mut Draft, container: &Container) {
    let policy = container.path.at(&["restartPolicy"]);
    let is_harmless = match pod.text(&policy).as_deref() {
        None | Some("Never") => true,
        // A native sidecar: it ends with the pod.
        Some("Always") => container.list == List::InitContainers,
        Some(_) => false,
    };
    if !is_harmless {
        pod.remove(&policy, Action::Tighten, Told::words);
    }
    let rules = container.path.at(&["restartPolicyRules"]);
    if pod.is_set(&rules) {
        pod.remove(&rules, Action::Tighten, Told::nothing);
    }
    // The API refuses a resize that restarts the container of a pod which is never restarted.
    for resize in pod.items(&container.path.at(&["resizePolicy"])) {
        let policy = resize.at(&["restartPolicy"]);
        if pod.is_set(&policy) {
            pod.require(&policy, "NotRequired");
        }
    }
}

#[cfg(test)]
mod tests;
