//! The program behind `make bench-webhook` and `make bench-agent`: measures and prints tables in Markdown.

use clap::{Parser, ValueEnum};
use cofferdam_bench::{Effort, address, agent, creation, review, serving};

/// Measures the webhook, or what it is told.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    /// What to measure.
    #[arg(value_enum, default_values = ["review", "serving", "creation"])]
    parts: Vec<Part>,
    /// See that everything works, in seconds; the figures say nothing.
    #[arg(long)]
    smoke: bool,
    /// The most sessions that an agent is given.
    #[arg(long, value_name = "NUMBER", default_value_t = 10_000)]
    sessions: u32,
}

#[derive(Clone, Copy, ValueEnum)]
enum Part {
    /// A review inside the process: time and allocations.
    Review,
    /// The server over TLS: reviews a second, latency, memory.
    Serving,
    /// A creation on a real API server; takes root, as the test cluster does.
    Creation,
    /// An agent against a real API server, with sessions that nobody runs; takes root.
    Agent,
    /// An address on a real cluster, and when the agent says that it works; takes root.
    Address,
}

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let effort = if arguments.smoke { Effort::Smoke } else { Effort::Full };
    for part in arguments.parts {
        let (title, measured) = match part {
            Part::Review => ("A review, in the process", review::run(effort)?),
            Part::Serving => ("The server, over TLS on one processor", serving::run(effort)?),
            Part::Creation => ("The creation of a pod, on a real API server", creation::run(effort)?),
            Part::Agent => ("An agent, and the sessions of its node", agent::run(effort, arguments.sessions)?),
            Part::Address => ("From an address that works to an agent that says so", address::run(effort)?),
        };
        println!("### {title}\n\n{measured}");
    }
    Ok(())
}
