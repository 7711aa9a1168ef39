//! What tests of routes ask: a session's address through the gateway, and what Cofferdam says of it.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::kubectl::Kubectl;
use crate::namespace::{PATIENCE, TestNamespace};
use crate::stage::Stage;
use crate::wait::until;

/// The base domain of all tests.
pub const DOMAIN: &str = "sessions.example.test";

/// How long an answer may take.
const ANSWER: Duration = Duration::from_secs(10);

/// A policy with this `routing`, given as YAML in braces, and more of it at the top level.
#[must_use]
pub fn policy(routing: &str, more: &str) -> String {
    format!("profiles:\n  default: {{}}\n  app: {{}}\n  workspace: {{}}\nrouting: {routing}\n{more}\n")
}

/// The `routing` for the Gateway that every add-on brings, in plain HTTP.
#[must_use]
pub fn through_gateway() -> String {
    format!("{{baseDomain: {DOMAIN}, gateway: {{name: sessions, namespace: gateway}}, publicURL: {{scheme: http}}}}")
}

/// The `network` for the data plane of Envoy Gateway.
pub const ENVOY_GATEWAY_NETWORK: &str = "network: {dataPlaneNamespaces: [envoy-gateway-system]}";

/// A gateway's address, offered on a port of this machine.
#[derive(Debug, Clone, Copy)]
pub struct Door(u16);

/// What came back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The status.
    pub status: u16,
    /// Status line and headers, as they came.
    pub head: String,
    /// The body.
    pub body: String,
}

impl Door {
    /// Of the Gateway `sessions` in the namespace `gateway`.
    ///
    /// # Errors
    /// When it has no address.
    pub fn of_gateway(stage: &Stage) -> Result<Self> {
        let of = ["--namespace=gateway", "get", "gateway/sessions", "--output=jsonpath={.status.addresses[0].value}"];
        Self::at(stage, &stage.kubectl.run(of)?)
    }

    /// Of an address of the cluster's network, port 80.
    ///
    /// # Errors
    /// When that is no address.
    pub fn at(stage: &Stage, address: &str) -> Result<Self> {
        let target = SocketAddr::new(address.parse().with_context(|| format!("{address:?} is no address"))?, 80);
        Ok(Self(stage.cluster.relay(target, 0)?))
    }

    /// At a port of this machine's loopback that leads there already.
    #[must_use]
    pub fn of_port(port: u16) -> Self {
        Self(port)
    }

    /// At a port of this machine's loopback.
    #[must_use]
    pub fn on(port: u16) -> Self {
        Self(port)
    }

    /// The port of this machine's loopback.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.0
    }

    /// Asks for a path at a host, with more header lines if there are any, each ended by CRLF.
    ///
    /// # Errors
    /// When no answer comes.
    pub fn ask(&self, method: &str, host: &str, path: &str, headers: &str) -> Result<Answer> {
        let mut bytes = Vec::new();
        self.send(method, host, path, headers)?.read_to_end(&mut bytes)?;
        let text = String::from_utf8_lossy(&bytes);
        let (head, body) = text.split_once("\r\n\r\n").context("the answer has no end of its head")?;
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).context("no status")?;
        Ok(Answer { status, head: head.to_owned(), body: body.to_owned() })
    }

    /// The status that `GET /` answers at a host, as soon as it is there: a gateway may keep the connection for a second after
    /// its answer.
    ///
    /// # Errors
    /// When no answer comes.
    pub fn status(&self, host: &str) -> Result<u16> {
        let mut line = String::new();
        BufReader::new(self.send("GET", host, "/", "")?).read_line(&mut line)?;
        line.split(' ').nth(1).and_then(|status| status.parse().ok()).context("no status")
    }

    /// What `GET /` answers at a host.
    ///
    /// # Errors
    /// When no answer comes.
    pub fn get(&self, host: &str) -> Result<Answer> {
        self.ask("GET", host, "/", "")
    }

    /// The connection on which the answer comes.
    fn send(self, method: &str, host: &str, path: &str, headers: &str) -> Result<TcpStream> {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.0))?;
        stream.set_read_timeout(Some(ANSWER))?;
        let request = format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{headers}\r\n");
        stream.write_all(request.as_bytes())?;
        Ok(stream)
    }
}

/// A condition of ours, as `status/reason`, such as `True/Reachable`; empty if it is not there.
#[must_use]
pub fn condition(pod: &Value, name: &str) -> String {
    let name = format!("cofferdam.dev/{name}");
    let all = pod["status"]["conditions"].as_array().into_iter().flatten();
    let found = all.into_iter().find(|condition| condition["type"] == *name);
    found.map_or_else(String::new, |found| {
        format!("{}/{}", found["status"].as_str().unwrap_or_default(), found["reason"].as_str().unwrap_or_default())
    })
}

/// The message of a condition of ours.
#[must_use]
pub fn message(pod: &Value, name: &str) -> String {
    let name = format!("cofferdam.dev/{name}");
    let all = pod["status"]["conditions"].as_array().into_iter().flatten();
    let found = all.into_iter().find(|condition| condition["type"] == *name);
    found.map_or_else(String::new, |found| found["message"].as_str().unwrap_or_default().to_owned())
}

/// What the annotation says of the ports.
///
/// # Errors
/// When it is not there, or no JSON.
pub fn endpoints(pod: &Value) -> Result<Value> {
    let text = pod["metadata"]["annotations"]["cofferdam.dev/endpoints"].as_str().context("no endpoints yet")?;
    Ok(serde_json::from_str(text)?)
}

/// Waits until a pod's condition is `status/reason`, and gives the pod.
///
/// # Errors
/// When it is not in time; what it was last.
pub fn told(namespace: &TestNamespace, pod: &str, name: &str, wanted: &str) -> Result<Value> {
    until(&format!("{name} of {pod} is {wanted}"), PATIENCE, || {
        let found = namespace.json(["get", "pod", pod])?;
        let is = condition(&found, name);
        ensure!(is == wanted, "it is {is:?}: {}", message(&found, name));
        Ok(found)
    })
}

/// The host of a port of a pod, once it is told.
///
/// # Errors
/// When it is not in time.
pub fn host(namespace: &TestNamespace, pod: &str, port: u16) -> Result<String> {
    until(&format!("the host of port {port} of {pod}"), PATIENCE, || {
        let endpoints = endpoints(&namespace.json(["get", "pod", pod])?)?;
        let mut ports = endpoints["ports"].as_array().into_iter().flatten();
        let found = ports.find(|found| found["port"] == port).context("no such port")?;
        found["host"].as_str().map(str::to_owned).context("it has no host")
    })
}

/// The names of the events of a pod, each as `reason`, in the order in which they came.
///
/// # Errors
/// In kubectl's words.
pub fn events(kubectl: &Kubectl, namespace: &str, pod: &str) -> Result<Vec<String>> {
    let field = format!("--field-selector=involvedObject.name={pod},reportingComponent=cofferdam-agent");
    let of = format!("--namespace={namespace}");
    let list = kubectl.json(["get", "events", of.as_str(), field.as_str(), "--sort-by=.metadata.creationTimestamp"])?;
    let items = list["items"].as_array().into_iter().flatten();
    Ok(items.map(|event| event["reason"].as_str().unwrap_or_default().to_owned()).collect())
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::sync::mpsc;
    use std::thread;

    use super::*;

    #[test]
    fn a_status_is_known_before_the_connection_ends_and_an_answer_is_read_to_its_end() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let door = Door::on(listener.local_addr().unwrap().port());
        let (end, may_end) = mpsc::channel::<()>();
        let server = thread::spawn(move || {
            for may_end in [Some(may_end), None] {
                let (mut stream, _) = listener.accept().unwrap();
                let mut request = BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok);
                assert_eq!(request.next().unwrap(), "GET / HTTP/1.1");
                assert_eq!(request.next().unwrap(), "Host: a.test");
                assert!(request.any(|line| line.is_empty()));
                stream.write_all(b"HTTP/1.1 404 Not Found\r\nServer: s\r\n\r\nbody").unwrap();
                if let Some(may_end) = may_end {
                    may_end.recv().unwrap();
                }
            }
        });
        assert_eq!(door.status("a.test").unwrap(), 404);
        end.send(()).unwrap();
        let answer = door.get("a.test").unwrap();
        assert_eq!((answer.status, answer.body.as_str()), (404, "body"));
        assert!(answer.head.ends_with("Server: s"), "{}", answer.head);
        server.join().unwrap();
    }
}
