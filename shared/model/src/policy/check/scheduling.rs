//! Where pods may run.

use std::collections::{BTreeMap, BTreeSet};

use super::{Checked, Checker, values};
use crate::{
    names::{is_label_key, is_label_value, is_object_name},
    policy::{
        RuntimeClass, Scheduling, Toleration,
        file::{
            scheduling::{Operator, RuntimeClassChoice, RuntimeClassFile, SchedulingFile, TolerationFile},
            value::Given,
        },
    },
};

impl Checker<'_> {
    pub(super) fn scheduling(&self, file: SchedulingFile, defaults: Scheduling) -> Checked<Scheduling> {
        let node_selector = match file.node_selector {
            Some(selector) => self.node_selector(selector)?,
            None => defaults.node_selector,
        };
        let runtime_classes = match file.runtime_classes {
            Some(classes) => self.runtime_classes(classes, &node_selector)?,
            None => defaults.runtime_classes,
        };
        let inject_runtime_class = match file.runtime_class {
            Some(Given { value: RuntimeClassChoice::Inject, line }) if runtime_classes.is_empty() => {
                let problem =
                    "asks for the first of `runtimeClasses`, which lists none; name it there, or write `leave`";
                return Err(self.invalid(line, "runtimeClass", problem));
            }
            Some(choice) => choice.value == RuntimeClassChoice::Inject,
            None => defaults.inject_runtime_class,
        };
        let max_priority = file.max_priority.unwrap_or(Given::nowhere(defaults.max_priority));
        if i32::try_from(max_priority.value).is_err() {
            let problem = format!("must be a whole number from {} to {}", i32::MIN, i32::MAX);
            return Err(self.invalid(max_priority.line, "maxPriority", problem));
        }
        Ok(Scheduling {
            runtime_classes,
            inject_runtime_class,
            scheduler_names: match file.scheduler_names {
                Some(names) => self.object_names("schedulerNames", names)?,
                None => defaults.scheduler_names,
            },
            node_selector,
            node_labels: match file.node_labels {
                Some(labels) => self.node_labels(labels)?,
                None => defaults.node_labels,
            },
            tolerations: match file.tolerations {
                Some(tolerations) => self.tolerations("tolerations", tolerations)?,
                None => defaults.tolerations,
            },
            allowed_tolerations: match file.allowed_tolerations {
                Some(tolerations) => self.tolerations("allowedTolerations", tolerations)?,
                None => defaults.allowed_tolerations,
            },
            image_pull_secrets: match file.image_pull_secrets {
                Some(names) => self.object_names("imagePullSecrets", names)?,
                None => defaults.image_pull_secrets,
            },
            max_priority: max_priority.value,
        })
    }

    /// `of_profile` is by what the profile itself chooses nodes.
    fn runtime_classes(
        &self,
        classes: Vec<RuntimeClassFile>,
        of_profile: &BTreeMap<String, String>,
    ) -> Checked<Vec<RuntimeClass>> {
        let mut names = BTreeSet::new();
        let mut checked = Vec::new();
        for class in classes {
            if !is_object_name(&class.name.value) || !names.insert(class.name.value.clone()) {
                let problem = "must be the name of a RuntimeClass, of a-z, 0-9, `-` and `.`, and each stands here once";
                return Err(self.invalid(class.name.line, "name", problem));
            }
            for (label, value) in class.node_selector.iter().flatten() {
                if of_profile.get(&label.value).is_some_and(|other| *other != value.value) {
                    let problem = "is another value than the profile's own `nodeSelector` has; no node has both";
                    return Err(self.invalid(value.line, &label.value, problem));
                }
            }
            checked.push(RuntimeClass {
                name: class.name.value,
                node_selector: self.node_selector(class.node_selector.unwrap_or_default())?,
                tolerations: self.tolerations("tolerations", class.tolerations.unwrap_or_default())?,
            });
        }
        Ok(checked)
    }

    fn object_names(&self, key: &str, names: Vec<Given<String>>) -> Checked<Vec<String>> {
        match names.iter().find(|name| !is_object_name(&name.value)) {
            Some(wrong) => Err(self.invalid(wrong.line, key, "must hold names, of a-z, 0-9, `-` and `.`")),
            None => Ok(values(names)),
        }
    }

    fn node_selector(&self, selector: BTreeMap<Given<String>, Given<String>>) -> Checked<BTreeMap<String, String>> {
        for (key, value) in &selector {
            if !is_label_key(&key.value) {
                return Err(self.invalid(key.line, "nodeSelector", "must have keys that a node's label can have"));
            }
            if !is_label_value(&value.value) {
                return Err(self.invalid(value.line, &key.value, "must be a value that a node's label can have"));
            }
        }
        Ok(selector.into_iter().map(|(key, value)| (key.value, value.value)).collect())
    }

    fn node_labels(&self, labels: Vec<Given<String>>) -> Checked<Vec<String>> {
        match labels.iter().find(|label| !is_label_key(&label.value)) {
            Some(wrong) => Err(self.invalid(wrong.line, "nodeLabels", "must hold keys of labels, without values")),
            None => Ok(values(labels)),
        }
    }

    /// `key` is what the list is called in messages.
    fn tolerations(&self, key: &str, tolerations: Vec<Given<TolerationFile>>) -> Checked<Vec<Toleration>> {
        tolerations.into_iter().map(|given| self.toleration(key, given)).collect()
    }

    fn toleration(&self, list: &str, Given { value: file, line }: Given<TolerationFile>) -> Checked<Toleration> {
        let exists = file.operator == Some(Operator::Exists);
        // An empty key or effect is none to Kubernetes.
        let key = file.key.filter(|key| !key.value.is_empty());
        if let Some(key) = &key
            && !is_label_key(&key.value)
        {
            return Err(self.invalid(key.line, "key", "must be a key that a taint can have"));
        }
        if key.is_none() && !exists {
            let problem = "holds a toleration without key; one for every taint has `operator: Exists`";
            return Err(self.invalid(line, list, problem));
        }
        if let Some(value) = &file.value {
            if exists && !value.value.is_empty() {
                let problem = "is for `operator: Equal`; with Exists leave it out";
                return Err(self.invalid(value.line, "value", problem));
            }
            if !is_label_value(&value.value) {
                return Err(self.invalid(value.line, "value", "must be a value that a taint can have"));
            }
        }
        Ok(Toleration {
            key: key.map(|key| key.value),
            exists,
            value: file.value.map(|value| value.value).filter(|_| !exists),
            effect: file.effect.map(|effect| effect.name().to_owned()),
        })
    }
}
