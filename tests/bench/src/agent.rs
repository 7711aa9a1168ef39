//! What an agent does for the sessions of a node, and what it takes: an agent as released, against a real API server; a
//! [node](ground) that nobody runs, whose [pods](sessions) get their addresses from the benchmark; a [gateway] that takes
//! every route at once. So there may be more sessions than a machine has room for.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use cofferdam_e2e::routing::policy;
use cofferdam_e2e::stage::kubernetes;
use cofferdam_model::policy::Policy;

use crate::distribution::{Latencies, Spread};
use crate::load::schedule;
use crate::{Effort, markdown};
use gateway::Gateway;
use ground::Ground;
use running::Agent;
use sessions::Sessions;

pub mod gateway;
pub mod ground;
pub mod lives;
pub mod running;
pub mod sessions;

/// Pods that get their address in a second: few, so that what is measured is the agent, and as many as the goal says.
const RATES: [f64; 2] = [10.0, 50.0];

/// The goals for publishing, as the agent's own buckets have them, in seconds.
const GOALS: [&str; 2] = ["0.02", "0.2"];

struct Bench {
    ground: Ground,
    sessions: Sessions,
    _gateway: Gateway,
}

/// Starts the cluster, measures, and returns the tables. `most` is the largest number of sessions.
///
/// # Errors
/// When the cluster does not start, or sessions do not become what they have to.
pub fn run(effort: Effort, most: u32) -> Result<String> {
    let runtime = tokio::runtime::Runtime::new()?;
    runtime.block_on(async {
        let text = policy(gateway::ROUTING, "");
        let ground = Ground::start(&text).await?;
        let gateway = Gateway::start(&ground.client).await?;
        let policy = Policy::parse("policy.yaml", &text)?;
        let sessions = Sessions::new(ground.client.clone(), &policy, gateway.address)?;
        let bench = Bench { ground, sessions, _gateway: gateway };
        let published = bench.publishing(effort).await?;
        // The rest may take an hour.
        eprintln!("{published}");
        let settled = bench.settled(effort, most).await?;
        Ok(format!(
            "Kubernetes {}, one agent, sessions of one port; API server, etcd and all else on the same machine.\n\n\
             {published}\n{settled}",
            kubernetes()
        ))
    })
}

/// What came of all rounds at one rate.
#[derive(Default)]
struct Published {
    /// The share within each goal.
    within: [Vec<f64>; 2],
    latencies: Vec<Latencies>,
}

impl Published {
    fn cells(self) -> Result<[String; 4]> {
        let per_mille = |per_mille| {
            anyhow::Ok(format!("{:.1}", Spread::of(self.latencies.iter().map(|round| round.within(per_mille)))?))
        };
        let (half, most) = (per_mille(500)?, per_mille(990)?);
        let [quick, slow] = self.within.map(|share| anyhow::Ok(format!("{:.1}", Spread::of(share)?)));
        Ok([quick?, slow?, half, most])
    }
}

impl Bench {
    /// How long after a pod has its address its objects are there, and what a session's life asks of the API server.
    async fn publishing(&self, effort: Effort) -> Result<String> {
        let agent = Agent::start(&self.ground)?;
        // The first session of all opens connections, and waits for the NetworkPolicy of its namespace.
        self.sessions.create(0..1).await?;
        self.sessions.address(0..1).await?;
        agent.until_settled(1).await?;
        self.sessions.delete().await?;
        let before = self.ground.cluster.audit()?.len();
        let mut columns = Vec::new();
        let mut sessions = 0;
        for rate in RATES {
            let (rounds, seconds) = effort.pick((5, 10), (1, 1));
            let times = schedule(rate, Duration::from_secs(seconds));
            let mut column = Published::default();
            for _ in 0..rounds {
                self.round(&agent, &times, &mut column).await?;
                sessions += times.len();
            }
            columns.push(column.cells()?);
        }
        let heads = [
            "by the agent: from its first event with the address, within 20 ms, %",
            "within 200 ms, %",
            "by the API server's log: from the kubelet's request, p50, ms",
            "p99, ms",
        ];
        let rows = heads.into_iter().enumerate();
        let rows: Vec<_> =
            rows.map(|(row, head)| [head.to_owned(), columns[0][row].clone(), columns[1][row].clone()]).collect();
        let [few, many] = RATES.map(|rate| format!("{rate} pods a second, rounds"));
        let published = markdown::table(["to the last apply's answer", &few, &many], &rows);
        let calls = lives::calls(&self.ground.cluster.audit()?[before..]);
        let sessions = f64::from(u32::try_from(sessions)?);
        let each = |calls: u32| format!("{:.2}", f64::from(calls) / sessions);
        let mut rows: Vec<_> = calls.iter().map(|(call, count)| [call.clone(), each(*count)]).collect();
        rows.push(["**all**".to_owned(), each(calls.values().sum())]);
        let calls = markdown::table(["requests of the agent", "for each session, from its creation to its end"], &rows);
        Ok(format!("{published}\n{calls}"))
    }

    /// Pods that are there get their addresses at these times, and all goes again.
    async fn round(&self, agent: &Agent, times: &[Duration], column: &mut Published) -> Result<()> {
        let count = u32::try_from(times.len())?;
        let from = self.ground.cluster.audit()?.len();
        self.sessions.create(1..count + 1).await?;
        let first = agent.until(r#"sessions{state="unpublished"}"#, count.into()).await?;
        let asked = self.sessions.address_at(1..count + 1, times).await?;
        let last = agent.until_settled(count).await?;
        let grown = |sample: &str| anyhow::Ok(last.value(sample)? - first.value(sample)?);
        for (goal, within) in GOALS.iter().zip(&mut column.within) {
            let bucket = grown(&format!("publish_seconds_bucket{{le=\"{goal}\"}}"))?;
            within.push(100.0 * bucket / grown("publish_seconds_count")?);
        }
        let published = lives::published(&self.ground.cluster.audit()?[from..]);
        let took = asked.into_iter().map(|(id, asked)| {
            let published = published.get(&id).with_context(|| format!("{id} was not published"))?;
            Ok(Duration::try_from(published.duration_since(asked)).unwrap_or_default())
        });
        column.latencies.push(Latencies::of(took.collect::<Result<_>>()?)?);
        self.sessions.delete().await?;
        agent.until(r#"sessions{state="published"}"#, 0.0).await?;
        Ok(())
    }

    /// What sessions take that nothing happens to.
    async fn settled(&self, effort: Effort, most: u32) -> Result<String> {
        let minute = effort.pick(Duration::from_mins(1), Duration::from_secs(1));
        let mut rows = Vec::new();
        for count in
            [1_000, 10_000].into_iter().map(|count| effort.pick(count, count / 100)).filter(|count| *count <= most)
        {
            let agent = Agent::start(&self.ground)?;
            self.sessions.create(0..count).await?;
            self.sessions.address(0..count).await?;
            let first = agent.until_settled(count).await?;
            let used = agent.server.processor_time()?;
            tokio::time::sleep(minute).await;
            let used = agent.server.processor_time()?.saturating_sub(used).as_secs_f64();
            let last = agent.metrics()?;
            ensure!(last.value(r#"sessions{state="published"}"#)? >= f64::from(count), "sessions were lost");
            let told = last.value("pod_status_patches_total")? - first.value("pod_status_patches_total")?;
            let grown = agent.server.peak_mebibytes()?;
            drop(agent);
            let again = Agent::start(&self.ground)?;
            again.until_settled(count).await?;
            let found = again.server.peak_mebibytes()?;
            let row = [
                count.to_string(),
                format!("{grown:.1}"),
                format!("{found:.1}"),
                format!("{:.2}", used * 60.0 / minute.as_secs_f64()),
                format!("{told:.0}"),
            ];
            eprintln!("{}", row.join(" | "));
            rows.push(row);
            // With an agent that takes away what it made: the garbage collector would need half an hour for ten thousand.
            self.sessions.delete().await?;
            drop(again);
        }
        let heads = [
            "sessions",
            "most memory (VmHWM) of an agent that saw them come, MiB",
            "of one that found them, MiB",
            "processor time in a minute, s",
            "writes of pods' status in it",
        ];
        Ok(markdown::table(heads, &rows))
    }
}
