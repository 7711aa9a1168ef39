//! An API server as small as it can be: uids, defaults, and server-side apply by one manager.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::super::{Claim, Flaw, Plan, Write, claim, flaw, plan};
use super::pod;
use crate::desired::Wanted;
use crate::objects::{Kind, Live};

/// How an attempt to settle ends.
#[derive(Debug, PartialEq)]
pub(super) enum Outcome {
    Settled,
    HostTaken(String),
    Foreign,
    /// The API server would refuse the object.
    Invalid,
    /// There was always something more to do.
    Endless(Plan),
}

#[derive(Default)]
pub(super) struct Server {
    pub(super) objects: Vec<Live>,
    /// Uids of pods that live, beside the one that is settled.
    pub(super) living: BTreeSet<String>,
    /// What was applied, by kind and name: apply takes away what is there and no longer said.
    applied: BTreeMap<(Kind, String), Value>,
    made: u32,
}

impl Server {
    /// Does what the plan says until it says nothing.
    pub(super) fn settle(&mut self, uid: &str, wanted: &[Wanted]) -> Outcome {
        let mut due = Plan::default();
        // A first look, a claim to be taken over, a last look: more rounds than that are an endless loop.
        for _ in 0..3 {
            due = plan(&pod(uid), wanted, &self.objects);
            if due == Plan::default() {
                return Outcome::Settled;
            }
            if let Err(outcome) = self.carry_out(uid, &due) {
                return outcome;
            }
        }
        Outcome::Endless(due)
    }

    fn carry_out(&mut self, uid: &str, plan: &Plan) -> Result<(), Outcome> {
        plan.deletes.iter().for_each(|delete| self.delete(&delete.uid));
        if let Some(service) = &plan.claim {
            self.create(uid, service)?;
        }
        for Write { wanted, replaces } in &plan.writes {
            if let Some(uid) = replaces {
                self.delete(uid);
            }
            self.apply(wanted)?;
            // What an apply does not bring back is made anew.
            let index = self.find(wanted.kind, &wanted.name).ok_or(Outcome::Invalid)?;
            let live = self.objects[index].clone();
            if matches!(flaw(wanted, &live.object), Some(Flaw::Field(_))) {
                self.delete(&live.uid);
                self.apply(wanted)?;
            }
        }
        Ok(())
    }

    /// A plain create, and what the agent makes of a conflict.
    fn create(&mut self, uid: &str, wanted: &Wanted) -> Result<(), Outcome> {
        if let Some(index) = self.find(wanted.kind, &wanted.name) {
            let object = &self.objects[index].object;
            match claim(object, uid) {
                Claim::Ours => {}
                Claim::Of { name, uid, .. } if self.living.contains(&uid) => return Err(Outcome::HostTaken(name)),
                Claim::Of { service, .. } | Claim::Nobody { service } => self.delete(&service),
                Claim::Foreign => return Err(Outcome::Foreign),
            }
        }
        self.apply(wanted)
    }

    fn find(&self, kind: Kind, name: &str) -> Option<usize> {
        self.objects.iter().position(|live| live.kind == kind && live.name == name)
    }

    fn delete(&mut self, uid: &str) {
        self.objects.retain(|live| live.uid != uid);
    }

    fn apply(&mut self, wanted: &Wanted) -> Result<(), Outcome> {
        let key = (wanted.kind, wanted.name.clone());
        let said = self.applied.insert(key, wanted.object.clone());
        if let Some(index) = self.find(wanted.kind, &wanted.name) {
            let live = &mut self.objects[index].object;
            let fixed = (live["addressType"].clone(), live["spec"]["clusterIP"].clone());
            merge(live, &said.unwrap_or_default(), &wanted.object, "");
            let is_valid =
                fixed == (live["addressType"].clone(), live["spec"]["clusterIP"].clone()) && has_own_names(live);
            return if is_valid { Ok(()) } else { Err(Outcome::Invalid) };
        }
        self.made += 1;
        let uid = format!("object-{}", self.made);
        let object = stored(wanted, &uid);
        self.objects.push(Live { kind: wanted.kind, name: wanted.name.clone(), uid, object });
        Ok(())
    }

    /// A change by somebody else.
    pub(super) fn change(&mut self, index: usize, change: impl FnOnce(&mut Value)) {
        change(&mut self.objects[index].object);
    }

    /// All objects, without what differs from one making to the next, in a fixed order.
    pub(super) fn shown(&self) -> Vec<(Kind, String, Value)> {
        let mut shown: Vec<_> = self
            .objects
            .iter()
            .map(|live| {
                let mut object = live.object.clone();
                object["metadata"]["uid"] = Value::Null;
                (live.kind, live.name.clone(), object)
            })
            .collect();
        shown.sort_by(|one, other| (one.0, &one.1).cmp(&(other.0, &other.1)));
        shown
    }
}

/// Whether no two of a Service's ports have one name.
fn has_own_names(service: &Value) -> bool {
    let names = service["spec"]["ports"].as_array().into_iter().flatten().map(|port| port["name"].to_string());
    let (count, distinct) = (names.clone().count(), names.collect::<BTreeSet<_>>());
    count == distinct.len()
}

/// What the API server makes of a new object.
fn stored(wanted: &Wanted, uid: &str) -> Value {
    let mut object = wanted.object.clone();
    if let Some(object) = object.as_object_mut() {
        // As in a list.
        object.remove("apiVersion");
        object.remove("kind");
    }
    let metadata = &mut object["metadata"];
    metadata["uid"] = json!(uid);
    metadata["creationTimestamp"] = json!("2026-01-01T00:00:00Z");
    metadata["resourceVersion"] = json!("1");
    match wanted.kind {
        Kind::Service => {
            let spec = &mut object["spec"];
            spec["clusterIPs"] = json!(["None"]);
            spec["ipFamilies"] = json!(["IPv4"]);
            spec["ipFamilyPolicy"] = json!("SingleStack");
            spec["internalTrafficPolicy"] = json!("Cluster");
            object["status"] = json!({ "loadBalancer": {} });
        }
        Kind::EndpointSlice => metadata["generation"] = json!(1),
        Kind::HttpRoute => {
            metadata["generation"] = json!(1);
            object["status"] = json!({ "parents": [] });
        }
        Kind::Ingress => object["status"] = json!({ "loadBalancer": {} }),
    }
    object
}

/// Server-side apply: what is said is set, what was said and is no longer goes, the rest stays.
fn merge(live: &mut Value, said: &Value, says: &Value, at: &str) {
    match (live, says) {
        (Value::Object(live), Value::Object(says)) => {
            for key in said.as_object().unwrap_or(&Map::new()).keys() {
                if !says.contains_key(key) {
                    live.remove(key);
                }
            }
            let says = says.iter().filter(|(key, _)| !at.is_empty() || !matches!(key.as_str(), "apiVersion" | "kind"));
            for (key, says) in says {
                merge(live.entry(key).or_insert(Value::Null), &said[key], says, &format!("{at}.{key}"));
            }
        }
        (Value::Array(live), Value::Array(says)) if key(at, &Value::Null).is_some() => {
            let same = |one: &Value, other: &Value| key(at, one) == key(at, other);
            let said = said.as_array().cloned().unwrap_or_default();
            live.retain(|entry| {
                says.iter().any(|says| same(says, entry)) || !said.iter().any(|said| same(said, entry))
            });
            for says in says {
                let said = said.iter().find(|said| same(said, says)).cloned().unwrap_or_default();
                match live.iter_mut().find(|entry| same(entry, says)) {
                    Some(entry) => merge(entry, &said, says, "entry"),
                    None => live.push(says.clone()),
                }
            }
        }
        (live, says) => *live = says.clone(),
    }
}

/// What entries of a list are merged by; nothing for a list that is set as a whole.
fn key(at: &str, entry: &Value) -> Option<String> {
    match at {
        ".spec.ports" => Some(format!("{}/{}", entry["port"], entry["protocol"])),
        ".metadata.ownerReferences" => Some(entry["uid"].to_string()),
        _ => None,
    }
}
