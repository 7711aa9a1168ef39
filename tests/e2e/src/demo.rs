//! The demo: someone creates a plain pod, and what runs is hardened; a pod with a port gets an address that works. Shown
//! to a person, on a cluster of its own or on the one that their kubectl points to.

use std::io::{BufRead, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Instant;

use anstream::{eprintln, print, println};
use anyhow::{Context, Result, bail, ensure};
use cofferdam_cluster::addon::{CERT_MANAGER, ENVOY_GATEWAY, PROMETHEUS, prometheus};
use cofferdam_cluster::cluster::{Cluster, Options};
use cofferdam_cluster::progress::Progress;

use self::say::{BAD, BOLD, DIM, GOOD, heading, step};
use crate::install::{self, SESSIONS};
use crate::kubectl::Kubectl;
use crate::{images, interrupt};

mod address;
mod api;
mod counted;
mod hardening;
mod say;

/// What the demo can be told.
#[derive(Debug, clap::Parser)]
#[command(version, about = "Shows what Cofferdam makes of a plain pod")]
pub struct Arguments {
    /// Use the cluster that kubectl points to, instead of starting one.
    #[arg(long, requires = "image")]
    current: bool,
    /// Cofferdam's image, by a name that the cluster can pull.
    #[arg(long, requires = "current")]
    image: Option<String>,
    /// The image of the pods that are shown; it must hold a shell.
    #[arg(long, default_value = "busybox:1.37", requires = "current")]
    pod_image: String,
    /// The name of the cluster that is started; one of that name is removed first.
    #[arg(long, default_value = "demo", conflicts_with = "current")]
    name: String,
    /// Go on without asking.
    #[arg(long, requires = "current")]
    yes: bool,
}

/// Runs the demo, on a cluster that stays or on the current one.
///
/// # Errors
/// The step that failed, in one sentence.
pub fn run(arguments: &Arguments) -> Result<()> {
    match &arguments.image {
        Some(image) => on_current(arguments, image),
        None => on_own(&arguments.name),
    }
}

/// Starts a cluster, leaves it running, and says how to go on.
fn on_own(name: &str) -> Result<()> {
    heading("A Kubernetes of its own on this machine");
    println!(
        "  {DIM}with Cofferdam's image, cert-manager, Envoy Gateway and Prometheus on it; then six things to see, and how"
    );
    println!(
        "  to go on. The first time all of it is built. From when it runs the cluster stays: `make down` ends it{DIM:#}"
    );
    let start = Instant::now();
    Cluster::down(name).context("the last demo's cluster cannot be removed")?;
    let options = Options { name: name.to_owned(), keep: true, ..Options::default() };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut cluster = runtime.block_on(Cluster::up(&options, &Progress::new()))?;
    step("a control plane and a node, in namespaces that nothing leaves", start);
    println!("  {DIM}building Cofferdam's programs once more, as they ship: some minutes the first time{DIM:#}");
    let start = Instant::now();
    images::load(&mut cluster)?;
    images::load_shell(&mut cluster)?;
    step("Cofferdam's image, built from its Containerfile", start);
    for (addon, what) in [
        (CERT_MANAGER, "cert-manager"),
        (ENVOY_GATEWAY, "Envoy Gateway, with a Gateway for every host"),
        (PROMETHEUS, "Prometheus"),
    ] {
        let start = Instant::now();
        cluster.install(&addon, &Progress::new())?;
        step(what, start);
    }
    let kubectl = Kubectl::of(&cluster)?;
    let start = Instant::now();
    let door = address::door(&cluster, &kubectl)?;
    let policy = address::policy(door.port());
    let (token, more) = api::settings()?;
    install::install(&kubectl, &install::render_with(&kubectl, "api", install::IMAGE, &policy, &more)?)?;
    step("Cofferdam: kubectl apply -k, manifests/overlays/api with a policy and a token of the demo's", start);
    hardening::show(&kubectl, images::SHELL)?;
    let url = address::show(&kubectl, door, &policy)?;
    let api = api::show(&cluster, &kubectl, token)?;
    counted::show(&cluster)?;
    go_on(name, &url, &api);
    Ok(())
}

/// Offers an address of the cluster on a port of this machine, another one where somebody has that.
fn offer(cluster: &Cluster, target: SocketAddr, port: u16) -> Result<u16> {
    Ok(cluster.relay(target, port).or_else(|_| cluster.relay(target, 0))?)
}

/// What a person can do now.
fn go_on(name: &str, url: &str, api: &api::Door) {
    heading("Go on by hand");
    let here = std::env::current_dir().unwrap_or_default();
    let program = format!("{}/target/debug/cofferdam-cluster --name {name}", here.display());
    for (command, what) in [
        (format!("alias k='{program} kubectl'"), "kubectl, for the demo's cluster"),
        (format!("k config set-context --current --namespace {SESSIONS}"), "the namespace of the sessions"),
        ("k get pod hello -o yaml".to_owned(), "the pod as it was admitted"),
        ("k exec -it hello -- sh".to_owned(), "a shell in the box"),
        (
            format!("k run mine --image={} --port=8080 -- listen --port 8080 --http", images::FIXTURE),
            "a session of yours; the demo's nodes have this image and cofferdam.test/shell:1, and pull no other",
        ),
        ("k describe pod mine".to_owned(), "where it is, its conditions and events"),
        ("k label namespace default cofferdam.dev/sessions=enforced".to_owned(), "sessions in another namespace"),
        (
            format!("curl --header 'Authorization: Bearer {}' {}/v1/capabilities", api.token, api.url),
            "the API; docs/api.md goes on from here",
        ),
        (format!("k get --raw '{}'", prometheus::query_path("cofferdam_agent_sessions")), "what Prometheus knows"),
        (format!("{program} status"), "the programs of the cluster"),
        ("make down".to_owned(), "ends it all and leaves nothing"),
    ] {
        println!("  {BOLD}{command}{BOLD:#}\n      {DIM}{what}{DIM:#}");
    }
    println!("\n  {GOOD}✓{GOOD:#} Open it in a browser on this machine: {BOLD}{url}{BOLD:#}");
    println!("    {DIM}or on yours, when `ssh -L` has brought its port there; curl gets the same as JSON{DIM:#}");
    println!("    {DIM}it is there for an hour, the longest that the policy lets a session run{DIM:#}");
}

/// Installs on the cluster that kubectl points to, shows, and takes away what it made.
fn on_current(arguments: &Arguments, image: &str) -> Result<()> {
    let kubectl = Kubectl::current(PathBuf::from("kubectl"));
    let context = kubectl.run(["config", "current-context"])?;
    let server = kubectl.run(["config", "view", "--minify", "--output=jsonpath={.clusters[0].cluster.server}"])?;
    println!("This installs Cofferdam on the cluster of context {BOLD}{}{BOLD:#} ({server}),", context.trim());
    println!("creates two pods in the namespace {SESSIONS}, has a third refused, and takes all of it away again.");
    println!("An API server of 1.34 then refuses all sessions of a later installation until it is restarted.");
    let present =
        kubectl.ask(["get", "namespace", install::SYSTEM, SESSIONS, "--ignore-not-found", "--output=name"], "")?;
    ensure!(present.success, "the cluster does not answer: {}", present.stderr.trim());
    ensure!(
        present.stdout.is_empty(),
        "{} is there already. The demo takes away what it installs, so it does not touch an installation of yours.",
        present.stdout.split_whitespace().collect::<Vec<_>>().join(" and ")
    );
    let issuers = kubectl.ask(["get", "crd", "issuers.cert-manager.io"], "")?;
    ensure!(
        issuers.success,
        "this cluster has no cert-manager. Install it (https://cert-manager.io/docs/installation) and come back."
    );
    if !arguments.yes && !confirmed()? {
        bail!("nothing was changed");
    }
    let manifests = install::render(&kubectl, image)?;
    // From here on, what stops the demo must not leave behind what it made.
    interrupt::catch()?;
    let shown = install::install(&kubectl, &manifests).and_then(|()| hardening::show(&kubectl, &arguments.pod_image));
    heading("Taking it away");
    match install::uninstall(&kubectl, &manifests) {
        Ok(()) => println!("  {GOOD}✓{GOOD:#} what the demo made is gone; cert-manager is as it was"),
        // What went wrong first is what to look at first.
        Err(error) if shown.is_ok() => return Err(error),
        Err(error) => eprintln!("  {BAD}✗{BAD:#} {error:#}"),
    }
    if shown.is_ok() {
        println!(
            "\n  Sessions get addresses where a gateway is: manifests/README.md, Addresses. `make demo` shows it."
        );
    }
    shown
}

fn confirmed() -> Result<bool> {
    print!("Go on? [y/N] ");
    std::io::stdout().flush()?;
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}
