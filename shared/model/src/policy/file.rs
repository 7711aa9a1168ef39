//! The policy file as it is written: YAML to checked profiles, with the line of whatever is wrong.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, de};
use serde_saphyr::{Location, Spanned};

use super::{PolicyError, check::Checker, profile::Profile, suggest::nearest};
use crate::quantity::Quantity;

/// A value, and the line to blame for it, from 1; 0 where it is the default.
#[derive(Clone, Copy)]
pub(super) struct Given<T> {
    pub(super) value: T,
    pub(super) line: u64,
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Given<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Spanned { value, referenced, .. } = Spanned::deserialize(deserializer)?;
        Ok(Self { value, line: referenced.line() })
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct PolicyFile {
    profiles: Given<BTreeMap<String, Option<Given<ProfileFile>>>>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct ProfileFile {
    pub(super) resources: Option<ResourcesFile>,
    pub(super) pod: Option<PodFile>,
    pub(super) lifetime: Option<LifetimeFile>,
    pub(super) run_as: Option<RunAsFile>,
    pub(super) volume_types: Option<Given<Vec<Given<String>>>>,
    pub(super) scratch: Option<Vec<ScratchFile>>,
    pub(super) seccomp: Option<SeccompFile>,
    pub(super) app_armor: Option<AppArmorFile>,
    pub(super) sysctls: Option<Vec<Given<String>>>,
    pub(super) token_audiences: Option<Vec<Given<String>>>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct ResourcesFile {
    pub(super) limits: Option<LimitsFile>,
    pub(super) requests: Option<RequestsFile>,
    pub(super) extended: Option<Vec<Given<String>>>,
    pub(super) claims: Option<bool>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct LimitsFile {
    pub(super) cpu: Option<Given<Amount>>,
    pub(super) memory: Option<Given<Amount>>,
    pub(super) ephemeral_storage: Option<Given<Amount>>,
}

/// `limits` for all of them, or one value each.
pub(super) enum RequestsFile {
    Limits,
    Each(EachRequest),
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct EachRequest {
    pub(super) cpu: Option<Given<RequestFile>>,
    pub(super) memory: Option<Given<RequestFile>>,
    pub(super) ephemeral_storage: Option<Given<RequestFile>>,
}

/// `limit`, or an amount.
#[derive(Clone, Copy)]
pub(super) enum RequestFile {
    Limit,
    Amount(Quantity),
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct PodFile {
    pub(super) containers: Option<Given<u32>>,
    pub(super) sum: Option<Given<u32>>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct LifetimeFile {
    pub(super) deadline_seconds: Option<Given<i64>>,
    pub(super) grace_seconds: Option<Given<i64>>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct RunAsFile {
    pub(super) user: Option<Given<i64>>,
    pub(super) group: Option<Given<i64>>,
    pub(super) fs_group: Option<Given<i64>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct ScratchFile {
    pub(super) name: Given<String>,
    pub(super) path: Given<String>,
    pub(super) size: Given<Amount>,
    #[serde(default)]
    pub(super) env: Vec<Given<String>>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct SeccompFile {
    pub(super) localhost_profiles: Option<Vec<Given<String>>>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum AppArmorFile {
    Leave,
    Inject,
}

/// A quantity in YAML, where a number is as good as a string.
#[derive(Clone, Copy)]
pub(super) struct Amount(pub(super) Quantity);

impl<'de> Deserialize<'de> for Amount {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Quantity::parse(&text).map(Self).map_err(de::Error::custom)
    }
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

/// Reads and checks a file.
pub(super) fn read(file: &str, text: &str) -> Result<BTreeMap<String, Profile>, PolicyError> {
    let parsed: PolicyFile = serde_saphyr::from_str(text).map_err(|error| unreadable(file, text, &error))?;
    let checker = Checker::new(file);
    let profiles_line = parsed.profiles.line;
    let mut profiles = BTreeMap::new();
    for (name, profile) in parsed.profiles.value {
        let (profile, line) = match profile {
            Some(profile) => (profile.value, profile.line),
            None => (ProfileFile::default(), profiles_line),
        };
        checker.profile_name(&name, line)?;
        profiles.insert(name, checker.profile(profile)?);
    }
    if !profiles.contains_key(crate::keys::DEFAULT_PROFILE) {
        let problem = "has no `default`, the profile of a pod that names none; add it, `default: {}` is enough";
        return Err(checker.invalid(profiles_line, "profiles", problem));
    }
    Ok(profiles)
}

/// Says what the parser says with file, line and key, without a picture of the file.
fn unreadable(file: &str, text: &str, error: &serde_saphyr::Error) -> PolicyError {
    use serde_saphyr::Error as Yaml;

    let file = file.to_owned();
    let location = error.location().unwrap_or(Location::UNKNOWN);
    let line = location.line();
    let problem = match error.without_snippet() {
        Yaml::SerdeUnknownField { field, expected, .. } => {
            let hint = nearest(field, expected.iter().copied()).map_or_else(
                || format!("known here are {}", expected.join(", ")),
                |known| format!("did you mean `{known}`?"),
            );
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
        Yaml::InvalidScalar { ty: "bool", .. } => "must be true or false".to_owned(),
        Yaml::InvalidScalar { .. } => "must be a whole number".to_owned(),
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
