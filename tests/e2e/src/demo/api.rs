//! A session for those who have no kubectl: from two files to its end, by curl.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::net::SocketAddr;
use std::process::{Child, ChildStdout, Command, Stdio};

use anstream::println;
use anyhow::{Context, Result, bail, ensure};
use cofferdam_cluster::cluster::Cluster;
use cofferdam_cluster::packages;
use cofferdam_cluster::progress::Progress;
use serde_json::Value;
use tempfile::TempDir;

use super::say::{BOLD, DIM, GOOD, heading, indent};
use crate::api::{PORT, serves};
use crate::images::SHELL;
use crate::install::{SESSIONS, SYSTEM};
use crate::kubectl::Kubectl;

/// What is sent, but for the image's name: two files, of which one serves the other.
const SESSION: &str = r#"{
  "bundle": {
    "entryRelativePath": "main.sh",
    "files": [
      {"relativePath": "main.sh", "contents": "echo \"$GREETING from main.sh\"; exec busybox httpd -f -p 3000 -h /app/site"},
      {"relativePath": "site/index.html", "contents": "<h1>A page out of a bundle</h1>\n"}
    ]
  },
  "env": {"GREETING": "Hello"},
  "ports": [{"port": 3000, "protocol": "tcp"}],
  "config": {"image": "IMAGE", "pullPolicy": "missing"}
}
"#;

/// A WebSocket by a program that knows none: it shows the frames as they come.
const TERMINAL: &str = "curl --silent --no-buffer --http1.1 --header \"$AUTH\" \\\n      \
                        --header 'Connection: Upgrade' --header 'Upgrade: websocket' \\\n      \
                        --header 'Sec-WebSocket-Version: 13' --header 'Sec-WebSocket-Key: Y29mZmVyZGFtLWRlbW8hIQ==' \\\n      \
                        $API/v1/sessions/$ID/io";

/// Where the API is, and by what it knows its callers.
#[derive(Debug, Clone)]
pub(super) struct Door {
    /// Its URL on this machine.
    pub(super) url: String,
    /// A token.
    pub(super) token: String,
}

/// A token, and what of a kustomization gives it out and names the image of sessions.
///
/// # Errors
/// When the system has no random numbers.
pub(super) fn settings() -> Result<(String, String)> {
    let token = fs::read_to_string("/proc/sys/kernel/random/uuid")?.trim().to_owned();
    let more = format!(
        "- target: {{kind: Deployment, name: cofferdam-api}}
  patch: |
    - {{op: replace, path: /spec/template/spec/containers/0/env/0/value, value: {SHELL}}}
secretGenerator:
- name: cofferdam-api-tokens
  namespace: {SYSTEM}
  literals: [tokens={token}]
  options: {{disableNameSuffixHash: true}}
"
    );
    Ok((token, more))
}

/// Makes a session of two files, shows what its terminal says and its address serves, and ends it.
///
/// # Errors
/// The step that failed.
pub(super) fn show(cluster: &Cluster, kubectl: &Kubectl, token: String) -> Result<Door> {
    heading("6. Two files over HTTP, for those who have no kubectl: a session by curl");
    packages::ensure(packages::CURL, &Progress::new())?;
    let of = format!("--namespace={SYSTEM}");
    serves(kubectl)?;
    let address = ["get", "service/cofferdam-api", "--output=jsonpath={.spec.clusterIP}"];
    let address = kubectl.run([&[of.as_str()][..], &address].concat())?;
    let target = SocketAddr::new(address.parse().with_context(|| format!("its address is {address:?}"))?, PORT);
    let port = super::offer(cluster, target, PORT)?;
    let door = Door { url: format!("http://localhost:{port}"), token };

    println!("  {DIM}the Service cofferdam-api is at API={}; AUTH is \"Authorization: Bearer …\"{DIM:#}", door.url);
    println!("  {DIM}session.json:{DIM:#}");
    let session = SESSION.replace("IMAGE", SHELL);
    indent(&session);
    let mut shell = Shell::at(&door)?;
    fs::write(shell.folder.path().join("session.json"), session)?;
    let answer = shell.run("curl --silent --header \"$AUTH\" --json @session.json $API/v1/sessions")?;
    let made: Value = serde_json::from_str(&answer).with_context(|| format!("the API answered {answer:?}"))?;
    let id = made["sessionId"].as_str().with_context(|| format!("the API answered {made}"))?;
    indent(&format!("{{\"sessionId\": \"{id}\", \"streamUrl\": {}, …}}", made["streamUrl"]));
    id.clone_into(&mut shell.session);

    let mut events = shell.start("curl --silent --no-buffer --header \"$AUTH\" $API/v1/sessions/$ID/events")?;
    let mut url = None;
    events.until(|event| {
        let endpoints = &event["status"]["endpoints"];
        url = endpoints[0]["url"].as_str().map(str::to_owned).or(url.take());
        event["done"] == true
    })?;
    let url = url.context("the session has no URL")?;

    let mut terminal = shell.start(TERMINAL)?;
    println!("  {DIM}{}{DIM:#}", terminal.text("Hello from main.sh")?);
    drop(terminal);

    let page = shell.run(&format!("curl --silent --fail {url}"))?;
    indent(&page);
    ensure!(page.contains("A page out of a bundle"), "the address answered {page:?}");

    shell.run("curl --silent --fail --request DELETE --header \"$AUTH\" $API/v1/sessions/$ID")?;
    println!("\n  {DIM}… and the events, which are still read, go on and end:{DIM:#}");
    events.until(|event| event["status"]["kind"] == "stopped")?;
    let pod = format!("pod/run-{id}");
    kubectl.run(["wait", &pod, "--for=delete", "--timeout=60s", "--namespace", SESSIONS])?;
    println!("  {GOOD}✓{GOOD:#} its pod is gone, and what the pod owned goes with it");
    Ok(door)
}

/// Where the commands run: what they are shown as is what is run.
struct Shell {
    folder: TempDir,
    door: Door,
    session: String,
}

/// A command that goes on.
struct Running {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl Shell {
    fn at(door: &Door) -> Result<Self> {
        Ok(Self { folder: tempfile::tempdir()?, door: door.clone(), session: String::new() })
    }

    fn start(&self, command: &str) -> Result<Running> {
        println!("\n  {BOLD}$ {command}{BOLD:#}");
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("exec {command}")]).current_dir(self.folder.path()).stdin(Stdio::null());
        shell.env("API", &self.door.url).env("ID", &self.session);
        shell.env("AUTH", format!("Authorization: Bearer {}", self.door.token));
        let mut child = shell.stdout(Stdio::piped()).spawn().context("there is no sh")?;
        let output = BufReader::new(child.stdout.take().context("it has no output")?);
        Ok(Running { child, output })
    }

    fn run(&self, command: &str) -> Result<String> {
        let mut running = self.start(command)?;
        let mut text = String::new();
        running.output.read_to_string(&mut text)?;
        let status = running.child.wait()?;
        ensure!(status.success(), "`{command}` failed ({status}): {text}");
        Ok(text)
    }
}

impl Running {
    /// Shows events as they come, to the one that is waited for.
    fn until(&mut self, mut is_last: impl FnMut(&Value) -> bool) -> Result<()> {
        let mut line = String::new();
        while self.output.read_line(&mut line)? > 0 {
            if let Some(data) = line.trim_end().strip_prefix("data: ") {
                println!("  {DIM}{data}{DIM:#}");
                if is_last(&serde_json::from_str(data)?) {
                    return Ok(());
                }
            }
            line.clear();
        }
        bail!("the events ended before that");
    }

    /// What came until that text had, of it what can be read.
    fn text(&mut self, wanted: &str) -> Result<String> {
        let (mut text, mut bytes) = (String::new(), [0; 4096]);
        while !text.contains(wanted) {
            let read = self.output.read(&mut bytes)?;
            ensure!(read > 0, "the terminal ended: {text:?}");
            text.push_str(&String::from_utf8_lossy(&bytes[..read]));
        }
        let is_plain = |char: &char| char.is_ascii_graphic() || *char == ' ';
        Ok(text.chars().filter(is_plain).collect())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // One that has ended by itself is gone as well.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
