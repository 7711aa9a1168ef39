//! The program as a child process.

use std::net::SocketAddr;
use std::process::{ExitStatus, Stdio};

use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use crate::cluster::Cluster;

/// Path of the program under test.
const PROGRAM: &str = env!("CARGO_BIN_EXE_cofferdam-api");

/// A running API. Killed when dropped.
pub(crate) struct Program {
    child: Child,
    log: UnboundedReceiver<String>,
    /// Every line of the log that was read so far.
    pub(crate) lines: Vec<String>,
    pub(crate) address: SocketAddr,
    pub(crate) admin_address: SocketAddr,
    pub(crate) bodies_address: SocketAddr,
    /// The cluster that it speaks to.
    pub(crate) cluster: Cluster,
}

impl Program {
    /// Starts it on free ports in a cluster where there is nothing, and waits until it listens.
    pub(crate) async fn start(flags: &[&str]) -> Self {
        Self::start_in(Cluster::start().await, flags).await
    }

    /// The same in that cluster.
    pub(crate) async fn start_in(cluster: Cluster, flags: &[&str]) -> Self {
        let mut child = Command::new(PROGRAM)
            .args(["--listen=127.0.0.1:0", "--admin-listen=127.0.0.1:0", "--bodies-listen=127.0.0.1:0"])
            .args(["--log-format=json", "--default-image=i", "--body-store=memory"])
            .args(flags)
            .env("KUBECONFIG", cluster.config())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let (sender, log) = unbounded_channel();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        tokio::spawn(async move {
            while let Some(line) = lines.next_line().await.unwrap() {
                // Lines that nobody wants any more are thrown away.
                let _ = sender.send(line);
            }
        });
        let nowhere = SocketAddr::from(([127, 0, 0, 1], 0));
        let mut program = Self {
            child,
            log,
            lines: Vec::new(),
            address: nowhere,
            admin_address: nowhere,
            bodies_address: nowhere,
            cluster,
        };
        let listening = program.logged("listening").await;
        let address = |field: &str| listening[field].as_str().unwrap().parse().unwrap();
        (program.address, program.admin_address) = (address("address"), address("admin_address"));
        program.bodies_address = address("bodies_address");
        // All sessions that there are are known then.
        while !program.admin("/readyz").await.contains("\r\n\r\nok") {
            tokio::task::yield_now().await;
        }
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

    /// Sends bytes on a connection of their own, and returns everything that comes back.
    pub(crate) async fn exchange(&self, bytes: &[u8]) -> String {
        exchange(self.address, bytes).await
    }

    /// Asks with GET.
    pub(crate) async fn get(&self, path: &str, headers: &str) -> String {
        self.exchange(get(path, headers).as_bytes()).await
    }

    /// Asks with another method, and JSON.
    pub(crate) async fn ask(&self, method: &str, path: &str, body: &str) -> (u16, Value) {
        let length = body.len();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-type: application/json\r\n\
             content-length: {length}\r\n\r\n"
        );
        let answer = self.exchange(format!("{head}{body}").as_bytes()).await;
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, serde_json::from_str(body).unwrap_or_default())
    }

    /// Asks the admin port.
    pub(crate) async fn admin(&self, path: &str) -> String {
        exchange(self.admin_address, get(path, "").as_bytes()).await
    }

    /// The most memory the process ever held, in MiB.
    pub(crate) fn peak_mebibytes(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id().unwrap())).unwrap();
        let kibibytes = status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.strip_suffix("kB")).unwrap();
        kibibytes.trim().parse::<u64>().unwrap() / 1024
    }

    /// Kills it, as a node does that runs out of memory.
    pub(crate) async fn kill(mut self) -> Cluster {
        self.child.kill().await.unwrap();
        self.cluster
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

/// A whole request that asks for no second answer on its connection.
pub(crate) fn get(path: &str, headers: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n{headers}\r\n")
}

/// Runs the program until it ends by itself; returns its exit code and standard error.
pub(crate) async fn run(arguments: &[&str]) -> (i32, String) {
    let output = Command::new(PROGRAM).args(arguments).kill_on_drop(true).output().await.unwrap();
    (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
}

pub(crate) async fn exchange(address: SocketAddr, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(bytes).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}
