//! One part, from Go module to programs: the `go` command lines, and what they say while they run.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use serde::Deserialize;

use super::{Part, PartsError, Workshop};
use crate::architecture::architecture;
use crate::cache::CacheError;
use crate::progress::{Progress, Task};

/// From this version on, Go fetches the version that `go.mod` asks for.
pub(super) const OLDEST_GO: &str = "1.21";

/// How every part is built: the same programs wherever the sources lie, whatever repository that is.
pub(super) const FLAGS: [&str; 3] = ["-v", "-trimpath", "-buildvcs=false"];

/// How every part is linked: nobody debugs these programs, and the tables for it are a third of them.
pub(super) const LDFLAGS: &str = "-s -w";

/// How often the modules are asked for before a network that fails is believed.
const DOWNLOADS: u32 = 4;

/// How much of what Go said is worth repeating.
const TAIL: usize = 20;

/// Builds `part` into the folder `out`.
pub(super) fn build(
    part: &Part,
    label: &str,
    workshop: &Workshop,
    out: &Path,
    progress: &Progress,
) -> Result<(), PartsError> {
    let go = Go::new(part, label, workshop)?;
    let mut task = progress.task(label);
    let packages = go.download(&mut task)?;
    task.total(packages);
    go.compile(out, &mut task)?;
    link(part, out)?;
    task.done("built");
    Ok(())
}

/// The folder of the module that `part` is named after, as Go unpacked it: read-only, and fetched if need be.
pub(super) fn module_folder(
    part: &Part,
    label: &str,
    workshop: &Workshop,
    progress: &Progress,
) -> Result<PathBuf, PartsError> {
    let go = Go::new(part, label, workshop)?;
    let mut task = progress.task(label);
    let answer = go.fetch(&mut task, || {
        let mut command = go.command("mod");
        command.args(["download", "-json"]).arg(format!("-modfile={}", part.modfile)).arg(part.module);
        command
    })?;
    let answer: Downloaded = serde_json::from_str(&answer).map_err(|error| go.failed(error.to_string()))?;
    Ok(answer.dir)
}

/// What `go mod download -json` says of a module, as far as we listen.
#[derive(Debug, Deserialize)]
struct Downloaded {
    #[serde(rename = "Dir")]
    dir: PathBuf,
}

/// Starts the log anew.
fn begin(log: &Path) -> Result<(), CacheError> {
    let create = |source| CacheError::Io { action: "create", path: log.to_owned(), source };
    fs::create_dir_all(log.parent().unwrap_or(log)).map_err(create)?;
    File::create(log).map(drop).map_err(create)
}

/// The further names of a part's program.
fn link(part: &Part, out: &Path) -> Result<(), PartsError> {
    let Some(first) = (!part.links.is_empty()).then(|| fs::read_dir(out).ok()?.next()?.ok()).flatten() else {
        return Ok(());
    };
    for name in part.links {
        let path = out.join(name);
        symlink(first.file_name(), &path).map_err(|source| CacheError::Io { action: "create", path, source })?;
    }
    Ok(())
}

/// The `go` command, set up for one part.
struct Go<'a> {
    program: &'a Path,
    part: &'a Part,
    label: &'a str,
    folder: &'a Path,
    log: PathBuf,
}

impl<'a> Go<'a> {
    fn new(part: &'a Part, label: &'a str, workshop: &'a Workshop) -> Result<Self, PartsError> {
        let program = workshop.go.as_deref().ok_or_else(|| PartsError::NoGo { part: label.to_owned() })?;
        let log = workshop.cache.join("logs").join(format!("{}.log", label.replace(' ', "-")));
        begin(&log)?;
        let go = Self { program, part, label, folder: &workshop.folder, log };
        go.check_version()?;
        Ok(go)
    }

    fn failed(&self, tail: String) -> PartsError {
        PartsError::Go { part: self.label.to_owned(), log: self.log.clone(), tail }
    }

    /// A command that depends on nothing but what the part's key is made of: what the environment or Go's own settings
    /// file says about flags, workspaces and targets does not count.
    fn command(&self, verb: &str) -> Command {
        let mut command = Command::new(self.program);
        command
            .arg(verb)
            .current_dir(self.folder)
            .env("GOTOOLCHAIN", "auto")
            .env("GOFLAGS", "-mod=readonly")
            .env("GOWORK", "off")
            .env("GOOS", "linux")
            .env("GOARCH", architecture())
            .env("CGO_ENABLED", if self.part.needs.is_empty() { "0" } else { "1" })
            .stdin(Stdio::null());
        command
    }

    fn with_packages<S: AsRef<OsStr>>(&self, verb: &str, flags: &[S]) -> Command {
        let mut command = self.command(verb);
        command.args(flags).arg(format!("-modfile={}", self.part.modfile));
        if !self.part.tags.is_empty() {
            command.arg(format!("-tags={}", self.part.tags));
        }
        command.args(self.part.packages.split(' '));
        command
    }

    /// Go before 1.21 fails on our `go.mod` with words that help nobody.
    fn check_version(&self) -> Result<(), PartsError> {
        let mut command = Command::new(self.program);
        // The Go that is here, not the one that go.mod asks for: that would have to be fetched first.
        let output = command.arg("version").current_dir(self.folder).env("GOTOOLCHAIN", "local").output();
        let output = output.map_err(|_| PartsError::NoGo { part: self.label.to_owned() })?;
        let text = String::from_utf8_lossy(&output.stdout);
        let found = text.split_whitespace().find(|word| word.starts_with("go1")).unwrap_or("an unknown Go");
        if is_older(found, OLDEST_GO) { Err(PartsError::OldGo { found: found.to_owned() }) } else { Ok(()) }
    }

    /// Fetches what the packages need (and the Go version, where the one here is too old); gives how many packages
    /// there are to compile.
    ///
    /// `go list`, not `go mod download`: that one asks for modules that only other people's tests need, some of which
    /// are not served.
    fn download(&self, task: &mut Task) -> Result<u64, PartsError> {
        let listed = self.fetch(task, || self.with_packages("list", &["-deps"]))?;
        Ok(listed.lines().count() as u64)
    }

    /// Runs a command that asks the network, more than once if it is the network that fails.
    fn fetch(&self, task: &mut Task, command: impl Fn() -> Command) -> Result<String, PartsError> {
        let mut attempt = 1;
        loop {
            task.doing("fetching modules");
            let fetched = self.run(command(), |line| {
                if let Some(what) = line.strip_prefix("go: downloading ") {
                    task.doing(what);
                }
            });
            match fetched {
                Err(PartsError::Go { tail, .. }) if attempt < DOWNLOADS && is_network(&tail) => {
                    task.doing("the network failed, trying again");
                    thread::sleep(Duration::from_secs(1 << attempt));
                    attempt += 1;
                }
                done => return done,
            }
        }
    }

    fn compile(&self, out: &Path, task: &mut Task) -> Result<(), PartsError> {
        let mut flags: Vec<OsString> = FLAGS.map(OsString::from).to_vec();
        flags.push(format!("-ldflags={LDFLAGS} {}", self.ldflags()?).into());
        // The slash at its end makes Go take it for a folder.
        flags.extend(["-o".into(), out.join("").into()]);
        // With -v Go names each package as it is compiled, one on a line.
        self.run(self.with_packages("build", &flags), |line| {
            if !line.contains(char::is_whitespace) {
                task.step(line);
            }
        })?;
        Ok(())
    }

    fn ldflags(&self) -> Result<String, PartsError> {
        let version = self.part.version_in(self.folder)?;
        let mut numbers = version.split('.');
        let (major, minor) = (numbers.next().unwrap_or_default(), numbers.next().unwrap_or_default());
        let flags = self.part.ldflags.replace("{version}", &version);
        Ok(flags.replace("{major}", major).replace("{minor}", minor))
    }

    /// Runs a command to its end, shows each line of its stderr to `see`, and gives its stdout.
    fn run(&self, mut command: Command, mut see: impl FnMut(&str)) -> Result<String, PartsError> {
        let broken = |error: std::io::Error| self.failed(error.to_string());
        let mut log = File::options().append(true).open(&self.log).map_err(broken)?;
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().map_err(broken)?;
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let mut tail = VecDeque::new();
        // Both pipes at once: whichever is not read fills up and stops Go.
        let stdout = thread::scope(|scope| {
            let reader = scope.spawn(|| {
                let mut text = String::new();
                stdout.map_or(Ok(0), |mut pipe| pipe.read_to_string(&mut text)).map(|_| text)
            });
            for line in stderr.into_iter().flat_map(|pipe| BufReader::new(pipe).lines()) {
                let line = line?;
                writeln!(log, "{line}")?;
                see(&line);
                tail.push_back(line);
                if tail.len() > TAIL {
                    tail.pop_front();
                }
            }
            reader.join().unwrap_or_else(|_| Ok(String::new()))
        });
        let status = child.wait().map_err(broken)?;
        let stdout = stdout.map_err(broken)?;
        if !status.success() {
            return Err(self.failed(Vec::from(tail).join("\n")));
        }
        Ok(stdout)
    }
}

/// Whether `found` (as in `go1.19.8`) is a version before `oldest` (as in `1.21`).
fn is_older(found: &str, oldest: &str) -> bool {
    let numbers =
        |text: &str| -> Vec<u32> { text.split('.').map_while(|number| number.parse().ok()).take(2).collect() };
    numbers(found.trim_start_matches("go")) < numbers(oldest)
}

/// Whether what Go said speaks of a network that may work the next time. What a server knows not to have, it will not
/// have then either.
fn is_network(tail: &str) -> bool {
    let asked = tail.contains("https://") || tail.contains("http://") || tail.contains("dial tcp");
    asked && !tail.contains("404 Not Found") && !tail.contains("410 Gone")
}
