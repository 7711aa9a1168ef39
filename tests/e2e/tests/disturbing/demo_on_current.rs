//! The demo on a cluster that somebody already has: it asks first, and takes away only what it made.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read as _, Write};
use std::os::unix::fs::symlink;
use std::process::{Child, Command, Output, Stdio};

use cofferdam_e2e::images;
use cofferdam_e2e::install::IMAGE;
use cofferdam_e2e::stage::Stage;

/// Every object of the kinds that an installation could leave, and the secrets that cert-manager makes for it.
fn inventory(stage: &Stage) -> BTreeSet<String> {
    let kinds = "namespaces,serviceaccounts,configmaps,secrets,services,deployments,pods,networkpolicies,poddisruptionbudgets,\
                 mutatingwebhookconfigurations,validatingwebhookconfigurations,validatingadmissionpolicies,\
                 validatingadmissionpolicybindings,clusterroles,clusterrolebindings,priorityclasses,crds,certificates,issuers";
    let template = "--output=jsonpath={range .items[*]}{.kind}/{.metadata.namespace}/{.metadata.name}{\"\\n\"}{end}";
    let list = stage.kubectl.run(["get", kinds, "--all-namespaces", template]).unwrap();
    list.lines().map(str::to_owned).collect()
}

fn start(stage: &Stage) -> Child {
    // What a person has: a kubectl on the PATH, and a current context.
    let folder = stage.cluster.kubeconfig().with_file_name("bin");
    std::fs::create_dir_all(&folder).unwrap();
    let _ = std::fs::remove_file(folder.join("kubectl"));
    symlink(stage.cluster.programs().path("kubectl").unwrap(), folder.join("kubectl")).unwrap();
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap());
    Command::new(env!("CARGO_BIN_EXE_cofferdam-demo"))
        .args(["--current", "--image", IMAGE, "--pod-image", images::SHELL])
        .env("PATH", path)
        .env("KUBECONFIG", stage.cluster.kubeconfig())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

fn demo(stage: &Stage, input: &str) -> Output {
    let mut child = start(stage);
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

#[test]
fn it_asks_first_and_takes_away_only_what_it_made() {
    let mut stage = Stage::bare("e2e-demo", 1).unwrap();
    images::load_shell(&mut stage.cluster).unwrap();
    let before = inventory(&stage);

    let refused = demo(&stage, "n\n");
    let text = String::from_utf8_lossy(&refused.stdout);
    assert!(!refused.status.success() && text.contains("context e2e-demo") && text.contains("Go on?"), "{text}");
    assert_eq!(inventory(&stage), before);

    let shown = demo(&stage, "y\n");
    let text = format!("{}{}", String::from_utf8_lossy(&shown.stdout), String::from_utf8_lossy(&shown.stderr));
    assert!(shown.status.success(), "{text}");
    for part in ["runAsNonRoot", "no new privileges", "Warning: spec.containers[0]", "spec.hostNetwork", "is gone"] {
        assert!(text.contains(part), "{part} is not in {text}");
    }
    assert!(!text.contains('\u{1b}'), "colours are for terminals");
    assert_eq!(inventory(&stage), before);
}

/// On a cluster of its own: an API server of 1.34 finds no parameters for admission policies that were there before.
#[test]
fn it_takes_away_what_it_made_when_it_is_interrupted() {
    let mut stage = Stage::bare("e2e-demo-cut", 1).unwrap();
    images::load_shell(&mut stage.cluster).unwrap();
    let before = inventory(&stage);
    let mut interrupted = start(&stage);
    interrupted.stdin.take().unwrap().write_all(b"y\n").unwrap();
    let mut lines = BufReader::new(interrupted.stdout.take().unwrap()).lines().map(Result::unwrap);
    let mut is_there = false;
    let said: Vec<String> = lines
        .by_ref()
        .take_while(|line| {
            is_there = line.contains("2. The proof");
            !is_there
        })
        .collect();
    if !is_there {
        let mut problem = String::new();
        interrupted.stderr.take().unwrap().read_to_string(&mut problem).unwrap();
        panic!("it ended before it was interrupted: {said:?} {problem}");
    }
    let status = Command::new("kill").args(["-INT", &interrupted.id().to_string()]).status().unwrap();
    assert!(status.success());
    let rest: Vec<String> = lines.collect();
    assert!(!interrupted.wait().unwrap().success(), "{rest:?}");
    assert_eq!(inventory(&stage), before, "{rest:?}");
}
