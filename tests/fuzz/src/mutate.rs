//! Mutations that keep JSON what it is, so that what lies behind the parser is reached.
//!
//! The engine mutates bytes, and nearly all of those mutations make JSON unreadable. Here the document is a tree, and
//! what is put into it are members and values that the committed inputs have at such a place. A new field in an input is
//! therefore all it takes for it to turn up everywhere.

use std::{collections::BTreeMap, fs};

use fastrand::Rng;
use serde_json::{Map, Value, json};

use crate::target::{Target, corpus};

/// The engine's own mutation of `bytes[..size]`, to at most `max_size` bytes; returns the new size.
pub type ByteMutator = fn(&mut [u8], usize, usize) -> usize;

/// What the committed inputs hold, by the name of the member in which it stands; items stand in their list's.
#[derive(Debug, Default)]
pub struct Vocabulary {
    members: BTreeMap<String, Vec<(String, Value)>>,
    values: BTreeMap<String, Vec<Value>>,
    everything: Vec<Value>,
}

impl Vocabulary {
    /// All that the target's corpora hold. Files that are no JSON are left out; without any, inputs are plain text.
    #[must_use]
    pub fn of(target: &Target) -> Self {
        let files = target.vocabulary.iter().filter_map(|name| fs::read_dir(corpus(name)).ok()).flatten().flatten();
        let texts = files.filter_map(|file| fs::read(file.path()).ok());
        let mut vocabulary = Self::default();
        for document in texts.filter_map(|text| serde_json::from_slice::<Value>(&text).ok()) {
            vocabulary.add("", &document);
        }
        // The order of a directory's files is anybody's guess, and a seed has to mean the same every time.
        for members in vocabulary.members.values_mut() {
            members.sort_by_cached_key(|(name, value)| (name.clone(), value.to_string()));
            members.dedup();
        }
        for values in vocabulary.values.values_mut().chain([&mut vocabulary.everything]) {
            values.sort_by_cached_key(Value::to_string);
            values.dedup();
        }
        vocabulary
    }

    fn add(&mut self, name: &str, value: &Value) {
        self.values.entry(name.to_owned()).or_default().push(value.clone());
        self.everything.push(value.clone());
        match value {
            Value::Object(members) => {
                let known = self.members.entry(name.to_owned()).or_default();
                known.extend(members.iter().map(|(name, value)| (name.clone(), value.clone())));
                members.iter().for_each(|(name, value)| self.add(name, value));
            }
            Value::Array(items) => items.iter().for_each(|item| self.add(name, item)),
            _ => {}
        }
    }

    /// A member for an object that stands in `parent`.
    fn member(&self, parent: &str, random: &mut Rng) -> (String, Value) {
        let members = match self.members.get(parent) {
            Some(members) if random.u8(..8) > 0 => Some(members),
            _ => random.choice(self.members.values()),
        };
        members.and_then(|members| random.choice(members)).cloned().unwrap_or_default()
    }

    /// A value for the member `name`.
    fn value(&self, name: &str, random: &mut Rng) -> Value {
        let known = match random.u8(..8) {
            0..4 => self.values.get(name).and_then(|values| random.choice(values)),
            4..6 => random.choice(&self.everything),
            _ => None,
        };
        known.cloned().unwrap_or_else(|| extreme(random))
    }
}

/// A value at the edge of what JSON or a reader of it can hold.
fn extreme(random: &mut Rng) -> Value {
    match random.u8(..16) {
        0 => Value::Null,
        1 => json!(true),
        2 => json!(false),
        3 => json!(0),
        4 => json!(-1),
        5 => json!(i64::from(i32::MAX) + 1),
        6 => json!(i64::MIN),
        7 => json!(u64::MAX),
        8 => json!(0.5),
        9 => json!(1e300),
        10 => json!(""),
        11 => json!("\u{0}~1/ü"),
        12 => json!("x".repeat(300)),
        13 => json!([]),
        14 => json!({}),
        _ => json!(random.i64(..)),
    }
}

/// Mutates `data[..size]` to at most `max_size` bytes, the same way for the same seed; returns the new size.
pub fn mutate(
    data: &mut [u8],
    size: usize,
    max_size: usize,
    seed: u32,
    vocabulary: &Vocabulary,
    bytes: ByteMutator,
) -> usize {
    let mut random = Rng::with_seed(u64::from(seed));
    let is_text = vocabulary.everything.is_empty() || random.u8(..16) == 0;
    if !is_text && let Ok(mut document) = serde_json::from_slice(&data[..size]) {
        for _ in 0..=random.u8(..4) {
            change(&mut document, vocabulary, &mut random, bytes);
        }
        let text = document.to_string();
        if text.len() <= max_size {
            data[..text.len()].copy_from_slice(text.as_bytes());
            return text.len();
        }
    }
    bytes(data, size, max_size)
}

/// Changes one thing in the document.
fn change(document: &mut Value, vocabulary: &Vocabulary, random: &mut Rng, bytes: ByteMutator) {
    let mut places = Vec::new();
    list_places(document, &mut String::new(), &mut places);
    let Some(place) = random.choice(&places) else { return };
    let other = random.choice(&places).and_then(|other| document.pointer(other)).cloned().unwrap_or_default();
    let name = name_of(place);
    let Some(here) = document.pointer_mut(place) else { return };
    match random.u8(..8) {
        0 => remove(document, place),
        1 => *here = other,
        2 | 3 => *here = vocabulary.value(&name, random),
        _ => match here {
            Value::Object(members) => change_members(members, &name, vocabulary, random),
            Value::Array(items) => {
                let at = random.usize(..=items.len());
                let twin = random.choice(&*items).cloned();
                items.insert(at, twin.unwrap_or_else(|| vocabulary.value(&name, random)));
            }
            Value::String(text) => *text = mutated_text(text, bytes),
            Value::Number(number) => {
                let number = number.as_i64().unwrap_or_default();
                let near = number.saturating_add(random.i64(-2..=2));
                *here = json!(if random.bool() { near } else { mutated_number(number, bytes) });
            }
            Value::Bool(switch) => *switch = !*switch,
            Value::Null => *here = vocabulary.value(&name, random),
        },
    }
}

fn change_members(members: &mut Map<String, Value>, parent: &str, vocabulary: &Vocabulary, random: &mut Rng) {
    let (name, value) = vocabulary.member(parent, random);
    if random.u8(..8) == 0 {
        // Renamed: the new member has the value of an old one.
        let old = random.choice(members.keys()).cloned();
        let value = old.and_then(|old| members.remove(&old)).unwrap_or(value);
        members.insert(name, value);
    } else {
        members.insert(name, value);
    }
}

fn remove(document: &mut Value, place: &str) {
    let Some((parent, _)) = place.rsplit_once('/') else { return };
    match document.pointer_mut(parent) {
        Some(Value::Object(members)) => {
            members.remove(&segment_of(place));
        }
        Some(Value::Array(items)) => {
            if let Ok(index) = segment_of(place).parse() {
                items.remove(index);
            }
        }
        _ => {}
    }
}

/// A text as the engine mutates it, to at most twice its length and a word more.
fn mutated_text(text: &str, bytes: ByteMutator) -> String {
    let mut buffer = text.as_bytes().to_vec();
    buffer.resize(2 * text.len() + 32, 0);
    let most = buffer.len();
    let size = bytes(&mut buffer, text.len(), most);
    String::from_utf8_lossy(&buffer[..size]).into_owned()
}

/// A number as the engine mutates it, which knows what numbers were compared with.
fn mutated_number(number: i64, bytes: ByteMutator) -> i64 {
    let mut buffer = number.to_ne_bytes();
    bytes(&mut buffer, size_of::<i64>(), size_of::<i64>());
    i64::from_ne_bytes(buffer)
}

/// Every place in a document, as JSON pointers.
fn list_places(value: &Value, here: &mut String, places: &mut Vec<String>) {
    places.push(here.clone());
    let length = here.len();
    let mut visit = |segment: &str, value: &Value| {
        here.push('/');
        here.push_str(segment);
        list_places(value, here, places);
        here.truncate(length);
    };
    match value {
        Value::Object(members) => {
            members.iter().for_each(|(name, value)| visit(&name.replace('~', "~0").replace('/', "~1"), value));
        }
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(index, value)| visit(&index.to_string(), value));
        }
        _ => {}
    }
}

/// The member in which a place stands: its last segment that is no index.
fn name_of(place: &str) -> String {
    let name = place.rsplit('/').find(|segment| segment.parse::<usize>().is_err()).unwrap_or_default();
    name.replace("~1", "/").replace("~0", "~")
}

fn segment_of(place: &str) -> String {
    place.rsplit('/').next().unwrap_or_default().replace("~1", "/").replace("~0", "~")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target;

    const POD: &[u8] = include_bytes!("../corpus/harden/tightened.json");

    fn mutated(seed: u32, vocabulary: &Vocabulary, max_size: usize) -> Vec<u8> {
        let mut data = POD.to_vec();
        data.resize(POD.len().max(max_size), 0);
        let size = mutate(&mut data, POD.len(), max_size, seed, vocabulary, |_, size, max_size| size.min(max_size));
        data[..size].to_vec()
    }

    #[test]
    fn json_stays_json_and_is_hardly_ever_the_same() {
        let vocabulary = Vocabulary::of(&target::HARDEN);
        let documents: Vec<Value> =
            (0..500).map(|seed| serde_json::from_slice(&mutated(seed, &vocabulary, 16_384)).unwrap()).collect();
        let pod: Value = serde_json::from_slice(POD).unwrap();
        assert!(documents.iter().filter(|document| **document != pod).count() > 400);
    }

    #[test]
    fn the_same_seed_makes_the_same_mutation() {
        for seed in 0..100 {
            let mutated = || mutated(seed, &Vocabulary::of(&target::HARDEN), 16_384);
            assert_eq!(mutated(), mutated(), "{seed}");
        }
    }

    #[test]
    fn no_mutation_is_larger_than_it_may_be() {
        let vocabulary = Vocabulary::of(&target::HARDEN);
        assert!((0..200).all(|seed| mutated(seed, &vocabulary, 3_000).len() <= 3_000));
    }

    #[test]
    fn text_is_left_to_the_engine() {
        let vocabulary = Vocabulary::of(&target::QUANTITY);
        assert!((0..50).all(|seed| mutated(seed, &vocabulary, 16_384) == POD));
    }
}
