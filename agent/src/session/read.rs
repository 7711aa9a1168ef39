//! From the pod that the API server sends to what is kept of it. A field that is not what it should be counts as missing.

use cofferdam_kubernetes::json::{
    self, annotation, condition, each, is_leaving, label, name, namespace, owners, parsed, text, uid,
};
use cofferdam_model::policy::{LONGEST_FINISHED_GRACE_SECONDS, Policy, SlippedThrough};
use cofferdam_model::ports::Ports;
use cofferdam_model::session::SessionId;
use cofferdam_model::{audit, keys};
use k8s_openapi::jiff::Timestamp;
use serde_json::Value;

use super::{Condition, Membership, Phase, Progress, Seen, Session, Told};

/// Begins the types of our conditions.
const OURS: &str = "cofferdam.dev/";

impl Seen {
    /// What is kept of a pod in a namespace of that kind; nothing if it is no session and does not have to be one.
    #[must_use]
    pub(crate) fn read(pod: &Value, membership: Membership, policy: &Policy) -> Option<Self> {
        let id = label(pod, keys::SESSION);
        let told = Told::read(pod);
        let is_session = match membership {
            // A static pod is the kubelet's, and no webhook could have changed it.
            Membership::Enforced => annotation(pod, keys::MIRROR_POD).is_none(),
            Membership::Other => id.is_some(),
            Membership::Exempt => {
                id.is_some() && (annotation(pod, keys::HARDENED).is_some() || told != Told::default())
            }
        };
        if !is_session {
            return None;
        }
        let controller = owners(pod).find(|owner| owner["controller"] == true);
        let session = Session {
            namespace: namespace(pod).to_owned(),
            name: name(pod).to_owned(),
            uid: uid(pod).to_owned(),
            id: id.and_then(|id| SessionId::parse(id).ok()),
            // Nothing is wanted of it any more.
            ports: if membership == Membership::Exempt { Ok(Ports::default()) } else { Ports::of(pod) },
            address: parsed(&pod["status"]["podIP"]),
            phase: phase(pod, membership),
            findings: audit(pod, policy),
            profile: label(pod, keys::PROFILE).unwrap_or(keys::DEFAULT_PROFILE).to_owned(),
            is_controlled: controller.is_some(),
            finished_grace_seconds: annotation(pod, keys::FINISHED_GRACE)
                .and_then(|seconds| seconds.parse::<u32>().ok())
                .map(|seconds| seconds.min(LONGEST_FINISHED_GRACE_SECONDS)),
            told,
        };
        let owner = controller.map_or_else(|| namespace(pod), |controller| text(&controller["uid"]));
        let profile = policy.profile(&session.profile).or_else(|| policy.profile(keys::DEFAULT_PROFILE));
        Some(Self {
            owner: owner.to_owned(),
            is_unwelcome: profile.is_some_and(|profile| profile.slipped_through == SlippedThrough::Delete),
            resource_version: json::version(pod),
            progress: progress(pod),
            session,
        })
    }
}

/// Whether a pod has succeeded or failed: nothing that is yet to come can change that.
#[must_use]
pub(crate) fn has_ended(pod: &Value) -> bool {
    matches!(pod["status"]["phase"].as_str(), Some("Succeeded" | "Failed"))
}

/// Being deleted comes first: such a pod may still be running, and ready (case B145).
fn phase(pod: &Value, membership: Membership) -> Phase {
    if is_leaving(pod) {
        Phase::Leaving
    } else if membership == Membership::Exempt {
        Phase::Released
    } else if has_ended(pod) {
        Phase::Finished
    } else if pod["status"]["phase"] == "Running" {
        Phase::Running
    } else {
        Phase::Starting
    }
}

impl Told {
    /// Reads it from a pod.
    #[must_use]
    pub(crate) fn read(pod: &Value) -> Self {
        let text = |value: &Value| text(value).to_owned();
        let ours = each(&pod["status"]["conditions"])
            .filter(|condition| condition["type"].as_str().is_some_and(|type_| type_.starts_with(OURS)));
        Self {
            conditions: ours
                .map(|condition| Condition {
                    type_: text(&condition["type"]),
                    status: text(&condition["status"]),
                    reason: text(&condition["reason"]),
                    message: text(&condition["message"]),
                })
                .collect(),
            endpoints: annotation(pod, keys::ENDPOINTS).map(str::to_owned),
        }
    }
}

fn progress(pod: &Value) -> Progress {
    let (status, seconds) = (&pod["status"], |value: &Value| parsed(value).map(Timestamp::as_second));
    let scheduled = condition(status, "PodScheduled")
        .filter(|condition| condition["status"] == "True")
        .and_then(|condition| seconds(&condition["lastTransitionTime"]));
    let wants_body = each(&pod["spec"]["initContainers"]).any(|container| container["name"] == keys::FETCH_CONTAINER);
    let has_body = each(&status["initContainerStatuses"]).any(|container| {
        container["name"] == keys::FETCH_CONTAINER && container["state"]["terminated"]["exitCode"] == 0
    });
    let containers = each(&pod["spec"]["containers"]).count();
    let running =
        each(&status["containerStatuses"]).filter(|container| container["state"]["running"].is_object()).count();
    let ended = ["containerStatuses", "initContainerStatuses"]
        .into_iter()
        .flat_map(|key| each(&status[key]))
        .filter_map(|container| seconds(&container["state"]["terminated"]["finishedAt"]))
        .max();
    Progress {
        created: seconds(&pod["metadata"]["creationTimestamp"]),
        scheduled,
        has_body: !wants_body || has_body,
        is_running: containers > 0 && running == containers,
        // An evicted pod may have no container status at all (case B149).
        ended: ended.or_else(|| {
            each(&status["conditions"]).filter_map(|condition| seconds(&condition["lastTransitionTime"])).max()
        }),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(pod: &Value) -> Seen {
        Seen::read(pod, Membership::Enforced, &Policy::built_in()).unwrap()
    }

    #[test]
    fn a_pod_is_a_session_by_its_namespace_or_by_its_label() {
        let policy = Policy::built_in();
        let plain = json!({"metadata": {"name": "p"}});
        let labelled = json!({"metadata": {"name": "p", "labels": {"cofferdam.dev/session": "a"}}});
        let mirror = json!({"metadata": {"annotations": {"kubernetes.io/config.mirror": "x"}}});
        for (pod, membership, is_session) in [
            (&plain, Membership::Enforced, true),
            (&plain, Membership::Other, false),
            (&labelled, Membership::Other, true),
            (&labelled, Membership::Exempt, false),
            (&mirror, Membership::Enforced, false),
        ] {
            assert_eq!(Seen::read(pod, membership, &policy).is_some(), is_session, "{pod} {membership:?}");
        }
    }

    #[test]
    fn what_was_a_session_is_released_where_there_are_none_any_more() {
        let policy = Policy::built_in();
        let hardened = json!({"metadata": {"labels": {keys::SESSION: "a"}, "annotations": {keys::HARDENED: "{}"}},
            "spec": {"containers": [{"ports": [{"containerPort": 80}]}]}, "status": {"phase": "Running"}});
        let mut told = hardened.clone();
        told["metadata"]["annotations"] = json!({keys::ENDPOINTS: "{}"});
        for pod in [&hardened, &told] {
            let session = Seen::read(pod, Membership::Exempt, &policy).unwrap().session;
            assert_eq!((session.phase, session.ports), (Phase::Released, Ok(Ports::default())));
            assert!(!session.phase.is_live());
            let again = Seen::read(pod, Membership::Enforced, &policy).unwrap().session;
            assert_eq!((again.phase, again.ports.map(|ports| ports.is_empty())), (Phase::Running, Ok(false)));
        }
        told["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        assert_eq!(Seen::read(&told, Membership::Exempt, &policy).unwrap().session.phase, Phase::Leaving);
        told["metadata"]["labels"] = json!({});
        assert_eq!(Seen::read(&told, Membership::Exempt, &policy), None);
    }

    #[test]
    fn b145_a_pod_that_is_being_deleted_is_leaving_whatever_its_phase() {
        for (phase, leaving, expected) in [
            ("Running", true, Phase::Leaving),
            ("Succeeded", true, Phase::Leaving),
            ("Running", false, Phase::Running),
            ("Pending", false, Phase::Starting),
            ("Failed", false, Phase::Finished),
            ("Unheard-of", false, Phase::Starting),
        ] {
            let mut pod = json!({"metadata": {}, "status": {"phase": phase}});
            if leaving {
                pod["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
            }
            assert_eq!(read(&pod).session.phase, expected, "{phase} {leaving}");
        }
    }

    #[test]
    fn b149_a_pod_without_container_statuses_has_ended_when_its_conditions_last_changed() {
        let pod = json!({"metadata": {}, "status": {"phase": "Failed", "reason": "Evicted",
            "conditions": [{"type": "Ready", "lastTransitionTime": "1970-01-01T00:01:00Z"}]}});
        assert_eq!(read(&pod).progress.ended, Some(60));
        assert_eq!(read(&json!({"metadata": {}, "status": {"phase": "Failed"}})).progress.ended, None);
    }

    #[test]
    fn what_is_not_what_it_should_be_counts_as_missing() {
        for odd in [json!(null), json!(7), json!([]), json!({"metadata": 1, "spec": "x", "status": []})] {
            assert_eq!(Seen::read(&odd, Membership::Enforced, &Policy::built_in()).unwrap().session.address, None);
        }
        let pod = json!({"metadata": {"labels": {"cofferdam.dev/session": "Not An Id"},
            "annotations": {"cofferdam.dev/finished-grace-seconds": "-1"}},
            "status": {"podIP": "fd00:10:244::9"}});
        let session = read(&pod).session;
        assert_eq!((session.id, session.finished_grace_seconds), (None, None));
        assert_eq!(session.address, Some("fd00:10:244::9".parse().unwrap()));
    }

    #[test]
    fn a_wish_to_be_kept_has_an_end() {
        let pod = json!({"metadata": {"annotations": {"cofferdam.dev/finished-grace-seconds": "4000000000"}}});
        assert_eq!(read(&pod).session.finished_grace_seconds, Some(LONGEST_FINISHED_GRACE_SECONDS));
    }
}
