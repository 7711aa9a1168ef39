//! The parts that there are.

use std::time::Duration;

use super::Part;
use crate::packages;

/// What most parts have in common.
pub(super) const PART: Part = Part {
    name: "",
    modfile: "go.mod",
    module: "",
    packages: "tool",
    links: &[],
    tags: "",
    ldflags: "",
    needs: &[],
    cold: Duration::from_mins(1),
};

/// The container runtime: `containerd`, `containerd-shim-runc-v2`, `ctr`; and our `pause`, which holds a pod open.
pub const CONTAINERD: Part = Part {
    name: "containerd",
    packages: "tool ./pause",
    module: "github.com/containerd/containerd/v2",
    // Snapshotters that want C libraries; we use overlayfs.
    tags: "no_btrfs,no_devmapper,no_zfs",
    ldflags: "-X github.com/containerd/containerd/v2/version.Version={version}",
    cold: Duration::from_secs(50),
    ..PART
};

/// The network plugins: `ptp`, `host-local`, `loopback`, `portmap`.
pub const CNI: Part = Part {
    name: "cni",
    module: "github.com/containernetworking/plugins",
    ldflags: "-X github.com/containernetworking/plugins/pkg/utils/buildversion.BuildVersion=v{version}",
    cold: Duration::from_secs(20),
    ..PART
};

/// What enforces NetworkPolicy on a node: `kube-router`, of which nothing else is used.
pub const KUBE_ROUTER: Part = Part {
    name: "kube-router",
    module: "github.com/cloudnativelabs/kube-router/v2",
    ldflags: "-X github.com/cloudnativelabs/kube-router/v2/pkg/version.Version=v{version}",
    cold: Duration::from_secs(105),
    ..PART
};

/// The minor version of [`KUBERNETES`]: what everything runs that is not told another.
pub const NEWEST: &str = "1.37";

/// Kubernetes and etcd, one program under the names `etcd`, `kube-apiserver`, `kube-controller-manager`,
/// `kube-scheduler`, `kubelet`, `kube-proxy` and `kubectl`. The newest; for another see
/// [`kubernetes`](super::kubernetes).
pub const KUBERNETES: Part = Part {
    name: "kubernetes",
    module: "k8s.io/kubernetes",
    packages: ".",
    links: &["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kube-proxy", "kubectl"],
    // Nodes would report v0.0.0-master otherwise.
    ldflags: "-X k8s.io/component-base/version.gitVersion=v{version} \
              -X k8s.io/component-base/version.gitMajor={major} -X k8s.io/component-base/version.gitMinor={minor}",
    cold: Duration::from_secs(400),
    ..PART
};

/// What starts the containers: `runc`. Distributions ship one that is too old for `hostUsers: false` (1.2 or later).
pub const RUNC: Part = Part {
    name: "runc",
    module: "github.com/opencontainers/runc",
    tags: "seccomp,netgo,osusergo,urfave_cli_no_docs",
    // Static: it starts containers in root file systems that have no libraries, or others.
    ldflags: "-extldflags -static",
    needs: packages::SECCOMP,
    cold: Duration::from_secs(15),
    ..PART
};

/// The cluster's name server: `coredns`.
pub const COREDNS: Part = Part {
    name: "coredns",
    module: "github.com/coredns/coredns",
    packages: ".",
    cold: Duration::from_secs(55),
    ..PART
};

/// Renders charts: `helm`.
pub const HELM: Part = Part {
    name: "helm",
    module: "helm.sh/helm/v3",
    ldflags: "-X helm.sh/helm/v3/internal/version.version=v{version}",
    cold: Duration::from_secs(45),
    ..PART
};

/// cert-manager's controller, injector and webhook in one program, `launcher`, which takes the name as its first
/// argument.
pub const CERT_MANAGER: Part = Part {
    name: "cert-manager",
    module: "github.com/cert-manager/cert-manager",
    packages: ".",
    ldflags: "-X github.com/cert-manager/cert-manager/pkg/util.AppVersion=v{version}",
    cold: Duration::from_secs(90),
    ..PART
};

/// The kinds of the Gateway API, which are manifests: there is no program in it.
pub const GATEWAY_API: Part = Part { name: "gateway-api", module: "sigs.k8s.io/gateway-api", packages: "", ..PART };

/// What programs Envoy by the Gateway API: `envoy-gateway`.
pub const ENVOY_GATEWAY: Part = Part {
    name: "envoy-gateway",
    module: "github.com/envoyproxy/gateway",
    ldflags: "-X github.com/envoyproxy/gateway/internal/cmd/version.envoyGatewayVersion=v{version}",
    cold: Duration::from_secs(150),
    ..PART
};

/// What programs Envoy by Ingress, or by an older Gateway API: `contour`.
pub const CONTOUR: Part = Part {
    name: "contour",
    module: "github.com/projectcontour/contour",
    ldflags: "-X github.com/projectcontour/contour/internal/build.Version=v{version}",
    cold: Duration::from_secs(70),
    ..PART
};

/// The registry of the container distribution project: `registry`, which keeps what is pushed in memory.
pub const REGISTRY: Part = Part {
    name: "registry",
    module: "github.com/distribution/distribution/v3",
    packages: ".",
    ldflags: "-X github.com/distribution/distribution/v3/version.version=v{version}",
    cold: Duration::from_secs(35),
    ..PART
};

/// The Prometheus operator's kinds, which are manifests: there is no program in it.
pub const PROMETHEUS_OPERATOR: Part = Part {
    name: "prometheus-operator",
    module: "github.com/prometheus-operator/prometheus-operator",
    packages: "",
    ..PART
};

/// Every part, each at its newest version.
pub const ALL: &[Part] = &[
    KUBERNETES,
    CONTAINERD,
    RUNC,
    CNI,
    KUBE_ROUTER,
    COREDNS,
    HELM,
    CERT_MANAGER,
    GATEWAY_API,
    ENVOY_GATEWAY,
    CONTOUR,
    REGISTRY,
    PROMETHEUS_OPERATOR,
];
