//! Where requests come in: one path for each entry of the webhook configurations.
//!
//! A review does not carry the labels of its namespace, so the entries, which select by them, say by their paths what
//! they selected.

use cofferdam_model::Scope;

/// Which of the two kinds of admission webhooks asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Webhook {
    /// It may change what it is shown.
    Mutating,
    /// It is asked last, and may only allow, warn and deny.
    Validating,
}

/// Where a request came in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Who asks.
    pub webhook: Webhook,
    /// Which namespaces and objects are selected.
    pub scope: Scope,
}

impl Entry {
    /// All of them, with their paths.
    pub const ALL: [(&'static str, Self); 6] = [
        ("/mutate/enforced", Self::new(Webhook::Mutating, Scope::Enforced)),
        ("/mutate/warn", Self::new(Webhook::Mutating, Scope::Warn)),
        ("/mutate/labelled", Self::new(Webhook::Mutating, Scope::Labelled)),
        ("/validate/enforced", Self::new(Webhook::Validating, Scope::Enforced)),
        ("/validate/warn", Self::new(Webhook::Validating, Scope::Warn)),
        ("/validate/labelled", Self::new(Webhook::Validating, Scope::Labelled)),
    ];

    const fn new(webhook: Webhook, scope: Scope) -> Self {
        Self { webhook, scope }
    }

    /// The entry with that path.
    #[must_use]
    pub fn of_path(path: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|(known, _)| *known == path).map(|(_, entry)| entry)
    }

    /// The labels `webhook` and `scope` of metrics and log lines; `none` for no path of ours.
    #[must_use]
    pub fn words(entry: Option<Self>) -> [&'static str; 2] {
        let Some(Self { webhook, scope }) = entry else { return ["none", "none"] };
        let webhook = match webhook {
            Webhook::Mutating => "mutating",
            Webhook::Validating => "validating",
        };
        let scope = match scope {
            Scope::Enforced => "enforced",
            Scope::Warn => "warn",
            Scope::Labelled => "labelled",
        };
        [webhook, scope]
    }
}
