//! What the YAML parser has to say, with file, line and key instead of a picture of the file.

use serde_saphyr::{Error as Yaml, Location};

use crate::policy::{PolicyError, suggest::did_you_mean};

/// The parser's error as one of ours.
pub(super) fn unreadable(file: &str, text: &str, error: &Yaml) -> PolicyError {
    let file = file.to_owned();
    let location = error.location().unwrap_or(Location::UNKNOWN);
    // An error without a place is one of the file as a whole.
    let line = location.line().max(1);
    let problem = match error.without_snippet() {
        Yaml::SerdeUnknownField { field, expected, .. } => {
            let otherwise = || format!("known here are {}", expected.join(", "));
            let hint = did_you_mean(field, expected.iter().copied(), otherwise);
            return PolicyError::UnknownKey { file, line, key: field.clone(), hint };
        }
        Yaml::SerdeUnknownVariant { variant, expected, .. } => {
            format!("is `{variant}`, but must be one of {}", expected.join(", "))
        }
        Yaml::SerdeInvalidType { unexpected, expected, .. } | Yaml::SerdeInvalidValue { unexpected, expected, .. } => {
            format!("is {unexpected}, but must be {expected}")
        }
        Yaml::SerdeMissingField { field, .. } => {
            let problem = "is missing; add it".to_owned();
            return PolicyError::Invalid { file, line, key: (*field).to_owned(), problem };
        }
        Yaml::DuplicateMappingKey { key: Some(key), .. } => {
            let problem = "stands here twice; remove one".to_owned();
            return PolicyError::Invalid { file, line, key: key.clone(), problem };
        }
        Yaml::InvalidScalar { ty: "boolean", .. } => "must be true or false".to_owned(),
        Yaml::InvalidScalar { .. } => "must be a whole number".to_owned(),
        Yaml::NullIntoString { .. } => "must be a text; write '' for an empty one".to_owned(),
        Yaml::Unexpected { expected: "string scalar", .. } => "must be a text".to_owned(),
        Yaml::Unexpected { expected: "sequence start", .. } => "must be a list".to_owned(),
        Yaml::Unexpected { expected: "mapping start", .. } => "must be keys with values".to_owned(),
        Yaml::Message { msg, .. } => msg.clone(),
        other => other.to_string(),
    };
    match key_at(text, location) {
        Some(key) => PolicyError::Invalid { file, line, key, problem },
        None => PolicyError::Unreadable { file, line, problem },
    }
}

/// The key at this place, or the one whose value is at this place, where both stand on one line.
fn key_at(text: &str, place: Location) -> Option<String> {
    let line = text.lines().nth(usize::try_from(place.line()).ok()?.checked_sub(1)?)?;
    let column = usize::try_from(place.column()).ok()?.checked_sub(1)?;
    let at = line.char_indices().nth(column).map_or(line.len(), |(at, _)| at);
    let (before, after) = line.split_at(at);
    let is_outside = |c: char| c.is_whitespace() || "{},[]".contains(c);
    let key = match after.split(is_outside).next()?.strip_suffix(':') {
        Some(key) => key,
        None => before.trim_end().strip_suffix(':')?.rsplit(is_outside).next()?,
    };
    (!key.is_empty()).then(|| key.to_owned())
}
