//! A JSON document as a client sent it: members keep their order, and what it costs in memory is bounded.
//!
//! It is checked and corrected as a tree (`validation`), and then becomes a type of [`crate::wire`], which takes its
//! texts over instead of copying them.

use std::cell::Cell;
use std::collections::HashSet;
use std::fmt;

use serde::de::value::{MapDeserializer, SeqDeserializer};
use serde::de::{DeserializeSeed, Deserializer, Error as _, IntoDeserializer, MapAccess, SeqAccess, Visitor};
use serde::forward_to_deserialize_any;
use serde_json::{Error, Number};

/// The most values of one document. A bundle has three for each of its files; a bound on bytes alone would let `[],[],…`
/// cost many times its length.
const MAX_VALUES: usize = 100_000;

/// The most memory that the document of a text may take: its own texts, and its values, of which the shortest have two
/// bytes each. A list may have grown to twice what it needs.
#[must_use]
pub fn most_memory(bytes: usize) -> usize {
    let values = (bytes / 2).min(MAX_VALUES);
    bytes.saturating_add(values.saturating_mul(2 * size_of::<(String, Document)>()))
}

/// A value.
#[derive(Clone, PartialEq)]
pub enum Document {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number.
    Number(Number),
    /// A text.
    Text(String),
    /// Values in their order.
    List(Vec<Document>),
    /// Members in their order. Of a name that was there twice, the last one.
    Members(Vec<(String, Document)>),
}

/// Why there is no document. The messages quote nothing of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DocumentError {
    /// It is not JSON, or nested too deeply.
    #[error("the body is not valid JSON")]
    Malformed,
    /// It has more values than anything that is taken here.
    #[error("the body has more than {MAX_VALUES} values")]
    TooMany,
}

impl Document {
    /// Reads a whole document.
    ///
    /// # Errors
    /// When it is no JSON, nested deeper than 128, or has too many values.
    pub fn parse(bytes: &[u8]) -> Result<Self, DocumentError> {
        let left = Cell::new(MAX_VALUES);
        let mut reader = serde_json::Deserializer::from_slice(bytes);
        let parsed = Node(&left).deserialize(&mut reader).and_then(|document| reader.end().map(|()| document));
        parsed.map_err(|_| if left.get() == 0 { DocumentError::TooMany } else { DocumentError::Malformed })
    }
}

/// It holds values of variables.
impl fmt::Debug for Document {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Null => "null",
            Self::Bool(_) => "bool",
            Self::Number(_) => "number",
            Self::Text(_) => "text",
            Self::List(_) => "list",
            Self::Members(_) => "members",
        })
    }
}

/// Reads one value, and counts it.
struct Node<'a>(&'a Cell<usize>);

impl<'de> DeserializeSeed<'de> for Node<'_> {
    type Value = Document;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Document, D::Error> {
        let left = self.0.get().checked_sub(1).ok_or_else(|| D::Error::custom("too many values"))?;
        self.0.set(left);
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Node<'_> {
    type Value = Document;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Document, E> {
        Ok(Document::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Document, E> {
        Ok(Document::Bool(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Document, E> {
        Ok(Document::Number(value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Document, E> {
        Ok(Document::Number(value.into()))
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Document, E> {
        Number::from_f64(value).map(Document::Number).ok_or_else(|| E::custom("no finite number"))
    }

    fn visit_str<E>(self, value: &str) -> Result<Document, E> {
        Ok(Document::Text(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Document, E> {
        Ok(Document::Text(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut values: A) -> Result<Document, A::Error> {
        let mut list = Vec::new();
        while let Some(value) = values.next_element_seed(Node(self.0))? {
            list.push(value);
        }
        Ok(Document::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Document, A::Error> {
        let mut members = Vec::new();
        while let Some(name) = map.next_key::<String>()? {
            members.push((name, map.next_value_seed(Node(self.0))?));
        }
        Ok(Document::Members(last_of_each(members)))
    }
}

/// Of each name the last member, in the order in which those came.
fn last_of_each(mut members: Vec<(String, Document)>) -> Vec<(String, Document)> {
    let mut seen = HashSet::with_capacity(members.len());
    let keeps: Vec<bool> = members.iter().rev().map(|(name, _)| seen.insert(name.as_str())).collect();
    if keeps.contains(&false) {
        let mut keeps = keeps.into_iter().rev();
        members.retain(|_| keeps.next().unwrap_or(true));
    }
    members
}

impl<'de> Deserializer<'de> for Document {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self {
            Self::Null => visitor.visit_unit(),
            Self::Bool(value) => visitor.visit_bool(value),
            Self::Number(number) => number.deserialize_any(visitor),
            Self::Text(text) => visitor.visit_string(text),
            Self::List(list) => visitor.visit_seq(SeqDeserializer::new(list.into_iter())),
            Self::Members(members) => visitor.visit_map(MapDeserializer::new(members.into_iter())),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        if self == Self::Null { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        match self {
            Self::Text(text) => visitor.visit_enum(text.into_deserializer()),
            _ => Err(Error::custom("no word")),
        }
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct map struct identifier ignored_any
    }
}

impl IntoDeserializer<'_, Error> for Document {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize, PartialEq)]
    #[serde(rename_all = "lowercase")]
    enum Word {
        One,
    }

    #[derive(Debug, Deserialize, PartialEq)]
    struct Typed {
        number: u16,
        word: Word,
        none: Option<bool>,
        list: Vec<String>,
    }

    #[test]
    fn a_document_becomes_a_type_and_what_the_type_does_not_know_is_ignored() {
        let text = r#"{"number": 7, "word": "one", "none": null, "list": ["a"], "more": {"x": [1.5, -1]}}"#;
        let document = Document::parse(text.as_bytes()).unwrap();
        let typed = Typed { number: 7, word: Word::One, none: None, list: vec!["a".to_owned()] };
        assert_eq!(Typed::deserialize(document).unwrap(), typed);
        assert!(Typed::deserialize(Document::Null).is_err());
    }

    #[test]
    fn members_keep_their_order_and_of_a_name_the_last_one_holds() {
        let Document::Members(members) = Document::parse(br#"{"b": 1, "a": 2, "b": 3}"#).unwrap() else { panic!() };
        let is: Vec<_> = members.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!((is, &members[1].1), (vec!["a", "b"], &Document::Number(3.into())));
    }

    #[test]
    fn what_is_no_json_or_costs_more_than_it_says_is_refused() {
        for text in ["", "{", "[1,]", "{} {}", "nul", "\"\u{0}\"", &"[".repeat(200), "[1e999]"] {
            assert_eq!(Document::parse(text.as_bytes()), Err(DocumentError::Malformed), "{text}");
        }
        assert_eq!(Document::parse(b"\xff"), Err(DocumentError::Malformed));
        let many = format!("[{}0]", "0,".repeat(MAX_VALUES - 2));
        assert!(Document::parse(many.as_bytes()).is_ok());
        let more = format!("[{}0]", "0,".repeat(MAX_VALUES - 1));
        assert_eq!(Document::parse(more.as_bytes()), Err(DocumentError::TooMany));
    }
}
