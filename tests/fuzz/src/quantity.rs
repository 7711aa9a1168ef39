//! The quantity parser: any text is a quantity that [`decimal`] arithmetic agrees about, or none for both.

use std::cmp::Ordering;

use cofferdam_model::quantity::Quantity;
use serde_json::{Value, json};

use crate::decimal::Decimal;

/// Reads the first two lines of the bytes as quantities, and all of them as JSON.
///
/// # Panics
/// A promise is broken.
pub fn check(bytes: &[u8]) {
    if let Ok(value) = serde_json::from_slice::<Value>(bytes) {
        check_json(&value);
    }
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let mut lines = text.lines();
    let first = lines.next().and_then(check_text);
    let second = lines.next().and_then(check_text);
    if let (Some(first), Some(second)) = (first, second) {
        check_pair(&first, &second);
    }
}

fn check_json(value: &Value) {
    let read = Quantity::from_json(value);
    match value {
        Value::String(text) => assert_eq!(read, Quantity::parse(text.trim())),
        Value::Number(number) => assert_eq!(read, Quantity::parse(&number.to_string())),
        _ => assert!(read.is_err(), "{value} is a quantity"),
    }
}

fn check_text(text: &str) -> Option<(Quantity, Decimal)> {
    let (quantity, decimal) = match (Quantity::parse(text), Decimal::parse(text)) {
        (Ok(quantity), Some(decimal)) => (quantity, decimal),
        (Err(_), None) => return None,
        (read, _) => panic!("read as {read:?}"),
    };
    let printed = quantity.to_string();
    assert_eq!(Decimal::parse(&printed).as_ref(), Some(&decimal), "printed as {printed}");
    let again = Quantity::parse(&printed).unwrap_or_else(|error| panic!("printed as {printed}, which {error}"));
    assert_eq!(again, quantity, "printed as {printed}");
    assert_eq!(Quantity::from_json(&json!(text.trim())), Quantity::parse(text.trim()));
    assert_eq!(quantity.is_zero(), decimal.is_zero());
    assert_eq!(quantity.is_negative(), decimal.is_negative());
    assert_eq!(quantity.times(1), quantity);
    assert_eq!(quantity.plus(Quantity::ZERO), quantity);
    Some((quantity, decimal))
}

fn check_pair((left, left_decimal): &(Quantity, Decimal), (right, right_decimal): &(Quantity, Decimal)) {
    assert_eq!(left.cmp(right), left_decimal.cmp(right_decimal), "{left} and {right}");
    assert_eq!(left == right, left.cmp(right) == Ordering::Equal);
    assert_eq!(left.plus(*right), right.plus(*left));
    // Neither wraps around: more of it is never less.
    if !right.is_negative() {
        assert!(left.plus(*right) >= *left);
        assert!(right.times(u32::MAX) >= *right);
    }
}
