//! A pod on its way through the rules: the JSON that came in, and notes of everything done to it.
//!
//! Rules never touch the JSON themselves. They read it by typed reads that turn a wrong type into a refusal naming the
//! field ([`read`]), and change it by edits that write down what they did ([`edit`]). Members that no rule asks for
//! are carried along untouched, whatever Kubernetes version they come from.

use std::{collections::HashSet, rc::Rc};

use json_patch::Patch;
use serde_json::Value;

use self::patch::Operations;
use crate::{
    change::Change,
    refusal::{Reason, Refusal},
};

mod edit;
mod patch;
mod path;
mod read;

pub(crate) use path::Path;

/// The pod as changed so far, with the notes.
pub(crate) struct Draft {
    root: Value,
    containers: Rc<[Container]>,
    rule: &'static str,
    operations: Operations,
    changes: Vec<Change>,
    reasons: Vec<Reason>,
    /// Field and message of every reason, so that none is said twice.
    said: HashSet<(String, String)>,
    /// Where the pod may still be changed; `None` for everywhere.
    view: Option<Vec<Path>>,
    /// For an audit: every change and every reason, with what the field held.
    findings: Option<Vec<Finding>>,
}

/// What an audit finds: what is wrong, and what the field held.
pub(crate) type Finding = (Reason, Value);

/// More containers than this are not looked at; no node could run them.
const MOST_CONTAINERS: usize = 256;

/// Where one container stands.
#[derive(Clone, Debug)]
pub(crate) struct Container {
    /// The list it is in.
    pub(crate) list: List,
    /// Its place, e.g. `spec.initContainers[0]`.
    pub(crate) path: Path,
}

/// The three lists of containers. A rule that walks one walks them all, by [`Draft::containers`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum List {
    /// What the pod is for.
    Containers,
    /// What runs before, and native sidecars.
    InitContainers,
    /// What `kubectl debug` adds to a running pod.
    EphemeralContainers,
}

impl List {
    const ALL: [Self; 3] = [Self::Containers, Self::InitContainers, Self::EphemeralContainers];

    pub(crate) fn key(self) -> &'static str {
        match self {
            Self::Containers => "containers",
            Self::InitContainers => "initContainers",
            Self::EphemeralContainers => "ephemeralContainers",
        }
    }
}

impl Draft {
    /// Begins with a copy of the pod.
    pub(crate) fn new(pod: &Value) -> Self {
        Self {
            root: pod.clone(),
            containers: Rc::from([]),
            rule: "pod",
            operations: Operations::default(),
            changes: Vec::new(),
            reasons: Vec::new(),
            said: HashSet::new(),
            view: None,
            findings: None,
        }
    }

    /// Begins an audit: findings are kept, with what the fields held.
    pub(crate) fn audit(pod: &Value) -> Self {
        Self { findings: Some(Vec::new()), ..Self::new(pod) }
    }

    /// From here on only these containers are in view: no rule walks, changes or refuses anything else. The rest of a
    /// live pod cannot be changed any more.
    pub(crate) fn look_only_at(&mut self, is_in_view: impl Fn(&Container) -> bool) {
        let containers: Vec<Container> = self.containers.iter().filter(|at| is_in_view(at)).cloned().collect();
        self.view = Some(containers.iter().map(|container| container.path.clone()).collect());
        self.containers = containers.into();
    }

    /// Takes everything into view again.
    pub(crate) fn look_at_everything(&mut self) {
        self.view = None;
    }

    fn is_in_view(&self, path: &Path) -> bool {
        self.view.as_ref().is_none_or(|view| view.iter().any(|within| path.is_within(within)))
    }

    /// Finds the containers, in the order of [`List`]; what is no pod at all is refused.
    pub(crate) fn find_containers(&mut self) {
        for object in [Path::of(&[]), Path::of(&["spec"])] {
            if !self.is_object(&object) && !self.is_refused() {
                self.refuse(&object, "is missing");
            }
        }
        // A template may go without; anything but an object is refused.
        self.is_object(&Path::of(&["metadata"]));
        let mut containers = Vec::new();
        for list in List::ALL {
            let items = self.items(&Path::of(&["spec", list.key()]));
            if items.len() > MOST_CONTAINERS {
                self.refuse(&Path::of(&["spec", list.key()]), format!("has more than {MOST_CONTAINERS} containers"));
                return;
            }
            for path in items {
                if self.is_object(&path) {
                    containers.push(Container { list, path });
                } else {
                    self.refuse(&path, "must be an object");
                }
            }
        }
        self.containers = containers.into();
    }

    /// Everything noted from here on is the doing of this rule.
    pub(crate) fn enter(&mut self, rule: &'static str) {
        self.rule = rule;
    }

    /// Every container of every list: the one way for a rule to reach them.
    pub(crate) fn containers(&self) -> Rc<[Container]> {
        Rc::clone(&self.containers)
    }

    /// Notes that the pod cannot be made safe, and why; said once for each field and sentence.
    pub(crate) fn refuse(&mut self, field: &Path, message: impl Into<String>) {
        if !self.is_in_view(field) {
            return;
        }
        let (path, field, message) = (field, field.to_string(), message.into());
        if self.said.insert((field.clone(), message.clone())) {
            let reason = Reason { rule: self.rule, field, message };
            if self.findings.is_some() {
                let held = self.value(path).unwrap_or_default();
                self.findings.get_or_insert_default().push((reason.clone(), held));
            }
            self.reasons.push(reason);
        }
    }

    /// The pod as it is by now, for what reads pods that are no drafts as well.
    pub(crate) fn json(&self) -> &Value {
        &self.root
    }

    /// What was changed so far.
    pub(crate) fn changes(&self) -> &[Change] {
        &self.changes
    }

    /// Whether there is a reason against the pod yet.
    pub(crate) fn is_refused(&self) -> bool {
        !self.reasons.is_empty()
    }

    /// The reasons against the pod.
    pub(crate) fn into_refusal(self) -> Refusal {
        Refusal { reasons: self.reasons }
    }

    /// What an audit found.
    pub(crate) fn into_findings(self) -> Vec<Finding> {
        self.findings.unwrap_or_default()
    }

    /// The changed pod, the patch that makes it and what was changed, or the reasons against it.
    pub(crate) fn finish(self) -> Result<(Value, Patch, Vec<Change>), Refusal> {
        if self.is_refused() {
            Err(self.into_refusal())
        } else {
            Ok((self.root, self.operations.into_patch(), self.changes))
        }
    }
}

#[cfg(test)]
mod tests;
