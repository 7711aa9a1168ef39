//! `harden`: forms of output, checks and exit codes.

use serde_json::Value;

use crate::program::run;

const POD: &str = "\
kind: Pod
apiVersion: v1
metadata:
  name: web
  namespace: team
spec:
  containers:
  - name: web
    image: nginx:1.29
    securityContext:
      privileged: true
";

const DEPLOYMENT: &str = "\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web, cofferdam.dev/session: \"\"}}
    spec:
      containers:
      - {name: web, image: nginx, resources: {limits: {memory: 64Gi}}}
";

fn yaml(text: &str) -> Value {
    serde_saphyr::from_str(text).unwrap()
}

#[test]
fn a_pod_comes_out_hardened_in_the_order_it_was_written_in() {
    let run = run(&["harden", "-"], POD);
    assert_eq!(run.code, 0, "{}", run.notes);
    assert!(run.out.starts_with("kind: Pod\napiVersion: v1\nmetadata:\n  name: web\n"), "{}", run.out);
    let pod = yaml(&run.out);
    assert_eq!(pod["spec"]["containers"][0]["securityContext"]["privileged"], false);
    assert_eq!(pod["spec"]["restartPolicy"], "Never");
    assert_eq!(pod["metadata"]["labels"]["cofferdam.dev/session"], Value::Null, "a file gets no id");
    assert_eq!(
        run.notes,
        "Pod/web: warning: spec.containers[0].securityContext.privileged: true, now false (privilege)\n"
    );
}

#[test]
fn a_template_gets_nothing_that_its_controller_forbids() {
    let run = run(&["harden", "-"], DEPLOYMENT);
    assert_eq!(run.code, 0, "{}", run.notes);
    let deployment = yaml(&run.out);
    let template = &deployment["spec"]["template"];
    assert_eq!(template["spec"]["containers"][0]["resources"]["limits"]["memory"], "512Mi");
    assert_eq!(template["spec"]["securityContext"]["runAsNonRoot"], true);
    assert_eq!(template["spec"]["activeDeadlineSeconds"], Value::Null);
    assert_eq!(template["spec"]["restartPolicy"], Value::Null);
    assert_eq!(template["metadata"], yaml("labels: {app: web, cofferdam.dev/session: \"\"}"), "no marks, no id");
    assert_eq!(deployment["spec"]["replicas"], 2);
    assert!(run.notes.contains("Deployment/web: warning: spec.template.spec.containers[0].resources.limits.memory"));
}

#[test]
fn every_workload_is_found_also_in_lists() {
    let kinds = [
        ("apps/v1", "StatefulSet", false),
        ("apps/v1", "DaemonSet", false),
        ("apps/v1", "ReplicaSet", false),
        ("v1", "ReplicationController", false),
        ("batch/v1", "Job", false),
        ("batch/v1", "CronJob", true),
    ];
    let template = "{metadata: {}, spec: {containers: [{name: a, image: nginx, securityContext: {privileged: true}}]}}";
    let items: Vec<String> = kinds
        .into_iter()
        .map(|(version, kind, is_nested)| {
            let spec = if is_nested {
                format!("{{jobTemplate: {{spec: {{template: {template}}}}}}}")
            } else {
                format!("{{template: {template}}}")
            };
            format!("- {{apiVersion: {version}, kind: {kind}, metadata: {{name: x}}, spec: {spec}}}\n")
        })
        .collect();
    let items = items.concat();
    let input = format!("apiVersion: v1\nkind: List\nitems:\n{items}");
    let run = run(&["harden", "--output=json", "-"], &input);
    assert_eq!(run.code, 0, "{}", run.notes);
    assert!(!run.out.contains(r#""privileged": true"#), "{}", run.out);
    for (_, kind, is_nested) in kinds {
        let at = if is_nested { "spec.jobTemplate.spec.template" } else { "spec.template" };
        let line = format!("{kind}/x: warning: {at}.spec.containers[0].securityContext.privileged: true, now false");
        assert!(run.notes.contains(&line), "{line} not in {}", run.notes);
    }
}

#[test]
fn whatever_kubectl_takes_for_a_list_is_one() {
    let template = "template: {spec: {hostNetwork: true, containers: [{name: a, image: nginx}]}}";
    let pod = "apiVersion: v1, kind: Pod, metadata: {name: x}, spec: {hostNetwork: true, containers: []}";
    for (version, kind, item, refused) in [
        // The items of typed lists do not repeat the kind.
        ("apps/v1", "DeploymentList", format!("metadata: {{name: x}}, spec: {{{template}}}"), "Deployment/x"),
        ("batch/v1", "JobList", format!("metadata: {{name: x}}, spec: {{{template}}}"), "Job/x"),
        ("v1", "PodList", "metadata: {name: x}, spec: {hostNetwork: true, containers: []}".to_owned(), "Pod/x"),
        // To kubectl the items make the list, not the kind.
        ("v1", "List", pod.to_owned(), "Pod/x"),
        ("v1", "ConfigMap", pod.to_owned(), "Pod/x"),
        ("v1", "Pod", pod.to_owned(), "Pod/x"),
        ("v1", "List", format!("items: [{{{pod}}}]"), "Pod/x"),
    ] {
        let input = format!("{{apiVersion: {version}, kind: {kind}, items: [1, null, {{{item}}}]}}");
        let run = run(&["harden", "--check", "-"], &input);
        assert_eq!(run.code, 1, "{input}: {}", run.notes);
        assert!(run.notes.contains(&format!("{refused}: refused: ")), "{input}: {}", run.notes);
    }
}

#[test]
fn what_a_file_says_never_writes_to_the_terminal_of_who_reads_about_it() {
    let named = POD.replace("name: web\n  namespace", "name: \"x\\e[2J\\nPod/other: refused\"\n  namespace");
    assert_ne!(named, POD);
    for (arguments, input) in [
        (&["harden", "-"][..], named.as_str()),
        (&["harden", "no\u{1b}[2Jsuch\nfile"], ""),
        (&["policy", "check", "no\u{1b}[2Jsuch\nfile"], ""),
    ] {
        let run = run(arguments, input);
        assert!(!run.notes.is_empty());
        assert_eq!(run.notes.lines().count(), 1, "{}", run.notes);
        assert!(!run.notes.contains('\u{1b}'), "{arguments:?}: {}", run.notes);
    }
}

#[test]
fn what_cannot_be_hardened_is_refused_with_all_reasons_and_nothing_is_written() {
    let input = POD.replace("spec:\n", "spec:\n  hostNetwork: true\n  hostPID: true\n") + "---\n" + DEPLOYMENT;
    let run = run(&["harden", "-"], &input);
    assert_eq!((run.code, run.out.as_str()), (1, ""));
    assert!(run.notes.contains("Pod/web: refused: spec.hostNetwork: ") && run.notes.contains("spec.hostPID: "));
}

/// A policy with the profiles that these tests name.
fn policy() -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "profiles: {default: {}, app: {}, workspace: {}}").unwrap();
    file
}

#[test]
fn the_patch_turns_the_object_into_the_hardened_one() {
    let policy = policy();
    let flags = ["--profile=app", "--policy", policy.path().to_str().unwrap(), "-"];
    for input in [POD, DEPLOYMENT] {
        let patch = run(&[&["harden", "--output=patch"], &flags[..]].concat(), input);
        let hardened = run(&[&["harden", "--output=json"], &flags[..]].concat(), input);
        let mut object = yaml(input);
        json_patch::patch(&mut object, &serde_json::from_str::<json_patch::Patch>(&patch.out).unwrap()).unwrap();
        assert_eq!(object, serde_json::from_str::<Value>(&hardened.out).unwrap());
    }
}

#[test]
fn a_profile_is_written_into_pods_that_name_none() {
    let labelled = POD.replace("metadata:\n", "metadata:\n  labels: {cofferdam.dev/profile: workspace}\n");
    let policy = policy();
    for (input, expected) in [(POD, "app"), (labelled.as_str(), "workspace")] {
        let run = run(&["harden", "--profile=app", "--policy", policy.path().to_str().unwrap(), "-"], input);
        assert_eq!(yaml(&run.out)["metadata"]["labels"]["cofferdam.dev/profile"], expected, "{}", run.notes);
    }
}

#[test]
fn the_difference_shows_only_what_hardening_does() {
    let service = "---\n# kept\napiVersion:   v1\nkind: Service\nmetadata: {name: x}\n";
    let run = run(&["harden", "--output=diff", "-"], &format!("{POD}{service}"));
    assert_eq!(run.code, 0);
    assert!(run.out.starts_with("--- standard input\n+++ standard input (hardened)\n"), "{}", run.out);
    assert!(run.out.contains("-      privileged: true\n") && run.out.contains("+      privileged: false\n"));
    assert!(!run.out.contains("-kind: Service") && !run.out.contains("+kind: Service"), "{}", run.out);
    assert!(!run.out.contains("-  name: web\n"), "{}", run.out);
}

#[test]
fn a_check_writes_no_object_and_says_by_its_exit_code_what_would_happen() {
    let hardened = run(&["harden", "-"], POD);
    for (input, code) in [
        (POD, 3),
        (hardened.out.as_str(), 0),
        ("apiVersion: v1\nkind: Service\n", 0),
        ("", 0),
        ("apiVersion: v1\nkind: Pod\nspec: {hostNetwork: true, containers: []}\n", 1),
        ("a: [", 2),
    ] {
        let run = run(&["harden", "--check", "-"], input);
        assert_eq!((run.code, run.out.as_str()), (code, ""), "{input}: {}", run.notes);
    }
}

#[test]
fn what_is_hardened_once_is_hardened() {
    for input in [POD, DEPLOYMENT] {
        let once = run(&["harden", "-"], input);
        let twice = run(&["harden", "-"], &once.out);
        assert_eq!(twice.out, once.out);
        assert_eq!(twice.notes, "");
    }
}

#[test]
fn an_unusable_input_policy_or_command_line_is_exit_2_in_one_line() {
    let policy = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(policy.path(), "profiles: {default: {lifetimes: {}}}").unwrap();
    for arguments in [
        vec!["harden", "no-such-file.yaml"],
        vec!["harden", "--policy", policy.path().to_str().unwrap(), "-"],
        vec!["harden", "--policy=no-such-policy", "-"],
    ] {
        let run = run(&arguments, POD);
        assert_eq!((run.code, run.out.as_str()), (2, ""), "{arguments:?}");
        assert_eq!(run.notes.lines().count(), 1, "{}", run.notes);
    }
    assert_eq!(run(&["harden", "--output=toml", "-"], POD).code, 2);
    assert_eq!(run(&["harden"], POD).code, 2);
}

#[test]
fn a_secret_in_a_file_is_never_in_what_is_said_about_it() {
    let secret = "hunter2-xyz";
    let pod = POD.replace("privileged: true", &format!("privileged: {secret}"));
    let pod = pod + &format!("    env: [{{name: PASSWORD, value: {secret}}}]\n    args: [--token={secret}]\n");
    for input in [pod.clone(), pod + &format!("  broken: [{secret}\n")] {
        for flag in ["--output=yaml", "--check"] {
            assert!(!run(&["harden", flag, "-"], &input).notes.contains(secret));
        }
    }
}
