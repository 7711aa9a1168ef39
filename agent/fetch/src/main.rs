//! The program `cofferdam-fetch`; what it does is in the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    cofferdam_fetch::run(std::env::args_os())
}
