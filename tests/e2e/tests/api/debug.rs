//! The inspector of a program: its events are its session's, and its port is for nobody else.

use serde_json::{Value, json};

use crate::installed;
use crate::sessions::{create, create_with};

/// Serves a stream of events to whoever asks on port 9230, one client after the other.
const INSPECTOR: &str = r#"
exec perl -MIO::Socket::INET -e '
    $| = 1;
    my $server = IO::Socket::INET->new(LocalPort => 9230, Listen => 5, ReuseAddr => 1) or die "9230: $!";
    print "it listens\n";
    while (my $client = $server->accept) {
        my $asked = <$client>;
        while (<$client>) { last if /^\r?$/ }
        $asked =~ s/\s+$//;
        print $client "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n: hello\n\n";
        print $client "data: {\"kind\":\"log\",\"stream\":\"stdout\",\"line\":\"a line of the log\"}\n\n";
        print $client "data: {\"timestamp\":1,\"event\":\"Asked\",\"payload\":{\"for\":\"$asked\"}}\n\n";
        print $client "data: {\"kind\":\"event\",\"timestamp\":2,\"event\":\"Done\"}\n\n";
        $client->flush;
        sleep 1 while 1;
    }
'
"#;

/// Tries to connect there until that fails: a network plugin needs a moment to hear of a new pod.
const STRANGER: &str = r#"
exec perl -MIO::Socket::INET -e '
    $| = 1;
    select undef, undef, undef, 0.2 while IO::Socket::INET->new(PeerAddr => "ADDRESS:9230", Timeout => 3);
    print "nobody answers\n";
'
"#;

#[test]
fn dbg_01_events_of_a_programs_inspector_come_to_its_clients_alone() {
    let stage = installed::shared();
    let client = installed::client(stage);
    let (id, token) = create(&client, INSPECTOR);
    let events = client.events(&id, &token, |event| event["frame"]["event"] == "Done");
    let debug: Vec<&Value> = events.iter().filter(|event| event["type"] == "debug").collect();
    let expected = [
        json!({"type": "debug", "app": "app",
            "frame": {"timestamp": 1, "event": "Asked", "payload": {"for": "GET /events HTTP/1.1"}}}),
        json!({"type": "debug", "app": "app", "frame": {"kind": "event", "timestamp": 2, "event": "Done"}}),
    ];
    assert!(debug.iter().copied().eq(&expected), "{debug:#?}");

    let pod = installed::pod(stage, &id);
    assert_eq!(pod["metadata"]["annotations"]["cofferdam.dev/ports"], "", "it is published nowhere");
    let address = pod["status"]["podIP"].as_str().unwrap();
    let stranger = STRANGER.replace("ADDRESS", address);
    let (other, token) = create_with(&client, &stranger, &json!({"inspect": false}));
    client.terminal(&other, &token).until("nobody answers");
    for id in [id, other] {
        assert_eq!(client.ask("DELETE", &format!("/v1/sessions/{id}"), &Value::Null).status, 204);
    }
}
