//! Whether a document is what a route takes, in the words that clients of the contract know: those of a validator of JSON
//! Schema that corrects what is nearly right (`"3000"` where a number is wanted) and names the first thing that is not.
//!
//! What is checked is the schema that is published: both come from the types of [`crate::wire`].

use std::fmt::Write as _;
use std::sync::Arc;

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::Value;

use super::document::Document;

mod coercion;

/// How much of the place of a fault is told: its names are the client's, and as long as it likes.
const PLACE_CHARS: usize = 200;

/// How deep a type may be nested; none of ours is nearly so.
const MAX_DEPTH: usize = 32;

/// What a document has to look like; clones share it.
#[derive(Clone, Debug, PartialEq)]
pub struct Shape(Arc<Kind>);

#[derive(Clone, Debug, PartialEq)]
enum Kind {
    Any,
    Truth,
    Integer { least: i64, most: i64 },
    Text { least: usize, most: usize },
    Word(Vec<String>),
    List { of: Box<Kind>, least: usize, most: usize },
    Members { known: Vec<(String, Kind)>, required: Vec<String>, others: Box<Kind> },
    OrNull(Box<Kind>),
}

/// The first thing that is wrong.
#[derive(Debug, PartialEq)]
struct Fault {
    /// From the innermost outwards.
    place: Vec<String>,
    what: String,
}

impl Shape {
    /// That of a type's documents.
    #[must_use]
    pub fn of<T: JsonSchema>() -> Self {
        let schema = SchemaSettings::draft2020_12().for_deserialize().into_generator().into_root_schema_for::<T>();
        let schema = schema.to_value();
        Self(Arc::new(Kind::read(&schema, &schema["$defs"], MAX_DEPTH)))
    }

    /// Checks a document and corrects it on the way.
    ///
    /// # Errors
    /// One sentence about the first thing that is wrong and cannot be corrected. It quotes names of the document, and no
    /// value.
    pub fn check(&self, document: &mut Document) -> Result<(), String> {
        self.0.check(document).map_err(|fault| fault.sentence())
    }
}

impl Kind {
    fn read(schema: &Value, named: &Value, depth: usize) -> Self {
        let Some(depth) = depth.checked_sub(1) else { return Self::Any };
        let read = |schema: &Value| Self::read(schema, named, depth);
        if let Some(name) = schema["$ref"].as_str().and_then(|path| path.rsplit('/').next()) {
            return read(&named[name]);
        }
        if let [one, Value::Object(null)] = schema["anyOf"].as_array().map_or(&[][..], Vec::as_slice)
            && null.get("type") == Some(&"null".into())
        {
            return Self::OrNull(Box::new(read(one)));
        }
        if let Some(words) = words(schema) {
            return Self::Word(words);
        }
        let size = |keyword: &str| schema[keyword].as_u64().and_then(|number| usize::try_from(number).ok());
        let of_type = |name: &str| match name {
            "boolean" => Self::Truth,
            "integer" => Self::Integer {
                least: schema["minimum"].as_i64().unwrap_or(i64::MIN),
                most: schema["maximum"].as_i64().unwrap_or(i64::MAX),
            },
            "string" => {
                Self::Text { least: size("minLength").unwrap_or(0), most: size("maxLength").unwrap_or(usize::MAX) }
            }
            "array" => Self::List {
                of: Box::new(read(&schema["items"])),
                least: size("minItems").unwrap_or(0),
                most: size("maxItems").unwrap_or(usize::MAX),
            },
            "object" => {
                let known = schema["properties"].as_object().into_iter().flatten();
                let required = schema["required"].as_array().into_iter().flatten();
                Self::Members {
                    known: known.map(|(name, schema)| (name.clone(), read(schema))).collect(),
                    required: required.filter_map(Value::as_str).map(ToOwned::to_owned).collect(),
                    others: Box::new(read(&schema["additionalProperties"])),
                }
            }
            _ => Self::Any,
        };
        match &schema["type"] {
            Value::String(name) => of_type(name),
            Value::Array(types) => match types.as_slice() {
                [Value::String(name), null] if null == "null" => Self::OrNull(Box::new(of_type(name))),
                _ => Self::Any,
            },
            _ => Self::Any,
        }
    }

    fn check(&self, document: &mut Document) -> Result<(), Fault> {
        if let Self::OrNull(kind) = self {
            return if *document == Document::Null { Ok(()) } else { kind.check(document) };
        }
        self.coerce(document);
        match (self, document) {
            (Self::Any, _) | (Self::Truth, Document::Bool(_)) => Ok(()),
            (Self::Integer { least, most }, Document::Number(number)) if is_whole(number) => {
                let number = number.as_i64().unwrap_or(i64::MAX);
                if number < *least {
                    return Err(Fault::here(format!("must be >= {least}")));
                }
                if number > *most {
                    return Err(Fault::here(format!("must be <= {most}")));
                }
                Ok(())
            }
            (Self::Text { least, most }, Document::Text(text)) => {
                if text.chars().nth(*most).is_some() {
                    return Err(Fault::here(format!("must NOT have more than {most} characters")));
                }
                if *least > 0 && text.chars().nth(least - 1).is_none() {
                    return Err(Fault::here(format!("must NOT have fewer than {least} characters")));
                }
                Ok(())
            }
            (Self::Word(words), Document::Text(text)) => {
                let is_one = words.contains(text);
                if is_one { Ok(()) } else { Err(Fault::here("must be equal to one of the allowed values".to_owned())) }
            }
            (Self::List { of, least, most }, Document::List(list)) => {
                if list.len() < *least {
                    return Err(Fault::here(format!("must NOT have fewer than {least} items")));
                }
                if list.len() > *most {
                    return Err(Fault::here(format!("must NOT have more than {most} items")));
                }
                list.iter_mut()
                    .enumerate()
                    .try_for_each(|(number, item)| of.check(item).map_err(|fault| fault.within(&number.to_string())))
            }
            (Self::Members { known, required, others }, Document::Members(members)) => {
                let is_missing = |name: &&String| !members.iter().any(|(member, _)| member == *name);
                if let Some(name) = required.iter().find(is_missing) {
                    return Err(Fault::here(format!("must have required property '{name}'")));
                }
                members.iter_mut().try_for_each(|(name, value)| {
                    let kind = known.iter().find(|(known, _)| known == name).map_or(&**others, |(_, kind)| kind);
                    kind.check(value).map_err(|fault| fault.within(name))
                })
            }
            _ => Err(Fault::here(format!("must be {}", self.type_name()))),
        }
    }

    fn type_name(&self) -> &'static str {
        match self {
            Self::Truth => "boolean",
            Self::Integer { .. } => "integer",
            Self::Text { .. } | Self::Word(_) => "string",
            Self::List { .. } => "array",
            Self::Members { .. } => "object",
            // These take whatever comes, or have been looked into.
            Self::Any | Self::OrNull(_) => "anything",
        }
    }
}

/// Whether a number has no fraction. One that is still a double is too large for an integer of ours, or has one.
fn is_whole(number: &serde_json::Number) -> bool {
    number.as_f64().is_some_and(|number| number.fract() == 0.0)
}

/// The words of which a text has to be one, however the schema says so.
fn words(schema: &Value) -> Option<Vec<String>> {
    let word = |value: &Value| value.as_str().map(ToOwned::to_owned);
    if let Some(words) = schema["enum"].as_array() {
        return words.iter().map(word).collect();
    }
    // Some alternatives are described, and some are only named.
    let alternatives = schema["oneOf"].as_array()?.iter();
    let words: Option<Vec<Vec<String>>> = alternatives
        .map(|one| if one["const"].is_string() { word(&one["const"]).map(|word| vec![word]) } else { words(one) })
        .collect();
    words.map(|words| words.into_iter().flatten().collect())
}

impl Fault {
    fn here(what: String) -> Self {
        Self { place: Vec::new(), what }
    }

    fn within(mut self, name: &str) -> Self {
        self.place.push(name.chars().take(PLACE_CHARS).collect());
        self
    }

    fn sentence(&self) -> String {
        let mut place = "body".to_owned();
        for name in self.place.iter().rev() {
            // Writing to a string cannot fail.
            let _ = write!(place, "/{}", name.replace('~', "~0").replace('/', "~1"));
        }
        if let Some((end, _)) = place.char_indices().nth(PLACE_CHARS) {
            place.truncate(end);
            place.push('…');
        }
        format!("{place} {}", self.what)
    }
}

#[cfg(test)]
mod tests;
