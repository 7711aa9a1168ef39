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

/// How pods get their addresses: few, so that what is measured is the agent; as many as the goal says; and a rush.
const ARRIVALS: [Arrivals; 3] = [Arrivals::InASecond(10.0), Arrivals::InASecond(50.0), Arrivals::AtOnce(1_000)];

/// The goals for publishing, as the agent's own buckets have them, in seconds.
const GOALS: [&str; 2] = ["0.02", "0.2"];

/// How pods get their addresses.
#[derive(Clone, Copy)]
enum Arrivals {
    /// At random times, so many on average.
    InASecond(f64),
    /// So many, as fast as the API server takes it.
    AtOnce(u32),
}

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

/// What came of all rounds of the same arrivals.
#[derive(Default)]
struct Published {
    /// The share within each goal.
    within: [Vec<f64>; 2],
    made: Vec<Latencies>,
    told: Vec<Latencies>,
}

impl Published {
    const HEADS: [&str; 6] = [
        "by the agent: from its first event with the address to the last apply's answer, within 20 ms, %",
        "within 200 ms, %",
        "by the API server's log: from the kubelet's request to the last apply, p50, ms",
        "p99, ms",
        "to the pod's status that says it works, p50, ms",
        "p99, ms",
    ];

    fn cells(self) -> Result<[String; 6]> {
        let text = |figures: Vec<f64>| anyhow::Ok(format!("{:.1}", Spread::of(figures)?));
        let within = |rounds: &[Latencies], per_mille| text(rounds.iter().map(|it| it.within(per_mille)).collect());
        let [quick, slow] = self.within;
        let (made, told) = (&self.made, &self.told);
        Ok([text(quick)?, text(slow)?, within(made, 500)?, within(made, 990)?, within(told, 500)?, within(told, 990)?])
    }
}

impl Bench {
    /// How long after a pod has its address its objects are there, and it is told so; and what a session's life asks of the
    /// API server.
    async fn publishing(&self, effort: Effort) -> Result<String> {
        let agent = Agent::start(&self.ground)?;
        // The first session of all opens connections, and waits for the NetworkPolicy of its namespace.
        self.sessions.create(0..1).await?;
        self.sessions.address(0..1).await?;
        agent.until_settled(1).await?;
        self.sessions.delete().await?;
        let before = self.ground.cluster.audit()?.len();
        let (mut heads, mut columns, mut sessions) = (Vec::new(), Vec::new(), 0);
        for arrivals in ARRIVALS {
            let (rounds, seconds) = effort.pick((5, 10), (1, 1));
            let (head, count, times) = match arrivals {
                Arrivals::InASecond(rate) => {
                    let times = schedule(rate, Duration::from_secs(seconds));
                    (format!("{rate} pods a second"), u32::try_from(times.len())?, Some(times))
                }
                Arrivals::AtOnce(count) => {
                    let count = effort.pick(count, count / 100);
                    (format!("{count} at once"), count, None)
                }
            };
            let mut column = Published::default();
            for _ in 0..rounds {
                self.round(&agent, count, times.as_deref(), &mut column).await?;
                sessions += count;
            }
            heads.push(head);
            columns.push(column.cells()?);
        }
        let row = |(row, head): (usize, &str)| {
            [head.to_owned(), columns[0][row].clone(), columns[1][row].clone(), columns[2][row].clone()]
        };
        let rows: Vec<_> = Published::HEADS.into_iter().enumerate().map(row).collect();
        let published = markdown::table(["", &heads[0], &heads[1], &heads[2]], &rows);
        let calls = lives::calls(&self.ground.cluster.audit()?[before..]);
        let each = |calls: u32| format!("{:.2}", f64::from(calls) / f64::from(sessions));
        let mut rows: Vec<_> = calls.iter().map(|(call, count)| [call.clone(), each(*count)]).collect();
        rows.push(["**all**".to_owned(), each(calls.values().sum())]);
        let calls = markdown::table(["requests of the agent", "for each session, from its creation to its end"], &rows);
        Ok(format!("{published}\n{calls}"))
    }

    /// Pods that are there get their addresses, at these times or at once, and all goes again.
    async fn round(&self, agent: &Agent, count: u32, times: Option<&[Duration]>, column: &mut Published) -> Result<()> {
        let from = self.ground.cluster.audit()?.len();
        self.sessions.create(1..count + 1).await?;
        let first = agent.until(r#"sessions{state="unpublished"}"#, count.into()).await?;
        let asked = match times {
            Some(times) => self.sessions.address_at(1..count + 1, times).await?,
            None => self.sessions.address(1..count + 1).await?,
        };
        let last = agent.until_settled(count).await?;
        let grown = |sample: &str| anyhow::Ok(last.value(sample)? - first.value(sample)?);
        for (goal, within) in GOALS.iter().zip(&mut column.within) {
            let bucket = grown(&format!("publish_seconds_bucket{{le=\"{goal}\"}}"))?;
            within.push(100.0 * bucket / grown("publish_seconds_count")?);
        }
        let events = self.ground.cluster.audit()?.split_off(from);
        for (rounds, ends) in [(&mut column.made, lives::published(&events)), (&mut column.told, lives::told(&events))]
        {
            let took = asked.iter().map(|(id, asked)| {
                let end = ends.get(id).with_context(|| format!("{id} was not published and told of"))?;
                Ok(Duration::try_from(end.duration_since(*asked)).unwrap_or_default())
            });
            rounds.push(Latencies::of(took.collect::<Result<_>>()?)?);
        }
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
