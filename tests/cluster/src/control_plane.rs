//! The programs of the control plane and their flags.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use crate::audit;
use crate::error::Error;
use crate::network;
use crate::node_spec::{Component, Dependency};
use crate::paths::{NodePaths, Paths};
use crate::programs::Programs;

const ETCD: &str = "http://127.0.0.1:2379";

/// etcd, API server, controller manager, scheduler, and what gives LoadBalancer Services their address.
///
/// `not_ready_after` is as in [`Options`](crate::cluster::Options), `this` the harness's own program.
pub(crate) fn components(
    paths: &Paths,
    node: &NodePaths,
    not_ready_after: Option<Duration>,
    programs: &Programs,
    this: &Path,
) -> Result<Vec<Component>, Error> {
    let program = |name: &str| programs.path(name).map(|path| path.display().to_string());
    let address = network::address(1);
    let api = || Dependency::File(paths.api_ready());
    let etcd = Dependency::Tcp(SocketAddr::from(([127, 0, 0, 1], 2379)));
    let pki = |file: &str| paths.pki().join(file).display().to_string();
    let kubeconfig = |user: &str| paths.inner_kubeconfig(user).display().to_string();
    let data = node.root().join("etcd");
    let audit_policy = node.root().join("audit-policy.yaml");
    fs::write(&audit_policy, audit::POLICY).map_err(Error::io("write", &audit_policy))?;

    let etcd_program = Component::new(
        "etcd",
        [
            program("etcd")?,
            format!("--data-dir={}", data.display()),
            // The data is thrown away with the cluster, so nothing is lost by not waiting for the disk.
            "--unsafe-no-fsync".to_owned(),
            format!("--listen-client-urls={ETCD}"),
            format!("--advertise-client-urls={ETCD}"),
            "--listen-peer-urls=http://127.0.0.1:2380".to_owned(),
        ],
    );
    let api_server = Component::new(
        "kube-apiserver",
        [
            program("kube-apiserver")?,
            format!("--etcd-servers={ETCD}"),
            format!("--advertise-address={address}"),
            format!("--service-cluster-ip-range={}", network::SERVICES),
            format!("--tls-cert-file={}", pki("apiserver.crt")),
            format!("--tls-private-key-file={}", pki("apiserver.key")),
            format!("--client-ca-file={}", pki("ca.crt")),
            format!("--kubelet-client-certificate={}", pki("kubelet-client.crt")),
            format!("--kubelet-client-key={}", pki("kubelet-client.key")),
            format!("--kubelet-certificate-authority={}", pki("ca.crt")),
            "--kubelet-preferred-address-types=InternalIP".to_owned(),
            "--service-account-issuer=https://kubernetes.default.svc.cluster.local".to_owned(),
            format!("--service-account-key-file={}", pki("sa.pub")),
            format!("--service-account-signing-key-file={}", pki("sa.key")),
            format!("--requestheader-client-ca-file={}", pki("front-ca.crt")),
            "--requestheader-allowed-names=front-proxy-client".to_owned(),
            "--requestheader-username-headers=X-Remote-User".to_owned(),
            "--requestheader-group-headers=X-Remote-Group".to_owned(),
            "--requestheader-extra-headers-prefix=X-Remote-Extra-".to_owned(),
            format!("--proxy-client-cert-file={}", pki("front.crt")),
            format!("--proxy-client-key-file={}", pki("front.key")),
            "--enable-aggregator-routing=true".to_owned(),
            "--authorization-mode=Node,RBAC".to_owned(),
            // The second as on OpenShift: an owner is named only by who may delete what it owns.
            "--enable-admission-plugins=NodeRestriction,OwnerReferencesPermissionEnforcement".to_owned(),
            format!("--audit-policy-file={}", audit_policy.display()),
            format!("--audit-log-path={}", node.log(audit::LOG).display()),
            "--allow-privileged=true".to_owned(),
        ],
    )
    .after(etcd);
    let silence = not_ready_after.map_or(Vec::new(), |after| {
        // Looked at often enough that it is noticed about when it is due.
        let period = (after / 4).min(Duration::from_secs(5));
        let flag = |name: &str, time: Duration| format!("--node-monitor-{name}={}ms", time.as_millis());
        vec![flag("grace-period", after), flag("period", period)]
    });
    let controller_manager = Component::new(
        "kube-controller-manager",
        [
            program("kube-controller-manager")?,
            format!("--kubeconfig={}", kubeconfig("controller-manager")),
            format!("--authentication-kubeconfig={}", kubeconfig("controller-manager")),
            format!("--authorization-kubeconfig={}", kubeconfig("controller-manager")),
            "--use-service-account-credentials".to_owned(),
            format!("--service-account-private-key-file={}", pki("sa.key")),
            format!("--root-ca-file={}", pki("ca.crt")),
            format!("--cluster-signing-cert-file={}", pki("ca.crt")),
            format!("--cluster-signing-key-file={}", pki("ca.key")),
            "--leader-elect=false".to_owned(),
        ]
        .into_iter()
        .chain(silence),
    )
    .after(api());
    let scheduler = Component::new(
        "kube-scheduler",
        [
            program("kube-scheduler")?,
            format!("--kubeconfig={}", kubeconfig("scheduler")),
            format!("--authentication-kubeconfig={}", kubeconfig("scheduler")),
            format!("--authorization-kubeconfig={}", kubeconfig("scheduler")),
            "--leader-elect=false".to_owned(),
        ],
    )
    .after(api());
    let load_balancer =
        Component::new("load-balancer", [&this.display().to_string(), "load-balancer", &kubeconfig("admin")])
            .after(api());
    Ok(vec![etcd_program, api_server, controller_manager, scheduler, load_balancer])
}
