//! Why a pod has failed, in words that are ours.

use cofferdam_kubernetes::json::{condition, each, is_leaving, text};
use cofferdam_model::keys;
use serde_json::Value;

use super::{exit_code, phase, sentence, waiting};
use crate::wire::Status;

/// Exit codes of what was killed: by SIGKILL, and by SIGTERM.
const KILLED: [i32; 2] = [137, 143];

/// How a program ended whose pod has failed, or whose own container has terminated (`terminated`, if it has).
///
/// A program that ends by itself has exited, with whatever code (defect D06). Whatever else ended it is a failure: what the
/// pod says of itself, a disruption that the cluster announced, an init container, and at last its own container.
pub(super) fn failed(pod: &Value, terminated: Option<&Value>) -> Status {
    let status = &pod["status"];
    if phase(pod) == "Failed"
        && let Some(reason) = of_pod(text(&status["reason"]), text(&status["message"]))
    {
        return failed_with(&reason);
    }
    if let Some(reason) = disruption(pod) {
        return failed_with(&reason);
    }
    if let Some(reason) = init_failure(pod) {
        return failed_with(&reason);
    }
    match terminated.map(|terminated| (text(&terminated["reason"]), exit_code(terminated))) {
        // A deletion sends signals first.
        Some((_, Some(code))) if is_leaving(pod) && KILLED.contains(&code) => vanished(Some(pod)),
        Some(("Completed" | "Error" | "", Some(code))) => Status::Exited { code },
        Some((reason, code)) => failed_with(&of_container("container \"session\"", reason, code, None)),
        None => match waiting::blocked(pod, None) {
            Some(blocked) => failed_with(&blocked.sentence),
            None => failed_with("the pod failed, and the cluster gives no reason that can be shown"),
        },
    }
}

/// Of a pod that is there no more, and was last seen like this, without having ended.
pub(super) fn vanished(last: Option<&Value>) -> Status {
    let has_run = last.is_some_and(|last| matches!(phase(last), "Running" | "Failed"));
    match last.and_then(disruption) {
        Some(reason) => failed_with(&reason),
        None if has_run => failed_with("the pod was deleted while the program ran"),
        None => failed_with("start: the pod was deleted before the program ran"),
    }
}

fn failed_with(reason: &str) -> Status {
    Status::Failed { message: sentence(reason) }
}

/// What a pod says of itself. Its message names nodes, and amounts; it is only read to tell cases apart.
fn of_pod(reason: &str, message: &str) -> Option<String> {
    let meaning = match reason {
        "DeadlineExceeded" => "the session ran for as long as it may",
        "Evicted" if message.contains("low on resource: memory") => "its node ran out of memory",
        "Evicted" if message.contains("low on resource") => "its node ran out of disk space or of processes",
        "Evicted" if message.contains("exceed") => "it wrote more to its disk than a session may",
        "Evicted" => "its node needed the room",
        "Preempting" => "its node needed the room for something more important",
        "Terminated" | "NodeShutdown" | "Shutdown" => "its node was shut down",
        "NodeLost" => "its node was lost",
        "NodeAffinity"
        | "UnexpectedAdmissionError"
        | "InvalidNodeInfo"
        | "TopologyAffinityError"
        | "SysctlForbidden"
        | "AppArmor" => "its node refused it; try again, and ask the operator where that does not help",
        reason if reason.starts_with("OutOf") => {
            return Some("its node had no room left when it came; try again".to_owned());
        }
        _ => return None,
    };
    Some(format!("{reason}: {meaning}"))
}

/// What the cluster said before it took the pod away (case B149).
fn disruption(pod: &Value) -> Option<String> {
    let target = condition(&pod["status"], "DisruptionTarget").filter(|target| target["status"] == "True")?;
    let reason = text(&target["reason"]);
    let meaning = match reason {
        "PreemptionByScheduler" => "something more important needed the room",
        "EvictionByEvictionAPI" => "its node was emptied",
        "DeletionByTaintManager" => "its node was given up",
        "DeletionByPodGC" => "its node is gone",
        "TerminationByKubelet" => "its node ended it, short of resources or on its way to shut down",
        _ => return Some("the cluster took the pod away".to_owned()),
    };
    Some(format!("{reason}: {meaning}"))
}

/// An init container that has failed, or fails again and again (case B147). Native sidecars are none: they are ended when
/// the program has.
pub(super) fn init_failure(pod: &Value) -> Option<String> {
    each(&pod["status"]["initContainerStatuses"]).find_map(|container| {
        let name = text(&container["name"]);
        let spec = each(&pod["spec"]["initContainers"]).find(|spec| spec["name"] == name);
        if spec.is_some_and(|spec| spec["restartPolicy"] == "Always") {
            return None;
        }
        let (state, last) = (&container["state"], &container["lastState"]["terminated"]);
        let goes_on = phase(pod) != "Failed" && state["waiting"]["reason"] != "CrashLoopBackOff";
        let terminated = if state["terminated"].is_object() || goes_on { &state["terminated"] } else { last };
        let code = exit_code(terminated).filter(|code| *code != 0)?;
        let said =
            (name == keys::FETCH_CONTAINER).then(|| text(&terminated["message"])).filter(|said| !said.is_empty());
        Some(of_container(&format!("init container \"{name}\""), text(&terminated["reason"]), Some(code), said))
    })
}

/// A failed container: who, why by the closed list, with which exit code, and what our own program said.
fn of_container(who: &str, reason: &str, code: Option<i32>, said: Option<&str>) -> String {
    let (reason, meaning) = match reason {
        "OOMKilled" => (reason, "it used more memory than it may"),
        "StartError" | "ContainerCannotRun" | "RunContainerError" => {
            (reason, "it could not be started; check that the image has what is to run")
        }
        "ContainerStatusUnknown" => (reason, "its node lost track of it"),
        "DeadlineExceeded" => (reason, "the session ran for as long as it may"),
        "Error" | "Completed" => ("Error", ""),
        _ => ("failed", ""),
    };
    let code = code.map(|code| format!(" (exit code {code})")).unwrap_or_default();
    let explained = said.unwrap_or(meaning);
    let gap = if explained.is_empty() { "" } else { ": " };
    format!("{who} {reason}{code}{gap}{explained}")
}
