//! How long after a session's address works the agent says so: an independent client asks through the gateway every 5 ms,
//! and another looks at the pod. Real pods, on a real node, behind a real gateway.

use std::pin::pin;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use cofferdam_cluster::addon::ENVOY_GATEWAY;
use cofferdam_e2e::images::FIXTURE;
use cofferdam_e2e::namespace::Sessions;
use cofferdam_e2e::routing::{Door, ENVOY_GATEWAY_NETWORK, policy, through_gateway};
use cofferdam_e2e::stage::{Setup, Stage, kubernetes};
use cofferdam_model::host::host;
use cofferdam_model::keys;
use cofferdam_model::policy::Policy;
use cofferdam_model::session::SessionId;
use futures_util::TryStreamExt as _;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::{DeleteParams, PostParams};
use kube::runtime::watcher::watch_object;
use serde_json::json;

use crate::distribution::Latencies;
use crate::{Effort, markdown};

/// How often the client asks.
const POLL: Duration = Duration::from_millis(5);

const PORT: u16 = 3000;

/// Starts a cluster with a gateway and Cofferdam, measures, and returns the table.
///
/// # Errors
/// When the cluster does not start, or an address does not come to work.
pub fn run(effort: Effort) -> Result<String> {
    let text = policy(&through_gateway(), ENVOY_GATEWAY_NETWORK);
    let setup =
        Setup { name: "bench-address", nodes: 1, addons: &[ENVOY_GATEWAY], policy: &text, not_ready_after: None };
    let stage = Stage::set_up(&setup)?;
    let door = Door::of_gateway(&stage)?;
    let namespace = stage.namespace("bench-address", Sessions::Enforced);
    let policy = Policy::parse("policy.yaml", &text)?;
    let runtime = tokio::runtime::Runtime::new()?;
    let client = runtime.block_on(stage.cluster.client())?;
    let pods: Api<Pod> = Api::namespaced(client, namespace.name());
    let (mut to_serve, mut to_say) = (Vec::new(), Vec::new());
    for number in 0..effort.pick(50, 2) {
        let id = SessionId::parse(&format!("n{number}"))?;
        let host = host(PORT, &id, namespace.name(), policy.routing()).context("routing is on")?;
        let (created, serves, says) = runtime.block_on(async {
            let serves = tokio::task::spawn_blocking(move || serves(door, &host));
            let created = Instant::now();
            pods.create(&PostParams::default(), &pod(&id)?).await?;
            let says = says(&pods, id.as_str()).await?;
            // Not before both have seen it: the agent may be first.
            let serves = serves.await?;
            pods.delete(id.as_str(), &DeleteParams::default().grace_period(0)).await?;
            anyhow::Ok((created, serves, says))
        })?;
        to_serve.push(serves.saturating_duration_since(created));
        // An agent's probe may well come before the client's.
        to_say.push(says.saturating_duration_since(serves));
    }
    let row = |what: &str, latencies: Vec<Duration>| -> Result<[String; 4]> {
        let latencies = Latencies::of(latencies)?;
        let of = |per_mille| format!("{:.0}", latencies.within(per_mille));
        Ok([what.to_owned(), of(500), of(900), of(1000)])
    };
    let rows = [
        row("from the creation of the pod until its address works", to_serve)?,
        row("from then until the pod's condition says so", to_say)?,
    ];
    let table = markdown::table(["one session at a time", "p50, ms", "p90, ms", "most, ms"], &rows);
    Ok(format!("Kubernetes {}, one node, Envoy Gateway.\n\n{table}", kubernetes()))
}

fn pod(id: &SessionId) -> Result<Pod> {
    Ok(serde_json::from_value(json!({
        "metadata": {"name": id.as_str(), "labels": {keys::SESSION: id.as_str()}},
        "spec": {"containers": [{
            "name": "web",
            "image": FIXTURE,
            "args": ["listen", "--port", PORT.to_string(), "--http"],
            "ports": [{"containerPort": PORT}],
        }]},
    }))?)
}

/// Asks until the session answers; when that was.
fn serves(door: Door, host: &str) -> Instant {
    loop {
        let asked = Instant::now();
        if door.status(host).is_ok_and(|status| status == 200) {
            return Instant::now();
        }
        std::thread::sleep(POLL.saturating_sub(asked.elapsed()));
    }
}

/// Looks at the pod until it says that its address works; when that was.
async fn says(pods: &Api<Pod>, name: &str) -> Result<Instant> {
    let mut seen = pin!(watch_object(pods.clone(), name));
    while let Some(pod) = seen.try_next().await? {
        let conditions = pod.and_then(|pod| pod.status?.conditions).unwrap_or_default();
        if conditions.iter().any(|condition| condition.type_ == keys::ROUTE_REACHABLE && condition.status == "True") {
            return Ok(Instant::now());
        }
    }
    anyhow::bail!("the watch of {name} ended")
}
