//! Text to nano units, without a floating point number on the way.

use super::{NANO, Notation, Quantity, QuantityError};

/// Binary quantities are capped here (units), as the server does.
const MOST_BINARY: i128 = i64::MAX as i128;

/// Digits that always fit an `i128`.
const MOST_DIGITS: u32 = 38;

/// Digits of [`MOST_BINARY`].
const MOST_BINARY_DIGITS: usize = 19;

pub(super) fn parse(text: &str) -> Result<Quantity, QuantityError> {
    let (negative, unsigned) = match text.as_bytes().first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    };
    let (whole, rest) = digits(unsigned);
    let (fraction, suffix) = rest.strip_prefix('.').map_or(("", rest), digits);
    if whole.is_empty() && fraction.is_empty() {
        return Err(QuantityError::Number);
    }
    let (magnitude, notation) = match scale(suffix)? {
        Scale::Ten { power, notation } => (decimal(whole, fraction, power), notation),
        Scale::Two { power } => {
            let nano = binary(whole, fraction, power);
            // Less than one unit has no binary form.
            (nano, if nano < NANO { Notation::Decimal } else { Notation::Binary })
        }
    };
    Ok(Quantity { nano: if negative { -magnitude } else { magnitude }, notation })
}

/// Leading digits, and what follows them.
fn digits(text: &str) -> (&str, &str) {
    text.split_at(text.bytes().take_while(u8::is_ascii_digit).count())
}

enum Scale {
    Ten { power: i32, notation: Notation },
    Two { power: u32 },
}

fn scale(suffix: &str) -> Result<Scale, QuantityError> {
    let ten = |power| Ok(Scale::Ten { power, notation: Notation::Decimal });
    let two = |power| Ok(Scale::Two { power });
    match suffix {
        "n" => ten(-9),
        "u" => ten(-6),
        "m" => ten(-3),
        "" => ten(0),
        "k" => ten(3),
        "M" => ten(6),
        "G" => ten(9),
        "T" => ten(12),
        "P" => ten(15),
        "E" => ten(18),
        "Ki" => two(10),
        "Mi" => two(20),
        "Gi" => two(30),
        "Ti" => two(40),
        "Pi" => two(50),
        "Ei" => two(60),
        _ => {
            let exponent = suffix.strip_prefix(['e', 'E']).ok_or(QuantityError::Suffix)?;
            let power: i64 = exponent.parse().map_err(|_| QuantityError::Suffix)?;
            #[expect(clippy::cast_possible_truncation, reason = "the server keeps the low 32 bits, so must we")]
            let power = power as i32;
            Ok(Scale::Ten { power, notation: Notation::Exponent })
        }
    }
}

/// `whole.fraction` times ten to the `power`, in nano units, rounded up.
fn decimal(whole: &str, fraction: &str, power: i32) -> i128 {
    let significant: Vec<u8> = whole.bytes().chain(fraction.bytes()).skip_while(|&digit| digit == b'0').collect();
    if significant.is_empty() {
        return 0;
    }
    // How many digits stand before the point once the amount is in nano units.
    let leading_zeros = whole.len() + fraction.len() - significant.len();
    let before_point = as_i64(whole.len()) - as_i64(leading_zeros) + i64::from(power) + 9;
    if before_point > i64::from(MOST_DIGITS) {
        return i128::MAX;
    }
    let kept = usize::try_from(before_point).unwrap_or(0);
    let mut nano: i128 = 0;
    for place in 0..kept {
        let digit = significant.get(place).map_or(0, |digit| i128::from(digit - b'0'));
        nano = nano * 10 + digit;
    }
    let dropped = significant.get(kept..).unwrap_or_default();
    let rounded = nano + i128::from(dropped.iter().any(|&digit| digit != b'0'));
    if rounded == 10_i128.pow(MOST_DIGITS) { i128::MAX } else { rounded }
}

/// `whole.fraction` times two to the `power`, in nano units, rounded up and capped.
fn binary(whole: &str, fraction: &str, power: u32) -> i128 {
    let most = MOST_BINARY * NANO;
    let units = whole.trim_start_matches('0');
    if units.len() > MOST_BINARY_DIGITS {
        return most;
    }
    let units = number(units) << power;

    // From the last digit to the first, each a tenth of what it adds to, so that any number of them fits and is exact.
    let (mut nano, mut is_rounded) = (0, false);
    for digit in fraction.bytes().rev() {
        let tenths = i128::from(digit - b'0') * (NANO << power) + nano;
        nano = tenths / 10;
        is_rounded |= tenths % 10 != 0;
    }
    let nano = nano + i128::from(is_rounded);
    units.min(MOST_BINARY).saturating_mul(NANO).saturating_add(nano).min(most)
}

/// At most 19 digits as a number.
fn number(digits: &str) -> i128 {
    digits.bytes().fold(0, |number, digit| number * 10 + i128::from(digit - b'0'))
}

fn as_i64(length: usize) -> i64 {
    i64::try_from(length).unwrap_or(i64::MAX)
}
