//! The server that the webhook is held against; what it does is in the library.

use clap::Parser;
use cofferdam_bench::bare::{Arguments, run};

fn main() -> anyhow::Result<()> {
    run(Arguments::parse())
}
