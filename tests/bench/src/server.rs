//! A server under load, as a process of its own: the webhook, or the one that it is held against.

use std::fs;
use std::io::{self, BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use cofferdam_certs::Files;
use serde_json::Value;

/// A running server. Killed when dropped.
#[derive(Debug)]
pub struct Server {
    child: Child,
    /// Where it listens.
    pub address: SocketAddr,
}

/// The program of that name which cargo built together with this one.
///
/// # Errors
/// When it is not there.
pub fn beside(name: &str) -> Result<PathBuf> {
    let program = std::env::current_exe().context("this program does not know where it is")?.with_file_name(name);
    anyhow::ensure!(
        program.exists(),
        "{} is missing; `make bench-webhook` and `make bench-agent` build it",
        program.display()
    );
    Ok(program)
}

impl Server {
    /// Starts `program` with `arguments` and the certificate in `files`, and waits until it listens, which it says on
    /// standard error as the webhook does. It runs on the processors of the thread that calls.
    ///
    /// # Errors
    /// When it ends before it listens.
    pub fn start(program: &Path, arguments: &[&str], files: &Files) -> Result<Self> {
        let mut command = Command::new(program);
        command.args(arguments).arg("--tls-cert").arg(&files.chain).arg("--tls-key").arg(&files.key);
        Self::spawn(command)
    }

    /// Starts what `command` says, and waits until it listens.
    ///
    /// # Errors
    /// When it ends before it listens.
    pub fn spawn(mut command: Command) -> Result<Self> {
        let program = Path::new(command.get_program()).to_owned();
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().with_context(|| format!("cannot start {}", program.display()))?;
        let mut log = BufReader::new(child.stderr.take().context("standard error is not a pipe")?);
        match listening(&mut log) {
            Ok(address) => {
                // Read on the processors of the load: a log costs its writer what a container's would.
                std::thread::spawn(move || io::copy(&mut log, &mut io::sink()));
                Ok(Self { child, address })
            }
            Err(error) => {
                let _ = child.kill();
                let _ = child.wait();
                Err(error.context(format!("{} does not listen", program.display())))
            }
        }
    }

    /// The processor time that its threads have used.
    ///
    /// # Errors
    /// When it has ended.
    pub fn processor_time(&self) -> Result<Duration> {
        let mut sum = Duration::ZERO;
        for thread in fs::read_dir(self.proc("task")).context("the server has ended")? {
            // Nanoseconds on a processor come first; a thread that has just ended counts no more.
            let Ok(text) = fs::read_to_string(thread?.path().join("schedstat")) else { continue };
            let nanoseconds = text.split(' ').next().and_then(|figure| figure.parse().ok());
            sum += Duration::from_nanos(nanoseconds.with_context(|| format!("schedstat is {text:?}"))?);
        }
        Ok(sum)
    }

    /// The most memory that it ever held (`VmHWM`), in mebibytes.
    ///
    /// # Errors
    /// When it has ended.
    pub fn peak_mebibytes(&self) -> Result<f64> {
        let status = fs::read_to_string(self.proc("status")).context("the server has ended")?;
        let kibibytes =
            status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.strip_suffix("kB")?.trim().parse().ok());
        let kibibytes: u32 = kibibytes.context("the kernel does not say what memory the server held")?;
        Ok(f64::from(kibibytes) / 1024.0)
    }

    fn proc(&self, file: &str) -> PathBuf {
        Path::new("/proc").join(self.child.id().to_string()).join(file)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Ended already is as good.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Reads the log up to the line that says where the server listens.
fn listening(log: &mut BufReader<ChildStderr>) -> Result<SocketAddr> {
    let mut read = String::new();
    loop {
        let before = read.len();
        if log.read_line(&mut read)? == 0 {
            bail!("it ended; it said: {}", read.trim());
        }
        let Ok(line) = serde_json::from_str::<Value>(&read[before..]) else { continue };
        if line["message"] == "listening" {
            return Ok(line["address"].as_str().context("the line has no address")?.parse()?);
        }
    }
}
