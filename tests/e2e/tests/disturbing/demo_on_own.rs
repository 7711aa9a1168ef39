//! The demo on a cluster of its own: what it shows holds, and what it ends with opens on this machine.

use std::process::Command;

use cofferdam_cluster::cluster::Cluster;
use cofferdam_e2e::routing::Door;

const NAME: &str = "e2e-demo-own";

/// Ends the cluster, which the demo leaves running, whatever comes of the test.
struct Ending;

impl Drop for Ending {
    fn drop(&mut self) {
        let _ = Cluster::down(NAME);
    }
}

#[test]
fn it_ends_with_an_address_that_opens_on_this_machine() {
    let _ending = Ending;
    let shown = Command::new(env!("CARGO_BIN_EXE_cofferdam-demo")).args(["--name", NAME]).output().unwrap();
    let text = format!("{}{}", String::from_utf8_lossy(&shown.stdout), String::from_utf8_lossy(&shown.stderr));
    assert!(shown.status.success(), "{text}");
    for part in ["no new privileges", "spec.hostNetwork", "cofferdam.dev/RouteReachable", "200 OK", "proved, reachable"]
    {
        assert!(text.contains(part), "{part} is not in {text}");
    }
    for part in ["Hello from main.sh", "A page out of a bundle", r#""kind":"stopped""#] {
        assert!(text.contains(part), "{part} is not in {text}");
    }
    let (_, url) = text.split_once("Open it in a browser on this machine: http://").unwrap();
    let host = url.split('/').next().unwrap();
    let (_, port) = host.split_once(".localhost:").unwrap();
    // The demo has ended, and its door is still there.
    let page = Door::of_port(port.parse().unwrap()).ask("GET", host, "/", "Accept: text/html\r\n").unwrap();
    assert!(page.status == 200 && page.body.contains("<h1>web</h1>"), "{page:?}");
}
