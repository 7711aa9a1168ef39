//! The file of apps: each entry read by hand, so that an error names file and key and never quotes a value.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;

use cofferdam_model::policy::did_you_mean;
use cofferdam_model::text::shown;
use serde_json::{Map, Value};

use super::App;
use crate::wire::PullPolicy;

/// What an entry may hold.
const KEYS: [&str; 6] = ["image", "env", "pullPolicy", "title", "description", "port"];

/// Pull policies, as they are written.
const PULL_POLICIES: [(&str, PullPolicy); 3] =
    [("missing", PullPolicy::Missing), ("always", PullPolicy::Always), ("never", PullPolicy::Never)];

/// The longest name of an app, in bytes: that of a label.
const NAME: usize = 63;

/// How much of a key an error shows, in bytes.
const SHOWN: usize = 80;

/// Why apps cannot be offered.
#[derive(Debug, thiserror::Error)]
pub enum AppsError {
    /// The file cannot be read.
    #[error("cannot read the apps in {}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system answered.
        source: io::Error,
    },
    /// Neither JSON nor YAML.
    #[error("{file}:{line}: this is neither JSON nor YAML, or a key stands there twice")]
    Syntax {
        /// What the file is called.
        file: String,
        /// The line, from 1.
        line: u64,
    },
    /// An entry that cannot be.
    #[error("{file}: `{key}` {problem}")]
    Entry {
        /// What the file is called.
        file: String,
        /// Where in it, from the app's name on.
        key: String,
        /// What is wrong, and what to write.
        problem: String,
    },
}

/// What is wrong at a key below the one that is looked at.
struct Wrong {
    key: Vec<String>,
    problem: String,
}

type Checked<T> = Result<T, Wrong>;

pub(super) fn read(file: &str, text: &str) -> Result<BTreeMap<String, App>, AppsError> {
    let value: Value = serde_saphyr::from_str(text).map_err(|error| AppsError::Syntax {
        file: file.to_owned(),
        // An error without a place is one of the file as a whole.
        line: error.location().map_or(1, |location| location.line()).max(1),
    })?;
    apps(&value).map_err(|Wrong { key, problem }| {
        let key = if key.is_empty() { "the file".to_owned() } else { shown(&key.join("."), SHOWN) };
        AppsError::Entry { file: file.to_owned(), key, problem }
    })
}

fn apps(value: &Value) -> Checked<BTreeMap<String, App>> {
    let apps = match value {
        // What is left of a file whose entries are all comments.
        Value::Null => return Ok(BTreeMap::new()),
        value => object(value)?,
    };
    apps.iter().map(|(name, entry)| Ok((name.clone(), named(name, entry).map_err(below(name))?))).collect()
}

fn named(name: &str, entry: &Value) -> Checked<App> {
    let is_part = |b: u8| b.is_ascii_alphanumeric() || b"-_.".contains(&b);
    // A name is a part of a path, where dots alone lead elsewhere.
    if name.is_empty() || name.len() > NAME || !name.bytes().all(is_part) || name.bytes().all(|b| b == b'.') {
        let problem = format!(
            "cannot name an app; use at most {NAME} of A-Z, a-z, 0-9, `-`, `_` and `.`, and `title` for people"
        );
        return wrong(problem);
    }
    app(object(entry)?)
}

fn app(entry: &Map<String, Value>) -> Checked<App> {
    if let Some(key) = entry.keys().find(|key| !KEYS.contains(&key.as_str())) {
        let hint = did_you_mean(key, KEYS, || format!("known here are {}", KEYS.join(", ")));
        return wrong(format!("is unknown; {hint}")).map_err(below(key));
    }
    Ok(App {
        image: member(entry, "image", image)?.ok_or_else(|| below("image")(Wrong::new("is missing; add it")))?,
        env: member(entry, "env", env)?.unwrap_or_default(),
        pull_policy: member(entry, "pullPolicy", pull_policy)?.unwrap_or_default(),
        title: member(entry, "title", text)?,
        description: member(entry, "description", text)?,
        port: member(entry, "port", port)?,
    })
}

fn image(value: &Value) -> Checked<String> {
    let image = text(value)?;
    let is_reference = !image.is_empty() && image.bytes().all(|b| b.is_ascii_graphic());
    if is_reference {
        Ok(image)
    } else {
        wrong("must be the reference of an image, such as registry.example.com/app:1.2.3")
    }
}

fn env(value: &Value) -> Checked<BTreeMap<String, String>> {
    let variable = |(name, value): (&String, &Value)| {
        let is_name = |b: u8| b.is_ascii_alphanumeric() || b"-_.".contains(&b);
        if name.is_empty() || name.as_bytes()[0].is_ascii_digit() || !name.bytes().all(is_name) {
            return wrong("cannot name a variable; use A-Z, a-z, 0-9, `_`, `-` and `.`, and no digit first");
        }
        text(value).map(|value| (name.clone(), value))
    };
    object(value)?.iter().map(|(name, value)| variable((name, value)).map_err(below(name))).collect()
}

fn pull_policy(value: &Value) -> Checked<PullPolicy> {
    let known = || format!("must be one of {}", PULL_POLICIES.map(|(word, _)| word).join(", "));
    let found = PULL_POLICIES.iter().find(|(word, _)| value == word);
    found.map_or_else(|| wrong(known()), |(_, policy)| Ok(*policy))
}

fn port(value: &Value) -> Checked<u16> {
    let number = value.as_u64().and_then(|number| u16::try_from(number).ok()).filter(|number| *number > 0);
    number.map_or_else(|| wrong("must be a whole number from 1 to 65535"), Ok)
}

fn text(value: &Value) -> Checked<String> {
    value.as_str().map_or_else(|| wrong("must be a text; put it in quotes"), |text| Ok(text.to_owned()))
}

fn object(value: &Value) -> Checked<&Map<String, Value>> {
    value.as_object().map_or_else(|| wrong("must be keys with values"), Ok)
}

/// A member, where it is there.
fn member<T>(entry: &Map<String, Value>, key: &str, read: fn(&Value) -> Checked<T>) -> Checked<Option<T>> {
    entry.get(key).map(read).transpose().map_err(below(key))
}

fn wrong<T>(problem: impl Into<String>) -> Checked<T> {
    Err(Wrong::new(problem))
}

/// The same, seen from above the key.
fn below(key: &str) -> impl Fn(Wrong) -> Wrong {
    move |mut wrong| {
        wrong.key.insert(0, key.to_owned());
        wrong
    }
}

impl Wrong {
    fn new(problem: impl Into<String>) -> Self {
        Self { key: Vec::new(), problem: problem.into() }
    }
}
