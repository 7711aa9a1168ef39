//! Apps that the operator offers by name: a client picks one, and never sees its image or its variables.
//!
//! ```yaml
//! notebook:
//!   image: registry.example.com/notebook:1.4.2
//!   title: Notebook
//!   env: {LICENSE: …}
//! ```
//!
//! The file holds secrets, so nothing here shows a value of it: neither an error nor a `Debug`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{fmt, fs, io};

use schemars::JsonSchema;
use serde::Serialize;

use crate::wire::{Environment, PullPolicy};

mod read;

pub use read::AppsError;

/// The apps that are offered, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Apps(BTreeMap<String, App>);

/// One app.
#[derive(Clone, PartialEq, Eq)]
pub struct App {
    /// What it runs, by its image's own entry point.
    pub image: String,
    /// Variables that are the operator's, whatever the client sends.
    pub env: BTreeMap<String, String>,
    /// When the image is pulled.
    pub pull_policy: PullPolicy,
    /// What it is called, for people.
    pub title: Option<String>,
    /// What it is, for people.
    pub description: Option<String>,
    /// The port that it serves, where sessions reach it as an agent.
    pub port: Option<u16>,
}

/// All that a client learns of an app.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct AppCard {
    /// By which it is started.
    pub name: String,
    /// What it is called, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What it is, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

impl Apps {
    /// Reads a file, JSON or YAML. Whatever is wrong in it fails as a whole: an app that is left out quietly is missed by
    /// those who use it.
    pub fn load(path: &Path) -> Result<Self, AppsError> {
        let unreadable = |source: io::Error| AppsError::Unreadable { path: PathBuf::from(path), source };
        Self::parse(&path.display().to_string(), &fs::read_to_string(path).map_err(unreadable)?)
    }

    /// The same of a text; `file` is what it is called in errors.
    pub fn parse(file: &str, text: &str) -> Result<Self, AppsError> {
        read::read(file, text).map(Self)
    }

    /// The app of that name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&App> {
        self.0.get(name)
    }

    /// What clients learn of all of them, in order of their names.
    #[must_use]
    pub fn cards(&self) -> Vec<AppCard> {
        let card = |(name, app): (&String, &App)| AppCard {
            name: name.clone(),
            title: app.title.clone(),
            description: app.description.clone(),
        };
        self.0.iter().map(card).collect()
    }
}

impl App {
    /// The variables of a session: the client's, but for those that are the operator's, and then these.
    #[must_use]
    pub fn environment(&self, client: Environment) -> Environment {
        let Environment(mut variables) = client;
        variables.retain(|(name, _)| !self.env.contains_key(name));
        variables.extend(self.env.iter().map(|(name, value)| (name.clone(), value.clone())));
        Environment(variables)
    }
}

impl fmt::Debug for App {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("App").field("image", &self.image).field("env", &self.env.keys()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
