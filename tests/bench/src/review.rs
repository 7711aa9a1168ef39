//! What a review costs inside the process: processor time, and allocations as a second program counts them.

use std::collections::HashMap;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use rustix::time::{ClockId, clock_gettime};

use crate::distribution::Spread;
use crate::stages::{Stage, with_stages};
use crate::{Effort, fixture, markdown, server};

/// The program that counts allocations: counting slows every allocation down, so it is not done where time is taken.
const COUNTER: &str = "cofferdam-bench-allocations";

/// What one run of a stage allocates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allocations {
    /// How often; a buffer that grows counts each time.
    pub count: u64,
    /// How many bytes in all, whether or not some were freed in between.
    pub bytes: u64,
}

/// Measures, and returns the table.
///
/// # Errors
/// When the review is not answered as it must be, or the program that counts allocations does not run.
pub fn run(effort: Effort) -> Result<String> {
    let body = fixture::body();
    let patch = fixture::decision(&body)?.patch_bytes.unwrap_or_default();
    let allocations = allocations()?;
    let times = with_stages(&body, |stages| times(stages, effort))??;
    let yardstick = times.first().context("there are no stages")?.1.median;
    let mut rows = Vec::new();
    for (name, time) in &times {
        let Allocations { count, bytes } =
            allocations.get(*name).with_context(|| format!("{COUNTER} does not know the stage {name}"))?;
        let ratio = format!("{:.2}", time.median / yardstick);
        rows.push([(*name).to_owned(), format!("{time:.1}"), ratio, count.to_string(), bytes.to_string()]);
    }
    let table = markdown::table(["stage", "time, µs", "of the yardstick", "allocations", "bytes allocated"], &rows);
    Ok(format!("A review of {} bytes, answered with a patch of {patch} bytes.\n\n{table}", body.len()))
}

/// Writes what every stage allocates, one a line, for [`run`] in another process to read.
///
/// # Errors
/// When the review is not answered as it must be.
pub fn count_allocations(measure: impl Fn(&dyn Fn()) -> Allocations) -> Result<()> {
    let body = fixture::body();
    with_stages(&body, |stages| {
        for stage in stages {
            // Once before it counts: what is made at the first use of all is no cost of a review.
            stage.run();
            let Allocations { count, bytes } = measure(&|| stage.run());
            println!("{count}\t{bytes}\t{}", stage.name);
        }
    })
}

fn allocations() -> Result<HashMap<String, Allocations>> {
    let program = server::beside(COUNTER)?;
    let output = Command::new(&program).output().with_context(|| format!("cannot run {}", program.display()))?;
    ensure!(output.status.success(), "{COUNTER}: {}", String::from_utf8_lossy(&output.stderr).trim());
    String::from_utf8(output.stdout)?.lines().map(read_line).collect()
}

fn read_line(line: &str) -> Result<(String, Allocations)> {
    let unreadable = || format!("{COUNTER} printed {line:?}");
    let mut parts = line.splitn(3, '\t');
    let mut next = || parts.next().with_context(unreadable);
    let allocations = Allocations { count: next()?.parse()?, bytes: next()?.parse()? };
    Ok((next()?.to_owned(), allocations))
}

/// The processor time of one run of each stage, in microseconds. One sample of every stage after the other, so that what disturbs
/// the machine for a while disturbs all alike.
fn times(stages: &[Stage<'_>], effort: Effort) -> Result<Vec<(&'static str, Spread)>> {
    let (samples, length) = effort.pick((101, Duration::from_millis(20)), (5, Duration::from_millis(2)));
    let runs: Vec<u32> = stages.iter().map(|stage| runs_within(stage, length)).collect();
    let mut figures = vec![Vec::with_capacity(samples); stages.len()];
    for _ in 0..samples {
        for ((stage, runs), figures) in stages.iter().zip(&runs).zip(&mut figures) {
            figures.push(microseconds_each(stage, *runs));
        }
    }
    let spreads = figures.into_iter().map(Spread::of).collect::<Result<Vec<_>>>()?;
    Ok(stages.iter().map(|stage| stage.name).zip(spreads).collect())
}

/// How many runs take about `length`. Warms up on the way.
fn runs_within(stage: &Stage<'_>, length: Duration) -> u32 {
    let mut runs = 1;
    while microseconds_each(stage, runs) * f64::from(runs) < length.as_secs_f64() * 1e6 {
        runs *= 2;
    }
    runs
}

/// By the thread's own clock, which stands still while somebody else has the processor.
fn microseconds_each(stage: &Stage<'_>, runs: u32) -> f64 {
    let start = clock_gettime(ClockId::ThreadCPUTime);
    for _ in 0..runs {
        stage.run();
    }
    let taken = clock_gettime(ClockId::ThreadCPUTime) - start;
    Duration::try_from(taken).unwrap_or_default().as_secs_f64() * 1e6 / f64::from(runs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_counter_is_read_back() {
        let (name, allocations) = read_line("12\t3456\tdecode: the pod into a tree").unwrap();
        assert_eq!(
            (name.as_str(), allocations),
            ("decode: the pod into a tree", Allocations { count: 12, bytes: 3456 })
        );
        assert!(read_line("12\tmany\tx").is_err());
        assert!(read_line("12").is_err());
    }
}
