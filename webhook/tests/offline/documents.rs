//! Files of several documents: what is not hardened stays as it is.

use serde_json::Value;

use crate::program::run;

const POD: &str = "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: [{name: a, image: nginx}]}\n";

#[test]
fn what_holds_no_pod_stays_to_the_byte() {
    for document in [
        "# nothing but a comment\n",
        "apiVersion:   v1\nkind: ConfigMap   # why\nmetadata: {name: \"x\"}\ndata:\n  a: |\n    ----\n    b\n",
        "apiVersion: example.com/v1\nkind: Pod\nspec: {hostNetwork: true}\n",
        "- just\n- a list\n",
        "text\n",
    ] {
        assert_eq!(run(&["harden", "-"], document).out, document);
        let input = format!("{document}---\n{POD}--- # last\n{document}");
        let output = run(&["harden", "-"], &input);
        assert_eq!(output.code, 0, "{}", output.notes);
        assert!(output.out.starts_with(document), "{}", output.out);
        assert!(output.out.ends_with(&format!("--- # last\n{document}")), "{}", output.out);
    }
}

#[test]
fn a_mistake_is_named_by_its_line_in_the_whole_file() {
    for (input, line) in [("a: 1\n---\nb: 2\nb: 3\n", 4), ("---\na: [\n", 2), ("a: 1\n---\nb: 1\n---\nc: {\n", 5)] {
        let output = run(&["harden", "-"], input);
        assert_eq!(output.code, 2);
        let said: usize = output.notes.split(':').nth(2).unwrap().trim().parse().unwrap();
        assert!(said.abs_diff(line) <= 1, "{line}: {}", output.notes);
        assert!(!output.notes.contains(" line "), "another line, counted otherwise: {}", output.notes);
    }
}

#[test]
fn a_key_that_stands_twice_is_named_with_what_to_do() {
    let output = run(&["harden", "-"], "a: 1\nb: 2\na: 3\n");
    assert_eq!(output.notes, "cofferdam: standard input:3: the key `a` stands here twice; remove one\n");
}

#[test]
fn values_are_read_as_kubectl_reads_them_and_keep_their_type() {
    let pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: a, annotations: {n: \"007\", t: \"yes\", e: \"1e3\", m: \"a\\nb\\n\"}}\n\
               spec:\n  containers: [{name: a, image: nginx}]\n  volumes:\n  - {name: c, configMap: {name: c, defaultMode: 0644}}\n";
    let output = run(&["harden", "-"], pod);
    let object: Value = serde_saphyr::from_str(&output.out).unwrap();
    assert_eq!(object["spec"]["volumes"][0]["configMap"]["defaultMode"], 420);
    let annotations = &object["metadata"]["annotations"];
    for (key, value) in [("n", "007"), ("t", "yes"), ("e", "1e3"), ("m", "a\nb\n")] {
        assert_eq!(annotations[key], value);
    }
}

#[test]
fn json_goes_in_and_comes_out() {
    let pod = serde_json::json!({ "apiVersion": "v1", "kind": "Pod", "spec": { "containers": [{ "name": "a" }] } });
    let output = run(&["harden", "--output=json", "-"], &pod.to_string());
    let object: Value = serde_json::from_str(&output.out).unwrap();
    assert_eq!(object["spec"]["securityContext"]["runAsNonRoot"], true);
}

#[test]
fn pods_of_exempt_namespaces_are_left_alone_and_said_so() {
    let input = POD.replace("{name: a}", "{name: a, namespace: kube-system}");
    let output = run(&["harden", "-"], &input);
    assert_eq!((output.code, output.out), (0, input));
    assert!(output.notes.contains("Pod/a: left alone"), "{}", output.notes);
}

#[test]
fn a_file_is_cut_where_kubectl_cuts_it() {
    let hidden = r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":{"hostNetwork":true}}"#;
    for marker in ["---", "--- # why", "---# why", "---#", "---\u{a0}", "---\t", "---\r", "---\u{3000}#"] {
        let input = format!("# first\n{marker}\n{hidden}\n");
        let output = run(&["harden", "--check", "-"], &input);
        assert_eq!(output.code, 1, "{marker:?}: {}", output.notes);
        assert!(output.notes.contains("Pod/a: refused: spec.hostNetwork"), "{marker:?}: {}", output.notes);
        let output = run(&["harden", "-"], &format!("# first\n{marker}\n{POD}{marker}\nkind: x\n"));
        assert_eq!(output.code, 0, "{marker:?}: {}", output.notes);
        assert!(output.out.ends_with(&format!("{marker}\nkind: x\n")), "{}", output.out);
        assert!(output.out.contains("automountServiceAccountToken: false"), "{}", output.out);
    }
}

#[test]
fn what_only_some_readers_take_for_the_end_of_a_line_is_no_hiding_place() {
    for disputed in ["\u{85}", "\u{2028}", "\u{2029}"] {
        let output = run(&["harden", "-"], &format!("a: 1\n# comment{disputed}{{\"kind\": \"Pod\"}}\n"));
        assert_eq!((output.code, output.out.as_str()), (2, ""), "{disputed:?}");
        assert!(output.notes.starts_with("cofferdam: standard input:2: holds U+0085"), "{}", output.notes);
    }
    let escaped = run(&["harden", "-"], "a: \"\\u2028\"\n");
    assert_eq!((escaped.code, escaped.out.as_str()), (0, "a: \"\\u2028\"\n"));
}

#[test]
fn a_text_that_begins_with_a_tab_is_written_so_that_kubectl_reads_it() {
    for text in ["\tall:\n\tmake", "\n\ta\n"] {
        let pod = serde_json::json!({
            "apiVersion": "v1", "kind": "Pod", "spec": { "containers": [{ "name": "a", "args": [text, "b\n\tc\n"] }] },
        });
        let output = run(&["harden", "-"], &pod.to_string());
        let object: Value = serde_saphyr::from_str(&output.out).unwrap();
        assert_eq!(object["spec"]["containers"][0]["args"][0], text);
        // Its YAML takes a tab for a mistake where it looks for the depth of a block.
        let lines: Vec<&str> = output.out.lines().filter(|line| !line.is_empty()).collect();
        let blocks = lines.windows(2).filter(|lines| lines[0].ends_with(['|', '-', '+']) && lines[0].contains('|'));
        assert!(blocks.clone().all(|lines| !lines[1].trim_start_matches(' ').starts_with('\t')), "{}", output.out);
    }
}
