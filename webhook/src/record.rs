//! The record of a decision: one log line that says who asked for what and what became of it.
//!
//! Names and field paths, never a value: an environment, an argument or an annotation may be a secret.

use std::collections::HashSet;
use std::fmt::Write as _;

use cofferdam_model::{Hardened, Refusal, Verdict};
use serde_json::Value;

use crate::admit::{Entry, Outcome};
use crate::review::Review;

/// Longest text of one field of the line, in bytes. Names are at most 253 long; user names and paths have no bound.
const LONGEST: usize = 4096;

/// What is known about a decision and may be told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    uid: String,
    webhook: &'static str,
    scope: &'static str,
    operation: &'static str,
    resource: String,
    namespace: String,
    name: String,
    user: String,
    dry_run: bool,
    outcome: &'static str,
    session: String,
    profile: String,
    rules: String,
    paths: String,
}

impl Record {
    /// What the review itself says.
    #[must_use]
    pub fn new(entry: Entry, review: &Review<'_>) -> Self {
        let [webhook, scope] = Entry::words(Some(entry));
        let resource = match review.sub_resource.as_str() {
            "" => review.resource.resource.clone(),
            part => format!("{}/{part}", review.resource.resource),
        };
        Self {
            uid: review.uid.clone(),
            webhook,
            scope,
            operation: operation(&review.operation),
            resource,
            namespace: review.namespace.clone(),
            name: review.name.clone(),
            user: review.user_info.username.clone(),
            dry_run: review.dry_run,
            ..Self::default()
        }
    }

    /// With the object's name, if the review does not say it; where the API server has yet to make one, its beginning
    /// and five stars for the rest.
    #[must_use]
    pub fn of_object(mut self, object: &Value) -> Self {
        let member = |key| object.get("metadata")?.get(key)?.as_str().filter(|text| !text.is_empty());
        if self.name.is_empty() {
            let made = || member("generateName").map(|beginning| format!("{beginning}*****"));
            self.name = member("name").map(str::to_owned).or_else(made).unwrap_or_default();
        }
        self
    }

    /// With the rules that had something to say and the fields they said it about.
    #[must_use]
    pub fn of_verdict(mut self, verdict: &Verdict) -> Self {
        match verdict {
            Verdict::Untouched(_) => {}
            Verdict::Advised(advice) => self.rules = list(advice.rules.iter().copied()),
            Verdict::Hardened(Hardened { changes, session, profile, .. }) => {
                self.session = session.as_ref().map(ToString::to_string).unwrap_or_default();
                profile.clone_into(&mut self.profile);
                self.rules = list(changes.iter().map(|change| change.rule));
                self.paths = list(changes.iter().map(|change| change.path.as_str()));
            }
            Verdict::Refused(Refusal { reasons }) => {
                self.rules = list(reasons.iter().map(|reason| reason.rule));
                self.paths = list(reasons.iter().map(|reason| reason.field.as_str()));
            }
        }
        self
    }

    /// With the outcome.
    #[must_use]
    pub fn of_outcome(mut self, outcome: Outcome) -> Self {
        self.outcome = outcome.as_str();
        self
    }

    /// The request's uid.
    #[must_use]
    pub fn uid(&self) -> &str {
        &self.uid
    }

    /// The names of the rules, each once, with spaces between.
    #[must_use]
    pub fn rules(&self) -> &str {
        &self.rules
    }

    /// Writes the line.
    pub fn write(&self) {
        let Self { operation, webhook, scope, dry_run, outcome, session, rules, paths, .. } = self;
        let Self { uid, resource, namespace, name, user, profile, .. } = self;
        tracing::info!(
            uid = short(uid),
            operation,
            resource = short(resource),
            namespace = short(namespace),
            name = short(name),
            user = short(user),
            dry_run,
            webhook,
            scope,
            outcome,
            session,
            profile = short(profile),
            rules,
            paths,
            "decided"
        );
    }
}

/// The API's own words, and no others.
fn operation(word: &str) -> &'static str {
    match word {
        "CREATE" => "CREATE",
        "UPDATE" => "UPDATE",
        "DELETE" => "DELETE",
        "CONNECT" => "CONNECT",
        _ => "unknown",
    }
}

/// Each once, in the order they came, as many as fit.
fn list<'a>(words: impl Iterator<Item = &'a str>) -> String {
    let mut seen = HashSet::new();
    let (mut line, mut left_out) = (String::new(), 0);
    for word in words.filter(|word| seen.insert(*word)) {
        if left_out > 0 || line.len() + word.len() > LONGEST {
            left_out += 1;
            continue;
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    if left_out > 0 {
        // Writing to a string cannot fail.
        let _ = write!(line, " and {left_out} more");
    }
    line
}

fn short(text: &str) -> &str {
    &text[..text.floor_char_boundary(LONGEST)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_names_each_word_once_and_counts_what_does_not_fit() {
        assert_eq!(list(["a", "b", "a"].into_iter()), "a b");
        let long = "x".repeat(LONGEST - 1);
        assert_eq!(list([long.as_str(), "yy", "z"].into_iter()), format!("{long} and 2 more"));
    }

    #[test]
    fn a_pod_whose_name_is_yet_to_be_made_is_named_by_its_beginning() {
        let name = |pod: Value| Record::default().of_object(&pod).name;
        assert_eq!(name(serde_json::json!({"metadata": {"generateName": "job-"}})), "job-*****");
        assert_eq!(name(serde_json::json!({"metadata": {"name": "a", "generateName": "job-"}})), "a");
        assert_eq!(name(Value::Null), "");
        let given = Record { name: "given".to_owned(), ..Record::default() };
        assert_eq!(given.of_object(&serde_json::json!({"metadata": {"name": "a"}})).name, "given");
    }
}
