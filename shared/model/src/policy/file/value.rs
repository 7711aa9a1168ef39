//! Single values of the file: each with its line, and quantities, which YAML may hold as text or number.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_saphyr::Spanned;

use super::EachRequest;
use crate::quantity::Quantity;

/// A value, and the line to blame for it, from 1; 0 where it is the default.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::policy) struct Given<T> {
    pub(in crate::policy) value: T,
    pub(in crate::policy) line: u64,
}

impl<T> Given<T> {
    /// A value that stands in no file.
    pub(in crate::policy) fn nowhere(value: T) -> Self {
        Self { value, line: 0 }
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Given<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Spanned { value, referenced, .. } = Spanned::deserialize(deserializer)?;
        Ok(Self { value, line: referenced.line() })
    }
}

impl<T: Serialize> Serialize for Given<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.value.serialize(serializer)
    }
}

impl<T: JsonSchema> JsonSchema for Given<T> {
    fn inline_schema() -> bool {
        T::inline_schema()
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        T::schema_name()
    }

    fn schema_id() -> std::borrow::Cow<'static, str> {
        T::schema_id()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        T::json_schema(generator)
    }
}

/// A quantity in YAML, where a number is as good as a string.
#[derive(Clone, Copy)]
pub(in crate::policy) struct Amount(pub(in crate::policy) Quantity);

impl<'de> Deserialize<'de> for Amount {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Quantity::parse(&text).map(Self).map_err(de::Error::custom)
    }
}

impl Serialize for Amount {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

impl JsonSchema for Amount {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Quantity".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A Kubernetes quantity, such as 500m, 1.5 or 512Mi.",
            "type": ["string", "number"],
            "pattern": QUANTITY,
        })
    }
}

/// How a quantity looks. Said once more for editors; what holds is [`Quantity::parse`].
const QUANTITY: &str = r"^\+?([0-9]+(\.[0-9]*)?|\.[0-9]+)([numkMGTPE]|[KMGTPE]i|[eE][+-]?[0-9]+)?$";

/// `limit`, or an amount.
#[derive(Clone, Copy)]
pub(in crate::policy) enum RequestFile {
    Limit,
    Amount(Quantity),
}

impl<'de> Deserialize<'de> for RequestFile {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        match text.as_str() {
            "limit" => Ok(Self::Limit),
            amount => Quantity::parse(amount)
                .map(Self::Amount)
                .map_err(|error| de::Error::custom(format_args!("{error}; `limit` means as much as the limit"))),
        }
    }
}

impl Serialize for RequestFile {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Limit => serializer.serialize_str("limit"),
            Self::Amount(amount) => serializer.collect_str(amount),
        }
    }
}

impl JsonSchema for RequestFile {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Request".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "`limit` for as much as the container's limit, or a quantity.",
            "anyOf": [{ "const": "limit" }, generator.subschema_for::<Amount>()],
        })
    }
}

/// `limits` for all of them, or one value each.
pub(in crate::policy) enum RequestsFile {
    Limits,
    Each(EachRequest),
}

impl<'de> Deserialize<'de> for RequestsFile {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;

        impl<'de> de::Visitor<'de> for Visitor {
            type Value = RequestsFile;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("`limits`, or a request each for cpu, memory and ephemeral-storage")
            }

            fn visit_str<E: de::Error>(self, word: &str) -> Result<Self::Value, E> {
                match word {
                    "limits" => Ok(RequestsFile::Limits),
                    _ => Err(E::invalid_value(de::Unexpected::Str(word), &self)),
                }
            }

            fn visit_map<A: de::MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                EachRequest::deserialize(de::value::MapAccessDeserializer::new(map)).map(RequestsFile::Each)
            }
        }

        deserializer.deserialize_any(Visitor)
    }
}

impl Serialize for RequestsFile {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Limits => serializer.serialize_str("limits"),
            Self::Each(each) => each.serialize(serializer),
        }
    }
}

impl JsonSchema for RequestsFile {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Requests".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "`limits` for as much as the limits, or a request each.",
            "anyOf": [{ "const": "limits" }, generator.subschema_for::<EachRequest>()],
        })
    }
}
