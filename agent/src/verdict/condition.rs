//! One condition in a status, and whether it can be believed.

use cofferdam_kubernetes::json::condition;
use cofferdam_model::text::shown;
use serde_json::Value;

/// Bytes of a controller's message that are passed on.
const MOST_SAID: usize = 400;

/// What a condition says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Reading {
    True,
    /// No, and what the controller says to it: `Reason: message`.
    False(String),
    /// Nothing: it is not there.
    Absent,
    /// It cannot say yet, and why.
    Undecided(String),
    /// It is about an older generation of the object.
    Stale,
    /// It does not say which generation it is about (case B130).
    Unverifiable,
}

/// Reads the condition of that type, from what has conditions, in the status of an object of that generation.
pub(super) fn read(status: &Value, type_: &str, generation: &Value) -> Reading {
    let Some(condition) = condition(status, type_) else { return Reading::Absent };
    let reading = match condition["status"].as_str() {
        Some("True") => Reading::True,
        Some("False") => Reading::False(said(condition)),
        // What the API server writes into the status of a new Gateway is of no generation, and says nothing.
        _ => return Reading::Undecided(said(condition)),
    };
    match (condition["observedGeneration"].as_u64(), generation.as_u64()) {
        (None | Some(0), _) | (_, None) => Reading::Unverifiable,
        (Some(observed), Some(current)) if observed != current => Reading::Stale,
        _ => reading,
    }
}

/// The controller's own words, cut where they are very long.
fn said(condition: &Value) -> String {
    let word = |key: &str| condition[key].as_str().filter(|text| !text.is_empty());
    let said = match (word("reason"), word("message")) {
        (Some(reason), Some(message)) => format!("{reason}: {message}"),
        (Some(one), None) | (None, Some(one)) => one.to_owned(),
        (None, None) => "no reason given".to_owned(),
    };
    shown(&said, MOST_SAID)
}
