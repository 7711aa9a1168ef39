//! Builds the targets' programs for libFuzzer and runs them.
//!
//! What the nightly-only tool for this does is a handful of flags, and all but the address sanitizer's, which safe code
//! has no need of, are stable. They must not reach build scripts and procedural macros, which have no engine to count
//! for; hence `--target`, which keeps the two apart even where host and target are the same.

use std::{
    env,
    fmt::Write as _,
    fs::{self, File},
    path::{Path, PathBuf},
    process::{Command, ExitStatus, Stdio},
    sync::{Mutex, PoisonError},
};

use anyhow::{Context, Result, bail, ensure};

use crate::target::{Target, corpus, workspace};

/// Counters on every edge, with a table of where they are, and every comparison shown to the engine; branches are not
/// folded into what cannot be counted.
const RUSTFLAGS: [&str; 7] = [
    "--cfg=fuzzing",
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    "-Cllvm-args=-simplifycfg-branch-fold-threshold=0",
];

/// One input may take this long, in seconds, before it counts as endless; a few milliseconds is usual.
const MOST_SECONDS: u32 = 60;

/// A program may grow to this, in MiB, before it counts as leaking.
const MOST_MEBIBYTES: u32 = 2048;

/// Lines of a program's output that tell what went wrong.
const TOLD_LINES: usize = 8;

/// Runs a target until it has run as often as it should; says how far it got.
///
/// `folder` is where everything is kept: the build, inputs found in earlier runs, those that broke a promise.
/// `COFFERDAM_FUZZ_RUNS` takes the place of [`Target::runs`], `COFFERDAM_FUZZ_SEED` that of 1.
///
/// # Errors
/// No program could be built, or it found an input that breaks a promise: the error holds it, and what runs it again.
pub fn fuzz(target: &Target, folder: &Path) -> Result<()> {
    let runs = number("COFFERDAM_FUZZ_RUNS", target.runs)?;
    let seed = number("COFFERDAM_FUZZ_SEED", 1)?;
    let program = build(target, folder)?;
    let (found, crashes) = (folder.join("found").join(target.name), folder.join("crashes"));
    for folder in [&found, &crashes] {
        fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    }
    let log = folder.join(format!("{}.log", target.name));
    println!("fuzz {}: {runs} executions, seed {seed}, progress in {}", target.name, log.display());

    let mut command = Command::new(&program);
    command
        .arg(format!("-runs={runs}"))
        .arg(format!("-seed={seed}"))
        .arg(format!("-max_len={}", target.max_len))
        .arg(format!("-timeout={MOST_SECONDS}"))
        .arg(format!("-rss_limit_mb={MOST_MEBIBYTES}"))
        .arg(format!("-artifact_prefix={}/{}-", crashes.display(), target.name))
        .arg("-print_final_stats=1");
    if !target.shipped.is_empty() {
        let shipped: Vec<_> = target.shipped.iter().map(|path| workspace().join(path).display().to_string()).collect();
        command.arg(format!("-seed_inputs={}", shipped.join(",")));
    }
    // The first folder is written to, the second only read.
    command.args([&found, &corpus(target.name)]).env("RUST_BACKTRACE", "0");
    let status = run(&mut command, &log)?;
    let text = String::from_utf8_lossy(&fs::read(&log)?).into_owned();
    ensure!(status.success(), broken(target, status, &text));
    println!("fuzz {}: {}", target.name, summary(&text).context("the engine ran without saying how often")?);
    Ok(())
}

fn number(variable: &str, default: u64) -> Result<u64> {
    match env::var(variable) {
        Ok(text) => text.parse().with_context(|| format!("{variable} must be a whole number")),
        Err(_) => Ok(default),
    }
}

/// Has cargo build the target's program; it does nothing where nothing changed.
fn build(target: &Target, folder: &Path) -> Result<PathBuf> {
    // Tests run side by side; the second to ask would only wait for cargo's own lock, and say so.
    static TURN: Mutex<()> = Mutex::new(());
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);

    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let build = folder.join("build");
    let mut command = Command::new(&cargo);
    // What cargo says of the package that called us: build scripts look at it, and would run anew for every caller.
    for (name, _) in env::vars_os() {
        if ["CARGO_PKG_", "CARGO_MANIFEST_"].iter().any(|said| name.to_string_lossy().starts_with(said)) {
            command.env_remove(&name);
        }
    }
    let status = command
        .current_dir(workspace())
        .args(["build", "--locked", "--package", "cofferdam-fuzz", "--bins", "--profile", "fuzz"])
        .args(["--target", "host-tuple", "--target-dir"])
        .arg(&build)
        .env("CARGO_ENCODED_RUSTFLAGS", RUSTFLAGS.join("\x1f"))
        .stdin(Stdio::null())
        .status()
        .with_context(|| format!("cannot run {}", cargo.display()))?;
    ensure!(status.success(), "cargo could not build the fuzz targets ({status}); its messages are above");

    let name = format!("fuzz-{}", target.name);
    for entry in fs::read_dir(&build)? {
        let program = entry?.path().join("fuzz").join(&name);
        if program.is_file() {
            return Ok(program);
        }
    }
    bail!("cargo built no program {name}")
}

fn run(command: &mut Command, log: &Path) -> Result<ExitStatus> {
    let file = File::create(log).with_context(|| format!("cannot write {}", log.display()))?;
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(file)
        .status()
        .with_context(|| format!("cannot run {}", command.get_program().display()))
}

/// How often the engine ran, and how much of the code its inputs reach.
fn summary(log: &str) -> Option<String> {
    let executions = log.lines().find_map(|line| line.strip_prefix("stat::number_of_executed_units:"))?.trim();
    let mut words = log.lines().rfind(|line| line.contains("DONE "))?.split_whitespace();
    let mut after = |word: &str| words.by_ref().skip_while(|next| *next != word).nth(1);
    let (edges, inputs) = (after("cov:")?, after("corp:")?);
    let (inputs, _) = inputs.split_once('/')?;
    Some(format!("{executions} executions held; {edges} edges reached by {inputs} inputs"))
}

/// What went wrong, the input as hex, and how to see it again.
fn broken(target: &Target, status: ExitStatus, log: &str) -> String {
    let name = target.name;
    let begin = log.lines().position(|line| line.contains("panicked at") || line.contains("ERROR:")).unwrap_or(0);
    let told: Vec<_> = log.lines().skip(begin).take(TOLD_LINES).collect();
    let mut text = format!("fuzz {name}: {status}\n{}\n", told.join("\n"));
    let input = log.lines().find_map(|line| line.split_once("Test unit written to ")).map(|(_, path)| path.trim());
    if let Some((path, bytes)) = input.and_then(|path| Some((path, fs::read(path).ok()?))) {
        let hex = bytes.iter().fold(String::new(), |mut hex, byte| {
            // Writing to a string cannot fail.
            let _ = write!(hex, "{byte:02x}");
            hex
        });
        let _ = write!(
            text,
            "the input, {} bytes as hex: {hex}\nas text: {}\nagain: cargo run --package cofferdam-fuzz --bin fuzz-{name} -- \
             {path}",
            bytes.len(),
            String::from_utf8_lossy(&bytes).escape_debug(),
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_says_how_often_and_how_far() {
        let log = "#2\tINITED cov: 7 ft: 9 corp: 1/2b exec/s: 0 rss: 20Mb\n\
                   #50\tDONE   cov: 931 ft: 3126 corp: 828/35Kb lim: 256 exec/s: 60000 rss: 29Mb\n\
                   stat::number_of_executed_units: 50\n";
        assert_eq!(summary(log).unwrap(), "50 executions held; 931 edges reached by 828 inputs");
        assert_eq!(summary(""), None);
    }
}
