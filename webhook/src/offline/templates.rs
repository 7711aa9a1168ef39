//! Where pods stand in objects: a pod itself, the templates of workloads, and lists of these.

use cofferdam_model::policy::Policy;
use cofferdam_model::{Action, Operation, Reason, Request, Scope, Template, User, Verdict, harden as ask, keys};
use json_patch::jsonptr::PointerBuf;
use json_patch::{AddOperation, PatchOperation};
use serde_json::{Value, json};

use super::Job;

/// What became of one pod or template.
#[derive(Debug)]
pub(super) struct Judged {
    /// The object it stands in, such as `Deployment/web`.
    pub(super) name: String,
    /// Where it stands there, as people write it, such as `spec.template`; empty for the object itself.
    pub(super) at: String,
    /// The verdict.
    pub(super) verdict: Verdict,
    /// What was done, with pointers into the whole document.
    pub(super) patch: Vec<PatchOperation>,
}

/// A kind of object that holds pods: where, and which sort of template.
const WORKLOADS: [(&str, &str, &str, Template); 8] = [
    ("apps/v1", "Deployment", "/spec/template", Template::RunsForever),
    ("apps/v1", "StatefulSet", "/spec/template", Template::RunsForever),
    ("apps/v1", "DaemonSet", "/spec/template", Template::RunsForever),
    ("apps/v1", "ReplicaSet", "/spec/template", Template::RunsForever),
    ("v1", "ReplicationController", "/spec/template", Template::RunsForever),
    ("v1", "PodTemplate", "/template", Template::RunsForever),
    ("batch/v1", "Job", "/spec/template", Template::RunsToCompletion),
    ("batch/v1", "CronJob", "/spec/jobTemplate/spec/template", Template::RunsToCompletion),
];

/// Hardens every pod in an object, in place. What is refused stays as it is.
pub(super) fn harden(object: &mut Value, job: &Job, policy: &Policy) -> Vec<Judged> {
    let mut judged = Vec::new();
    walk(object, &PointerBuf::new(), job, policy, &mut judged);
    judged
}

fn walk(object: &mut Value, pointer: &PointerBuf, job: &Job, policy: &Policy, judged: &mut Vec<Judged>) {
    let word = |key: &str| object[key].as_str().unwrap_or_default().to_owned();
    let (version, kind) = (word("apiVersion"), word("kind"));
    // `List`, or a typed one such as `PodList`.
    if kind.ends_with("List") && object["items"].is_array() {
        for (index, item) in object["items"].as_array_mut().into_iter().flatten().enumerate() {
            let pointer = pointer.concat(&PointerBuf::from_tokens(["items", &index.to_string()]));
            // Typed lists do not repeat the kind.
            if version == "v1" && kind == "PodList" {
                judge(item, "", Operation::Create, &pointer, job, policy, judged);
            } else {
                walk(item, &pointer, job, policy, judged);
            }
        }
        return;
    }
    if version == "v1" && kind == "Pod" {
        judge(object, "", Operation::Create, pointer, job, policy, judged);
    }
    for (known_version, known_kind, place, template) in WORKLOADS {
        if version == known_version && kind == known_kind {
            judge(object, place, Operation::Template(template), pointer, job, policy, judged);
        }
    }
}

/// Judges what stands at `place` in an object.
fn judge(
    object: &mut Value,
    place: &str,
    operation: Operation<'_>,
    pointer: &PointerBuf,
    job: &Job,
    policy: &Policy,
    judged: &mut Vec<Judged>,
) {
    let member = |key: &str| object["metadata"][key].as_str().filter(|text| !text.is_empty());
    let namespace = member("namespace").unwrap_or(&job.namespace).to_owned();
    let kind = object["kind"].as_str().unwrap_or("Pod");
    let name = format!("{kind}/{}", member("name").or(member("generateName")).unwrap_or("?"));
    let Some(pod) = object.pointer_mut(place) else { return };
    let root = pointer.concat(&PointerBuf::parse(place).unwrap_or_default());
    let mut patch = Vec::new();
    if let Some(profile) = &job.profile {
        patch.extend(name_profile(pod, profile));
    }
    // No id is made up, and nobody is known to ask: whoever applies the file will be.
    let (scope, user) = (Scope::Enforced, User::UNKNOWN);
    let verdict = ask(&Request { uid: None, namespace: &namespace, scope, user, operation, pod }, policy);
    if let Verdict::Hardened(hardened) = &verdict {
        pod.clone_from(&hardened.pod);
        patch.extend(hardened.patch.0.iter().cloned());
    }
    for operation in &mut patch {
        move_below(operation, &root);
    }
    judged.push(Judged { name, at: place.trim_start_matches('/').replace('/', "."), verdict, patch });
}

/// Writes the profile into a pod that names none.
fn name_profile(pod: &mut Value, profile: &str) -> Vec<PatchOperation> {
    let mut patch = Vec::new();
    let steps = ["metadata", "labels", keys::PROFILE];
    let mut at = PointerBuf::new();
    let mut slot = pod;
    for (index, step) in steps.into_iter().enumerate() {
        at.push_back(step);
        let Some(members) = slot.as_object_mut() else { return Vec::new() };
        if patch.is_empty() && members.get(step).is_none_or(Value::is_null) {
            let missing = steps[index + 1..].iter().rev().fold(json!(profile), |inner, step| json!({ *step: inner }));
            patch.push(PatchOperation::Add(AddOperation { path: at.clone(), value: missing.clone() }));
            members.insert(step.to_owned(), missing);
        }
        let Some(next) = members.get_mut(step) else { return patch };
        slot = next;
    }
    patch
}

/// Makes an operation on a pod one on the document that it stands in.
fn move_below(operation: &mut PatchOperation, root: &PointerBuf) {
    let path = match operation {
        PatchOperation::Add(operation) => &mut operation.path,
        PatchOperation::Remove(operation) => &mut operation.path,
        PatchOperation::Replace(operation) => &mut operation.path,
        PatchOperation::Test(operation) => &mut operation.path,
        PatchOperation::Move(operation) => &mut operation.path,
        PatchOperation::Copy(operation) => &mut operation.path,
    };
    *path = root.concat(path);
}

impl Judged {
    /// What there is to say to whoever wrote the file, a line each.
    pub(super) fn lines(&self) -> Vec<String> {
        let Self { name, at, verdict, .. } = self;
        let place = |path: &str| if at.is_empty() { path.to_owned() } else { format!("{at}.{path}") };
        match verdict {
            Verdict::Hardened(hardened) => hardened
                .changes
                .iter()
                .filter(|change| change.action == Action::Tighten)
                .map(|change| format!("{name}: warning: {}", place(&change.to_string())))
                .collect(),
            Verdict::Refused(refusal) => refusal
                .reasons
                .iter()
                .map(|Reason { rule, field, message }| format!("{name}: refused: {}: {message} ({rule})", place(field)))
                .collect(),
            Verdict::Untouched(_) | Verdict::Advised(_) => {
                vec![format!(
                    "{name}: left alone: pods of this namespace, and mirrors of static pods, are never hardened"
                )]
            }
        }
    }

    /// Whether it cannot be hardened.
    pub(super) fn is_refused(&self) -> bool {
        matches!(self.verdict, Verdict::Refused(_))
    }

    /// Whether hardening does anything to what it asks for.
    pub(super) fn would_change(&self) -> bool {
        matches!(&self.verdict, Verdict::Hardened(hardened) if !hardened.changes.is_empty())
    }
}
