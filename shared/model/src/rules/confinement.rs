//! AppArmor, SELinux, procMount: never Unconfined, no own SELinux user or role or type outside the restricted list,
//! procMount Default. AppArmor is not injected by default: a kubelet without it refuses the pod (profile switch
//! `appArmor: inject`).

use serde_json::Value;

use super::{Inject, Rule, Stated, Tighten};
use crate::{
    change::{Action, Told},
    pod::{Draft, Path},
    policy::AppArmor,
    rules::Context,
};

pub(super) const RULE: Rule = Rule {
    name: "confinement",
    holds: "no container leaves AppArmor's or SELinux's confinement or sees an unmasked /proc",
    effects: &[Inject, Tighten],
    source: "Pod Security Standards: AppArmor, SELinux, /proc Mount Type",
    reports: &["https://github.com/open-policy-agent/gatekeeper-library/issues/125"],
    cel: Stated,
    audits: true,
    apply,
};

/// Annotations that hold a container's AppArmor profile for API servers before 1.30.
const LEGACY_APP_ARMOR: &str = "container.apparmor.security.beta.kubernetes.io/";

/// `SELinux` types that `PodSecurity` admits.
const SELINUX_TYPES: [&str; 5] = ["", "container_t", "container_init_t", "container_kvm_t", "container_engine_t"];

fn apply(pod: &mut Draft, context: &Context<'_>) {
    let security = Path::of(&["spec", "securityContext"]);
    app_armor(pod, &security);
    if context.profile.app_armor == AppArmor::Inject && !pod.is_set(&security.at(&["appArmorProfile"])) {
        pod.inject(&security.at(&["appArmorProfile", "type"]), "RuntimeDefault");
    }
    se_linux(pod, &security.at(&["seLinuxOptions"]));
    for container in pod.containers().iter() {
        let security = container.path.at(&["securityContext"]);
        app_armor(pod, &security);
        se_linux(pod, &security.at(&["seLinuxOptions"]));
        let proc_mount = security.at(&["procMount"]);
        if pod.is_set(&proc_mount) {
            pod.require(&proc_mount, "Default");
        }
    }
    for (annotation, value) in pod.annotations(&[LEGACY_APP_ARMOR]) {
        if !matches!(value.as_str(), "" | "runtime/default") && !value.starts_with("localhost/") {
            pod.remove(&annotation, Action::Tighten, Told::nothing);
        }
    }
}

/// Takes a profile away that confines nothing; what is left is the pod's or the runtime's own.
fn app_armor(pod: &mut Draft, security: &Path) {
    let profile = security.at(&["appArmorProfile"]);
    let kind = pod.text(&profile.at(&["type"]));
    if pod.is_set(&profile) && !matches!(kind.as_deref(), Some("RuntimeDefault" | "Localhost")) {
        pod.remove(&profile, Action::Tighten, |profile: &Value| profile.get("type").and_then(Told::words));
    }
}

fn se_linux(pod: &mut Draft, options: &Path) {
    for (field, allowed) in [("user", &[""][..]), ("role", &[""]), ("type", &SELINUX_TYPES)] {
        let field = options.at(&[field]);
        if pod.text(&field).is_some_and(|value| !allowed.contains(&value.as_str())) {
            pod.remove(&field, Action::Tighten, Told::words);
        }
    }
}

#[cfg(test)]
mod tests;
