//! seccomp: RuntimeDefault at the pod, and no weaker one anywhere, unless a listed Localhost profile; field or legacy
//! annotation.

use super::{Inject, Rule, Stated, Tighten};
use crate::{
    change::{Action, Told},
    pod::{Draft, Path},
    rules::Context,
};

pub(super) const RULE: Rule = Rule {
    name: "seccomp",
    holds: "every system call of the pod passes the runtime's default filter or a listed one",
    effects: &[Inject, Tighten],
    source: "Pod Security Standards: Seccomp",
    reports: &["https://github.com/kubernetes/kubernetes/issues/103388"],
    cel: Stated,
    audits: true,
    apply,
};

/// Annotations that API servers before 1.27 turned into the fields; runtimes and scanners still read them.
const LEGACY: [&str; 2] = ["seccomp.security.alpha.kubernetes.io/", "container.seccomp.security.alpha.kubernetes.io/"];

fn apply(pod: &mut Draft, context: &Context<'_>) {
    let listed = &context.profile.seccomp_localhost_profiles;
    let of_pod = Path::of(&["spec", "securityContext", "seccompProfile"]);
    filter(pod, &of_pod, listed);
    // Without its own a container has the pod's, which cannot be set any more where the pod lives already.
    let inherits = is_allowed(pod, &of_pod, listed);
    for container in pod.containers().iter() {
        let profile = container.path.at(&["securityContext", "seccompProfile"]);
        if !inherits || pod.is_set(&profile) {
            filter(pod, &profile, listed);
        }
    }
    for (annotation, value) in pod.annotations(&LEGACY) {
        let is_listed = value.strip_prefix("localhost/").is_some_and(|path| listed.iter().any(|known| known == path));
        if !matches!(value.as_str(), "runtime/default" | "docker/default") && !is_listed {
            pod.remove(&annotation, Action::Tighten, Told::nothing);
        }
    }
}

fn filter(pod: &mut Draft, profile: &Path, listed: &[String]) {
    if !is_allowed(pod, profile, listed) {
        pod.require(&profile.at(&["type"]), "RuntimeDefault");
        // The API refuses a file beside any other type.
        pod.remove(&profile.at(&["localhostProfile"]), Action::Tighten, Told::nothing);
    }
}

fn is_allowed(pod: &mut Draft, profile: &Path, listed: &[String]) -> bool {
    match pod.text(&profile.at(&["type"])).as_deref() {
        Some("RuntimeDefault") => true,
        Some("Localhost") => pod.text(&profile.at(&["localhostProfile"])).is_some_and(|file| listed.contains(&file)),
        _ => false,
    }
}

#[cfg(test)]
mod tests;
