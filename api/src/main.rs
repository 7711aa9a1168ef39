//! The program `cofferdam-api`; what it does is in the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    cofferdam_api::run(std::env::args_os())
}
