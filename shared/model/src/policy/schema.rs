//! The JSON Schema of the policy file, made from the types that read it.

use schemars::generate::SchemaSettings;
use serde_json::{Map, Value};

use super::{Policy, file::PolicyFile, show::written};
use crate::keys;

/// What an editor needs to complete and check a policy file: keys, values, what each means and its default (JSON Schema
/// 2020-12). It takes every file that [`Policy::parse`] takes, but for keys without a value; what contradicts something
/// else is found by that alone.
#[must_use]
pub fn schema() -> Value {
    let mut schema = SchemaSettings::draft2020_12().into_generator().into_root_schema_for::<PolicyFile>().to_value();
    tidy(&mut schema);
    let mut shipped = serde_json::to_value(written(&Policy::built_in())).unwrap_or_default();
    let profiles = shipped["profiles"].take();
    put_defaults(&mut schema, "", &shipped);
    put_defaults(&mut schema, "/$defs/Profile", &profiles[keys::DEFAULT_PROFILE]);
    schema
}

/// Says it in the way that editors make the best of.
fn tidy(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            // The line breaks are those of the source.
            if let Some(Value::String(description)) = members.get_mut("description") {
                *description = description.replace('\n', " ");
            }
            without_null(members);
            members.values_mut().for_each(tidy);
        }
        Value::Array(items) => items.iter_mut().for_each(tidy),
        _ => {}
    }
}

/// A key without a value is one that is left out. An editor that knew would find no words for a slip of the pen below
/// the key but that it is neither that nor nothing.
fn without_null(schema: &mut Map<String, Value>) {
    if let Some(Value::Array(kinds)) = schema.get_mut("type") {
        kinds.retain(|kind| kind != "null");
        if let [only] = &mut kinds[..] {
            let only = only.take();
            schema.insert("type".to_owned(), only);
        }
    }
    if let Some(Value::Array(either)) = schema.get_mut("anyOf") {
        either.retain(|schema| schema["type"] != "null");
        if let [Value::Object(only)] = &mut either[..] {
            let only = std::mem::take(only);
            schema.remove("anyOf");
            for (keyword, rule) in only {
                schema.entry(keyword).or_insert(rule);
            }
        }
    }
}

/// Adds to each key of the object that is described at `place` what it is if left out.
fn put_defaults(schema: &mut Value, place: &str, defaults: &Value) {
    for (key, default) in defaults.as_object().into_iter().flatten() {
        let property_place = format!("{place}/properties/{key}");
        let Some(property) = schema.pointer(&property_place) else { continue };
        let definition = definition(property).filter(|place| schema.pointer(&format!("{place}/properties")).is_some());
        match definition {
            Some(definition) => put_defaults(schema, &definition, default),
            None => {
                if let Some(Value::Object(property)) = schema.pointer_mut(&property_place) {
                    property.insert("default".to_owned(), default.clone());
                }
            }
        }
    }
}

/// Where the definition is that a property refers to.
fn definition(property: &Value) -> Option<String> {
    property["$ref"].as_str()?.strip_prefix('#').map(str::to_owned)
}

#[cfg(test)]
mod tests;
