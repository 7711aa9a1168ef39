//! What a pod waits for that does not run yet.

use cofferdam_kubernetes::json::{condition, each, text};
use serde_json::Value;

use super::failure::init_failure;
use super::{Block, Blocked, Record, Waiting, sentence};

/// Of a pod that waits for its turn, or is not there yet.
pub(super) fn scheduling() -> Waiting {
    Waiting { progress: "Scheduling".to_owned(), blocked: None }
}

/// What this pod waits for: the first container with a reason, init containers first.
pub(super) fn waiting(pod: &Value, record: &Record) -> Waiting {
    let reason = containers(pod).map(|container| text(&container["state"]["waiting"]["reason"]));
    let progress = match reason.into_iter().find(|reason| !reason.is_empty()) {
        None => match unscheduled(pod) {
            Some(reason) => reason,
            None => return scheduling(),
        },
        Some("ContainerCreating") => "Creating container",
        Some("PodInitializing") => "Delivering application",
        Some(reason) if is_pull(reason) => "Pulling image",
        Some(reason) => known(reason).unwrap_or("Waiting"),
    };
    Waiting { progress: progress.to_owned(), blocked: blocked(pod, record.image.as_deref()) }
}

/// What keeps this pod from starting, if anything does. `image` is the one that the client named: what is said of another
/// one could name it.
pub(super) fn blocked(pod: &Value, image: Option<&str>) -> Option<Blocked> {
    if let Some(reason) = init_failure(pod) {
        return Some(Blocked { kind: Block::Final, sentence: sentence(&format!("start: {reason}")) });
    }
    let waiting = containers(pod).map(|container| &container["state"]["waiting"]);
    let blocked = waiting.into_iter().find_map(|waiting| {
        let (reason, message) = (text(&waiting["reason"]), text(&waiting["message"]));
        let (kind, meaning) = match reason {
            "" | "ContainerCreating" | "PodInitializing" => return None,
            "InvalidImageName" => (Block::Final, "that is no name of an image".to_owned()),
            "ErrImageNeverPull" => (
                Block::Final,
                "the node does not have the image, and it may not be pulled; choose another pull policy".to_owned(),
            ),
            "CrashLoopBackOff" => (Block::Final, "it fails again and again".to_owned()),
            reason if is_pull(reason) => (Block::Pull, pull_failed(message, image)),
            "CreateContainerConfigError" if message.contains("runAsNonRoot") || message.contains("non-root") => (
                Block::Final,
                "the image runs as root or names its user, and a session needs a number that is not 0".to_owned(),
            ),
            _ => (
                Block::Container,
                "its container cannot be made; ask the operator where trying again does not help".to_owned(),
            ),
        };
        let reason = known(reason).unwrap_or("Blocked");
        Some(Blocked { kind, sentence: sentence(&format!("start: {reason}: {meaning}")) })
    });
    blocked.or_else(|| {
        let reason = unscheduled(pod)?;
        let sentence = format!("start: {reason}: no node has room for it, or none may run it; try again later");
        Some(Blocked { kind: Block::Node, sentence })
    })
}

/// Why the image could not be pulled. What the kubelet says is repeated where the client knows the image's name anyway.
fn pull_failed(message: &str, image: Option<&str>) -> String {
    let lower = message.to_ascii_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| lower.contains(word));
    // A word of its own: ports, tags and digests have digits as well.
    let mut words = lower.split(|c: char| c.is_whitespace() || "()\",;".contains(c));
    let status = words.find_map(|word| {
        let number = word.trim_end_matches([':', '.']).parse::<u16>().ok()?;
        (400..600).contains(&number).then_some(number)
    });
    let meaning = if has(&["toomanyrequests", "qps exceeded"]) || status == Some(429) {
        "the registry gives no more images for now"
    } else if status.is_some_and(|status| status >= 500) {
        "the registry has a fault of its own; try again later"
    } else if has(&["unauthorized", "denied", "forbidden"]) || matches!(status, Some(401 | 403)) {
        "the registry does not give it to us, or does not have it"
    } else if has(&["not found", "manifest unknown", "does not exist", "name unknown"]) {
        "the registry does not have it"
    } else if has(&["no such host", "timeout", "connection refused", "unreachable", "tls:", "x509"]) {
        "the registry does not answer"
    } else {
        "the image could not be pulled"
    };
    match image {
        Some(image) if !message.is_empty() => format!("image {image}: {meaning}: {message}"),
        Some(image) => format!("image {image}: {meaning}"),
        None => meaning.to_owned(),
    }
}

fn is_pull(reason: &str) -> bool {
    matches!(
        reason,
        "ErrImagePull" | "ImagePullBackOff" | "ImageInspectError" | "RegistryUnavailable" | "SignatureValidationFailed"
    )
}

/// Reasons that may be shown as they are: the kubelet's own.
fn known(reason: &str) -> Option<&'static str> {
    const KNOWN: [&str; 14] = [
        "ErrImagePull",
        "ImagePullBackOff",
        "ImageInspectError",
        "RegistryUnavailable",
        "SignatureValidationFailed",
        "InvalidImageName",
        "ErrImageNeverPull",
        "CreateContainerConfigError",
        "CreateContainerError",
        "PreCreateHookError",
        "PreStartHookError",
        "PostStartHookError",
        "RunContainerError",
        "CrashLoopBackOff",
    ];
    KNOWN.into_iter().find(|known| *known == reason)
}

/// Why the scheduler has found no node; none while it may.
fn unscheduled(pod: &Value) -> Option<&'static str> {
    let scheduled = condition(&pod["status"], "PodScheduled").filter(|condition| condition["status"] == "False")?;
    ["Unschedulable", "SchedulingGated"].into_iter().find(|reason| scheduled["reason"] == *reason)
}

fn containers(pod: &Value) -> impl Iterator<Item = &Value> {
    ["initContainerStatuses", "containerStatuses"].into_iter().flat_map(|key| each(&pod["status"][key]))
}
