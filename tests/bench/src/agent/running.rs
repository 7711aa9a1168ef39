//! The agent as a process, and what it says of itself.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::ground::{Ground, NODE};
use crate::server::{Server, beside};

/// How often it is looked at.
const POLL: Duration = Duration::from_millis(50);

/// How long sessions may take to get where they have to, however many there are.
const PATIENCE: Duration = Duration::from_mins(30);

/// An agent that runs. Killed when dropped.
#[derive(Debug)]
pub struct Agent {
    /// Its process.
    pub server: Server,
}

/// What it answers to Prometheus.
#[derive(Clone, Debug)]
pub struct Metrics(String);

impl Agent {
    /// Starts it on the ground, for the node that nobody runs.
    ///
    /// # Errors
    /// When it ends before it listens.
    pub fn start(ground: &Ground) -> Result<Self> {
        let mut command = Command::new(beside("cofferdam-agent")?);
        command.env("KUBECONFIG", ground.kubeconfig()).arg("--policy").arg(ground.policy());
        command.args(["--pod-name=bench", "--admin-listen=127.0.0.1:0", "--log-format=json", "--node-name", NODE]);
        // Other nodes have no agent here, and nobody is to be told so.
        command.arg("--silent-agent=24h");
        Ok(Self { server: Server::spawn(command)? })
    }

    /// What it counts now.
    ///
    /// # Errors
    /// When it does not answer.
    pub fn metrics(&self) -> Result<Metrics> {
        let mut stream = TcpStream::connect(self.server.address).context("the agent has ended")?;
        stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: agent\r\nConnection: close\r\n\r\n")?;
        let mut text = String::new();
        stream.read_to_string(&mut text)?;
        Ok(Metrics(text))
    }

    /// Waits until a sample has a value, and gives all of them as they are then.
    ///
    /// # Errors
    /// When it does not get there; what it was last.
    pub async fn until(&self, sample: &str, value: f64) -> Result<Metrics> {
        let start = Instant::now();
        loop {
            let metrics = self.metrics()?;
            let is = metrics.value(sample)?;
            if (is - value).abs() < 0.5 {
                return Ok(metrics);
            }
            if start.elapsed() > PATIENCE {
                bail!("{sample} is {is}, not {value}, after half an hour");
            }
            tokio::time::sleep(POLL).await;
        }
    }

    /// Waits until so many sessions have an address that works, and all are told of.
    ///
    /// # Errors
    /// When they do not get there.
    pub async fn until_settled(&self, sessions: u32) -> Result<Metrics> {
        self.until(r#"addresses{state="reachable",identity="proved"}"#, sessions.into()).await?;
        let mut last = self.until(r#"queue_depth{queue="tell"}"#, 0.0).await?;
        loop {
            // Writes that are on their way wait no more.
            tokio::time::sleep(20 * POLL).await;
            let next = self.until(r#"queue_depth{queue="tell"}"#, 0.0).await?;
            let told = |metrics: &Metrics| metrics.value("pod_status_patches_total");
            if told(&next)? <= told(&last)? {
                return Ok(next);
            }
            last = next;
        }
    }
}

impl Metrics {
    /// The value of a sample, named without `cofferdam_agent_` and with its labels in any order.
    ///
    /// # Errors
    /// When there is none.
    pub fn value(&self, sample: &str) -> Result<f64> {
        let wanted = parts(sample);
        let mut lines = self.0.lines().filter_map(|line| line.strip_prefix("cofferdam_agent_")?.rsplit_once(' '));
        let found = lines.find(|(name, _)| parts(name) == wanted);
        let (_, value) = found.with_context(|| format!("the agent has no {sample}"))?;
        value.parse().with_context(|| format!("{sample} is no number"))
    }
}

/// Name and labels, in the order of the alphabet.
fn parts(sample: &str) -> Vec<&str> {
    let mut parts: Vec<&str> = sample.split(['{', '}', ',']).filter(|part| !part.is_empty()).collect();
    parts.sort_unstable();
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_is_found_whatever_the_order_of_its_labels() {
        let text = "# TYPE cofferdam_agent_a gauge\ncofferdam_agent_a{x=\"1\",y=\"2\"} 3\ncofferdam_agent_ab 4\n";
        let metrics = Metrics(text.to_owned());
        let near = |sample: &str, value: f64| (metrics.value(sample).unwrap() - value).abs() < 1e-9;
        assert!(near(r#"a{y="2",x="1"}"#, 3.0) && near("ab", 4.0));
        assert!(metrics.value("a").is_err());
    }
}
