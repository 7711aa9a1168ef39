//! The command line of `cofferdam-cluster`.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Duration;

use clap::{Parser, Subcommand};

use crate::addon::{self, Addon};
use crate::cluster::{Cluster, Options};
use crate::error::Error;
use crate::paths::Paths;
use crate::progress::Progress;
use crate::{hold, init, load_balancer, parts};

/// A real Kubernetes on a bare machine, in namespaces of its own.
#[derive(Debug, Parser)]
#[command(version, about)]
pub struct Arguments {
    /// Which cluster; several may run side by side.
    #[arg(long, global = true, default_value = "dev", env = "COFFERDAM_CLUSTER")]
    name: String,
    #[command(subcommand)]
    order: Order,
}

#[derive(Debug, Subcommand)]
enum Order {
    /// Start a cluster and return when its nodes are Ready.
    Up {
        /// The Kubernetes version, as MINOR.
        #[arg(long, default_value = parts::NEWEST)]
        kubernetes: String,
        /// How many nodes.
        #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=9))]
        nodes: u8,
        /// Call a node not ready when it has been silent for so many seconds; Kubernetes' own time if not given.
        #[arg(long, value_parser = clap::value_parser!(u64).range(2..))]
        not_ready_after: Option<u64>,
    },
    /// End a cluster and remove all that it left.
    Down,
    /// Show the nodes and their programs.
    Status,
    /// Run kubectl with the administrator's rights.
    #[command(disable_help_flag = true)]
    Kubectl {
        /// kubectl's own arguments.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<OsString>,
    },
    /// Import an OCI image (a tar file) on every node.
    Load {
        /// The file.
        image: PathBuf,
    },
    /// Install an add-on and wait until it works.
    Install {
        /// Its name, as in cert-manager.
        #[arg(value_parser = addon_named)]
        addon: Addon,
    },
    /// Add a node, or do something to one.
    Node {
        #[command(subcommand)]
        order: NodeOrder,
    },
    /// Break something of the control plane.
    Fault {
        #[command(subcommand)]
        fault: Fault,
    },
    /// Offer an address of the cluster's network on a port of this machine's 127.0.0.1, and print the port.
    Relay {
        /// As in 10.89.0.1:80.
        target: SocketAddr,
        /// The port; 0 takes any free one.
        #[arg(long, default_value_t = 0)]
        port: u16,
    },
    /// Run a command in the cluster's network.
    In {
        /// On which node.
        #[arg(long, default_value = "node-1")]
        node: String,
        /// The command and its arguments.
        #[arg(last = true, required = true)]
        command: Vec<OsString>,
    },
    /// Print what a program of a node has logged: etcd, kube-apiserver, kubelet, containerd ...
    Logs {
        /// The program.
        component: String,
        /// On which node.
        #[arg(long, default_value = "node-1")]
        node: String,
    },
    #[command(hide = true)]
    Hold(hold::Hold),
    #[command(hide = true)]
    Init { spec: PathBuf },
    #[command(hide = true)]
    LoadBalancer { kubeconfig: PathBuf },
}

#[derive(Debug, Subcommand)]
enum NodeOrder {
    /// Start one more node, or one that was killed.
    Add { node: String },
    /// Kill all its processes at once, as a power cut would.
    Kill { node: String },
    /// Stop its kubelet where it stands: the node falls silent, its pods run on.
    Pause { node: String },
    /// Let its kubelet go on.
    Resume { node: String },
    /// Pull its plug: it runs on, and nothing gets there or away.
    Unplug { node: String },
    /// Put its plug back.
    Plug { node: String },
}

#[derive(Debug, Subcommand)]
enum Fault {
    /// Kill the API server and wait for its successor.
    RestartApiServer,
    /// Reset every connection that the API server has.
    ResetApiConnections,
    /// Make etcd forget every revision but the newest.
    CompactEtcd,
}

/// Carries out one command and returns what the program exits with.
///
/// # Errors
/// What the command could not do, in one sentence.
pub fn run(arguments: Arguments) -> Result<ExitCode, Error> {
    let Arguments { name, order } = arguments;
    match order {
        Order::Init { spec } => init::run(&spec)?,
        Order::Hold(hold) => wait_for(hold::run(&hold))?,
        Order::LoadBalancer { kubeconfig } => wait_for(load_balancer::run(&kubeconfig))?,
        Order::Up { kubernetes, nodes, not_ready_after } => {
            let not_ready_after = not_ready_after.map(Duration::from_secs);
            up(&Options { name, kubernetes, nodes, keep: true, not_ready_after })?;
        }
        Order::Down => {
            let is_there = Paths::new(&name)?.root().exists();
            Cluster::down(&name)?;
            println!(
                "{}",
                if is_there {
                    format!("cluster `{name}` has ended, and left nothing")
                } else {
                    format!("no cluster called `{name}` is there")
                }
            );
        }
        Order::Status => status(&Cluster::attach(&name)?),
        Order::Kubectl { arguments } => {
            return pass(Cluster::attach(&name)?.kubectl_command()?.args(arguments));
        }
        Order::Load { image } => Cluster::attach(&name)?.load(&absolute(&image)?)?,
        Order::Install { addon } => Cluster::attach(&name)?.install(&addon, &Progress::new())?,
        Order::Node { order } => node(&mut Cluster::attach(&name)?, order)?,
        Order::Fault { fault } => {
            let cluster = Cluster::attach(&name)?;
            match fault {
                Fault::RestartApiServer => cluster.restart_api_server()?,
                Fault::ResetApiConnections => cluster.reset_api_connections()?,
                Fault::CompactEtcd => cluster.compact_etcd()?,
            }
        }
        Order::Relay { target, port } => println!("{}", Cluster::attach(&name)?.relay(target, port)?),
        Order::In { node, command } => {
            let cluster = Cluster::attach(&name)?;
            if let Some((program, arguments)) = command.split_first() {
                let mut inside = cluster.inside(&node)?.network(program);
                inside.args(arguments).env("PATH", cluster.programs().search_path());
                return pass(inside.env("KUBECONFIG", cluster.inner_kubeconfig()));
            }
        }
        Order::Logs { component, node } => {
            return pass(Command::new("cat").arg(Cluster::attach(&name)?.log(&node, &component)?));
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn up(options: &Options) -> Result<(), Error> {
    let start = std::time::Instant::now();
    let cluster = wait_for(Cluster::up(options, &Progress::new()))?;
    println!(
        "Kubernetes {} runs ({:.1} s). Use it with\n  cofferdam-cluster --name {} kubectl get nodes\nor\n  export KUBECONFIG={}",
        cluster.kubernetes(),
        start.elapsed().as_secs_f64(),
        options.name,
        cluster.kubeconfig().display()
    );
    Ok(())
}

fn status(cluster: &Cluster) {
    println!("cluster {}, Kubernetes {}", cluster.name(), cluster.kubernetes());
    for node in cluster.status() {
        println!("\n{}", node.name);
        match node.components {
            Err(error) => println!("  lost ({error})"),
            Ok(components) => {
                for component in components {
                    let state = component.pid.map_or("down".to_owned(), |pid| format!("pid {pid}"));
                    let again = component.last_exit.map_or(String::new(), |exit| {
                        format!(", started {} times, last ended with {exit}", component.starts)
                    });
                    println!("  {:<24} {state}{again}", component.name);
                }
            }
        }
    }
}

fn node(cluster: &mut Cluster, order: NodeOrder) -> Result<(), Error> {
    match order {
        NodeOrder::Add { node } => wait_for(cluster.add_node(&node, true)),
        NodeOrder::Kill { node } => cluster.kill_node(&node),
        NodeOrder::Pause { node } => cluster.pause_node(&node),
        NodeOrder::Resume { node } => cluster.resume_node(&node),
        NodeOrder::Unplug { node } => cluster.unplug_node(&node),
        NodeOrder::Plug { node } => cluster.plug_node(&node),
    }
}

fn addon_named(name: &str) -> Result<Addon, String> {
    let found = addon::ALL.iter().find(|addon| addon.name == name);
    let names = || addon::ALL.iter().map(|addon| addon.name).collect::<Vec<_>>().join(", ");
    found.copied().ok_or_else(|| format!("there is {}", names()))
}

/// Runs a command on this terminal and passes its exit code on.
fn pass(command: &mut Command) -> Result<ExitCode, Error> {
    let status = command.status().map_err(Error::io("start", Path::new(command.get_program())))?;
    Ok(status.code().and_then(|code| u8::try_from(code).ok()).map_or(ExitCode::FAILURE, ExitCode::from))
}

/// One thread does for all of it, and must: a holder's child is told of the death of the *thread* that started it.
fn wait_for<T>(work: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(Error::io("start", Path::new("the runtime")))?;
    let result = runtime.block_on(work);
    // A read of standard input that still waits would keep it.
    runtime.shutdown_background();
    result
}

fn absolute(path: &Path) -> Result<PathBuf, Error> {
    std::path::absolute(path).map_err(Error::io("find", path))
}
