//! However a cluster ends, nothing of it stays on the machine.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::BTreeSet;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use cofferdam_cluster::cluster::{Cluster, Options};
use cofferdam_cluster::progress::Progress;
use rustix::process::{Pid, Signal, kill_process};

const PROGRAM: &str = env!("CARGO_BIN_EXE_cofferdam-cluster");
const LIMIT: Duration = Duration::from_mins(1);

/// Everything on the machine that a cluster could leave.
#[derive(Debug, PartialEq, Eq)]
struct Traces {
    processes: BTreeSet<String>,
    namespaces: BTreeSet<PathBuf>,
    mounts: BTreeSet<String>,
    links: BTreeSet<String>,
    cgroups: BTreeSet<PathBuf>,
    files: BTreeSet<PathBuf>,
}

impl Traces {
    /// What is there of the cluster called `name`, and of anything that no cluster should have touched.
    fn of(name: &str) -> Self {
        let tag = format!("cofferdam-cluster-{name}");
        let mut processes = BTreeSet::new();
        let mut namespaces = BTreeSet::new();
        for process in entries("/proc").filter(|path| path.join("exe").exists()) {
            let command = fs::read(process.join("cmdline")).unwrap_or_default();
            let command = String::from_utf8_lossy(&command).replace('\0', " ");
            let cgroup = fs::read_to_string(process.join("cgroup")).unwrap_or_default();
            if command.contains(&tag) || cgroup.contains(&format!("cofferdam-{name}_")) {
                processes.insert(command);
                namespaces.extend(fs::read_link(process.join("ns/net")));
            }
        }
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
        let links = fs::read_to_string("/proc/net/dev").unwrap();
        let group = format!("cofferdam-{name}_");
        let groups = entries("/sys/fs/cgroup").flat_map(|hierarchy| entries(&hierarchy).chain([hierarchy]));
        let root = PathBuf::from(format!("/var/tmp/{tag}"));
        // The places where container runtimes and kubelets write by habit.
        let habits =
            ["/run", "/run/netns", "/var/lib", "/var/log", "/var/lib/cni", "/var/run/netns", "/etc/cni", "/opt"];
        Self {
            processes,
            namespaces,
            mounts: mounts.lines().filter(|line| line.contains(&tag)).map(str::to_owned).collect(),
            links: links.lines().filter_map(|line| Some(line.split_once(':')?.0.trim().to_owned())).collect(),
            cgroups: groups
                .filter(|path| path.file_name().is_some_and(|n| n.to_string_lossy().starts_with(&group)))
                .collect(),
            files: habits.iter().flat_map(entries).chain(Some(root).filter(|root| root.exists())).collect(),
        }
    }
}

fn entries(folder: impl AsRef<Path>) -> std::vec::IntoIter<PathBuf> {
    let found: Vec<PathBuf> = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    found.into_iter()
}

fn until(what: &str, done: impl Fn() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < LIMIT, "{what}: not within {} s", LIMIT.as_secs());
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn program(name: &str, arguments: &[&str]) -> String {
    let output = Command::new(PROGRAM).args(["--name", name]).args(arguments).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {text}");
    text
}

/// A pod with a process, a mount, an address and a log: all that pods leave about.
fn run_pod(name: &str) {
    program(name, &["kubectl", "run", "held", "--image=cofferdam.test/pause:1", "--image-pull-policy=Never"]);
    program(name, &["kubectl", "wait", "pod/held", "--for=condition=Ready", "--timeout=60s"]);
}

fn kill(pid: u32, signal: Signal) {
    kill_process(Pid::from_raw(pid.try_into().unwrap()).unwrap(), signal).unwrap();
}

fn start(name: &str) -> Child {
    // A shell's background job ignores SIGINT and so does all that it starts; a terminal's job does not.
    let mut command = Command::new("env");
    command.args(["--default-signal=INT", PROGRAM, "--name", name, "up"]).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().unwrap()
}

#[test]
fn down_removes_processes_mounts_addresses_cgroups_and_files() {
    let name = "nothing-down";
    let before = Traces::of(name);
    program(name, &["up", "--nodes", "2"]);
    run_pod(name);
    let during = Traces::of(name);
    assert!(during.processes.len() > 10 && during.namespaces.len() >= 3, "the traces are not seen: {during:?}");
    assert!(!during.cgroups.is_empty() && during.files != before.files, "the traces are not seen: {during:?}");
    program(name, &["down"]);
    assert_eq!(Traces::of(name), before);
}

#[test]
fn killing_one_process_ends_all_of_a_node_and_the_next_up_removes_the_rest() {
    let name = "nothing-killed";
    let before = Traces::of(name);
    program(name, &["up"]);
    run_pod(name);
    let pid_file = format!("/var/tmp/cofferdam-cluster-{name}/nodes/node-1/holder.pid");
    kill(fs::read_to_string(pid_file).unwrap().parse().unwrap(), Signal::KILL);
    until("the end of every process", || Traces::of(name).processes.is_empty());
    let after = Traces::of(name);
    assert_eq!(
        (after.namespaces, after.mounts, after.links),
        (before.namespaces.clone(), before.mounts.clone(), before.links.clone())
    );
    program(name, &["up"]);
    program(name, &["down"]);
    assert_eq!(Traces::of(name), before);
}

#[test]
fn ctrl_c_during_the_start_leaves_nothing() {
    let name = "nothing-ctrl-c";
    let before = Traces::of(name);
    // Once early, when there is little, and once when the control plane runs.
    for stage in ["nodes/node-1/holder.pid", "nodes/node-1/log/kube-scheduler.log"] {
        let mut up = start(name);
        until(stage, || Path::new(&format!("/var/tmp/cofferdam-cluster-{name}/{stage}")).exists());
        kill(up.id(), Signal::INT);
        assert!(!up.wait().unwrap().success());
        until("the end of everything", || Traces::of(name) == before);
    }
}

#[test]
fn a_panic_in_its_owner_ends_a_cluster() {
    let name = "nothing-panic";
    let before = Traces::of(name);
    let (tell, told) = mpsc::channel();
    let owner = std::thread::spawn(move || {
        let options = Options { name: name.to_owned(), ..Options::default() };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let _cluster = runtime.block_on(Cluster::up(&options, &Progress::silent())).unwrap();
        tell.send(Traces::of(name)).unwrap();
        panic!("as a failing test does");
    });
    assert!(!told.recv().unwrap().processes.is_empty());
    assert!(owner.join().is_err());
    assert_eq!(Traces::of(name), before);
}

/// As in a container whose first process is somebody's program: what loses its parent stays as a zombie.
#[test]
fn where_nobody_reaps_orphans_a_start_that_was_killed_does_not_stand_in_the_way_of_the_next() {
    let name = "orphans";
    let mut outer = Command::new("unshare")
        .args(["--pid", "--mount", "--fork", "--kill-child", "--mount-proc", "sleep", "600"])
        .spawn()
        .unwrap();
    let children = format!("/proc/{0}/task/{0}/children", outer.id());
    let first = || fs::read_to_string(&children).unwrap_or_default().trim().to_owned();
    until("the first process", || !first().is_empty());
    let inside = |arguments: &[&str]| {
        let mut command = Command::new("nsenter");
        command.args(["--target", &first(), "--pid", "--mount", PROGRAM, "--name", name]).args(arguments);
        command.stdout(Stdio::null()).spawn().unwrap()
    };
    let mut killed = inside(&["up"]);
    let log = format!("/var/tmp/cofferdam-cluster-{name}/nodes/node-1/log/kube-scheduler.log");
    until("the control plane", || Path::new(&log).exists());
    // nsenter has handed over to a child of its own, which is in there.
    let starter = r"for p in /proc/[0-9]*; do grep -qsz '^up$' $p/cmdline && kill -9 ${p#/proc/}; done; true";
    Command::new("nsenter").args(["--target", &first(), "--pid", "--mount", "sh", "-c", starter]).status().unwrap();
    assert!(!killed.wait().unwrap().success());
    assert!(inside(&["up"]).wait().unwrap().success());
    assert!(inside(&["down"]).wait().unwrap().success());
    outer.kill().unwrap();
    outer.wait().unwrap();
    let left = Traces::of(name);
    assert!(left.processes.is_empty() && left.cgroups.is_empty(), "{left:?}");
}

#[test]
fn a_proxy_of_the_machine_is_not_asked() {
    let name = "proxy";
    let mut command = Command::new(PROGRAM);
    for variable in ["HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "ALL_PROXY"] {
        command.env(variable, "http://127.0.0.1:9");
    }
    assert!(command.args(["--name", name, "up"]).stdout(Stdio::null()).status().unwrap().success());
    program(name, &["down"]);
}

#[test]
fn of_two_starts_at_once_one_is_refused() {
    let name = "at-once";
    let mut starts = [start(name), start(name)];
    let successes = starts.iter_mut().map(|start| start.wait().unwrap().success()).filter(|success| *success).count();
    assert_eq!(successes, 1);
    assert!(program(name, &["kubectl", "get", "nodes"]).contains("node-1"));
    program(name, &["down"]);
}

#[test]
fn a_second_start_under_the_same_name_is_refused_and_another_name_runs_beside_it() {
    let (one, two) = ("beside-1", "beside-2");
    let before = Traces::of(two);
    program(one, &["up"]);
    let mut again = Command::new(PROGRAM).args(["--name", one, "up"]).stderr(Stdio::piped()).spawn().unwrap();
    let mut words = String::new();
    again.stderr.take().unwrap().read_to_string(&mut words).unwrap();
    assert!(!again.wait().unwrap().success());
    assert!(words.contains("runs already") && words.contains("down --name beside-1"), "{words}");
    program(two, &["up"]);
    run_pod(one);
    run_pod(two);
    program(two, &["down"]);
    assert_eq!(Traces::of(two), before);
    assert!(program(one, &["kubectl", "get", "pod", "held"]).contains("Running"));
    program(one, &["down"]);
}
