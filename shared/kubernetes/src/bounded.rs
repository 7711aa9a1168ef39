//! Of an object that somebody made large, an outline: whose it is, and nothing else.
//!
//! Ours have a few kB. Whoever may write one can make it some hundred times larger, and as many of them as they please; read
//! as JSON each would take fifty times as much again, and the reader would not live to delete it.

use std::borrow::Cow;
use std::fmt;

use cofferdam_model::keys;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, de};
use serde_json::{Map, Value};

use crate::json::owners;

/// What an object may take in memory, in bytes, as far as can be told while it is read: many times what one of ours does.
const ROOM: usize = 1024 * 1024;

/// The same for its owners, which are read even where all else is too large.
const ROOM_FOR_OWNERS: usize = 8 * 1024;

/// The longest of the texts that are read whether or not there is room: a name.
const SHORT: usize = 253;

/// What a value takes beside its text.
const OF_A_VALUE: usize = 64;

/// What a map takes beside its members.
const OF_A_MAP: usize = 512;

/// Members of these names are read at any depth, whether or not there is room: each is short, or holds only such.
const READ: [&str; 13] = [
    "metadata",
    "annotations",
    "labels",
    "name",
    "namespace",
    "uid",
    "resourceVersion",
    "creationTimestamp",
    "deletionTimestamp",
    keys::NODE,
    keys::SESSION,
    keys::SESSIONS,
    keys::MANAGED_BY,
];

const OWNERS: &str = "ownerReferences";

/// An object as it was read: whole, or in outline where it is large.
#[derive(Clone, Debug)]
pub struct Bounded(pub Value);

impl<'de> Deserialize<'de> for Bounded {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut room = Room { left: ROOM, is_full: false };
        let object = Within(&mut room).deserialize(deserializer)?;
        Ok(Self(if room.is_full { outline(&object) } else { object }))
    }
}

/// Whose an object is, which one, and whether it is being deleted. It has no specification, and so is never what is wanted.
#[must_use]
pub fn outline(object: &Value) -> Value {
    let metadata = &object["metadata"];
    let mut kept = Map::new();
    for key in READ.into_iter().filter(|key| metadata[key].is_string()) {
        kept.insert(key.to_owned(), metadata[key].clone());
    }
    for (part, names) in
        [("labels", &[keys::SESSION, keys::SESSIONS, keys::MANAGED_BY][..]), ("annotations", &[keys::NODE])]
    {
        let ours = names.iter().filter_map(|name| Some(((*name).to_owned(), metadata[part].get(name)?.clone())));
        kept.insert(part.to_owned(), Value::Object(ours.collect()));
    }
    let mut left = ROOM_FOR_OWNERS;
    let owners = owners(object);
    let short = owners.take_while(|owner| {
        let size = owner.to_string().len();
        let fits = size <= left;
        left = left.saturating_sub(size);
        fits
    });
    kept.insert(OWNERS.to_owned(), short.cloned().collect());
    Value::Object([("metadata".to_owned(), kept.into())].into_iter().collect())
}

/// What is left for the values of one object, and whether there was too little.
#[derive(Debug)]
struct Room {
    left: usize,
    is_full: bool,
}

impl Room {
    /// Whether so many bytes have room; they take it.
    fn takes(&mut self, bytes: usize) -> bool {
        match self.left.checked_sub(bytes) {
            Some(left) if !self.is_full => self.left = left,
            _ => self.is_full = true,
        }
        !self.is_full
    }
}

/// Reads a value as far as there is room, and passes over the rest without taking any.
struct Within<'a>(&'a mut Room);

impl<'de> DeserializeSeed<'de> for Within<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Within<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E: de::Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E: de::Error>(self, value: &str) -> Result<Value, E> {
        Ok(if self.0.takes(value.len()) || value.len() <= SHORT { value.into() } else { Value::Null })
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        let mut values = Vec::new();
        while self.0.takes(OF_A_VALUE) {
            match list.next_element_seed(Within(self.0))? {
                Some(value) => values.push(value),
                None => return Ok(values.into()),
            }
        }
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(values.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut values = Map::new();
        self.0.takes(OF_A_MAP);
        while let Some(key) = map.next_key::<Cow<'de, str>>()? {
            let mut owners = Room { left: ROOM_FOR_OWNERS, is_full: false };
            let has_room = self.0.takes(OF_A_VALUE + key.len());
            if key == "managedFields" {
                // Nobody asks who wrote what.
                map.next_value::<IgnoredAny>()?;
            } else if key == OWNERS {
                values.insert(key.into_owned(), map.next_value_seed(Within(&mut owners))?);
                self.0.is_full |= owners.is_full;
            } else if has_room || READ.contains(&&*key) {
                values.insert(key.into_owned(), map.next_value_seed(Within(self.0))?);
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(values.into())
    }
}

#[cfg(test)]
mod tests;
