//! Sessions on the node that nobody runs: pods as the webhook admits them, which get their address when it is asked for.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use cofferdam_model::policy::Policy;
use cofferdam_model::{Operation, Request, Scope, User, Verdict, harden};
use k8s_openapi::api::core::v1::{Pod, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::jiff::Timestamp;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until};

use super::ground::{NAMESPACE, NODE};
use crate::fixture;

/// Requests that are on their way at the same time, where nothing is said of when.
const AT_ONCE: usize = 16;

/// How often it is looked whether all are gone.
const POLL: Duration = Duration::from_millis(100);

/// What makes sessions, and ends them.
#[derive(Clone)]
pub struct Sessions {
    client: Client,
    pods: Api<Pod>,
    pod: Arc<Value>,
    address: SocketAddr,
}

/// The session's id, which the names of its objects end with.
#[must_use]
pub fn id(number: u32) -> String {
    format!("n{number}")
}

fn name(number: u32) -> String {
    format!("run-{}", id(number))
}

impl Sessions {
    /// Whose pods all have this address and publish its port.
    ///
    /// # Errors
    /// When the pod of the benchmarks is refused.
    pub fn new(client: Client, policy: &Policy, address: SocketAddr) -> Result<Self> {
        let pod = Arc::new(admitted(policy, address.port())?);
        let pods = Api::namespaced(client.clone(), NAMESPACE);
        Ok(Self { client, pods, pod, address })
    }

    /// Creates the pods of these numbers; they have no address yet.
    ///
    /// # Errors
    /// In the API server's words.
    pub async fn create(&self, numbers: Range<u32>) -> Result<()> {
        self.of_each(numbers, async |sessions, number| {
            let mut pod = (*sessions.pod).clone();
            pod["metadata"]["name"] = json!(name(number));
            pod["metadata"]["labels"][cofferdam_model::keys::SESSION] = json!(id(number));
            let pod: Pod = serde_json::from_value(pod)?;
            sessions.pods.create(&PostParams::default(), &pod).await?;
            Ok(())
        })
        .await
        .map(drop)
    }

    /// Gives each its address, as soon as may be; for each id, when that was asked for.
    ///
    /// # Errors
    /// In the API server's words.
    pub async fn address(&self, numbers: Range<u32>) -> Result<HashMap<String, Timestamp>> {
        let asked = self.of_each(numbers, async |sessions, number| Ok((id(number), sessions.run(number).await?)));
        Ok(asked.await?.into_iter().collect())
    }

    /// Gives the first its address at the first of these times, and so on; for each id, when that was asked for.
    ///
    /// # Errors
    /// In the API server's words.
    pub async fn address_at(&self, numbers: Range<u32>, times: &[Duration]) -> Result<HashMap<String, Timestamp>> {
        let (start, mut asked) = (Instant::now(), JoinSet::new());
        for (number, time) in numbers.zip(times) {
            sleep_until(start + *time).await;
            let sessions = self.clone();
            asked.spawn(async move { anyhow::Ok((id(number), sessions.run(number).await?)) });
        }
        asked.join_all().await.into_iter().collect()
    }

    /// What a kubelet writes once the containers run.
    async fn run(&self, number: u32) -> Result<Timestamp> {
        let containers = self.pod["spec"]["containers"].as_array().context("the pod has containers")?;
        let runs = |container: &Value| {
            json!({
                "name": container["name"],
                "image": container["image"],
                "imageID": "",
                "ready": true,
                "restartCount": 0,
                "started": true,
                "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}},
            })
        };
        let ip = self.address.ip();
        let status = json!({"status": {
            "phase": "Running",
            "podIP": ip,
            "podIPs": [{"ip": ip}],
            "conditions": [{"type": "ContainersReady", "status": "True"}],
            "containerStatuses": containers.iter().map(runs).collect::<Vec<_>>(),
        }});
        let asked = Timestamp::now();
        self.pods.patch_status(&name(number), &PatchParams::default(), &Patch::Strategic(&status)).await?;
        Ok(asked)
    }

    /// Deletes all, and waits until they and their objects are gone.
    ///
    /// # Errors
    /// In the API server's words.
    pub async fn delete(&self) -> Result<()> {
        let at_once = DeleteParams::default().grace_period(0);
        let services: Api<Service> = Api::namespaced(self.client.clone(), NAMESPACE);
        let slices: Api<EndpointSlice> = Api::namespaced(self.client.clone(), NAMESPACE);
        let one = ListParams::default().limit(1);
        while !self.pods.list_metadata(&one).await?.items.is_empty() {
            // An API server gives up a request after a minute, before ten thousand are deleted: what is left is asked for again.
            match self.pods.delete_collection(&at_once, &ListParams::default()).await {
                Err(kube::Error::Api(refused)) if refused.code < 500 => return Err(kube::Error::Api(refused).into()),
                _ => {}
            }
        }
        while !services.list_metadata(&one).await?.items.is_empty()
            || !slices.list_metadata(&one).await?.items.is_empty()
        {
            sleep(POLL).await;
        }
        Ok(())
    }

    async fn of_each<F, T>(&self, numbers: Range<u32>, work: impl Fn(Self, u32) -> F) -> Result<Vec<T>>
    where
        F: Future<Output = Result<T>> + Send + 'static,
        T: Send + 'static,
    {
        let (turns, mut tasks, mut all) = (Arc::new(Semaphore::new(AT_ONCE)), JoinSet::new(), Vec::new());
        for number in numbers {
            let turn = Arc::clone(&turns).acquire_owned().await?;
            let done = work(self.clone(), number);
            tasks.spawn(async move {
                let done = done.await;
                drop(turn);
                done
            });
            while let Some(done) = tasks.try_join_next() {
                all.push(done??);
            }
        }
        for done in tasks.join_all().await {
            all.push(done?);
        }
        Ok(all)
    }
}

/// The pod of the benchmarks as the webhook lets it through, bound to the node, with one port.
fn admitted(policy: &Policy, port: u16) -> Result<Value> {
    let mut pod = serde_json::to_value(fixture::pod()?)?;
    // It is to have a node.
    pod["spec"].as_object_mut().context("the pod has a spec")?.remove("schedulingGates");
    let metadata = &mut pod["metadata"];
    metadata.as_object_mut().context("the pod has metadata")?.remove("generateName");
    metadata["labels"][cofferdam_model::keys::SESSION] = json!(id(0));
    metadata["annotations"][cofferdam_model::keys::PORTS] = json!(format!("{port}/tcp"));
    let creation = Request {
        uid: None,
        namespace: NAMESPACE,
        scope: Scope::Enforced,
        user: User { name: "bench", groups: &[] },
        operation: Operation::Create,
        pod: &pod,
    };
    match harden(&creation, policy) {
        Verdict::Hardened(hardened) => {
            let mut pod = hardened.pod;
            pod["spec"]["nodeName"] = json!(NODE);
            Ok(pod)
        }
        other => bail!("the pod of the benchmarks is not hardened: {other:?}"),
    }
}

#[cfg(test)]
mod tests {
    use cofferdam_model::audit;

    use super::*;

    #[test]
    fn the_pod_is_a_session_that_an_agent_publishes() {
        let policy = Policy::built_in();
        let pod = admitted(&policy, 3000).unwrap();
        assert_eq!(audit(&pod, &policy), []);
        assert_eq!(pod["metadata"]["annotations"]["cofferdam.dev/ports"], "3000/tcp");
        assert_eq!(pod["spec"]["nodeName"], NODE);
    }
}
