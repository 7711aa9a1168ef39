//! Where pods stand in objects: a pod itself, the templates of workloads, and lists of these.

use cofferdam_model::policy::Policy;
use cofferdam_model::{Operation, Request, Scope, User, Verdict, harden as ask, keys};
use json_patch::jsonptr::PointerBuf;
use json_patch::{AddOperation, PatchOperation};
use serde_json::{Value, json};

use super::Options;
use crate::plain;
use crate::workload::Workload;

/// What became of one pod or template.
#[derive(Debug)]
pub(super) struct Judged {
    /// The object it stands in, such as `Deployment/web`.
    pub(super) name: String,
    /// Where it stands there, as people write it, such as `spec.template`; empty for the object itself.
    pub(super) at: &'static str,
    /// The verdict.
    pub(super) verdict: Verdict,
    /// What was done, with pointers into the whole document.
    pub(super) patch: Vec<PatchOperation>,
}

/// Hardens every pod in an object, in place. What is refused stays as it is.
pub(super) fn harden(object: &mut Value, options: &Options, policy: &Policy) -> Vec<Judged> {
    let mut walk = Walk { options, policy, judged: Vec::new() };
    walk.object(object, ["", ""], &PointerBuf::new());
    walk.judged
}

/// A way through one document.
struct Walk<'a> {
    options: &'a Options,
    policy: &'a Policy,
    judged: Vec<Judged>,
}

impl Walk<'_> {
    /// Judges the pods in an object that stands at `pointer` in the document. `of_list` are version and kind for one that
    /// names no kind, as an item of a typed list.
    fn object(&mut self, object: &mut Value, of_list: [&str; 2], pointer: &PointerBuf) {
        let word = |key: &str| object[key].as_str().filter(|word| !word.is_empty());
        let named = word("kind").map(|kind| [word("apiVersion").unwrap_or_default(), kind]);
        let [version, kind] = named.unwrap_or(of_list).map(str::to_owned);
        // To kubectl the items make the list, not the kind. So nothing hides pods there by calling itself something else.
        let of_items = kind.strip_suffix("List").unwrap_or(&kind);
        for (index, item) in object.get_mut("items").and_then(Value::as_array_mut).into_iter().flatten().enumerate() {
            let pointer = pointer.concat(&PointerBuf::from_tokens(["items", &index.to_string()]));
            self.object(item, [&version, of_items], &pointer);
        }
        if version == "v1" && kind == "Pod" {
            self.judge(object, (&kind, ""), Operation::Create, pointer);
        } else if let Some(workload) = Workload::of_object(&version, &kind) {
            self.judge(object, (&kind, workload.at), Operation::Template(workload.template), pointer);
        }
    }

    /// Judges what stands at the place `at` in an object of this kind.
    fn judge(
        &mut self,
        object: &mut Value,
        (kind, at): (&str, &'static str),
        operation: Operation<'_>,
        pointer: &PointerBuf,
    ) {
        let member = |key: &str| object["metadata"][key].as_str().filter(|text| !text.is_empty());
        let namespace = member("namespace").unwrap_or(&self.options.namespace).to_owned();
        let name = format!("{kind}/{}", plain(member("name").or(member("generateName")).unwrap_or("?")));
        let place = PointerBuf::from_tokens(at.split('.').filter(|key| !key.is_empty()));
        let Some(pod) = object.pointer_mut(place.as_str()) else { return };
        let root = pointer.concat(&place);
        let mut patch = Vec::new();
        if let Some(profile) = &self.options.profile {
            patch.extend(name_profile(pod, profile));
        }
        // No id is made up, and nobody is known to ask: whoever applies the file will be.
        let (scope, user) = (Scope::Enforced, User::UNKNOWN);
        let verdict = ask(&Request { uid: None, namespace: &namespace, scope, user, operation, pod }, self.policy);
        if let Verdict::Hardened(hardened) = &verdict {
            pod.clone_from(&hardened.pod);
            patch.extend(hardened.patch.0.iter().cloned());
        }
        for operation in &mut patch {
            move_below(operation, &root);
        }
        self.judged.push(Judged { name, at, verdict, patch });
    }
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
        match verdict {
            Verdict::Hardened(hardened) => {
                hardened.tightened().map(|change| format!("{name}: warning: {}", change.below(at))).collect()
            }
            Verdict::Refused(refusal) => {
                refusal.reasons.iter().map(|reason| format!("{name}: refused: {}", reason.below(at))).collect()
            }
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
