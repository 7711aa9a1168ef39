//! The program `cofferdam-cluster`; see the library for what it does.

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    match cofferdam_cluster::cli::run(cofferdam_cluster::cli::Arguments::parse()) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("cofferdam-cluster: {error}");
            ExitCode::FAILURE
        }
    }
}
