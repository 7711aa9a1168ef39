//! The program `cofferdam-agent`; what it does is in the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    cofferdam_agent::run(std::env::args_os())
}
