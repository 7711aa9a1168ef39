//! The program behind `make bench-webhook`: measures and prints tables in Markdown.

use clap::{Parser, ValueEnum};
use cofferdam_bench::{Effort, creation, review, serving};

/// Measures the webhook.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    /// What to measure.
    #[arg(value_enum, default_values = ["review", "serving", "creation"])]
    parts: Vec<Part>,
    /// See that everything works, in seconds; the figures say nothing.
    #[arg(long)]
    smoke: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum Part {
    /// A review inside the process: time and allocations.
    Review,
    /// The server over TLS: reviews a second, latency, memory.
    Serving,
    /// A creation on a real API server; takes root, as the test cluster does.
    Creation,
}

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let effort = if arguments.smoke { Effort::Smoke } else { Effort::Full };
    for part in arguments.parts {
        let (title, measured) = match part {
            Part::Review => ("A review, in the process", review::run(effort)?),
            Part::Serving => ("The server, over TLS on one processor", serving::run(effort)?),
            Part::Creation => ("The creation of a pod, on a real API server", creation::run(effort)?),
        };
        println!("### {title}\n\n{measured}");
    }
    Ok(())
}
