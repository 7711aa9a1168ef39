//! Running the program.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

/// What a run left.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) notes: String,
}

/// The program.
pub(crate) fn program() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_cofferdam-webhook"))
}

/// Runs it with these arguments and this on its standard input.
pub(crate) fn run(arguments: &[&str], input: &str) -> Run {
    run_command(Command::new(program()).args(arguments), input)
}

/// Runs a command.
pub(crate) fn run_command(command: &mut Command, input: &str) -> Run {
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_owned();
    // Apart, so that neither side waits for the other; a program that stops reading is none of our business.
    let writer = std::thread::spawn(move || drop(stdin.write_all(input.as_bytes())));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    Run {
        code: output.status.code().unwrap(),
        out: String::from_utf8(output.stdout).unwrap(),
        notes: String::from_utf8(output.stderr).unwrap(),
    }
}
