//! The program `cofferdam-webhook`; what it does is in the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    cofferdam_webhook::run(std::env::args_os())
}
