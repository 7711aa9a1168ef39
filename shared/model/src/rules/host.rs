//! host namespaces, hostPort, unsafe sysctls (`/` and `.` spellings; allowed are those that Kubernetes calls safe, or
//! the profile's list), nodeName set by the author, Windows, `hostProcess`, volumeDevices.
//!
//! Who asks for these needs them: taking them away would start something else than was asked for.

use super::{Refuse, Rule, Stated, scheduling};
use crate::{
    pod::{Draft, Path},
    policy::SAFE_SYSCTLS,
    rules::Context,
};

pub(super) const RULE: Rule = Rule {
    name: "host",
    holds: "the pod shares no namespace, port, device or setting with its node, and does not choose it",
    effects: &[Refuse],
    source: "Pod Security Standards: Host Namespaces, Host Ports, Sysctls, HostProcess; Kubernetes: nodeName",
    reports: &["https://github.com/Checkmarx/kics/pull/4883", "https://github.com/hashicorp/consul-k8s/pull/1845"],
    cel: Stated,
    audits: true,
    apply,
};

/// The label by which a kubelet says what it runs on.
const OS_LABEL: &str = "kubernetes.io/os";

fn apply(pod: &mut Draft, context: &Context<'_>) {
    let spec = Path::of(&["spec"]);
    for (field, shared) in [("hostNetwork", "network"), ("hostPID", "processes"), ("hostIPC", "shared memory")] {
        let field = spec.at(&[field]);
        if pod.switch(&field) == Some(true) {
            pod.refuse(&field, format!("shares the node's {shared} with the session; remove it"));
        }
    }
    let node_name = spec.at(&["nodeName"]);
    // A live pod has a node by nature.
    if !context.occasion.is_afterwards() && pod.text(&node_name).is_some_and(|name| !name.is_empty()) {
        pod.refuse(&node_name, "places the session past the scheduler; remove it");
    }
    windows(pod, &spec);
    sysctls(pod, &spec.at(&["securityContext", "sysctls"]), &context.profile.sysctls);
    for container in pod.containers().iter() {
        for port in pod.items(&container.path.at(&["ports"])) {
            let host_port = port.at(&["hostPort"]);
            if pod.number(&host_port).is_some_and(|port| port != 0) {
                pod.refuse(&host_port, "opens a port on the node; remove it, sessions are reached by their address");
            }
        }
        let devices = container.path.at(&["volumeDevices"]);
        if !pod.items(&devices).is_empty() {
            pod.refuse(&devices, "hands a block device to the session; mount a file system instead");
        }
    }
}

/// Sessions are Linux only: what hardens them has no counterpart on Windows.
fn windows(pod: &mut Draft, spec: &Path) {
    const ONLY_LINUX: &str = "asks for Windows, and sessions are hardened on Linux only; remove it";
    for system in [spec.at(&["os", "name"]), spec.at(&["nodeSelector", OS_LABEL])] {
        if pod.is(&system, "windows") {
            pod.refuse(&system, ONLY_LINUX);
        }
    }
    for term in scheduling::node_selector_terms(pod).concat() {
        for expression in pod.items(&term.at(&["matchExpressions"])) {
            let is_about_systems = pod.is(&expression.at(&["key"]), OS_LABEL);
            let with_windows = match pod.text(&expression.at(&["operator"])).as_deref() {
                Some("In") => "windows",
                Some("NotIn") => "linux",
                _ => continue,
            };
            let values = pod.items(&expression.at(&["values"]));
            if is_about_systems && values.iter().any(|value| pod.is(value, with_windows)) {
                pod.refuse(&expression, ONLY_LINUX);
            }
        }
    }
    let mut security = vec![spec.at(&["securityContext"])];
    security.extend(pod.containers().iter().map(|container| container.path.at(&["securityContext"])));
    for security in security {
        let options = security.at(&["windowsOptions"]);
        let host_process = options.at(&["hostProcess"]);
        if pod.switch(&host_process) == Some(true) {
            pod.refuse(&host_process, ONLY_LINUX);
        } else if pod.is_set(&options) {
            pod.refuse(&options, ONLY_LINUX);
        }
    }
}

fn sysctls(pod: &mut Draft, sysctls: &Path, listed: &[String]) {
    for sysctl in pod.items(sysctls) {
        let name = sysctl.at(&["name"]);
        let Some(spelled) = pod.text(&name) else { continue };
        let dotted = dotted(&spelled);
        if !SAFE_SYSCTLS.contains(&dotted.as_str()) && !listed.contains(&dotted) {
            pod.refuse(
                &name,
                "is neither a sysctl that Kubernetes calls safe nor one that the profile lists; remove it",
            );
        }
    }
}

/// `net/ipv4/x` is another spelling of `net.ipv4.x`, in which the other sign stands for a dot within a name.
fn dotted(name: &str) -> String {
    if name.find(['.', '/']).is_some_and(|first| name[first..].starts_with('/')) {
        name.chars()
            .map(|c| match c {
                '/' => '.',
                '.' => '/',
                other => other,
            })
            .collect()
    } else {
        name.to_owned()
    }
}

#[cfg(test)]
mod tests;
