//! What an agent may write, asked with the tokens that agents have: bound to a pod, which is on a node. Everything is
//! asked by dry run, so that agents that run beside the test notice nothing but a Lease in other hands for a moment.

use anyhow::{Context, Result, ensure};
use cofferdam_e2e::images::FIXTURE;
use cofferdam_e2e::install::SYSTEM;
use cofferdam_e2e::namespace::{PATIENCE, Sessions, TestNamespace};
use cofferdam_e2e::stage::Stage;
use cofferdam_e2e::wait::until;
use kube::api::{ApiResource, DeleteParams, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams};
use kube::config::{AuthInfo, KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config};
use serde_json::{Value, json};

const ACCOUNT: &str = "cofferdam-agent";

/// One request, in the namespace of the test.
enum Ask {
    Create(Value),
    /// A merge patch.
    Patch(&'static str, &'static str, Value),
    /// A strategic merge patch of a pod's status.
    Report(&'static str, Value),
    Delete(&'static str, &'static str),
    /// The Lease, updated with this holder.
    Hold(String),
}

use Ask::{Create, Delete, Hold, Patch as Change, Report};

fn api(client: &Client, namespace: &str, kind: &str) -> Api<DynamicObject> {
    let (group, plural) = match kind {
        "Pod" => ("", "pods"),
        "Service" => ("", "services"),
        "EndpointSlice" => ("discovery.k8s.io", "endpointslices"),
        "Ingress" => ("networking.k8s.io", "ingresses"),
        "NetworkPolicy" => ("networking.k8s.io", "networkpolicies"),
        _ => ("coordination.k8s.io", "leases"),
    };
    let resource = ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, "v1", kind), plural);
    Api::namespaced_with(client.clone(), namespace, &resource)
}

/// Somebody who holds a token.
struct Holder {
    runtime: tokio::runtime::Runtime,
    client: Client,
}

impl Holder {
    fn of(stage: &Stage, token: &str) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let client = runtime.block_on(async {
            let file = Kubeconfig::read_from(stage.cluster.kubeconfig())?;
            let mut config = Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await?;
            config.proxy_url = None;
            config.auth_info = AuthInfo { token: Some(token.trim().to_owned().into()), ..AuthInfo::default() };
            anyhow::Ok(Client::try_from(config)?)
        })?;
        Ok(Self { runtime, client })
    }

    /// Asks by dry run. The error is what the API server said.
    fn ask(&self, namespace: &str, ask: &Ask) -> Result<(), String> {
        let answer = self.runtime.block_on(async {
            let patching = PatchParams { dry_run: true, ..PatchParams::default() };
            match ask {
                Create(object) => {
                    let api = api(&self.client, namespace, object["kind"].as_str().unwrap());
                    let object = serde_json::from_value(object.clone()).unwrap();
                    let posting = PostParams { dry_run: true, ..PostParams::default() };
                    api.create(&posting, &object).await.map(|_| ())
                }
                Change(kind, name, change) => {
                    let api = api(&self.client, namespace, kind);
                    api.patch(name, &patching, &Patch::Merge(change)).await.map(|_| ())
                }
                Report(pod, change) => {
                    let api = api(&self.client, namespace, "Pod");
                    api.patch_status(pod, &patching, &Patch::Strategic(change)).await.map(|_| ())
                }
                Delete(kind, name) => {
                    let deleting = DeleteParams { dry_run: true, ..DeleteParams::default() };
                    api(&self.client, namespace, kind).delete(name, &deleting).await.map(|_| ())
                }
                Hold(holder) => {
                    let api = api(&self.client, namespace, "Lease");
                    let mut lease = api.get(ACCOUNT).await?;
                    lease.data["spec"]["holderIdentity"] = json!(holder);
                    let posting = PostParams { dry_run: true, ..PostParams::default() };
                    api.replace(ACCOUNT, &posting, &lease).await.map(|_| ())
                }
            }
        });
        match answer {
            Ok(()) => Ok(()),
            Err(kube::Error::Api(status)) => Err(status.message),
            // What no policy said.
            Err(other) => Err(format!("{other:#}")),
        }
    }
}

/// Two sessions on two nodes, what agents would publish for them, and a pod that is no session.
struct Scene<'a> {
    stage: &'a Stage,
    sessions: TestNamespace,
    others: TestNamespace,
}

impl Scene<'_> {
    fn prepare(stage: &Stage) -> Result<Scene<'_>> {
        let scene = Scene {
            stage,
            sessions: stage.namespace("agent-rights", Sessions::None),
            others: stage.namespace("agent-rights-others", Sessions::None),
        };
        // The namespace is labelled after they were made, since nobody may choose the node of a session.
        scene.others.create_object(&pod("other", "node-1", "default").to_string())?;
        for (name, node) in [("one", "node-1"), ("two", "node-2")] {
            let session = scene.sessions.create_object(&pod(name, node, "default").to_string())?.pod;
            for kind in ["Service", "EndpointSlice"] {
                let mut object = published(kind, &format!("s-{name}"), node);
                // What belongs to nobody is swept away by agents that run.
                object["metadata"]["ownerReferences"] = json!([{"apiVersion": "v1", "kind": "Pod", "name": name,
                    "uid": session["metadata"]["uid"]}]);
                scene.sessions.create_object(&object.to_string())?;
            }
        }
        let mut foreign = published("Service", "foreign", "node-1");
        foreign["metadata"]["labels"] = json!({});
        scene.sessions.create_object(&foreign.to_string())?;
        for (name, manager, node, owner) in STRIPPED {
            let mut object = published("Service", name, "node-1");
            let left = |key: &str, value: Option<&str>| value.map_or(json!({}), |value| json!({ key: value }));
            object["metadata"]["labels"] = left("app.kubernetes.io/managed-by", manager);
            object["metadata"]["annotations"] = left("cofferdam.dev/node", node);
            let owner = scene.sessions.json(["get", owner])?;
            object["metadata"]["ownerReferences"] = json!([{"apiVersion": "v1", "kind": owner["kind"],
                "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"]}]);
            scene.sessions.create_object(&object.to_string())?;
        }
        // Nor the owner of what is named as a session's.
        scene.label("enforced")?;
        for node in ["node-1", "node-2"] {
            let name = agent(node);
            stage.system(&["delete", "pod", &name, "--ignore-not-found", "--now"])?;
            let pod = pod(&name, node, ACCOUNT).to_string();
            stage.kubectl.run_with(["create", "--namespace", SYSTEM, "--filename=-"], &pod)?;
        }
        Ok(scene)
    }

    fn label(&self, value: &str) -> Result<String> {
        let label = format!("cofferdam.dev/sessions={value}");
        self.stage.kubectl.run(["label", "namespace", self.sessions.name(), &label])
    }

    /// The agent of a node.
    fn agent(&self, node: &str) -> Result<Holder> {
        let name = agent(node);
        let pod = self.stage.kubectl.json(["get", "pod", &name, "--namespace", SYSTEM])?;
        let uid = pod["metadata"]["uid"].as_str().context("a pod has a uid")?;
        let token = self.stage.system(&[
            "create",
            "token",
            ACCOUNT,
            "--bound-object-kind=Pod",
            &format!("--bound-object-name={name}"),
            &format!("--bound-object-uid={uid}"),
        ])?;
        Holder::of(self.stage, &token)
    }

    /// Writes that name into the Lease. Agents that run leave it there for 15 s; a higher `turn` is a renewal.
    fn elect(&self, name: &str, turn: usize) {
        let spec = json!({"spec": {"holderIdentity": name, "leaseTransitions": turn}}).to_string();
        self.stage.system(&["patch", "lease", ACCOUNT, "--type=merge", "--patch", &spec]).unwrap();
    }

    /// What an agent is allowed of all this, and of what it is refused by the policy.
    fn judge(&self, holder: &Holder, asks: Vec<(Ask, Option<&str>)>) {
        for (index, (ask, refusal)) in asks.into_iter().enumerate() {
            let answer = holder.ask(self.sessions.name(), &ask);
            let as_expected = match (&answer, refusal) {
                (Err(message), Some(word)) => message.contains("cofferdam-agent-node") && message.contains(word),
                _ => answer.is_ok() && refusal.is_none(),
            };
            assert!(as_expected, "request {index}: {answer:?}, not {refusal:?}");
        }
    }

    /// Waits until the API server allows this, which it does a moment after it may.
    fn allowed(&self, holder: &Holder, ask: &Ask) {
        let look = || holder.ask(self.sessions.name(), ask).map_err(anyhow::Error::msg);
        until("the API server knows who may what", PATIENCE, look).unwrap();
    }
}

impl Drop for Scene<'_> {
    fn drop(&mut self) {
        let spec = r#"{"spec":{"holderIdentity":null}}"#;
        let _ = self.stage.system(&["patch", "lease", ACCOUNT, "--type=merge", "--patch", spec]);
        for node in ["node-1", "node-2"] {
            let _ = self.stage.system(&["delete", "pod", &agent(node), "--wait=false", "--now"]);
        }
    }
}

/// Services of sessions' names, of which somebody took what says whose they are: what is left of manager and node, and who
/// owns it.
const STRIPPED: [(&str, Option<&str>, Option<&str>, &str); 6] = [
    ("s-bare", None, None, "pod/one"),
    ("s-labelled", Some(ACCOUNT), None, "pod/one"),
    ("s-noted", Some("somebody"), Some("node-1"), "serviceaccount/default"),
    ("s-given", None, Some("node-2"), "pod/one"),
    ("s-managed", Some("somebody"), None, "pod/one"),
    ("s-nobodys", None, None, "serviceaccount/default"),
];

fn agent(node: &str) -> String {
    format!("agent-rights-{node}")
}

fn pod(name: &str, node: &str, account: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {
        "nodeName": node, "serviceAccountName": account, "automountServiceAccountToken": false,
        "terminationGracePeriodSeconds": 0,
        "securityContext": {"runAsNonRoot": true, "runAsUser": 1000, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [{"name": "app", "image": FIXTURE, "args": ["listen", "--port", "9000"], "securityContext":
            {"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}}}],
    }})
}

/// Something that the agent of a node makes.
fn published(kind: &str, name: &str, node: &str) -> Value {
    let (version, field, content) = match kind {
        "Service" => ("v1", "spec", json!({"clusterIP": "None", "ports": [{"name": "tcp-3000", "port": 3000}]})),
        "EndpointSlice" => ("discovery.k8s.io/v1", "endpoints", json!([{"addresses": ["10.9.9.9"]}])),
        "NetworkPolicy" => ("networking.k8s.io/v1", "spec", json!({"podSelector": {}})),
        _ => {
            let service = json!({"service": {"name": name, "port": {"number": 3000}}});
            ("networking.k8s.io/v1", "spec", json!({"defaultBackend": service}))
        }
    };
    let mut object = json!({"apiVersion": version, "kind": kind, "metadata": {"name": name,
        "labels": {"app.kubernetes.io/managed-by": ACCOUNT, "cofferdam.dev/session": name.trim_start_matches("s-")},
        "annotations": {"cofferdam.dev/node": node}}});
    object[field] = content;
    if kind == "EndpointSlice" {
        object["addressType"] = json!("IPv4");
        object["metadata"]["labels"]["kubernetes.io/service-name"] = json!(name);
    }
    object
}

fn without(mut object: Value, pointer: &str) -> Value {
    *object.pointer_mut(pointer).unwrap() = json!({});
    object
}

fn with(mut object: Value, pointer: &str, value: Value) -> Value {
    let (parent, key) = pointer.rsplit_once('/').unwrap();
    object.pointer_mut(parent).unwrap()[key.replace("~1", "/")] = value;
    object
}

fn report() -> Value {
    json!({"metadata": {"annotations": {"cofferdam.dev/endpoints": "{\"v\":1}"}},
        "status": {"conditions": [{"type": "cofferdam.dev/RouteReachable", "status": "False"}]}})
}

/// A change that means nothing.
fn touch() -> Value {
    json!({"metadata": {"annotations": {"example.com/any": "x"}}})
}

fn given_to(node: &str) -> Value {
    json!({"metadata": {"annotations": {"cofferdam.dev/node": node}}})
}

const OTHER_NODE: Option<&str> = Some("node: belongs to");
const ELECTED_ONLY: Option<&str> = Some("only cofferdam-sessions is");
const SOMEBODY_ELSES: Option<&str> = Some("managed-by]");
const OTHER_NAME: Option<&str> = Some("metadata.name: is not");
const ONE_ANNOTATION: Option<&str> = Some("metadata: an agent");
const NO_STATUS: Option<&str> = Some("status: an agent");

#[test]
fn an_agent_writes_for_its_own_node_and_the_elected_one_what_it_has_to_for_others() {
    let scene = Scene::prepare(Stage::shared()).unwrap();
    let agent_of_one = scene.agent("node-1").unwrap();
    scene.allowed(&agent_of_one, &Report("one", report()));
    for_its_own_node(&scene, &agent_of_one);
    for_no_other_node(&scene, &agent_of_one);
    nothing_but_its_own(&scene, &agent_of_one);
    what_was_stripped(&scene, &agent_of_one);
    scene.elect(&agent("node-1"), 1);
    scene.allowed(&agent_of_one, &Report("two", report()));
    elected(&scene, &agent_of_one);
    let agent_of_two = scene.agent("node-2").unwrap();
    scene.judge(&agent_of_two, vec![(Report("one", report()), OTHER_NODE), (Report("two", report()), None)]);
    anybody_else(&scene);
}

fn for_its_own_node(scene: &Scene, agent: &Holder) {
    scene.judge(
        agent,
        vec![
            (Report("one", report()), None),
            (Delete("Pod", "one"), None),
            (Create(published("Service", "s-new", "node-1")), None),
            (Create(published("EndpointSlice", "s-new", "node-1")), None),
            (Create(published("Ingress", "s-new", "node-1")), None),
            (Change("Service", "s-one", touch()), None),
            (Delete("Service", "s-one"), None),
            (Delete("EndpointSlice", "s-one"), None),
        ],
    );
}

fn for_no_other_node(scene: &Scene, agent: &Holder) {
    scene.judge(
        agent,
        vec![
            (Report("two", report()), OTHER_NODE),
            (Delete("Pod", "two"), OTHER_NODE),
            (Create(published("Service", "s-new", "node-2")), OTHER_NODE),
            (Create(published("EndpointSlice", "s-new", "node-2")), OTHER_NODE),
            (Create(published("Ingress", "s-new", "node-2")), OTHER_NODE),
            (Create(without(published("Service", "s-new", "node-1"), "/metadata/annotations")), OTHER_NODE),
            (Change("Service", "s-two", touch()), OTHER_NODE),
            // Neither taken from another node, nor given to one.
            (Change("Service", "s-two", given_to("node-1")), OTHER_NODE),
            (Change("Service", "s-one", given_to("node-2")), OTHER_NODE),
            (Change("EndpointSlice", "s-two", touch()), OTHER_NODE),
            (Delete("Service", "s-two"), OTHER_NODE),
            (Delete("EndpointSlice", "s-two"), OTHER_NODE),
        ],
    );
}

fn nothing_but_its_own(scene: &Scene, holder: &Holder) {
    scene.judge(
        holder,
        vec![
            (Create(published("NetworkPolicy", "cofferdam-sessions", "node-1")), ELECTED_ONLY),
            (Create(without(published("Service", "s-new", "node-1"), "/metadata/labels")), SOMEBODY_ELSES),
            (Create(with(published("Service", "s-new", "node-1"), "/metadata/name", json!("kubernetes"))), OTHER_NAME),
            (
                Create(with(published("Service", "s-new", "node-1"), "/spec/externalIPs", json!(["192.0.2.1"]))),
                Some("spec: a session's Service"),
            ),
            (
                Create(with(
                    published("EndpointSlice", "s-new", "node-1"),
                    "/metadata/labels/kubernetes.io~1service-name",
                    json!("kube-dns"),
                )),
                Some("service-name]"),
            ),
            (Change("Service", "foreign", touch()), SOMEBODY_ELSES),
            (Delete("Service", "foreign"), SOMEBODY_ELSES),
            (Report("one", json!({"metadata": {"labels": {"app": "x"}}})), ONE_ANNOTATION),
            (Report("one", json!({"metadata": {"finalizers": ["example.com/any"]}})), ONE_ANNOTATION),
            (Report("one", touch()), ONE_ANNOTATION),
            (Report("one", json!({"status": {"podIP": "10.9.9.9"}})), NO_STATUS),
            (Report("one", json!({"status": {"phase": "Failed"}})), NO_STATUS),
            (
                Report("one", json!({"status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}})),
                Some("status.conditions: an agent"),
            ),
        ],
    );
    for ask in [Report("other", report()), Delete("Pod", "other")] {
        let message = holder.ask(scene.others.name(), &ask).unwrap_err();
        assert!(message.contains("pod: is no session"), "{message}");
    }
    // Agents that run renew it as well.
    let hold = |node: &str| {
        until("an answer", PATIENCE, || {
            let answer = holder.ask(SYSTEM, &Hold(agent(node)));
            ensure!(!answer.as_ref().is_err_and(|message| message.contains("has been modified")), "{answer:?}");
            Ok(answer)
        })
        .unwrap()
    };
    hold("node-1").unwrap();
    let message = hold("node-2").unwrap_err();
    assert!(message.contains("spec.holderIdentity"), "{message}");
}

/// What it made is its own again whatever was taken from it; what may be somebody else's is not.
fn what_was_stripped(scene: &Scene, holder: &Holder) {
    let taken = |name: &str| {
        let metadata = &published("Service", name, "node-1")["metadata"];
        json!({"metadata": {"labels": metadata["labels"], "annotations": metadata["annotations"]}})
    };
    scene.judge(
        holder,
        vec![
            (Change("Service", "s-bare", taken("s-bare")), None),
            (Change("Service", "s-labelled", taken("s-labelled")), None),
            (Change("Service", "s-noted", taken("s-noted")), None),
            (Change("Service", "s-given", taken("s-given")), OTHER_NODE),
            (Change("Service", "s-managed", taken("s-managed")), OTHER_NODE),
            (Change("Service", "s-nobodys", taken("s-nobodys")), OTHER_NODE),
            // Only to make it whole, as its own and under its name.
            (Change("Service", "s-bare", touch()), OTHER_NODE),
            (Change("Service", "s-bare", given_to("node-2")), OTHER_NODE),
            (Change("Service", "s-bare", taken("s-other")), OTHER_NAME),
            (
                Change("Service", "s-bare", with(taken("s-bare"), "/spec", json!({"externalIPs": ["192.0.2.1"]}))),
                Some("spec: a session's Service"),
            ),
            (Delete("Service", "s-bare"), OTHER_NODE),
        ],
    );
}

fn elected(scene: &Scene, holder: &Holder) {
    let network = |name| published("NetworkPolicy", name, "node-1");
    let asks = [
        (Report("two", report()), None),
        (Delete("Pod", "two"), OTHER_NODE),
        (Delete("Service", "s-two"), None),
        (Change("EndpointSlice", "s-two", json!({"endpoints": []})), None),
        (Change("EndpointSlice", "s-two", json!({"endpoints": [{"addresses": ["10.9.9.8"]}]})), OTHER_NODE),
        // Whose they are stays as it is.
        (Change("EndpointSlice", "s-two", with(given_to("node-1"), "/endpoints", json!([]))), OTHER_NODE),
        (Change("EndpointSlice", "s-two", json!({"endpoints": [], "metadata": {"ownerReferences": []}})), OTHER_NODE),
        (Create(network("other")), ELECTED_ONLY),
        (Create(without(network("cofferdam-sessions"), "/metadata/labels")), SOMEBODY_ELSES),
        (Create(published("Service", "s-new", "node-2")), OTHER_NODE),
        (Change("Service", "s-two", touch()), OTHER_NODE),
        (Report("two", json!({"status": {"phase": "Failed"}})), NO_STATUS),
        (Delete("Service", "foreign"), SOMEBODY_ELSES),
    ];
    for (turn, ask) in asks.into_iter().enumerate() {
        scene.elect(&agent("node-1"), turn + 2);
        scene.judge(holder, vec![ask]);
    }
    // An agent that runs may have made it already.
    let made = holder.ask(scene.sessions.name(), &Create(network("cofferdam-sessions")));
    assert!(made.as_ref().err().is_none_or(|message| message.contains("already exists")), "{made:?}");
}

/// The account alone makes nobody an agent, and a report by anybody else is a forgery.
fn anybody_else(scene: &Scene) {
    let token = scene.stage.system(&["create", "token", ACCOUNT]).unwrap();
    let unbound = Holder::of(scene.stage, &token).unwrap();
    scene.judge(&unbound, vec![(Report("one", report()), Some("token: is bound to no pod"))]);
    let report = report().to_string();
    let forgery = ["patch", "pod", "one", "--subresource=status", "--patch", &report, "--dry-run=server"];
    let forged = scene.sessions.ask(forgery, "").unwrap();
    assert!(!forged.success && forged.stderr.contains("cofferdam-reports"), "{forged:?}");
}
