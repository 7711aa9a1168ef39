//! Resource quantities: `500m`, `1.5Gi`, `12e6`, exactly as the Kubernetes API server reads, orders and prints them.
//!
//! Source: Kubernetes API reference, "Quantity". Values are kept to the nano unit, rounded away from zero; binary
//! ones are capped at 2^63-1. Stricter than the server in one thing: a quantity needs at least one digit.

use std::{cmp::Ordering, fmt};

use serde_json::Value;

mod parse;

/// Nano units in one unit.
const NANO: i128 = 1_000_000_000;

/// An amount of a resource. Compares by value: `1` equals `1000m`.
#[derive(Clone, Copy, Debug)]
pub struct Quantity {
    /// The amount in nano units; a decimal amount of 1e29 units or more stands at the end of the range.
    nano: i128,
    /// The notation it was written in, kept for printing.
    notation: Notation,
}

/// The three families of suffixes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Notation {
    /// `n u m k M G T P E`, powers of 1000.
    Decimal,
    /// `Ki Mi Gi Ti Pi Ei`, powers of 1024.
    Binary,
    /// `e3`, `E-2`.
    Exponent,
}

/// Why a text is no quantity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QuantityError {
    /// No number at its beginning.
    #[error("is no quantity: write a number and a suffix, such as 500m, 1.5 or 512Mi")]
    Number,
    /// Something after the number that is no suffix; `K` is the usual one, `k` and `Ki` exist.
    #[error("has no known suffix: use one of n u m k M G T P E, Ki Mi Gi Ti Pi Ei, or e and an exponent")]
    Suffix,
    /// A JSON value that is neither a string nor a number.
    #[error("must be a quantity, as a string such as 512Mi or as a number")]
    Type,
}

impl Quantity {
    /// Nothing.
    pub const ZERO: Self = Self { nano: 0, notation: Notation::Decimal };

    /// Reads a quantity.
    pub fn parse(text: &str) -> Result<Self, QuantityError> {
        parse::parse(text)
    }

    /// Reads a quantity from JSON, where numbers are as good as strings and outer spaces are ignored.
    pub fn from_json(value: &Value) -> Result<Self, QuantityError> {
        match value {
            Value::String(text) => Self::parse(text.trim()),
            Value::Number(number) => Self::parse(&number.to_string()),
            _ => Err(QuantityError::Type),
        }
    }

    /// A quantity that is written in the source.
    pub(crate) fn constant(text: &str) -> Self {
        #[expect(clippy::expect_used, reason = "only called with literals, each of which a test reads")]
        Self::parse(text).expect("a quantity in the source is valid")
    }

    /// Exactly nothing, which a kubelet takes for "no limit".
    #[must_use]
    pub fn is_zero(self) -> bool {
        self.nano == 0
    }

    /// Less than nothing.
    #[must_use]
    pub fn is_negative(self) -> bool {
        self.nano < 0
    }

    /// Whole units, the rest cut off: bytes of a size. Nothing is less than 0.
    #[must_use]
    pub fn whole_units(self) -> u64 {
        u64::try_from((self.nano / NANO).max(0)).unwrap_or(u64::MAX)
    }

    /// So many times as much.
    #[must_use]
    pub fn times(self, count: u32) -> Self {
        Self { nano: self.nano.saturating_mul(i128::from(count)), ..self }
    }

    /// Both together, in the notation of the first.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self { nano: self.nano.saturating_add(other.nano), ..self }
    }
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.nano == other.nano
    }
}

impl Eq for Quantity {}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Quantity {
    fn cmp(&self, other: &Self) -> Ordering {
        self.nano.cmp(&other.nano)
    }
}

/// Prints the canonical form: no fraction, no precision lost, the largest suffix that allows both.
impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const BINARY: [&str; 7] = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
        const DECIMAL: [&str; 10] = ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"];

        if self.nano == 0 {
            return f.write_str("0");
        }
        let units = self.nano / NANO;
        if self.notation == Notation::Binary && self.nano % NANO == 0 && units.unsigned_abs() >= 1024 {
            let (number, suffix) = strip(units, 1024, BINARY.len());
            return write!(f, "{number}{}", BINARY[suffix]);
        }
        if self.notation == Notation::Exponent {
            // Beyond any suffix table; 40 is more than the range of the amount has.
            let (number, power) = strip(self.nano, 1000, 40);
            return match power {
                3 => write!(f, "{number}"),
                _ if power < 3 => write!(f, "{number}e-{}", (3 - power) * 3),
                _ => write!(f, "{number}e{}", (power - 3) * 3),
            };
        }
        let (number, suffix) = strip(self.nano, 1000, DECIMAL.len());
        write!(f, "{number}{}", DECIMAL[suffix])
    }
}

/// Divides by `base` as often as nothing is lost, at most `suffixes - 1` times.
fn strip(mut number: i128, base: i128, suffixes: usize) -> (i128, usize) {
    let mut times = 0;
    while times + 1 < suffixes && number % base == 0 {
        number /= base;
        times += 1;
    }
    (number, times)
}

#[cfg(test)]
mod tests;
