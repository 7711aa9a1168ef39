//! The agents, one by one.

use anyhow::{Context as _, Result, ensure};
use cofferdam_e2e::install::AGENTS;
use cofferdam_e2e::namespace::PATIENCE;
use cofferdam_e2e::stage::{Stage, value};
use cofferdam_e2e::wait::until;

/// The pod of the agent on a node.
pub(crate) fn agent(stage: &Stage, node: &str) -> Result<String> {
    let on = format!("--field-selector=spec.nodeName={node}");
    let name = stage.system(&["get", "pods", AGENTS, &on, "--output=jsonpath={.items[0].metadata.name}"])?;
    ensure!(!name.is_empty(), "there is none");
    Ok(name)
}

/// The pods of all agents.
pub(crate) fn all(stage: &Stage) -> Result<Vec<String>> {
    let names = stage.system(&["get", "pods", AGENTS, "--output=jsonpath={.items[*].metadata.name}"])?;
    Ok(names.split_whitespace().map(str::to_owned).collect())
}

/// The samples of a gauge, of one agent after the other.
pub(crate) fn samples(stage: &Stage, gauge: &str) -> Result<Vec<(String, usize)>> {
    let prefix = format!("cofferdam_agent_{gauge}{{");
    let mut samples = Vec::new();
    for agent in all(stage)? {
        let text = stage.answer(&agent, "/metrics")?;
        for line in text.lines().filter(|line| line.starts_with(&prefix)) {
            let (sample, value) = line.rsplit_once(' ').context("a sample has a value")?;
            samples.push((sample.to_owned(), value.parse()?));
        }
    }
    Ok(samples)
}

/// What the admin port of an agent answers at `/metrics` for a sample, `cofferdam_agent_` left out.
pub(crate) fn metric(stage: &Stage, agent: &str, sample: &str) -> Result<String> {
    Ok(value(&stage.answer(agent, "/metrics")?, &format!("cofferdam_agent_{sample}"))?.to_owned())
}

/// Waits until a sample of an agent is `wanted`.
pub(crate) fn counts(stage: &Stage, agent: &str, sample: &str, wanted: &str) {
    until(&format!("{sample} is {wanted}"), PATIENCE, || {
        let is = metric(stage, agent, sample)?;
        ensure!(is == wanted, "it is {is}");
        Ok(())
    })
    .unwrap();
}

/// Gives the agents another policy while they run.
pub(crate) fn set_policy(stage: &Stage, policy: &str) {
    let reloads = || -> Result<Vec<(String, u32)>> {
        let of = |name: String| {
            let count = metric(stage, &name, "policy_reloads_total{outcome=\"swapped\"}")?;
            Ok((name, count.parse().context("no number")?))
        };
        all(stage)?.into_iter().map(of).collect()
    };
    let before = reloads().unwrap();
    stage.change_policy(policy, AGENTS).unwrap();
    until("the kubelets have passed the policy on", PATIENCE, || -> Result<()> {
        stage.look_at_the_policy(AGENTS)?;
        let now = reloads()?;
        let late = before.iter().find(|(name, count)| now.iter().any(|(other, now)| other == name && now <= count));
        ensure!(late.is_none(), "{late:?} has not");
        Ok(())
    })
    .unwrap();
}
