//! The program behind `make demo`.

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    match cofferdam_e2e::demo::run(&cofferdam_e2e::demo::Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("\nThe demo stopped: {error:#}");
            ExitCode::FAILURE
        }
    }
}
