//! The programs that make a machine a node, and their configuration files.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::json;

use crate::error::Error;
use crate::network;
use crate::node_spec::{Component, Dependency};
use crate::paths::{NodePaths, Paths};
use crate::pki;
use crate::programs::Programs;

/// The image that holds a pod's namespaces open, made by the harness.
pub(crate) const PAUSE: &str = "cofferdam.test/pause:1";

/// Writes the configuration of node `index` and returns containerd, kubelet, kube-proxy and the network policy program.
///
/// `not_ready_after` is as in [`Options`](crate::cluster::Options).
pub(crate) fn components(
    paths: &Paths,
    name: &str,
    index: u8,
    not_ready_after: Option<Duration>,
    programs: &Programs,
) -> Result<Vec<Component>, Error> {
    let node = paths.node(name);
    let api = || Dependency::File(paths.api_ready());
    let address = network::address(index);
    pki::create_kubelet(paths, name, &address, &network::address(1))?;
    let cni = node.root().join("cni");
    write(&cni.join("10-pods.conflist"), &cni_config(&node, index))?;
    let containerd = node.root().join("containerd.toml");
    write(&containerd, &containerd_config(&node, &cni, programs))?;
    write(&node.root().join("resolv.conf"), &format!("nameserver {}\n", network::DNS_SERVICE))?;
    let kubelet = node.root().join("kubelet.yaml");
    write(&kubelet, &kubelet_config(paths, &node, name, not_ready_after))?;
    let proxy = node.root().join("kube-proxy.yaml");
    write(&proxy, &proxy_config(paths, name))?;

    let text = |path: &Path| path.display().to_string();
    let kubeconfig = |user: &str| text(&paths.inner_kubeconfig(user));
    // Shims and plugins are found by name.
    let search = programs.search_path();
    Ok(vec![
        Component::new("containerd", [text(&programs.path("containerd")?), "--config".to_owned(), text(&containerd)])
            .env("PATH", &search),
        Component::new(
            "kubelet",
            [
                text(&programs.path("kubelet")?),
                format!("--config={}", text(&kubelet)),
                format!("--kubeconfig={}", kubeconfig(&pki::kubelet_user(name))),
                format!("--hostname-override={name}"),
                format!("--node-ip={address}"),
                format!("--root-dir={}", text(&node.root().join("kubelet"))),
            ],
        )
        .env("PATH", &search)
        .after(Dependency::Socket(node.containerd_socket()))
        .after(api()),
        Component::new("kube-proxy", [text(&programs.path("kube-proxy")?), format!("--config={}", text(&proxy))])
            .after(api()),
        Component::new(
            "kube-router",
            [
                text(&programs.path("kube-router")?),
                "--run-firewall=true".to_owned(),
                "--run-router=false".to_owned(),
                "--run-service-proxy=false".to_owned(),
                "--run-loadbalancer=false".to_owned(),
                format!("--kubeconfig={}", kubeconfig("admin")),
                format!("--hostname-override={name}"),
                format!("--service-cluster-ip-range={}", network::SERVICES),
            ],
        )
        .after(Dependency::File(node.ready())),
    ])
}

/// Point-to-point links: packets between two pods of a node pass its firewall, whatever the bridge module is told.
fn cni_config(node: &NodePaths, index: u8) -> String {
    json!({
        "cniVersion": "1.0.0",
        "name": "pods",
        "plugins": [
            {
                "type": "ptp",
                "ipam": {
                    "type": "host-local",
                    "dataDir": node.root().join("ipam"),
                    "ranges": [[{"subnet": network::pods(index)}]],
                    "routes": [{"dst": "0.0.0.0/0"}],
                },
            },
            {"type": "portmap", "capabilities": {"portMappings": true}},
        ],
    })
    .to_string()
}

fn containerd_config(node: &NodePaths, cni: &Path, programs: &Programs) -> String {
    let root = node.root().display();
    let socket = node.containerd_socket();
    let socket = socket.display();
    let plugins: Vec<String> =
        programs.folders().iter().map(|folder| format!("{:?}", folder.display().to_string())).collect();
    let plugins = plugins.join(", ");
    let cni = cni.display();
    // Without CAP_SYS_RESOURCE a negative oom_score_adj is refused, and runc dies of it: hence the restriction.
    // Each node has its own runc root, since several share the machine's /run until they cover it.
    format!(
        r#"version = 3
root = "{root}/containerd"
state = "{root}/containerd-state"
disabled_plugins = ["io.containerd.nri.v1.nri"]
[grpc]
  address = "{socket}"
[plugins."io.containerd.internal.v1.opt"]
  path = "{root}/opt"
[plugins."io.containerd.cri.v1.images"]
  snapshotter = "overlayfs"
[plugins."io.containerd.cri.v1.images".pinned_images]
  sandbox = "{PAUSE}"
[plugins."io.containerd.cri.v1.runtime"]
  restrict_oom_score_adj = true
[plugins."io.containerd.cri.v1.runtime".cni]
  bin_dirs = [{plugins}]
  conf_dir = "{cni}"
[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
  Root = "{root}/runc"
"#
    )
}

fn kubelet_config(paths: &Paths, node: &NodePaths, name: &str, not_ready_after: Option<Duration>) -> String {
    let pki = paths.pki();
    let user = pki::kubelet_user(name);
    let mut config = json!({
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "failCgroupV1": false,
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": format!("/{}", node.cgroup()),
        "containerRuntimeEndpoint": format!("unix://{}", node.containerd_socket().display()),
        "authentication": {
            "anonymous": {"enabled": false},
            "webhook": {"enabled": true},
            "x509": {"clientCAFile": pki.join("ca.crt")},
        },
        "authorization": {"mode": "Webhook"},
        "tlsCertFile": pki.join(format!("{user}.crt")),
        "tlsPrivateKeyFile": pki.join(format!("{user}.key")),
        "clusterDomain": "cluster.local",
        "clusterDNS": [network::DNS_SERVICE],
        "resolvConf": node.root().join("resolv.conf"),
        "failSwapOn": false,
        // A small machine's disk is often nearly full, and images that were loaded by hand cannot be pulled again.
        "evictionHard": {"memory.available": "100Mi", "nodefs.available": "1%", "imagefs.available": "1%"},
        "imageGCHighThresholdPercent": 100,
        "podLogsDir": node.root().join("pod-logs"),
    });
    if let Some(after) = not_ready_after {
        // The lease is renewed four times in its duration, so eight signs of life are missed before the node is lost.
        config["nodeLeaseDurationSeconds"] = (after.as_secs() / 2).max(1).into();
        config["nodeStatusUpdateFrequency"] = format!("{}ms", (after / 4).as_millis()).into();
        // Or it would be that often too.
        config["nodeStatusReportFrequency"] = "5m".into();
    }
    config.to_string()
}

fn proxy_config(paths: &Paths, name: &str) -> String {
    json!({
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "mode": "nftables",
        "clusterCIDR": network::PODS,
        "hostnameOverride": name,
        "clientConnection": {"kubeconfig": paths.inner_kubeconfig("proxy")},
        // It would write the machine's limit otherwise, which it may not.
        "conntrack": {"maxPerCore": 0},
    })
    .to_string()
}

fn write(path: &PathBuf, text: &str) -> Result<(), Error> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(Error::io("make", folder))?;
    }
    fs::write(path, text).map_err(Error::io("write", path))
}
