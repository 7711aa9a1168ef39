//! A cluster without Cofferdam, and what an agent needs to be watched at work on it: a node that nobody runs, and an
//! account of its own, so that the API server's log tells its requests from everybody else's.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use cofferdam_cluster::addon::GATEWAY_API;
use cofferdam_cluster::cluster::{Cluster, Options};
use cofferdam_cluster::progress::Progress;
use cofferdam_e2e::stage::kubernetes;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::jiff::Timestamp;
use kube::api::{Patch, PatchParams};
use kube::{Api, Client};
use rustix::process::Signal;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::task::JoinHandle;

/// The node that nobody runs.
pub const NODE: &str = "bench-1";

/// Where sessions are.
pub const NAMESPACE: &str = "cofferdam-sessions";

/// What a kubelet does, so that the node is not taken for lost.
const HEARTBEAT: Duration = Duration::from_secs(10);

/// Programs of the cluster's own node that would take each Service in too, for pods that are nowhere: on a cluster of any size
/// they are not where the API server is.
const BYSTANDERS: [&str; 3] = ["kube-proxy", "kube-router", "kube-scheduler"];

const OBJECTS: &str = "
{apiVersion: v1, kind: Namespace, metadata: {name: cofferdam-system}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: cofferdam-sessions, labels: {cofferdam.dev/sessions: enforced}}}
---
{apiVersion: v1, kind: ServiceAccount, metadata: {name: cofferdam-agent, namespace: cofferdam-system}}
---
# Without it no pod can be made; somebody else makes it a moment later.
{apiVersion: v1, kind: ServiceAccount, metadata: {name: default, namespace: cofferdam-sessions}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: bench-agent}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects: [{kind: ServiceAccount, name: cofferdam-agent, namespace: cofferdam-system}]
---
apiVersion: v1
kind: Node
metadata: {name: bench-1}
spec: {taints: [{key: cofferdam.test/nobody, effect: NoSchedule}]}
";

/// The cluster, and an agent's account on it.
pub struct Ground {
    /// The cluster.
    pub cluster: Cluster,
    /// Its administrator.
    pub client: Client,
    files: TempDir,
    heart: JoinHandle<()>,
}

impl Ground {
    /// Starts it, with this policy for the agent.
    ///
    /// # Errors
    /// What could not be started.
    pub async fn start(policy: &str) -> Result<Self> {
        let progress = Progress::new();
        let options = Options { name: "bench-agent".to_owned(), kubernetes: kubernetes(), ..Options::default() };
        let mut cluster = Cluster::up(&options, &progress).await.context("the cluster does not start")?;
        tokio::task::block_in_place(|| cluster.install(&GATEWAY_API, &progress))?;
        cluster.apply(OBJECTS)?;
        for program in BYSTANDERS {
            cluster.signal("node-1", program, Signal::STOP)?;
        }
        let files = tempfile::tempdir()?;
        let token = ["--namespace=cofferdam-system", "create", "token", "cofferdam-agent", "--duration=24h"];
        let kubeconfig = as_user(&fs::read_to_string(cluster.kubeconfig())?, cluster.kubectl(token)?.trim())?;
        fs::write(files.path().join("kubeconfig"), kubeconfig)?;
        fs::write(files.path().join("policy.yaml"), policy)?;
        let client = cluster.client().await?;
        beat(&client).await?;
        let its_client = client.clone();
        let heart = tokio::spawn(async move {
            loop {
                tokio::time::sleep(HEARTBEAT).await;
                // The next one comes soon, and a node is lost only after several.
                let _ = beat(&its_client).await;
            }
        });
        Ok(Self { cluster, client, files, heart })
    }

    /// The way to the API server, as the agent.
    #[must_use]
    pub fn kubeconfig(&self) -> PathBuf {
        self.files.path().join("kubeconfig")
    }

    /// The agent's policy.
    #[must_use]
    pub fn policy(&self) -> PathBuf {
        self.files.path().join("policy.yaml")
    }
}

impl Drop for Ground {
    fn drop(&mut self) {
        self.heart.abort();
    }
}

/// The kubeconfig for whoever has `token`.
fn as_user(kubeconfig: &str, token: &str) -> Result<String> {
    let mut kubeconfig: Value = serde_saphyr::from_str(kubeconfig)?;
    kubeconfig["users"][0]["user"] = json!({"token": token});
    // JSON is YAML.
    Ok(kubeconfig.to_string())
}

/// What a kubelet says when it is well.
async fn beat(client: &Client) -> Result<()> {
    let now = format!("{:.6}", Timestamp::now());
    let lease = json!({
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": NODE},
        "spec": {"holderIdentity": NODE, "leaseDurationSeconds": 40, "renewTime": now},
    });
    let how = PatchParams::apply("bench").force();
    let leases: Api<Lease> = Api::namespaced(client.clone(), "kube-node-lease");
    leases.patch(NODE, &how, &Patch::Apply(&lease)).await?;
    let ready = json!({"type": "Ready", "status": "True", "reason": "KubeletReady", "lastHeartbeatTime": now});
    let status = json!({"status": {"conditions": [ready]}});
    let nodes: Api<k8s_openapi::api::core::v1::Node> = Api::all(client.clone());
    nodes.patch_status(NODE, &PatchParams::default(), &Patch::Strategic(&status)).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_agent_comes_with_its_own_token_and_nothing_of_the_administrators() {
        let text = "clusters: [{name: c, cluster: {server: 'https://127.0.0.1:1'}}]\nusers: [{name: u, user: {client-key-data: secret}}]\n";
        let agents: Value = serde_json::from_str(&as_user(text, "t").unwrap()).unwrap();
        assert_eq!(agents["users"][0], json!({"name": "u", "user": {"token": "t"}}));
        assert_eq!(agents["clusters"][0]["cluster"]["server"], "https://127.0.0.1:1");
    }
}
