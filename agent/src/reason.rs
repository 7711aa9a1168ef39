//! Why a condition is what it is: the closed list, the worst first. `docs/conditions.md` is written from it.

/// The four conditions of a session's pod, in the order in which they are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ConditionType {
    /// Whether the pod is what the webhook would have made of it.
    Hardened,
    /// Whether every TCP port takes connections on the node.
    PortsReachable,
    /// Whether the routing layer says that it has taken the routes.
    RouteProgrammed,
    /// Whether every address works through the gateway.
    RouteReachable,
}

impl ConditionType {
    /// All four.
    pub const ALL: [Self; 4] = [Self::Hardened, Self::PortsReachable, Self::RouteProgrammed, Self::RouteReachable];

    /// The condition's type in a pod's status.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Hardened => cofferdam_model::keys::IS_HARDENED,
            Self::PortsReachable => cofferdam_model::keys::PORTS_REACHABLE,
            Self::RouteProgrammed => cofferdam_model::keys::ROUTE_PROGRAMMED,
            Self::RouteReachable => cofferdam_model::keys::ROUTE_REACHABLE,
        }
    }
}

/// The status of a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Status {
    /// It does not hold.
    False,
    /// Nobody can say.
    Unknown,
    /// It holds.
    True,
}

impl Status {
    /// As in a pod's status.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::False => "False",
            Self::Unknown => "Unknown",
            Self::True => "True",
        }
    }
}

/// Each reason once: its meaning (also its documentation), its status, the conditions that may have it, and what a
/// person can check.
macro_rules! reasons {
    ($($(#[doc = $meaning:literal])+ $name:ident: $word:literal $status:ident [$($of:ident)+] $check:literal)+) => {
        /// Why a condition is what it is; each reason has one status. The worst is the least: what is said of all ports
        /// of a session is the least of what is said of each.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Reason {
            $($(#[doc = $meaning])+ $name,)+
        }

        impl Reason {
            /// All of them, the worst first.
            pub const ALL: &'static [Self] = &[$(Self::$name),+];

            /// The word in the condition.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$name => $word),+ }
            }

            /// The status of a condition with this reason.
            #[must_use]
            pub fn status(self) -> Status {
                match self { $(Self::$name => Status::$status),+ }
            }

            /// The conditions that may have this reason.
            #[must_use]
            pub fn of(self) -> &'static [ConditionType] {
                match self { $(Self::$name => &[$(ConditionType::$of),+]),+ }
            }

            /// What it means, in one or two sentences.
            #[must_use]
            pub fn meaning(self) -> &'static str {
                match self { $(Self::$name => concat!($($meaning),+).trim_ascii_start()),+ }
            }

            /// What a person can check, or do.
            #[must_use]
            pub fn check(self) -> &'static str {
                match self { $(Self::$name => $check),+ }
            }
        }
    };
}

reasons! {
    /// The pod is not what the webhook would have made of it; the message lists every field.
    SlippedThrough: "SlippedThrough" False [Hardened]
    "Whether the pod is older than its namespace's label or the policy in force, or the webhook was bypassed. Delete the pod and create it again."

    /// The pod slipped through unhardened, so nothing of it is published.
    NotHardened: "NotHardened" False [PortsReachable RouteProgrammed RouteReachable]
    "The message of condition `cofferdam.dev/Hardened`."

    /// The pod has ended, and is published no more.
    Finished: "Finished" False [PortsReachable RouteProgrammed RouteReachable]
    "The pod's phase and the exit codes of its containers."

    /// The pod's list of ports cannot be read, so nothing of it is published.
    PortsInvalid: "PortsInvalid" False [PortsReachable RouteProgrammed RouteReachable]
    "Annotation `cofferdam.dev/ports`: write ports such as `3000/tcp,4000/udp`."

    /// The policy's `routing` contradicts itself or the cluster, so no route is made.
    RoutingInvalid: "RoutingInvalid" False [RouteProgrammed RouteReachable]
    "What the message says to set in the policy, or to install."

    /// Which routing layer to use would be a guess, so no route is made.
    RoutingAmbiguous: "RoutingAmbiguous" False [RouteProgrammed RouteReachable]
    "Set what the message names: `routing.gateway.name` or `routing.ingress.className`."

    /// The session's name is taken in its namespace: by another living pod with the same id, or by a Service that is not
    /// Cofferdam's.
    HostTaken: "HostTaken" False [RouteProgrammed RouteReachable]
    "The pod or Service that the message names: delete it, or give one of the two another id."

    /// One of the session's objects is not what it ought to be, and cannot be made that. What is there may still answer.
    PublishFailed: "PublishFailed" False [RouteProgrammed RouteReachable]
    "What the message says: a quota, rights of the agent, an admission policy, something that writes into every new object. It is tried again."

    /// One of the session's objects is being deleted, and finalizers of others keep it. It follows no change, and may vanish
    /// any moment.
    Terminating: "Terminating" False [RouteProgrammed RouteReachable]
    "The finalizers that the message names: whoever put them there has to take them away. Then the object is made anew."

    /// One of the session's objects is not what it ought to be, and is made that only in a while: its ports, or what others
    /// do to its objects, change again and again.
    PublishDelayed: "PublishDelayed" False [RouteProgrammed RouteReachable]
    "Who changes what the message names: `kubectl get --show-managed-fields` tells. Ten minutes of quiet, and changes are followed at once again."

    /// The Gateway that routes are attached to is not there.
    GatewayMissing: "GatewayMissing" False [RouteProgrammed]
    "`routing.gateway` in the policy: name and namespace."

    /// The Gateway, or its listener, is not programmed.
    GatewayNotProgrammed: "GatewayNotProgrammed" False [RouteProgrammed]
    "The conditions of the Gateway that the message names; `AddressNotAssigned` wants a load balancer or another type of Service."

    /// The gateway's controller refused the route; the message is its own.
    RefusedByController: "RefusedByController" False [RouteProgrammed]
    "With `NotAllowedByListeners`: the listener's `allowedRoutes` must admit the session's namespace, and its `hostname` the base domain."

    /// The controller does not find the Service, or may not use it.
    BackendNotResolved: "BackendNotResolved" False [RouteProgrammed]
    "Whether the session's Service is there and the controller may read Services and EndpointSlices."

    /// No controller has taken the route within `routing.deadlineSeconds`. A late one is still noticed.
    Unclaimed: "Unclaimed" False [RouteProgrammed]
    "Whether the controller of the Gateway or class that the message names runs, and whether one of the listeners that it names admits the session's namespace."

    /// Nothing is known of the address, and the routing layer has not taken the route.
    NotProgrammed: "NotProgrammed" False [RouteReachable]
    "Condition `cofferdam.dev/RouteProgrammed`."

    /// It is not known where the gateway takes connections.
    NoProbeAddress: "NoProbeAddress" False [RouteReachable]
    "The addresses in the status of the Gateway or Ingress, or set `routing.probe.address` in the policy."

    /// The gateway takes connections, and no TLS comes about.
    TlsFailed: "TLSFailed" False [RouteReachable]
    "The listener's certificate: its names, its dates, and `routing.probe.caBundle`; `routing.probe.scheme` where the gateway speaks plain text."

    /// The gateway takes no connection, or does not answer.
    NoAnswer: "NoAnswer" False [RouteReachable]
    "Whether the gateway's data plane runs and `routing.probe.address` is where nodes reach it; if it does not answer in time, whether the program does."

    /// The gateway answers, and not by this session's route.
    NotRouted: "NotRouted" False [RouteReachable]
    "Whether another route has the same host, and whether the gateway has caught up: a busy one serves a route later than it accepts it."

    /// This session's route answers with an error that the pod itself does not give.
    BadGateway: "BadGateway" False [RouteReachable]
    "Whether the port takes connections (`cofferdam.dev/PortsReachable`) and speaks HTTP, and whether the gateway's data plane may reach the pod: `network.dataPlaneNamespaces` in the policy."

    /// There is no way from the node to the pod.
    Unreachable: "Unreachable" False [PortsReachable]
    "The node's network plugin."

    /// The port does not answer: a network policy that drops packets, or a pod that hangs.
    TimedOut: "TimedOut" False [PortsReachable]
    "Network policies of the namespace: agents have to reach all ports of sessions."

    /// Nothing listens on the port at the pod's address.
    Refused: "Refused" False [PortsReachable]
    "Whether the program listens on that port, and on all addresses: one that listens on 127.0.0.1 cannot be reached from outside its pod. Some network plugins answer in the pod's place what a policy denies: network policies of the namespace have to let agents reach all ports of sessions."

    /// The pod's node is not ready. The session is out of service until the node is back.
    NodeLost: "NodeLost" Unknown [PortsReachable RouteProgrammed RouteReachable]
    "The node's conditions."

    /// The agent of the pod's node is not ready. Nobody looks after its routes: they stay as they are, and only pods that end
    /// go out of service.
    AgentSilent: "AgentSilent" Unknown [PortsReachable RouteProgrammed RouteReachable]
    "The pod of DaemonSet `cofferdam-agent` on that node."

    /// The pod has no address yet.
    NoAddress: "NoAddress" Unknown [PortsReachable RouteProgrammed RouteReachable]
    "The pod's events: it may wait for a node, a volume, or its network."

    /// Not every container of the pod runs yet, so nothing is to be expected of its ports.
    NotStarted: "NotStarted" Unknown [PortsReachable RouteReachable]
    "`kubectl describe pod`: it may wait for an image, a Secret or an init container, or cannot be started."

    /// The namespace has no NetworkPolicy `cofferdam-sessions` yet, and nothing is published before.
    WaitingForNetworkPolicy: "WaitingForNetworkPolicy" Unknown [RouteProgrammed RouteReachable]
    "Whether an agent is elected (Lease `cofferdam-agent`) and may write NetworkPolicies; with `network.mode: manual` none is waited for."

    /// The status of the route, or of its Gateway, cannot be read.
    StatusUnreadable: "StatusUnreadable" Unknown [RouteProgrammed]
    "The agent's rights on httproutes, gateways and ingresses, and whether the API server answers."

    /// Nothing is known yet; the message says what is waited for.
    Pending: "Pending" Unknown [RouteProgrammed RouteReachable]
    "Nothing, for the first `routing.deadlineSeconds`; then what the message names."

    /// The ports are being dialled, and none has given an answer that counts yet.
    Checking: "Checking" Unknown [PortsReachable]
    "Nothing, while the program starts; the message says what was found so far, and after about half a minute it is told what is wrong."

    /// Every address works. Where the routing layer cannot prove who answers, all that is known is that the answer differs
    /// from that for a host that nobody has.
    ReachableUnproved: "ReachableUnproved" True [RouteReachable]
    "Nothing. For a proof, use a Gateway whose class supports `HTTPRouteResponseHeaderModification`, or set `routing.proof: on`."

    /// Every address works, and this session's route answers there.
    Reachable: "Reachable" True [RouteReachable]
    "Nothing."

    /// The Ingress has an address. That is all an Ingress can say, and less than `Programmed`.
    AddressAssigned: "AddressAssigned" True [RouteProgrammed]
    "Nothing."

    /// The routing layer has taken every route.
    Programmed: "Programmed" True [RouteProgrammed]
    "Nothing."

    /// Every TCP port takes connections on the node.
    AllReachable: "AllReachable" True [PortsReachable]
    "Nothing."

    /// The session has no TCP port, or its namespace has no sessions any more.
    NothingToDial: "NothingToDial" True [PortsReachable]
    "If it should have one: the containers' `ports`, or annotation `cofferdam.dev/ports`."

    /// The session has no TCP port, routing is off, or its namespace has no sessions any more.
    NothingToRoute: "NothingToRoute" True [RouteProgrammed RouteReachable]
    "If it should have an address: `routing.baseDomain` and `routing.mode` in the policy, and the session's ports."

    /// The audit finds nothing.
    Hardened: "Hardened" True [Hardened]
    "Nothing."
}
