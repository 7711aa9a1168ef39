//! What a process in a session really has, asked of the kernel by a shell inside the container.

use anyhow::Result;

use crate::kubectl::Kubectl;

/// One answer from inside.
#[derive(Debug)]
pub struct Fact {
    /// What was asked.
    pub what: &'static str,
    /// The answer.
    pub answer: String,
    /// Where it comes from.
    pub source: &'static str,
    /// Whether it is as it must be.
    pub holds: bool,
}

/// One question: a line of shell, and the answer that must come.
struct Question {
    what: &'static str,
    script: &'static str,
    wanted: &'static str,
    source: &'static str,
}

/// Defined before the questions: a line of the kernel's account of process 1, without its name.
const STATUS: &str =
    r#"status() { while read -r name value; do [ "$name" = "$1:" ] && echo "$value"; done < /proc/1/status; }"#;

/// Only what every shell has, with `cat`, `id`, `ls` and `touch`. The session is one of profile `default`.
const QUESTIONS: [Question; 9] = [
    Question { what: "user and group", script: "echo $(id -u):$(id -g)", wanted: "1000:1000", source: "id" },
    Question {
        what: "capabilities",
        script: "case $(status CapBnd) in *[1-9a-f]*) status CapBnd;; *) echo none;; esac",
        wanted: "none",
        source: "CapBnd in /proc/1/status",
    },
    Question {
        what: "seccomp",
        script: "[ \"$(status Seccomp)\" = 2 ] && echo filtered || echo off",
        wanted: "filtered",
        source: "Seccomp in /proc/1/status",
    },
    Question {
        what: "no new privileges",
        script: "[ \"$(status NoNewPrivs)\" = 1 ] && echo on || echo off",
        wanted: "on",
        source: "NoNewPrivs in /proc/1/status",
    },
    Question {
        what: "the root file system",
        script: "touch /probe 2> /dev/null && echo writable || echo read-only",
        wanted: "read-only",
        source: "touch /probe",
    },
    Question {
        what: "/tmp",
        script: "touch /tmp/probe 2> /dev/null && echo writable || echo read-only",
        wanted: "writable",
        source: "touch /tmp/probe",
    },
    Question {
        what: "the home folder",
        script: "touch $HOME/probe 2> /dev/null && echo writable || echo read-only",
        wanted: "writable",
        source: "touch $HOME/probe",
    },
    Question {
        what: "memory limit",
        script: "m=$(cat /sys/fs/cgroup/memory.max /sys/fs/cgroup/memory/memory.limit_in_bytes 2> /dev/null); \
                 [ $m = max ] && echo none || echo $((m / 1048576))Mi",
        wanted: "512Mi",
        source: "its cgroup",
    },
    Question {
        what: "ServiceAccount token",
        script: "ls /var/run/secrets/kubernetes.io/serviceaccount/token > /dev/null 2>&1 && echo mounted || echo none",
        wanted: "none",
        source: "/var/run/secrets/kubernetes.io",
    },
];

/// Asks the first container of `pod`, which must run and hold a shell.
///
/// # Errors
/// When the container cannot be asked.
pub fn ask(kubectl: &Kubectl, namespace: &str, pod: &str) -> Result<Vec<Fact>> {
    // One exec for all: each answer ends with a line of its own.
    let script: Vec<String> = QUESTIONS.iter().map(|question| format!("{}\necho ---", question.script)).collect();
    let output = kubectl.run([
        "exec",
        "--namespace",
        namespace,
        pod,
        "--",
        "sh",
        "-c",
        &format!("{STATUS}\n{}", script.join("\n")),
    ])?;
    let answers = output.split("---\n").map(|answer| answer.trim().to_owned());
    let facts = QUESTIONS.iter().zip(answers).map(|(question, answer)| Fact {
        what: question.what,
        holds: answer == question.wanted,
        answer,
        source: question.source,
    });
    Ok(facts.collect())
}
