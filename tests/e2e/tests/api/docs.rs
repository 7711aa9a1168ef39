//! What the API's page shows is what happens when it is typed.

use std::process::Command;

use cofferdam_e2e::api::TOKEN;
use cofferdam_e2e::images::SHELL;

use crate::installed;

/// The page.
const PAGE: &str = include_str!("../../../../docs/api.md");

/// What its first example types.
fn example() -> &'static str {
    let (_, rest) = PAGE.split_once("```sh\n").unwrap();
    rest.split_once("```").unwrap().0
}

#[test]
fn the_example_does_what_the_page_says() {
    let client = installed::client(installed::shared());
    let here = format!("http://127.0.0.1:{}", client.0.port());
    let typed = example().replace("http://localhost:8062", &here).replace("busybox:1.37", SHELL);
    assert!(typed.contains(&here) && typed.contains(SHELL), "{typed}");
    let folder = tempfile::tempdir().unwrap();
    let mut bash = Command::new("bash");
    bash.args(["-c", &format!("set -x\n{typed}")]).current_dir(folder.path()).env("TOKEN", TOKEN);
    let done = bash.output().unwrap();
    let said = String::from_utf8_lossy(&done.stdout);
    let all = format!("{said}\n{}", String::from_utf8_lossy(&done.stderr));
    assert!(done.status.success(), "{all}");
    for part in [
        "\"displayName\"",
        "{\"status\":\"ready\"}",
        "event: status",
        "{\"kind\":\"exited\",\"code\":3}",
        "hello, world",
    ] {
        assert!(said.contains(part), "no {part} in {all}");
    }
    // The session of the files, and the one of the app.
    assert_eq!(said.matches("\"streamToken\":").count(), 2, "{all}");
}
