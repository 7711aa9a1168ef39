//! What has to be done to the objects of a session.

use std::collections::BTreeSet;

use cofferdam_kubernetes::json::{each, is_leaving, label, owners, owning_pods};
use cofferdam_model::keys;
use serde_json::Value;

use crate::desired::Wanted;
use crate::objects::{Kind, Live, name};
use crate::session::Session;

mod difference;
mod held;

use difference::difference;
pub(crate) use held::{while_lost, without_layer};

/// What has to be done: the deletes in their order, then the claim, then all writes at once.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Plan {
    /// What goes: routes before what they lead to, the claim last.
    pub deletes: Vec<Delete>,
    /// The Service, where it has to be had by a plain create, since its name is the claim.
    pub claim: Option<Wanted>,
    /// What is written.
    pub writes: Vec<Write>,
}

impl Plan {
    /// The objects that something is done to, by kind and name.
    #[must_use]
    pub(crate) fn slots(&self) -> BTreeSet<(Kind, String)> {
        let deleted = self.deletes.iter().map(|delete| (delete.kind, delete.name.clone()));
        let written = self.claim.iter().chain(self.writes.iter().map(|write| &write.wanted));
        deleted.chain(written.map(|wanted| (wanted.kind, wanted.name.clone()))).collect()
    }
}

/// Delete that very object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Delete {
    /// Its kind.
    pub kind: Kind,
    /// Its name.
    pub name: String,
    /// Its uid.
    pub uid: String,
}

/// A server-side apply, forced, as [`cofferdam_model::keys::AGENT`]. Where [`flaw`] still finds something in the answer,
/// others added what an apply cannot take away, and it is made anew.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Write {
    /// What is applied.
    pub wanted: Wanted,
    /// The uid of the object that has to be deleted first, since no apply could make it what is wanted.
    pub replaces: Option<String>,
}

/// Why an object is not what is wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Flaw {
    /// It is being deleted, and these finalizers keep it: nobody can bring it back, and what it is says nothing.
    Leaving(Vec<String>),
    /// This field is not as it ought to be.
    Field(String),
}

/// Why `live` is not what is wanted; none where it is.
#[must_use]
pub(crate) fn flaw(wanted: &Wanted, live: &Value) -> Option<Flaw> {
    leaving(live).map(Flaw::Leaving).or_else(|| difference(wanted, live).map(Flaw::Field))
}

/// The finalizers of an object that is being deleted; none where it is not.
#[must_use]
pub(crate) fn leaving(object: &Value) -> Option<Vec<String>> {
    let finalizers = each(&object["metadata"]["finalizers"]).filter_map(Value::as_str);
    is_leaving(object).then(|| finalizers.map(str::to_owned).collect())
}

/// The first of the wanted objects that is there, is being deleted, and so is nothing to rely on; with its finalizers.
#[must_use]
pub(crate) fn first_leaving<'a>(
    wanted: impl IntoIterator<Item = &'a Wanted>,
    live: &[Live],
) -> Option<(&'a Wanted, Vec<String>)> {
    wanted.into_iter().find_map(|wanted| Some((wanted, leaving(&find(wanted, live)?.object)?)))
}

/// What has to be done so that `live` becomes `wanted`. Nothing where it is so already. `live` are the objects that carry
/// our labels and belong to the session of this id, maybe to another pod of that id.
///
/// Without the Service nothing else is made: as long as another's is in the way, creating it is all there is to do, and
/// [`claim`] says what the conflict means. What is being deleted is waited for, and everything else goes on.
#[must_use]
pub(crate) fn plan(session: &Session, wanted: &[Wanted], live: &[Live]) -> Plan {
    let mut plan = Plan::default();
    let service = wanted.iter().find(|wanted| wanted.kind == Kind::Service);
    if let Some((wanted, service)) = service.and_then(|wanted| Some((wanted, find(wanted, live)?)))
        && claim(&service.object, &session.uid) != Claim::Ours
    {
        plan.claim = (!is_leaving(&service.object)).then(|| wanted.clone());
        return plan;
    }
    plan.deletes = unwanted(session, wanted, live);
    for wanted in wanted {
        match find(wanted, live) {
            None if wanted.kind == Kind::Service => plan.claim = Some(wanted.clone()),
            None => plan.writes.push(Write { wanted: wanted.clone(), replaces: None }),
            Some(live) => {
                if let Some(Flaw::Field(_)) = flaw(wanted, &live.object) {
                    let replaces = is_fixed(wanted, &live.object).then(|| live.uid.clone());
                    plan.writes.push(Write { wanted: wanted.clone(), replaces });
                }
            }
        }
    }
    plan
}

fn find<'a>(wanted: &Wanted, live: &'a [Live]) -> Option<&'a Live> {
    live.iter().find(|live| live.kind == wanted.kind && live.name == wanted.name)
}

/// Deletes what is ours and not wanted: routes before what they lead to, the claim last. Whoever has the claim has all that is
/// there; what another pod left would lead to this one. Without it a pod has what it owns alone.
fn unwanted(session: &Session, wanted: &[Wanted], live: &[Live]) -> Vec<Delete> {
    let is_wanted = |live: &Live| wanted.iter().any(|wanted| wanted.kind == live.kind && wanted.name == live.name);
    let has_claim = has_claim(session, live);
    let is_ours = |live: &Live| has_claim || is_owned(&live.object, &session.uid);
    let mut unwanted: Vec<&Live> =
        live.iter().filter(|live| !is_wanted(live) && !is_leaving(&live.object) && is_ours(live)).collect();
    unwanted.sort_by(|one, other| (other.kind, &one.name).cmp(&(one.kind, &other.name)));
    let delete = |live: &Live| Delete { kind: live.kind, name: live.name.clone(), uid: live.uid.clone() };
    unwanted.into_iter().map(delete).collect()
}

/// Whether an apply could not make it what is wanted: it never takes an owner away, and some fields stay what they were
/// created with.
fn is_fixed(wanted: &Wanted, live: &Value) -> bool {
    let object = &wanted.object;
    let owner = &object["metadata"]["ownerReferences"][0]["uid"];
    // Of one that somebody made too large an outline is read, and an apply would leave it as large.
    let is_outline = live["spec"].is_null() && !object["spec"].is_null();
    is_outline
        || owners(live).any(|other| other["uid"] != *owner)
        || match wanted.kind {
            Kind::Service => live["spec"]["clusterIP"] != object["spec"]["clusterIP"] || has_stolen_port(object, live),
            Kind::EndpointSlice => live["addressType"] != object["addressType"],
            Kind::HttpRoute | Kind::Ingress => false,
        }
}

/// Whether another port bears the name of one of ours: an apply would add ours beside it, and names have to differ.
fn has_stolen_port(service: &Value, live: &Value) -> bool {
    let is_same = |one: &Value, other: &Value, keys: &[&str]| keys.iter().all(|key| one[key] == other[key]);
    each(&service["spec"]["ports"]).any(|ours| {
        each(&live["spec"]["ports"])
            .any(|port| is_same(port, ours, &["name"]) && !is_same(port, ours, &["port", "protocol"]))
    })
}

/// Whether this pod owns an object, and no other does.
pub(crate) fn is_owned(object: &Value, uid: &str) -> bool {
    let mut pods = owning_pods(object).peekable();
    pods.peek().is_some() && pods.all(|pod| pod["uid"] == uid)
}

/// Whose a Service is that is in the way of a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Claim {
    /// Its owner is this pod.
    Ours,
    /// Its owner is another pod, of this name and uid: whether that one lives has to be asked.
    Of {
        /// The pod's name.
        name: String,
        /// The pod's uid.
        uid: String,
        /// The Service's uid.
        service: String,
    },
    /// No pod owns it, and it carries our label: it belongs to nobody.
    Nobody {
        /// The Service's uid.
        service: String,
    },
    /// It is not Cofferdam's at all, and never taken over.
    Foreign,
}

/// Whether this pod owns something of what is there.
#[must_use]
pub(crate) fn has_any(session: &Session, live: &[Live]) -> bool {
    live.iter().any(|live| is_owned(&live.object, &session.uid))
}

/// Whether a session has the claim of its id. Only the Service of that name is one: anybody can label another with an id, and
/// name a pod as its owner.
#[must_use]
pub(crate) fn has_claim(session: &Session, live: &[Live]) -> bool {
    let is_named = |live: &Live| session.id.as_ref().is_some_and(|id| live.name == name(id.as_str()));
    live.iter()
        .any(|live| live.kind == Kind::Service && is_named(live) && claim(&live.object, &session.uid) == Claim::Ours)
}

/// Whose this Service is, for the pod of that uid.
#[must_use]
pub(crate) fn claim(service: &Value, uid: &str) -> Claim {
    if owning_pods(service).any(|pod| pod["uid"] == uid) {
        return Claim::Ours;
    }
    let its_uid = service["metadata"]["uid"].as_str();
    let Some(service_uid) = its_uid.filter(|_| label(service, keys::MANAGED_BY) == Some(keys::AGENT)) else {
        return Claim::Foreign;
    };
    let service_uid = service_uid.to_owned();
    let owner = owning_pods(service).find_map(|pod| Some((pod["name"].as_str()?, pod["uid"].as_str()?)));
    match owner {
        Some((name, uid)) => Claim::Of { name: name.to_owned(), uid: uid.to_owned(), service: service_uid },
        None => Claim::Nobody { service: service_uid },
    }
}

#[cfg(test)]
mod tests;
