//! `kubectl cofferdam`: what was done to a pod, and which sessions there are. kubectl runs a program of that name, and
//! the program asks kubectl in turn, so whatever way to a cluster a person has set up holds here too.

use std::ffi::OsString;
use std::io::{self, Write};
use std::process::{Command, Stdio};

use clap::{Args, Parser, Subcommand};
use cofferdam_model::keys;
use serde_json::Value;

use crate::offline::args::HardenArgs;
use crate::policy_command::PolicyArgs;

mod explain;
mod list;

/// The name by which kubectl finds the program.
pub(crate) const NAME: &str = "kubectl-cofferdam";

/// Sessions of Cofferdam, and what was done to them.
#[derive(Debug, Parser)]
#[command(name = "kubectl cofferdam", bin_name = "kubectl cofferdam", version)]
pub(crate) struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: PluginCommand,
}

/// What the plugin can do.
#[derive(Debug, Subcommand)]
pub(crate) enum PluginCommand {
    /// Say which rule changed what in a pod.
    Explain(ExplainArgs),
    /// List sessions.
    List(ListArgs),
    /// Harden the pods in a file as the webhook would.
    Harden(HardenArgs),
    /// Check a policy file, or show what it means.
    Policy(PolicyArgs),
}

/// Flags of `explain`.
#[derive(Args, Debug)]
pub(crate) struct ExplainArgs {
    /// The pod's name.
    pod: String,
    #[command(flatten)]
    cluster: ClusterArgs,
}

/// Flags of `list`.
#[derive(Args, Debug)]
pub(crate) struct ListArgs {
    /// Look into all namespaces.
    #[arg(long, short = 'A')]
    all_namespaces: bool,
    #[command(flatten)]
    cluster: ClusterArgs,
}

/// Which cluster and namespace; without them kubectl's own.
#[derive(Args, Debug)]
pub(crate) struct ClusterArgs {
    /// The namespace.
    #[arg(long, short, value_name = "NAME")]
    namespace: Option<String>,
    /// The context of the kubeconfig.
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
    /// The kubeconfig file.
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<String>,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PluginError {
    /// kubectl does not run.
    #[error("cannot run kubectl; is it on the PATH?")]
    NoKubectl(#[source] io::Error),
    /// kubectl failed; it has said why.
    #[error("kubectl could not answer")]
    Kubectl,
    /// What kubectl said is no JSON.
    #[error("kubectl answered something that is no JSON")]
    NotJson(#[source] serde_json::Error),
    /// Nothing can be written.
    #[error("cannot write the answer")]
    Write(#[from] io::Error),
}

/// Says what was done to a pod.
pub(crate) fn explain(arguments: &ExplainArgs, out: &mut impl Write) -> Result<(), PluginError> {
    let pod = kubectl(&arguments.cluster, &["get", "pod", "--output=json", "--", &arguments.pod])?;
    Ok(explain::write(&pod, out)?)
}

/// Lists the sessions of a namespace, or of all.
pub(crate) fn list(arguments: &ListArgs, out: &mut impl Write) -> Result<(), PluginError> {
    let mut question = vec!["get", "pods", "--selector", keys::SESSION, "--output=json"];
    if arguments.all_namespaces {
        question.push("--all-namespaces");
    }
    let pods = kubectl(&arguments.cluster, &question)?;
    Ok(list::write(&pods, out)?)
}

fn kubectl(cluster: &ClusterArgs, arguments: &[&str]) -> Result<Value, PluginError> {
    let ClusterArgs { namespace, context, kubeconfig } = cluster;
    let flags = [("namespace", namespace), ("context", context), ("kubeconfig", kubeconfig)];
    let output = Command::new("kubectl")
        .args(flags.into_iter().filter_map(|(flag, value)| Some(format!("--{flag}={}", value.as_ref()?))))
        .args(arguments)
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .map_err(PluginError::NoKubectl)?;
    if !output.status.success() {
        return Err(PluginError::Kubectl);
    }
    serde_json::from_slice(&output.stdout).map_err(PluginError::NotJson)
}

/// Whether the program was called by the plugin's name.
#[must_use]
pub(crate) fn is_called(arguments: &[OsString]) -> bool {
    let program = arguments.first().map(std::path::Path::new);
    program.and_then(|path| path.file_name()).is_some_and(|name| name == NAME)
}

/// A member of a pod's metadata map, or nothing.
fn metadata<'p>(pod: &'p Value, map: &str, key: &str) -> &'p str {
    pod["metadata"][map][key].as_str().unwrap_or_default()
}
