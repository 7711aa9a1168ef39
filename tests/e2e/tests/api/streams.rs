//! A program without a terminal, whose output is told apart.

use serde_json::{Value, json};

use crate::installed;
use crate::sessions::create_with;

#[test]
fn pty_04_what_a_program_writes_to_its_two_outputs_is_read_apart() {
    let stage = installed::shared();
    let client = installed::client(stage);
    // It waits, so that somebody is attached: what was written before is in the log, which does not tell one from the other.
    let script = "read line; echo \"said $line\"; echo \"complained of $line\" >&2; read line; test -t 0 || exit 7";
    let apps = json!([{"name": "main", "entryRelativePath": "src/main.sh", "io": "streams"}]);
    let (id, token) = create_with(&client, script, &json!({ "apps": apps }));
    let session = client.ask("GET", &format!("/v1/sessions/{id}"), &Value::Null);
    assert_eq!(session.body["apps"][0]["io"], "streams", "{session:?}");

    let mut terminal = client.terminal(&id, &token);
    terminal.until_notice(&json!({"type": "seq", "seq": 0, "app": "main", "io": "streams"}));
    terminal.say(&json!({"type": "resize", "cols": 80, "rows": 24}));
    terminal.until_notice(&json!({"type": "error", "error": "resize_unsupported", "io": "streams"}));
    terminal.write("a line\n");
    terminal.until("said a line\n");
    terminal.until("complained of a line\n");
    // Nothing is echoed, and no end of a line is changed.
    assert_eq!(terminal.streams, ["", "said a line\n", "complained of a line\n"]);
    terminal.write("\n");
    let events = client.events(&id, &token, |event| event["status"]["kind"] == "exited");
    assert_eq!(events.last().unwrap()["status"]["code"], 7, "it has no terminal: {events:#?}");
}
