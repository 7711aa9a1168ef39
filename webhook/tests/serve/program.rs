//! The program as a child process.

use std::io;
use std::net::SocketAddr;
use std::process::{ExitStatus, Stdio};

use cofferdam_certs::testing::{Authority, SecretVolume};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::process::{Child, ChildStderr, Command};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio_rustls::TlsConnector;

use crate::client::{Answer, Connection, NAME, Secure, trust};

/// Path of the program under test.
pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_cofferdam-webhook");

/// A running webhook with its certificate. Killed when dropped.
pub(crate) struct Program {
    child: Child,
    log: UnboundedReceiver<String>,
    /// Every line of the log that was read so far.
    pub(crate) lines: Vec<String>,
    pub(crate) address: SocketAddr,
    pub(crate) admin_address: SocketAddr,
    pub(crate) authority: Authority,
    pub(crate) volume: SecretVolume,
    trust: TlsConnector,
}

impl Program {
    /// Starts it with a fresh certificate on free ports, and waits until it listens.
    pub(crate) async fn start(flags: &[&str]) -> Self {
        Self::start_by(Command::new(PROGRAM), flags).await
    }

    /// The same, where `command` is something that ends in the program and passes its arguments on.
    pub(crate) async fn start_by(mut command: Command, flags: &[&str]) -> Self {
        let authority = Authority::new().unwrap();
        let volume = SecretVolume::mount(&authority.issue(NAME).unwrap()).unwrap();
        let files = volume.files();
        let mut child = command
            .args(["serve", "--listen=127.0.0.1:0", "--admin-listen=127.0.0.1:0", "--log-format=json"])
            .arg("--tls-cert")
            .arg(files.chain)
            .arg("--tls-key")
            .arg(files.key)
            .arg(format!("--tls-server-name={NAME}"))
            .args(flags)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let log = read(child.stderr.take().unwrap());
        let nowhere = SocketAddr::from(([127, 0, 0, 1], 0));
        let trust = trust(&authority);
        let mut program =
            Self { child, log, lines: Vec::new(), address: nowhere, admin_address: nowhere, authority, volume, trust };
        let listening = program.logged("listening").await;
        let address = |field: &str| listening[field].as_str().unwrap().parse().unwrap();
        (program.address, program.admin_address) = (address("address"), address("admin_address"));
        program
    }

    /// Reads the log up to the next line with that message.
    pub(crate) async fn logged(&mut self, message: &str) -> Value {
        loop {
            let Some(line) = self.log.recv().await else {
                panic!("the log ended without {message:?}:\n{}", self.lines.join("\n"));
            };
            self.lines.push(line.clone());
            let event: Value = serde_json::from_str(&line).unwrap();
            if event["message"] == message {
                return event;
            }
        }
    }

    /// A connection of its own, TLS done.
    pub(crate) async fn connect(&self) -> Secure {
        self.try_connect().await.unwrap()
    }

    pub(crate) async fn try_connect(&self) -> io::Result<Secure> {
        Secure::over(self.tcp().await?, &self.trust).await
    }

    /// A connection without TLS to the port that speaks it.
    pub(crate) async fn tcp(&self) -> io::Result<TcpStream> {
        TcpStream::connect(self.address).await
    }

    /// Asks the admin port.
    pub(crate) async fn admin(&self, path: &str) -> Answer {
        let stream = TcpStream::connect(self.admin_address).await.unwrap();
        let mut connection = Connection { stream: BufReader::new(stream) };
        connection.send(format!("GET {path} HTTP/1.1\r\nhost: x\r\n\r\n").as_bytes()).await;
        connection.answer().await
    }

    /// The value of one sample, labels and all, of `/metrics`; without the program's prefix.
    pub(crate) async fn metric(&self, sample: &str) -> f64 {
        let text = self.admin("/metrics").await.body;
        let name = format!("cofferdam_webhook_{sample} ");
        let value = text.lines().find_map(|line| line.strip_prefix(&name));
        value.unwrap_or_else(|| panic!("{name}is not in\n{text}")).parse().unwrap()
    }

    /// The most memory the process ever held, in MiB.
    pub(crate) fn peak_mebibytes(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id().unwrap())).unwrap();
        let kibibytes = status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.strip_suffix("kB")).unwrap();
        kibibytes.trim().parse::<u64>().unwrap() / 1024
    }

    /// Sends SIGTERM.
    pub(crate) async fn terminate(&self) {
        let id = self.child.id().unwrap().to_string();
        assert!(Command::new("kill").args(["-TERM", &id]).status().await.unwrap().success());
    }

    /// Reads the log to its end and waits for the process.
    pub(crate) async fn end(&mut self) -> ExitStatus {
        while let Some(line) = self.log.recv().await {
            self.lines.push(line);
        }
        self.child.wait().await.unwrap()
    }
}

/// Reads a log as it comes, so that the program never waits for a reader.
fn read(log: ChildStderr) -> UnboundedReceiver<String> {
    let (sender, lines) = unbounded_channel();
    tokio::spawn(async move {
        let mut log = BufReader::new(log).lines();
        while let Some(line) = log.next_line().await.unwrap() {
            // Lines that nobody wants any more are thrown away.
            let _ = sender.send(line);
        }
    });
    lines
}

/// Runs the program until it ends by itself; returns its exit code, standard output and standard error.
pub(crate) async fn run(arguments: &[&str]) -> (i32, String, String) {
    let output = Command::new(PROGRAM).args(arguments).kill_on_drop(true).output().await.unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

/// Sends `bytes` without TLS and returns everything that comes back until the server closes.
pub(crate) async fn exchange(mut stream: TcpStream, bytes: &[u8]) -> Vec<u8> {
    stream.write_all(bytes).await.unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    answer
}
