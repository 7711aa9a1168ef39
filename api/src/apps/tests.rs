use super::*;

const SECRET: &str = "sk-0123456789";

fn parse(text: &str) -> Result<Apps, AppsError> {
    Apps::parse("apps.yaml", text)
}

fn problem(text: &str) -> String {
    parse(text).unwrap_err().to_string()
}

#[test]
fn yaml_and_json_say_the_same() {
    let yaml = "notebook:\n  image: registry.example.com/notebook:1.4.2\n  env: {LICENSE: abc, n.x-y: ''}\n  \
                pullPolicy: always\n  title: Notebook\n  description: Cells\n  port: 8888\nplain: {image: plain}\n";
    let json = r#"{"notebook": {"image": "registry.example.com/notebook:1.4.2", "env": {"LICENSE": "abc", "n.x-y": ""},
        "pullPolicy": "always", "title": "Notebook", "description": "Cells", "port": 8888}, "plain": {"image": "plain"}}"#;
    let apps = parse(yaml).unwrap();
    assert_eq!(apps, parse(json).unwrap());
    let notebook = apps.get("notebook").unwrap();
    assert_eq!(notebook.image, "registry.example.com/notebook:1.4.2");
    assert_eq!((notebook.pull_policy, notebook.port), (PullPolicy::Always, Some(8888)));
    let plain = apps.get("plain").unwrap();
    assert_eq!((plain.pull_policy, plain.port, plain.env.len()), (PullPolicy::Missing, None, 0));
    assert_eq!(apps.get("other"), None);
}

#[test]
fn a_file_without_entries_offers_nothing() {
    for text in ["", "# nothing yet\n", "{}", "null"] {
        assert_eq!(parse(text).unwrap(), Apps::default(), "{text}");
    }
}

#[test]
fn a_name_of_a_prototype_is_a_name_like_any_other() {
    let apps = parse("{__proto__: {image: a}, constructor: {image: b}}").unwrap();
    assert_eq!(apps.get("__proto__").unwrap().image, "a");
    assert_eq!(apps.get("toString"), None);
    assert_eq!(apps.cards().len(), 2);
}

#[test]
fn only_what_identifies_an_app_is_told() {
    let text = format!(
        "{{a: {{image: private/image, title: A, port: 1, env: {{KEY: {SECRET}}}}}, b: {{image: c, description: B}}}}"
    );
    let apps = parse(&text).unwrap();
    let told = serde_json::to_value(apps.cards()).unwrap();
    assert_eq!(told, serde_json::json!([{"name": "a", "title": "A"}, {"name": "b", "description": "B"}]));
    let debug = format!("{apps:?}");
    assert!(debug.contains("KEY") && !debug.contains(SECRET), "{debug}");
}

#[test]
fn what_is_the_operators_the_client_cannot_set() {
    let apps = parse("a: {image: i, env: {KEY: operator, B: b}}").unwrap();
    let variable = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let client = Environment(vec![variable("Z", "1"), variable("KEY", "client"), variable("key", "2")]);
    let environment = apps.get("a").unwrap().environment(client);
    let merged = [variable("Z", "1"), variable("key", "2"), variable("B", "b"), variable("KEY", "operator")];
    assert_eq!(environment.0, merged);
}

#[test]
fn whatever_is_wrong_is_told_with_file_and_key_and_what_to_write() {
    for (text, told) in [
        ("[]", "apps.yaml: `the file` must be keys with values"),
        ("a: x", "apps.yaml: `a` must be keys with values"),
        ("a:", "apps.yaml: `a` must be keys with values"),
        ("a: {}", "apps.yaml: `a.image` is missing; add it"),
        ("a: {imagee: x}", "apps.yaml: `a.imagee` is unknown; did you mean `image`?"),
        (
            "a: {image: x, command: y}",
            "apps.yaml: `a.command` is unknown; known here are image, env, pullPolicy, title, description, port",
        ),
        ("a: {image: 7}", "apps.yaml: `a.image` must be a text; put it in quotes"),
        (
            "a: {image: ''}",
            "apps.yaml: `a.image` must be the reference of an image, such as registry.example.com/app:1.2.3",
        ),
        (
            "a: {image: 'x y'}",
            "apps.yaml: `a.image` must be the reference of an image, such as registry.example.com/app:1.2.3",
        ),
        ("a: {image: x, pullPolicy: Always}", "apps.yaml: `a.pullPolicy` must be one of missing, always, never"),
        ("a: {image: x, title: [y]}", "apps.yaml: `a.title` must be a text; put it in quotes"),
        ("a: {image: x, port: 0}", "apps.yaml: `a.port` must be a whole number from 1 to 65535"),
        ("a: {image: x, port: 65536}", "apps.yaml: `a.port` must be a whole number from 1 to 65535"),
        ("a: {image: x, port: '80'}", "apps.yaml: `a.port` must be a whole number from 1 to 65535"),
        ("a: {image: x, env: [y]}", "apps.yaml: `a.env` must be keys with values"),
        ("a: {image: x, env: {PORT: 80}}", "apps.yaml: `a.env.PORT` must be a text; put it in quotes"),
        ("a: {image: x, env: {PORT: null}}", "apps.yaml: `a.env.PORT` must be a text; put it in quotes"),
        (
            "a: {image: x, env: {'A=B': y}}",
            "apps.yaml: `a.env.A=B` cannot name a variable; use A-Z, a-z, 0-9, `_`, `-` and `.`, and no digit first",
        ),
        (
            "'../x': {image: x}",
            "apps.yaml: `../x` cannot name an app; use at most 63 of A-Z, a-z, 0-9, `-`, `_` and `.`, and `title` for people",
        ),
        (
            "..: {image: x}",
            "apps.yaml: `..` cannot name an app; use at most 63 of A-Z, a-z, 0-9, `-`, `_` and `.`, and `title` for people",
        ),
        ("a: {image: x}\nb: {image: [}", "apps.yaml:2: this is neither JSON nor YAML, or a key stands there twice"),
        ("a: {image: x}\na: {image: y}", "apps.yaml:2: this is neither JSON nor YAML, or a key stands there twice"),
    ] {
        assert_eq!(problem(text), told, "{text}");
    }
}

#[test]
fn no_error_quotes_what_may_be_a_secret() {
    for text in [
        format!("a: {SECRET}"),
        format!("a: {{image: x, env: {SECRET}}}"),
        format!("a: {{image: x, env: [{SECRET}]}}"),
        format!("a: {{image: x, pullPolicy: {SECRET}}}"),
        format!("a: {{image: x, port: {SECRET}}}"),
        format!("a: {{image: x, env: {{KEY: [{SECRET}]}}}}"),
        format!("a: {{image: x, env: {{KEY: \"{SECRET}}}}}"),
        format!("a: {{image: x, env: {{KEY: {SECRET}, KEY: {SECRET}}}}}"),
        format!("a: *{SECRET}"),
    ] {
        let error = parse(&text).unwrap_err();
        assert!(!format!("{error} {error:?}").contains(SECRET), "{error}");
    }
}

#[test]
fn a_file_that_cannot_be_read_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    assert!(matches!(Apps::load(&folder.path().join("none")), Err(AppsError::Unreadable { .. })));
    let file = folder.path().join("apps.yaml");
    fs::write(&file, "a: {image: x}").unwrap();
    assert_eq!(Apps::load(&file).unwrap().cards().len(), 1);
}
