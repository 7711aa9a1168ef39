//! What becomes of a plain pod, of one that asks for too much, and of one that cannot be made safe.

use anstream::println;
use anyhow::{Context as _, Result, ensure};
use cofferdam_model::{Record, keys};
use serde_json::Value;

use super::say::{BAD, BOLD, DIM, GOOD, WARN, command, heading, indent, speak};
use crate::install::SESSIONS;
use crate::kubectl::Kubectl;
use crate::{interrupt, proof};

/// Creates two pods, has a third refused, and shows what came of them. `image` holds a shell.
///
/// # Errors
/// What went otherwise.
pub(super) fn show(kubectl: &Kubectl, image: &str) -> Result<()> {
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
    let text = pod["metadata"]["annotations"][keys::CHANGES].as_str();
    let record = text.and_then(Record::read).context("the pod carries no list of changes")?;
    let mut rule = "";
    for change in &record.changes {
        if change.rule != rule {
            rule = &change.rule;
            println!("  {DIM}{rule}{DIM:#}");
        }
        let (sign, style) = if change.removed { ('-', WARN) } else { ('+', GOOD) };
        println!("  {style}{sign}{style:#} {:<60} {BOLD}{}{BOLD:#}", change.path, change.outcome(pod));
    }
    Ok(())
}
