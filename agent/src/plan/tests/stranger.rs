//! Somebody who edits our objects.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::server::Server;
use crate::desired::Wanted;
use crate::objects::Kind;

/// What is done, to which of all the objects, to which of all its fields.
#[derive(Clone, Debug)]
pub(super) enum Edit {
    Change,
    Remove,
    /// One more entry in a list.
    Append,
    /// A field that we never set.
    Foreign,
    /// The whole object.
    Delete,
}

pub(super) fn an_edit() -> impl Strategy<Value = (Edit, prop::sample::Index, prop::sample::Index)> {
    let edit = prop::sample::select(vec![Edit::Change, Edit::Remove, Edit::Append, Edit::Foreign, Edit::Delete]);
    (edit, any::<prop::sample::Index>(), any::<prop::sample::Index>())
}

const FOREIGN: [(Kind, &str, &str); 22] = [
    (Kind::Service, "/spec/selector", r#"{"app": "x"}"#),
    (Kind::Service, "/spec/externalIPs", r#"["192.0.2.1"]"#),
    (Kind::Service, "/spec/publishNotReadyAddresses", "true"),
    (Kind::Service, "/spec/ports/0/appProtocol", r#""kubernetes.io/h2c""#),
    (Kind::Service, "/metadata/ownerReferences/0/controller", "true"),
    (Kind::Service, "/metadata/ownerReferences/0/blockOwnerDeletion", "true"),
    (Kind::EndpointSlice, "/endpoints/0/hints", r#"{"forZones": [{"name": "a"}]}"#),
    (Kind::EndpointSlice, "/ports/0/appProtocol", r#""x""#),
    (Kind::HttpRoute, "/spec/rules/0/filters", r#"[{"type": "RequestRedirect"}]"#),
    (Kind::HttpRoute, "/spec/rules/0/timeouts", r#"{"request": "1ms"}"#),
    (Kind::HttpRoute, "/spec/rules/0/backendRefs/0/namespace", r#""other""#),
    (Kind::HttpRoute, "/spec/rules/0/backendRefs/0/filters", r#"[{"type": "RequestMirror"}]"#),
    (Kind::HttpRoute, "/spec/rules/0/matches/0/method", r#""GET""#),
    (Kind::HttpRoute, "/spec/rules/0/matches/0/headers", r#"[{"name": "a", "value": "b"}]"#),
    (Kind::HttpRoute, "/spec/rules/0/matches/0/queryParams", r#"[{"name": "a", "value": "b"}]"#),
    (Kind::HttpRoute, "/spec/parentRefs/0/sectionName", r#""x""#),
    (Kind::HttpRoute, "/spec/parentRefs/0/port", "80"),
    (Kind::HttpRoute, "/metadata/annotations/konghq.com~1plugins", r#""x""#),
    (Kind::Ingress, "/metadata/annotations/nginx.ingress.kubernetes.io~1permanent-redirect", r#""https://x.test""#),
    (Kind::Ingress, "/spec/defaultBackend", r#"{"service": {"name": "x", "port": {"number": 1}}}"#),
    (Kind::Ingress, "/spec/rules/0/http/paths/0/backend/resource", r#"{"kind": "x", "name": "x"}"#),
    (Kind::Ingress, "/spec/tls", r#"[{"hosts": ["x"]}]"#),
];

/// Does it; what was done, or nothing where nothing of that kind can be done.
pub(super) fn edit(
    server: &mut Server,
    wanted: &[Wanted],
    (edit, object, field): &(Edit, prop::sample::Index, prop::sample::Index),
) -> Option<String> {
    let wanted = (!wanted.is_empty()).then(|| object.get(wanted))?;
    let index = server.objects.iter().position(|live| live.kind == wanted.kind && live.name == wanted.name)?;
    let mut done = None;
    if matches!(edit, Edit::Delete) {
        server.objects.remove(index);
        return Some(format!("deleted {:?}", wanted.kind));
    }
    let mut fields = Vec::new();
    pointers(&wanted.object, "", matches!(edit, Edit::Append), &mut fields);
    server.change(index, |live| {
        done = match edit {
            Edit::Foreign => foreign(live, wanted.kind, *field),
            _ if fields.is_empty() => None,
            _ => ours(live, edit, &fields[field.index(fields.len())]),
        }
    });
    done.map(|done| format!("{:?} {done}", wanted.kind))
}

fn ours(live: &mut Value, edit: &Edit, pointer: &str) -> Option<String> {
    match edit {
        Edit::Change => *live.pointer_mut(pointer)? = other(live.pointer(pointer)?),
        Edit::Remove => {
            let (parent, key) = pointer.rsplit_once('/')?;
            match live.pointer_mut(parent)? {
                Value::Object(map) => drop(map.remove(&key.replace("~1", "/"))),
                Value::Array(list) => drop(list.remove(key.parse().ok()?)),
                _ => return None,
            }
        }
        _ => {
            let list = live.pointer_mut(pointer)?.as_array_mut()?;
            let more = other(list.first()?);
            list.push(more);
        }
    }
    Some(format!("{edit:?} {pointer}"))
}

fn foreign(live: &mut Value, kind: Kind, field: prop::sample::Index) -> Option<String> {
    let of_kind: Vec<_> = FOREIGN.iter().filter(|(of, _, _)| *of == kind).collect();
    let (_, pointer, value) = field.get(&of_kind);
    let (parent, key) = pointer.rsplit_once('/')?;
    let key = &key.replace("~1", "/");
    let value: Value = serde_json::from_str(value).ok()?;
    let map = live.pointer_mut(parent)?.as_object_mut()?;
    // A field that this object has of us is another edit.
    if map.contains_key(key) {
        return None;
    }
    map.insert(key.to_owned(), value);
    Some(format!("set {pointer}"))
}

/// Every leaf, or every list, but what cannot be edited.
fn pointers(value: &Value, at: &str, lists: bool, found: &mut Vec<String>) {
    const FIXED: [&str; 6] =
        ["/apiVersion", "/kind", "/metadata/name", "/metadata/namespace", "/spec/clusterIP", "/addressType"];
    if FIXED.contains(&at) {
        return;
    }
    match value {
        Value::Object(map) => {
            for (key, part) in map {
                pointers(part, &format!("{at}/{}", key.replace('/', "~1")), lists, found);
            }
        }
        Value::Array(list) => {
            if lists {
                found.push(at.to_owned());
            }
            for (index, part) in list.iter().enumerate() {
                pointers(part, &format!("{at}/{index}"), lists, found);
            }
        }
        _ if !lists => found.push(at.to_owned()),
        _ => {}
    }
}

/// Another value of the same shape.
fn other(value: &Value) -> Value {
    match value {
        Value::String(text) => json!(format!("{text}x")),
        Value::Number(number) => json!(number.as_u64().unwrap_or_default() + 1000),
        Value::Bool(is) => json!(!is),
        Value::Array(list) => list.iter().map(other).collect(),
        Value::Object(map) => map.iter().map(|(key, part)| (key.clone(), other(part))).collect(),
        Value::Null => json!("x"),
    }
}
