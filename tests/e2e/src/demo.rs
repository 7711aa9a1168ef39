//! The demo: someone creates a plain pod, and what runs is hardened. Shown to a person, on a cluster of its own or on
//! the one that their kubectl points to.

use std::io::{BufRead, Write};
use std::path::PathBuf;
use std::time::Instant;

use anstream::{eprintln, print, println};
use anstyle::{AnsiColor, Style};
use anyhow::{Context, Result, bail, ensure};
use cofferdam_cluster::addon::CERT_MANAGER;
use cofferdam_cluster::cluster::{Cluster, Options};
use cofferdam_cluster::progress::Progress;
use serde_json::Value;

use crate::install::{self, SESSIONS};
use crate::kubectl::{Answer, Kubectl};
use crate::{changes, images, interrupt, proof};

const BOLD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();
const GOOD: Style = AnsiColor::Green.on_default();
const WARN: Style = AnsiColor::Yellow.on_default();
const BAD: Style = AnsiColor::Red.on_default();

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
    /// Go on without asking.
    #[arg(long, requires = "current")]
    yes: bool,
}

/// Runs the demo.
///
/// # Errors
/// The step that failed, in one sentence.
pub fn run(arguments: &Arguments) -> Result<()> {
    match &arguments.image {
        Some(image) => on_current(arguments, image),
        None => on_own(),
    }
}

/// Starts a cluster, leaves it running, and says how to go on.
fn on_own() -> Result<()> {
    heading("A Kubernetes of its own on this machine");
    let start = Instant::now();
    let name = "demo";
    Cluster::down(name).context("the last demo's cluster cannot be removed")?;
    let options = Options { name: name.to_owned(), keep: true, ..Options::default() };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut cluster = runtime.block_on(Cluster::up(&options, &Progress::new()))?;
    step("a control plane and a node, in namespaces that nothing leaves", start);
    let start = Instant::now();
    images::load(&mut cluster)?;
    images::load_shell(&mut cluster)?;
    step("Cofferdam's image, built from its Containerfile", start);
    let start = Instant::now();
    cluster.install(&CERT_MANAGER, &Progress::new())?;
    step("cert-manager", start);
    let kubectl = Kubectl::of(&cluster)?;
    let start = Instant::now();
    install::install(&kubectl, &install::render(&kubectl, install::IMAGE)?)?;
    step("Cofferdam: kubectl apply -k manifests/overlays/cert-manager", start);
    show(&kubectl, images::SHELL)?;
    heading("Go on by hand");
    let program = format!("target/debug/cofferdam-cluster --name {name}");
    for (command, what) in [
        (format!("alias k='{program} kubectl'"), "kubectl, for the demo's cluster"),
        (format!("k config set-context --current --namespace {SESSIONS}"), "the namespace of the sessions"),
        ("k get pod hello -o yaml".to_owned(), "the pod as it was admitted"),
        ("k exec -it hello -- sh".to_owned(), "a shell in the box"),
        (format!("k run mine --image={} -- sleep 1h", images::SHELL), "a pod of yours"),
        ("k label namespace default cofferdam.dev/sessions=enforced".to_owned(), "sessions in another namespace"),
        (format!("{program} status"), "the programs of the cluster"),
        ("make down".to_owned(), "ends it all and leaves nothing"),
    ] {
        println!("  {BOLD}{command}{BOLD:#}\n      {DIM}{what}{DIM:#}");
    }
    Ok(())
}

/// Installs on the cluster that kubectl points to, shows, and takes away what it made.
fn on_current(arguments: &Arguments, image: &str) -> Result<()> {
    let kubectl = Kubectl::current(PathBuf::from("kubectl"));
    let context = kubectl.run(["config", "current-context"])?;
    let server = kubectl.run(["config", "view", "--minify", "--output=jsonpath={.clusters[0].cluster.server}"])?;
    println!("This installs Cofferdam on the cluster of context {BOLD}{}{BOLD:#} ({server}),", context.trim());
    println!("creates two pods in the namespace {SESSIONS}, has a third refused, and takes all of it away again.");
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
    let shown = install::install(&kubectl, &manifests).and_then(|()| show(&kubectl, &arguments.pod_image));
    heading("Taking it away");
    match install::uninstall(&kubectl, &manifests) {
        Ok(()) => println!("  {GOOD}✓{GOOD:#} what the demo made is gone; cert-manager is as it was"),
        // What went wrong first is what to look at first.
        Err(error) if shown.is_ok() => return Err(error),
        Err(error) => eprintln!("  {BAD}✗{BAD:#} {error:#}"),
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

/// Creates two pods, has a third refused, and shows what came of them.
fn show(kubectl: &Kubectl, image: &str) -> Result<()> {
    heading("1. A plain pod: nobody asked for anything");
    println!("  {DIM}the namespace {SESSIONS} is labelled cofferdam.dev/sessions=enforced:{DIM:#}");
    println!("  {DIM}every pod that is created in it, by whomever, becomes a session{DIM:#}");
    let image_flag = format!("--image={image}");
    interrupt::check()?;
    kubectl.run(["delete", "pod", "hello", "greedy", "--namespace", SESSIONS, "--ignore-not-found"])?;
    let run = ["run", "hello", &image_flag, "--namespace", SESSIONS, "--", "sleep", "3600"];
    command(&run);
    let answer = kubectl.ask(run, "")?;
    speak(&answer);
    ensure!(answer.success, "the pod was not created");
    kubectl.run(["wait", "pod/hello", "--namespace", SESSIONS, "--for=condition=Ready", "--timeout=120s"])?;
    let pod = kubectl.json(["get", "pod", "hello", "--namespace", SESSIONS])?;
    println!("\n  What the webhook made of it before it was admitted, rule by rule:\n");
    show_changes(&pod)?;

    interrupt::check()?;
    heading("2. The proof, from inside the running container");
    println!("  {DIM}not what the object says: what the kernel says to the process{DIM:#}\n");
    let mut all = true;
    for fact in proof::ask(kubectl, SESSIONS, "hello")? {
        all &= fact.holds;
        let (mark, style) = if fact.holds { ("✓", GOOD) } else { ("✗", BAD) };
        println!(
            "  {style}{mark}{style:#} {:<24} {BOLD}{:<22}{BOLD:#} {DIM}{}{DIM:#}",
            fact.what, fact.answer, fact.source
        );
    }
    ensure!(all, "a fact does not hold");

    interrupt::check()?;
    heading("3. A pod that asks for too much: repaired, and its owner is told");
    let greedy = format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: greedy}}\nspec:\n  containers:\n  - name: app\n    image: {image}\n    \
         args: [sleep, \"3600\"]\n    resources: {{limits: {{memory: 64Gi}}}}\n    securityContext:\n      \
         privileged: true\n      runAsUser: 0\n      capabilities: {{add: [SYS_ADMIN]}}\n"
    );
    indent(&greedy);
    let create = ["create", "--namespace", SESSIONS, "--filename=-"];
    command(&create);
    let answer = kubectl.ask(create, &greedy)?;
    speak(&answer);
    ensure!(answer.success, "the pod was not created");

    interrupt::check()?;
    heading("4. A pod that cannot be made safe: refused, with every reason at once");
    let host = format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: host}}\nspec:\n  hostNetwork: true\n  volumes: [{{name: root, \
         hostPath: {{path: /}}}}]\n  containers:\n  - name: app\n    image: {image}\n    ports: [{{containerPort: 80, \
         hostPort: 80}}]\n"
    );
    indent(&host);
    command(&create);
    let answer = kubectl.ask(create, &host)?;
    speak(&answer);
    ensure!(!answer.success, "the pod was created");
    Ok(())
}

/// The changes that the webhook wrote down, under the rules that made them.
fn show_changes(pod: &Value) -> Result<()> {
    let mut rule = String::new();
    for change in changes::of(pod)? {
        if change.rule != rule {
            println!("  {DIM}{}{DIM:#}", change.rule);
            rule = change.rule;
        }
        match change.now {
            Some(now) => println!("  {GOOD}+{GOOD:#} {:<60} {BOLD}{now}{BOLD:#}", change.path),
            None => println!("  {WARN}-{WARN:#} {:<60} {BOLD}taken out{BOLD:#}", change.path),
        }
    }
    Ok(())
}

fn heading(text: &str) {
    println!("\n{BOLD}{text}{BOLD:#}");
}

fn step(text: &str, start: Instant) {
    println!("  {GOOD}✓{GOOD:#} {text} {DIM}({:.1} s){DIM:#}", start.elapsed().as_secs_f64());
}

fn command(words: &[&str]) {
    println!("\n  {BOLD}$ kubectl {}{BOLD:#}", words.join(" "));
}

fn indent(text: &str) {
    for line in text.lines() {
        println!("  {DIM}{line}{DIM:#}");
    }
}

/// What kubectl printed, warnings in yellow and errors in red.
fn speak(answer: &Answer) {
    for line in answer.stderr.lines() {
        let style = if line.starts_with("Warning:") { WARN } else { BAD };
        // One reason a line: kubectl prints them all in one.
        for part in line.replace("this pod: ", "this pod:\n    ").replace("; spec.", ";\n    spec.").lines() {
            eprintln!("  {style}{part}{style:#}");
        }
    }
    for line in answer.stdout.lines() {
        println!("  {line}");
    }
}
