//! The words that pods, namespaces and Cofferdam exchange: labels, annotations and reserved names.

/// Namespace label: `enforced` turns every pod created in the namespace into a session, `warn` tells what that would do.
pub const SESSIONS: &str = "cofferdam.dev/sessions";

/// Pod label: opts a pod in, and holds its session id. Empty asks for a derived id.
pub const SESSION: &str = "cofferdam.dev/session";

/// Pod label: the policy profile a session is hardened by; [`DEFAULT_PROFILE`] where it is missing.
pub const PROFILE: &str = "cofferdam.dev/profile";

/// Pod annotation: where the body is fetched from, an http or https URL.
pub const BODY_URL: &str = "cofferdam.dev/body-url";

/// Pod annotation: the SHA-256 of the body, as 64 hex digits.
pub const BODY_SHA256: &str = "cofferdam.dev/body-sha256";

/// Pod annotation: the Secret whose key `token` lets the pod fetch the body. None for a body that anyone may fetch.
pub const BODY_TOKEN_SECRET: &str = "cofferdam.dev/body-token-secret";

/// Pod annotation: the entry's path inside the body, for profiles whose command has a place for it.
pub const ENTRY: &str = "cofferdam.dev/entry";

/// Pod annotation: the ports to route, such as `3000/tcp,4000/udp`; overrides those that the containers declare.
pub const PORTS: &str = "cofferdam.dev/ports";

/// Pod annotation written by us: version, profile and policy digest as JSON.
pub const HARDENED: &str = "cofferdam.dev/hardened";

/// Pod annotation written by us: what was changed, as a JSON list of at most 4 KiB.
pub const CHANGES: &str = "cofferdam.dev/changes";

/// Pod annotation written by the agent: what is known about the session's ports.
pub const ENDPOINTS: &str = "cofferdam.dev/endpoints";

/// Pod condition, and readiness gate: the session's address is known to work.
pub const ROUTE_REACHABLE: &str = "cofferdam.dev/RouteReachable";

/// The profile of a pod that names none.
pub const DEFAULT_PROFILE: &str = "default";

/// Names of containers and volumes that begin with this are ours.
pub const RESERVED_NAME: &str = "cofferdam-";

/// The namespace that Cofferdam is installed in, unless it is told another.
pub const SYSTEM_NAMESPACE: &str = "cofferdam-system";

/// The cluster's own namespace.
pub const KUBE_SYSTEM: &str = "kube-system";

/// The annotation by which a kubelet marks the mirror of a static pod (Kubernetes: static pods).
pub const MIRROR_POD: &str = "kubernetes.io/config.mirror";

/// The group of every kubelet's user (Kubernetes: node authorization).
pub const KUBELETS: &str = "system:nodes";

/// The init container that fetches a body.
pub const FETCH_CONTAINER: &str = "cofferdam-fetch";

/// Pod annotation: for how many seconds a finished pod is kept, where that is longer than the policy's.
pub const FINISHED_GRACE: &str = "cofferdam.dev/finished-grace-seconds";

/// Label of everything that an agent makes: a hash of the name of its node, which may be longer than a label.
pub const NODE_HASH: &str = "cofferdam.dev/node-hash";

/// Annotation of everything that an agent makes: the name of its node.
pub const NODE: &str = "cofferdam.dev/node";

/// The label by which Kubernetes' tools say who manages an object (Kubernetes: recommended labels).
pub const MANAGED_BY: &str = "app.kubernetes.io/managed-by";

/// The value of [`MANAGED_BY`] on what agents make, and their field manager in server-side apply.
pub const AGENT: &str = "cofferdam-agent";

/// The value of [`MANAGED_BY`] on what the API makes.
pub const API: &str = "cofferdam-api";

/// Annotation of a session's Secret, written by the API: what the pod does not tell of the session, as JSON.
pub const RECORD: &str = "cofferdam.dev/record";

/// Annotation of a session's pod and Secret, written by the API: when somebody asked for the session's end.
pub const STOPPED: &str = "cofferdam.dev/stopped";

/// Annotation of a session's pod and Secret, written by the API: why the session could not start, as JSON.
pub const REFUSED: &str = "cofferdam.dev/refused";

/// Pod condition: the audit finds nothing.
pub const IS_HARDENED: &str = "cofferdam.dev/Hardened";

/// Pod condition: every TCP port takes connections on the node.
pub const PORTS_REACHABLE: &str = "cofferdam.dev/PortsReachable";

/// Pod condition: the routing layer says that it has taken the routes.
pub const ROUTE_PROGRAMMED: &str = "cofferdam.dev/RouteProgrammed";

/// The `NetworkPolicy` of every namespace that has sessions.
pub const NETWORK_POLICY: &str = "cofferdam-sessions";
