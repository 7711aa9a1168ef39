//! What a start or a stop that broke off has left, and what was kept for long enough.

use std::time::Duration;

use cofferdam_kubernetes::{Class, Failed, json};
use cofferdam_model::session::SessionId;
use k8s_openapi::jiff::Timestamp;
use serde_json::Value;

use super::informer::Seen;
use super::marks::Mark;
use super::pod::pod_name;
use super::record::Record;
use super::retention::is_forgotten;
use super::stop::GRACE_SECONDS;
use super::{secret, stop};
use crate::cluster::Home;

/// A start is over after so long, whatever came of it: longer than one is tried for.
const START: Duration = Duration::from_mins(2);

/// What is told of a session whose start broke off.
const BROKEN_OFF: &str = "create: the start broke off before the session's pod was made; start it again";

/// What is to be done about a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Todo {
    /// Its Secret goes when its pod does.
    Own,
    /// It has ended, and its pod goes.
    DeletePod,
    /// It was never made, which is its end.
    Refuse,
    /// It was kept for long enough.
    Forget,
}

/// What is to be done about a session; nothing, as a rule. `kept` is for how long it is there after its end.
#[must_use]
pub fn judge(seen: &Seen, now: Timestamp, kept: Duration) -> Option<Todo> {
    let secret = seen.secret.as_deref()?;
    // One of a newer version is that version's to judge.
    let record = Record::read(secret)?;
    let is_owned = json::owners(secret).next().is_some();
    match (seen.pod.as_deref(), Mark::read(secret)) {
        // A pod that has ended by itself is kept, and what deletes it looks at the pod.
        (Some(pod), Some(_)) if !json::is_leaving(pod) && !has_finished(pod) => Some(Todo::DeletePod),
        (Some(_), None) if !is_owned => Some(Todo::Own),
        (None, Some(mark)) if is_forgotten(mark.at(), now, kept) => Some(Todo::Forget),
        (None, None) if !is_owned && is_forgotten(record.created_at, now, START) => Some(Todo::Refuse),
        _ => None,
    }
}

/// Does it.
///
/// # Errors
/// When the API server fails or refuses; the next sweep finds the same.
pub async fn carry_out(home: &Home, id: &SessionId, seen: &Seen, todo: Todo, now: Timestamp) -> Result<(), Failed> {
    match (todo, seen.pod.as_deref()) {
        (Todo::Own, Some(pod)) => secret::own(home, id, pod).await.map(drop),
        (Todo::DeletePod, Some(pod)) => home.cluster.delete_pod(&home.namespace, json::name(pod), GRACE_SECONDS).await,
        (Todo::Refuse, _) => never_made(home, id, now).await,
        (Todo::Forget, _) => stop::forget(home, id).await,
        // Nothing of the kind is judged without a pod.
        (Todo::Own | Todo::DeletePod, None) => Ok(()),
    }
}

/// A session whose pod has not come has ended. That there is none is asked for: a watch may be late, and what lives is not
/// to be ended for that.
async fn never_made(home: &Home, id: &SessionId, now: Timestamp) -> Result<(), Failed> {
    match home.cluster.get(&Home::pods(), Some(&home.namespace), &pod_name(id)).await {
        Ok(pod) => secret::own(home, id, &pod).await.map(drop),
        Err(failed) if failed.class == Class::NotFound => {
            let mark = Mark::Refused { at: now, message: BROKEN_OFF.to_owned() };
            secret::mark(home, id, &mark).await.map(drop)
        }
        Err(failed) => Err(failed),
    }
}

fn has_finished(pod: &Value) -> bool {
    matches!(json::text(&pod["status"]["phase"]), "Succeeded" | "Failed")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;
    use crate::session::record::{App, Confidential};
    use crate::wire::{Io, Mode};

    const KEPT: Duration = Duration::from_hours(4);

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(seconds).unwrap()
    }

    /// Asked for at second 0.
    fn secret(mark: Option<&Mark>, is_owned: bool) -> Value {
        let app = App { name: "app".to_owned(), io: Io::Tty, ports: vec![] };
        let record = Record {
            created_at: at(0),
            mode: Mode::Run,
            inspect: false,
            image: None,
            stream_token: None,
            apps: vec![app],
        };
        let id = SessionId::parse("abc").unwrap();
        let mut secret = record.secret(&id, "n", &Confidential::default());
        if let Some(mark) = mark {
            let marked = mark.on_secret()["metadata"]["annotations"].clone();
            for (key, text) in marked.as_object().unwrap() {
                secret["metadata"]["annotations"][key] = text.clone();
            }
        }
        if is_owned {
            secret["metadata"]["ownerReferences"] = json!([{"kind": "Pod", "uid": "u"}]);
        }
        secret
    }

    #[test]
    fn what_broke_off_is_ended_and_what_was_kept_for_long_enough_goes() {
        let (stopped, refused) = (Mark::Stopped { at: at(100) }, Mark::Refused { at: at(100), message: String::new() });
        let (live, over) = (json!({"status": {"phase": "Running"}}), json!({"status": {"phase": "Failed"}}));
        let leaving = json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}});
        let end_of_retention = 100 + 4 * 60 * 60;
        for (what, pod, mark, is_owned, second, expected) in [
            ("it goes its way", Some(&live), None, true, 10, None),
            ("its Secret was not given an owner", Some(&live), None, false, 10, Some(Todo::Own)),
            ("it has ended by itself", Some(&over), None, true, 10, None),
            ("its pod is on its way", None, None, false, 119, None),
            ("its start broke off", None, None, false, 120, Some(Todo::Refuse)),
            ("the garbage collector sees to it", None, None, true, 300, None),
            ("its stop broke off", Some(&live), Some(&stopped), false, 101, Some(Todo::DeletePod)),
            ("its pod came although that was not told", Some(&live), Some(&refused), false, 101, Some(Todo::DeletePod)),
            ("its pod is going", Some(&leaving), Some(&stopped), false, 101, None),
            ("it ended before it could be stopped", Some(&over), Some(&stopped), false, 101, None),
            ("it is kept", None, Some(&stopped), false, end_of_retention - 1, None),
            ("it was kept", None, Some(&stopped), false, end_of_retention, Some(Todo::Forget)),
            ("it was kept", None, Some(&refused), false, end_of_retention, Some(Todo::Forget)),
        ] {
            let seen = Seen { pod: pod.cloned().map(Arc::new), secret: Some(Arc::new(secret(mark, is_owned))) };
            assert_eq!(judge(&seen, at(second), KEPT), expected, "{what}");
        }
    }

    #[test]
    fn what_cannot_be_read_is_left_alone() {
        let other = Some(Arc::new(json!({"metadata": {"annotations": {"cofferdam.dev/record": "{\"v\": 9}"}}})));
        for seen in [Seen::default(), Seen { pod: None, secret: other }] {
            assert_eq!(judge(&seen, at(1_000_000), KEPT), None);
        }
    }
}
