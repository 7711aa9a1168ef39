//! `kubectl port-forward`: a port of a pod on this machine's loopback, by way of its kubelet. It ends when it is dropped.

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdout, Stdio};

use anyhow::{Context, Result};

use crate::kubectl::Kubectl;
use crate::routing::Door;

/// A forwarded port.
#[derive(Debug)]
pub struct PortForward {
    kubectl: Child,
    /// Kept open: kubectl says each connection there, and ends when it cannot.
    _output: BufReader<ChildStdout>,
    door: Door,
}

impl PortForward {
    /// To a port of a pod.
    ///
    /// # Errors
    /// When kubectl does not begin to forward.
    pub fn to(kubectl: &Kubectl, namespace: &str, pod: &str, port: u16) -> Result<Self> {
        let (namespace, pod, port) = (format!("--namespace={namespace}"), format!("pod/{pod}"), format!(":{port}"));
        let mut command = kubectl.command();
        command.args([&namespace, "port-forward", &pod, &port, "--address=127.0.0.1"]).stdin(Stdio::null());
        let mut kubectl = command.stdout(Stdio::piped()).spawn().context("kubectl cannot be started")?;
        let mut output = BufReader::new(kubectl.stdout.take().context("kubectl has no output")?);
        let mut line = String::new();
        output.read_line(&mut line)?;
        // Forwarding from 127.0.0.1:40123 -> 3000
        let near = line.split("127.0.0.1:").nth(1).and_then(|rest| rest.split(' ').next()?.parse().ok());
        let forward = Self { kubectl, _output: output, door: Door::on(near.unwrap_or_default()) };
        near.with_context(|| format!("kubectl forwards nothing: {line:?}"))?;
        Ok(forward)
    }

    /// Where it is.
    #[must_use]
    pub fn door(&self) -> Door {
        self.door
    }
}

impl Drop for PortForward {
    fn drop(&mut self) {
        // One that has ended by itself is gone as well.
        let _ = self.kubectl.kill();
        let _ = self.kubectl.wait();
    }
}
