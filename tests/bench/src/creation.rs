//! What a creation of a pod takes on a real API server, with Cofferdam and without, in turns over one connection.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use cofferdam_e2e::namespace::{Sessions, TestNamespace};
use cofferdam_e2e::stage::{Stage, kubernetes};
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::{DeleteParams, ListParams, PostParams};

use crate::distribution::{Latencies, Spread};
use crate::{Effort, fixture, markdown, mutating_policy};

/// How often it is looked whether the pods of a round are gone.
const POLL: Duration = Duration::from_millis(20);

/// A namespace, and what becomes of pods that are created in it.
struct Arm {
    name: &'static str,
    namespace: TestNamespace,
    is_hardened: bool,
    pods: Api<Pod>,
    rounds: Vec<Latencies>,
}

/// Starts a cluster with Cofferdam, measures, and returns the table.
///
/// # Errors
/// When the cluster does not start, or a pod becomes anything but what it has to.
pub fn run(effort: Effort) -> Result<String> {
    let stage = Stage::start("bench", 1)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let client = runtime.block_on(stage.cluster.client())?;
    let arm = |name, namespace, sessions| -> Result<Arm> {
        let namespace = TestNamespace::create(&stage.kubectl, namespace, sessions)?;
        let pods = Api::namespaced(client.clone(), namespace.name());
        Ok(Arm { name, namespace, is_hardened: sessions == Sessions::Enforced, pods, rounds: Vec::new() })
    };
    let mut arms = vec![
        arm("without: a namespace that nothing selects", "bench-without", Sessions::None)?,
        arm("with the webhook", "bench-webhook", Sessions::Enforced)?,
    ];
    if mutating_policy::is_known(&stage.kubectl)? {
        let mut third = arm("with the webhook and the mutating policy", "bench-policy", Sessions::None)?;
        mutating_policy::hold_in(&stage.kubectl, &third.namespace)?;
        third.is_hardened = true;
        arms.push(third);
    }
    runtime.block_on(measure(&mut arms, effort))?;
    let table = report(&arms)?;
    Ok(format!("Kubernetes {}, one node, two replicas of the webhook.\n\n{table}", kubernetes()))
}

async fn measure(arms: &mut [Arm], effort: Effort) -> Result<()> {
    let pod = fixture::pod()?;
    let (rounds, creations) = effort.pick((5, 500), (1, 20));
    for arm in &*arms {
        // The first creation of all opens connections, here and in the API server.
        arm.create(&pod).await?;
    }
    for _ in 0..rounds {
        let mut latencies = vec![Vec::with_capacity(creations); arms.len()];
        for turn in 0..creations {
            for position in 0..arms.len() {
                // Nobody is always the first.
                let index = (turn + position) % arms.len();
                latencies[index].push(arms[index].create(&pod).await?);
            }
        }
        for (arm, latencies) in arms.iter_mut().zip(latencies) {
            arm.rounds.push(Latencies::of(latencies)?);
        }
        for arm in &*arms {
            arm.clear().await?;
        }
    }
    Ok(())
}

impl Arm {
    /// Creates the pod for real; it carries a scheduling gate, so no node ever hears of it.
    async fn create(&self, pod: &Pod) -> Result<Duration> {
        let start = Instant::now();
        let created = self.pods.create(&PostParams::default(), pod).await?;
        let taken = start.elapsed();
        let pod_level = created.spec.and_then(|spec| spec.security_context);
        let is_hardened = pod_level.and_then(|context| context.run_as_non_root) == Some(true);
        ensure!(is_hardened == self.is_hardened, "a pod in {} was hardened: {is_hardened}", self.namespace.name());
        Ok(taken)
    }

    /// Removes what was created and waits until it is gone, so that a round does not pay for the one before.
    async fn clear(&self) -> Result<()> {
        self.pods.delete_collection(&DeleteParams::default().grace_period(0), &ListParams::default()).await?;
        while !self.pods.list_metadata(&ListParams::default().limit(1)).await?.items.is_empty() {
            tokio::time::sleep(POLL).await;
        }
        Ok(())
    }
}

/// The first arm is what the others are held against.
fn report(arms: &[Arm]) -> Result<String> {
    let mut rows = Vec::new();
    for arm in arms {
        let within = |per_mille| Spread::of(arm.rounds.iter().map(|round| round.within(per_mille)));
        let added = |per_mille| {
            let pairs = arm.rounds.iter().zip(&arms[0].rounds);
            Spread::of(pairs.map(|(with, without)| with.within(per_mille) - without.within(per_mille)))
        };
        rows.push([
            arm.name.to_owned(),
            format!("{:.2}", within(500)?),
            format!("{:.2}", within(990)?),
            format!("{:.2}", added(500)?),
            format!("{:.2}", added(990)?),
        ]);
    }
    Ok(markdown::table(["creation of a pod", "p50, ms", "p99, ms", "added p50, ms", "added p99, ms"], &rows))
}
