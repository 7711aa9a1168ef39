//! Quantities once more, as a child would do them: digit by digit, without a machine word that could overflow.

use std::cmp::Ordering;

/// What a quantity is kept to: 10^-9 units.
const NANO_PLACES: usize = 9;

/// Digits of the largest amount that is told from a larger one, in nano units.
const MOST_DIGITS: usize = 38;

/// The largest amount written with a binary suffix, in units: 2^63-1.
const MOST_BINARY: &str = "9223372036854775807";

/// A whole number of nano units.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decimal {
    negative: bool,
    /// From the most significant, which is not 0; none for zero.
    digits: Vec<u8>,
}

impl Decimal {
    /// Reads a quantity, rounded away from zero; `None` where the text is none.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
        let end = unsigned.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(unsigned.len());
        let (number, suffix) = unsigned.split_at(end);
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if fraction.contains('.') || (whole.is_empty() && fraction.is_empty()) {
            return None;
        }
        let mut digits: Vec<u8> = whole.bytes().chain(fraction.bytes()).map(|digit| digit - b'0').collect();
        let mut shift = i64::try_from(NANO_PLACES).ok()? - i64::try_from(fraction.len()).ok()?;
        let binary = match suffix.as_bytes() {
            [letter, b'i'] => "KMGTPE".find(char::from(*letter)),
            _ => None,
        };
        match (binary, suffix) {
            (Some(place), _) => (0..=place).for_each(|_| multiply(&mut digits, 1024)),
            (_, "") => {}
            (_, "n" | "u" | "m" | "k" | "M" | "G" | "T" | "P" | "E") => {
                shift += 3 * (i64::try_from("num kMGTPE".find(suffix)?).ok()? - 3);
            }
            _ => {
                let exponent: i64 = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
                // The API server keeps the low 32 bits.
                #[expect(clippy::cast_possible_truncation, reason = "that is what it does")]
                let exponent = exponent as i32;
                shift += i64::from(exponent);
            }
        }
        let mut decimal = Self { negative: false, digits: shifted(digits, shift) };
        if binary.is_some() {
            let most = Self { negative: false, digits: shifted(numerals(MOST_BINARY), 9) };
            decimal = decimal.min(most);
        }
        if decimal.digits.len() > MOST_DIGITS {
            // All as large: what is beyond the range is not told apart.
            decimal.digits = vec![9; MOST_DIGITS + 1];
        }
        decimal.negative = text.starts_with('-') && !decimal.is_zero();
        Some(decimal)
    }

    /// Exactly nothing.
    #[must_use]
    pub fn is_zero(&self) -> bool {
        self.digits.is_empty()
    }

    /// Less than nothing.
    #[must_use]
    pub fn is_negative(&self) -> bool {
        self.negative
    }
}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Decimal {
    fn cmp(&self, other: &Self) -> Ordering {
        let magnitude = || self.digits.len().cmp(&other.digits.len()).then_with(|| self.digits.cmp(&other.digits));
        match (self.negative, other.negative) {
            (false, false) => magnitude(),
            (true, true) => magnitude().reverse(),
            (left, right) => right.cmp(&left),
        }
    }
}

fn numerals(text: &str) -> Vec<u8> {
    text.bytes().map(|digit| digit - b'0').collect()
}

/// As long multiplication on paper.
fn multiply(digits: &mut Vec<u8>, by: u32) {
    let mut carry = 0;
    for digit in digits.iter_mut().rev() {
        carry += u32::from(*digit) * by;
        *digit = ones(carry);
        carry /= 10;
    }
    while carry > 0 {
        digits.insert(0, ones(carry));
        carry /= 10;
    }
}

fn ones(number: u32) -> u8 {
    u8::try_from(number % 10).unwrap_or_default()
}

/// Times ten to the power `by`, without leading zeros; what falls behind the point counts as one more.
fn shifted(digits: Vec<u8>, by: i64) -> Vec<u8> {
    let mut digits: Vec<u8> = digits.into_iter().skip_while(|&digit| digit == 0).collect();
    if digits.is_empty() {
        return digits;
    }
    if by >= 0 {
        // More than this is beyond the range anyhow.
        let zeros = usize::try_from(by).unwrap_or(usize::MAX).min(MOST_DIGITS + 1);
        digits.resize(digits.len() + zeros, 0);
        return digits;
    }
    let dropped = usize::try_from(by.unsigned_abs()).unwrap_or(usize::MAX).min(digits.len());
    let rest = digits.split_off(digits.len() - dropped);
    let more = rest.iter().any(|&digit| digit != 0);
    if more {
        let nine = digits.iter().rev().take_while(|&&digit| digit == 9).count();
        let kept = digits.len() - nine;
        digits[kept..].fill(0);
        match kept.checked_sub(1) {
            Some(last) => digits[last] += 1,
            None => digits.insert(0, 1),
        }
    }
    digits
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decimal(text: &str) -> Decimal {
        Decimal::parse(text).unwrap_or_else(|| panic!("{text}"))
    }

    #[test]
    fn amounts_are_what_the_api_server_takes_them_for() {
        for (written, nano) in [
            ("1n", "1"),
            ("1", "1000000000"),
            ("1.5m", "1500000"),
            ("0.0000000001", "1"),
            ("0.0000000000", ""),
            ("9.9999999999n", "10"),
            ("1Ki", "1024000000000"),
            ("0.5Mi", "524288000000000"),
            ("8Ei", "9223372036854775807000000000"),
            ("12e-6", "12000"),
            ("1e4294967299", "1000000000000"),
            ("1e-999999999", "1"),
            ("1e28", "10000000000000000000000000000000000000"),
        ] {
            assert_eq!(decimal(written).digits, numerals(nano), "{written}");
        }
    }

    #[test]
    fn order_is_by_value() {
        let ordered = ["-1e99", "-2", "-1", "-1n", "0", "1n", "999m", "1", "1Ki", "1.1k", "1e28", "1e99"];
        for pair in ordered.windows(2) {
            assert!(decimal(pair[0]) < decimal(pair[1]), "{pair:?}");
        }
        assert_eq!(decimal("-0"), decimal("0"));
        assert_eq!(decimal("1e30"), decimal("1e99"));
    }

    #[test]
    fn what_is_no_quantity_is_none() {
        for text in ["", "+", ".", "1..2", "1 ", "1K", "1ki", "1Kii", "i", "1i", "1e", "1e1.5", "--1", "1 Gi", "1KMi"] {
            assert_eq!(Decimal::parse(text), None, "{text}");
        }
    }
}
