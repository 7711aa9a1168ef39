//! The volume: what is in it after a run, and after one that did not get to its end.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};

use crate::fetch::{PLACED, Pod, body, names, served};
use crate::server::{Answer, End, Server, nobody, sha256};

#[test]
fn a_body_is_placed_with_a_marker_that_holds_its_digest() {
    let (body, server) = served();
    let pod = Pod::new();
    pod.fetch(&server.url("/body"), &body).well();
    assert_eq!(pod.names(), PLACED);
    assert_eq!(pod.text(".cofferdam-complete").trim_end(), sha256(&body));
    assert_eq!(pod.text("main.py"), "print()");
    let mode = |name| fs::metadata(pod.app().join(name)).unwrap().permissions().mode() & 0o7777;
    assert_eq!(["main.py", "data", "data/noise", ".cofferdam-complete"].map(mode), [0o664, 0o2775, 0o664, 0o664]);
}

#[test]
fn b67_files_have_the_group_of_the_volume() {
    let (body, server) = served();
    let pod = Pod::new();
    // As a kubelet prepares a volume for an fsGroup.
    fs::set_permissions(pod.app(), fs::Permissions::from_mode(0o2777)).unwrap();
    if std::os::unix::fs::chown(pod.app(), None, Some(2000)).is_err() {
        // Only root gives things to a group that it is not in; there, the end-to-end test shows it.
        return;
    }
    fs::set_permissions(pod.app(), fs::Permissions::from_mode(0o2777)).unwrap();
    pod.fetch(&server.url("/body"), &body).well();
    for name in ["main.py", "data", "data/noise", ".cofferdam-complete"] {
        assert_eq!(fs::metadata(pod.app().join(name)).unwrap().gid(), 2000, "{name}");
    }
}

#[test]
fn b77_a_body_that_is_there_is_not_asked_for_again() {
    let (body, server) = served();
    let pod = Pod::new();
    pod.fetch(&server.url("/body"), &body).well();
    fs::write(pod.app().join("main.py"), "changed by the session").unwrap();
    let ended = pod.fetch_with(&format!("http://{}/", nobody()), &body, &["--token-file=/not/there"]);
    ended.well();
    assert_eq!(pod.text("main.py"), "changed by the session");
    assert_eq!(server.asked().len(), 1);
}

#[test]
fn b77_what_an_interrupted_run_was_unpacking_is_thrown_away() {
    let (body, server) = served();
    let pod = Pod::new();
    let incoming = pod.app().join(".cofferdam-incoming");
    fs::create_dir_all(incoming.join("half/of")).unwrap();
    fs::write(incoming.join("half/of/it"), "").unwrap();
    symlink("/", incoming.join("root")).unwrap();
    fs::write(pod.app().join(".cofferdam-completing"), "").unwrap();
    pod.fetch(&server.url("/body"), &body).well();
    assert_eq!(pod.names(), PLACED);
}

#[test]
fn what_only_has_a_name_of_ours_is_cleared_away() {
    let body = body();
    let pod = Pod::new();
    let verified = pod.app().join(format!(".cofferdam-verified-{}", sha256(&body)));
    let forge: [&dyn Fn(); 2] =
        [&|| fs::write(&verified, "").unwrap(), &|| symlink(pod.app().join("elsewhere"), &verified).unwrap()];
    for forge in forge {
        let server = Server::start(vec![Answer::whole(&body)]);
        forge();
        pod.fetch(&server.url("/body"), &body).well();
        assert_eq!((pod.names(), server.asked().len()), (PLACED.map(str::to_owned).to_vec(), 1));
        fs::remove_file(pod.app().join(".cofferdam-complete")).unwrap();
    }
}

#[test]
fn what_lies_deeper_than_files_can_be_open_is_cleared_away() {
    let (body, server) = served();
    let pod = Pod::new();
    let mut deep = pod.app().join(".cofferdam-incoming");
    for depth in 0..300 {
        // What is moved up meets names that are taken.
        fs::create_dir_all(deep.join("1/x")).unwrap();
        fs::write(deep.join("2"), "").unwrap();
        deep.push(if depth % 2 == 0 { "3" } else { "d" });
        fs::create_dir(&deep).unwrap();
    }
    let output = std::process::Command::new("sh")
        .args(["-c", "ulimit -n 64; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_cofferdam-fetch")])
        .args([format!("--url={}", server.url("/")), format!("--sha256={}", sha256(&body))])
        .arg(format!("--into={}", pod.app().display()))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(pod.names(), PLACED);
}

#[test]
fn b77_what_an_interrupted_run_had_verified_is_placed_without_asking_anybody_for_it() {
    let body = body();
    let pod = Pod::new();
    // One directory was moved already, and one is still to be.
    let verified = pod.app().join(format!(".cofferdam-verified-{}", sha256(&body)));
    fs::create_dir_all(verified.join("data")).unwrap();
    fs::write(verified.join("data/noise"), "whole").unwrap();
    fs::write(pod.app().join("main.py"), "moved").unwrap();
    pod.fetch(&format!("http://{}/", nobody()), &body).well();
    assert_eq!(pod.names(), PLACED);
    assert_eq!((pod.text("main.py").as_str(), pod.text("data/noise").as_str()), ("moved", "whole"));
    // All of it was moved, and the marker is missing, or the way to it is still there.
    for interrupted in [".cofferdam-complete", "nothing"] {
        let _ = fs::remove_file(pod.app().join(interrupted));
        fs::create_dir(&verified).unwrap();
        pod.fetch(&format!("http://{}/", nobody()), &body).well();
        assert_eq!(pod.names(), PLACED, "without {interrupted}");
    }
}

#[test]
fn of_two_runs_in_one_directory_one_waits_for_the_other() {
    let (body, server) = served();
    let pod = Pod::new();
    let other = fs::File::open(pod.app()).unwrap();
    other.lock().unwrap();
    let ended = pod.fetch_with(&server.url("/"), &body, &["--deadline=300ms"]);
    ended.failed(10, "another run works in the directory");
    assert_eq!((pod.names(), server.asked().len()), (Vec::new(), 0));

    let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_cofferdam-fetch"))
        .args([format!("--url={}", server.url("/")), format!("--sha256={}", sha256(&body))])
        .args([format!("--into={}", pod.app().display()), "--deadline=10m".to_owned()])
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = String::new();
    BufReader::new(child.stderr.take().unwrap()).read_line(&mut said).unwrap();
    assert!(said.contains("waiting: another run"), "{said}");
    drop(other);
    assert!(child.wait().unwrap().success());
    assert_eq!(pod.names(), PLACED);
}

#[test]
fn a_marker_of_another_body_or_that_is_none_counts_for_nothing() {
    let (body, server) = served();
    let pod = Pod::new();
    let marker = pod.app().join(".cofferdam-complete");
    let right = pod.file("elsewhere", &sha256(&body));
    let wrong = [sha256(b"another"), String::new(), sha256(&body) + "0", format!("{}\nmore", sha256(&body))];
    for (count, text) in wrong.iter().enumerate() {
        fs::write(&marker, text).unwrap();
        pod.fetch(&server.url("/body"), &body).well();
        assert_eq!(server.asked().len(), count + 1, "{text}");
    }
    fs::remove_file(&marker).unwrap();
    symlink(right, &marker).unwrap();
    pod.fetch(&server.url("/body"), &body).well();
    assert_eq!(server.asked().len(), wrong.len() + 1);
    assert!(!fs::symlink_metadata(&marker).unwrap().is_symlink());
}

#[test]
fn what_stood_in_the_body_s_place_goes() {
    let (body, server) = served();
    let pod = Pod::new();
    fs::create_dir_all(pod.app().join("main.py/older")).unwrap();
    fs::create_dir_all(pod.app().join("data/older")).unwrap();
    fs::write(pod.app().join("foreign"), "").unwrap();
    pod.fetch(&server.url("/body"), &body).well();
    assert_eq!(pod.names(), [".cofferdam-complete", "data", "foreign", "main.py"]);
    assert_eq!((pod.text("main.py").as_str(), names(&pod.app().join("data"))), ("print()", vec!["noise".to_owned()]));
}

#[test]
fn a_directory_that_is_missing_is_made_and_one_that_cannot_be_ends_with_15() {
    let (body, server) = served();
    let pod = Pod::new();
    fs::remove_dir(pod.app()).unwrap();
    pod.fetch(&server.url("/body"), &body).well();
    let file = pod.file("file", "");
    let url = format!("--url={}", server.url("/body"));
    let ended = pod.run(&[&url, &format!("--sha256={}", sha256(&body)), &format!("--into={file}/app")]);
    ended.failed(15, "cannot open the directory of --into");
    let full = Server::start(vec![Answer::whole(&body)]);
    let ended = pod.run(&[&format!("--url={}", full.url("/")), &format!("--sha256={}", sha256(&body)), "--into=/proc"]);
    assert_eq!((ended.code, full.asked().len()), (15, 0), "{}", ended.reason);
}

#[test]
fn what_cannot_be_written_ends_with_15() {
    // A limit of the process on files is what a full disk looks like, and every machine can have it.
    let (body, server) = served();
    let pod = Pod::new();
    let script = "trap '' XFSZ; ulimit -f 8; exec \"$0\" \"$@\"";
    let output = std::process::Command::new("sh")
        .args(["-c", script, env!("CARGO_BIN_EXE_cofferdam-fetch")])
        .args([format!("--url={}", server.url("/")), format!("--sha256={}", sha256(&body))])
        .arg(format!("--into={}", pod.app().display()))
        .output()
        .unwrap();
    let log = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(15), "{log}");
    assert!(log.contains("cannot write a file"), "{log}");
    assert_eq!(pod.names(), [""; 0]);
}

#[test]
fn a_run_that_is_stopped_ends_at_once_and_the_next_one_has_no_trouble_with_it() {
    let body = body();
    let server = Server::start(vec![Answer::begun(&body, 3000, End::Never), Answer::whole(&body)]);
    let pod = Pod::new();
    let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_cofferdam-fetch"))
        .args([format!("--url={}", server.url("/")), format!("--sha256={}", sha256(&body))])
        .args([format!("--into={}", pod.app().display()), "--deadline=10m".to_owned()])
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    while !pod.app().join(".cofferdam-incoming/main.py").exists() {
        assert_eq!(child.try_wait().unwrap(), None);
        std::thread::yield_now();
    }
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(143));
    assert_eq!(pod.names(), [".cofferdam-incoming"]);
    pod.fetch(&server.url("/"), &body).well();
    assert_eq!(pod.names(), PLACED);
}
