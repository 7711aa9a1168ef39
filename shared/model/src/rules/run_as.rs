//! runAsNonRoot, runAsUser/Group, fsGroup, supplementalGroups: true; 1000/1000/1000 unless the pod says another
//! non-zero; no 0 anywhere; supplementalGroupsPolicy Strict where the profile says so.

use super::{Inject, Rule, Stated, Tighten};
use crate::{
    change::{Action, Told},
    pod::{Draft, Path},
    policy::SupplementalGroups,
    rules::Context,
};

pub(super) const RULE: Rule = Rule {
    name: "run-as",
    holds: "no process of the pod runs as root, and the pod puts none into root's group (an image may, unless the profile forbids it)",
    effects: &[Inject, Tighten],
    source: "Pod Security Standards: Running as Non-root, Running as Non-root user",
    reports: &[
        "https://github.com/kubeflow/pipelines/pull/13885",
        "https://github.com/prometheus/statsd_exporter/issues/406",
        "https://github.com/kubernetes/kubernetes/issues/112879",
    ],
    cel: Stated,
    audits: true,
    apply,
};

fn apply(pod: &mut Draft, context: &Context<'_>) {
    let run_as = context.profile.run_as;
    let security = Path::of(&["spec", "securityContext"]);
    pod.require(&security.at(&["runAsNonRoot"]), true);
    let user = non_zero(pod, &security.at(&["runAsUser"]), run_as.user);
    let group = non_zero(pod, &security.at(&["runAsGroup"]), run_as.group);
    non_zero(pod, &security.at(&["fsGroup"]), run_as.fs_group);
    supplemental_groups(pod, &security.at(&["supplementalGroups"]));
    if context.profile.supplemental_groups == SupplementalGroups::Strict {
        pod.require(&security.at(&["supplementalGroupsPolicy"]), "Strict");
    }

    // A container inherits the pod's values, so only what overrides them with less is touched; where the pod's could not
    // be set, because it lives already, the container gets its own.
    let inherits_non_root = pod.switch(&security.at(&["runAsNonRoot"])) == Some(true);
    let inherited = [("runAsUser", user), ("runAsGroup", group)]
        .map(|(field, number)| (field, number, pod.number(&security.at(&[field])) == Some(number)));
    for container in pod.containers().iter() {
        let security = container.path.at(&["securityContext"]);
        let non_root = security.at(&["runAsNonRoot"]);
        if !inherits_non_root || pod.is_set(&non_root) {
            pod.require(&non_root, true);
        }
        for (field, number, is_inherited) in inherited {
            match pod.number(&security.at(&[field])) {
                Some(0) => pod.tighten(&security.at(&[field]), number),
                None if !is_inherited => pod.inject(&security.at(&[field]), number),
                _ => {}
            }
        }
    }
}

/// The number that the field holds in the end. Without one a kubelet cannot tell an image's named user from root.
fn non_zero(pod: &mut Draft, field: &Path, default: i64) -> i64 {
    match pod.number(field) {
        None => pod.inject(field, default),
        Some(0) => pod.tighten(field, default),
        Some(number) => return number,
    }
    default
}

fn supplemental_groups(pod: &mut Draft, groups: &Path) {
    let items = pod.items(groups);
    let zeros: Vec<usize> =
        items.iter().enumerate().filter(|(_, item)| pod.number(item) == Some(0)).map(|(index, _)| index).collect();
    pod.remove_items(groups, &zeros, Action::Tighten, Told::plain);
}

#[cfg(test)]
mod tests;
