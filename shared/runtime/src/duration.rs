//! Durations as people write them in flags: `500ms`, `5s`, `2m`, `1h`.

use std::time::Duration;

/// Why a text is not a duration.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum DurationError {
    /// There is no whole number in front of the unit.
    #[error("write a whole number and a unit, such as 500ms, 5s, 2m or 1h")]
    Number,
    /// The unit is missing or not one of ours. A bare number is refused: nobody can tell seconds from milliseconds.
    #[error("the unit must be ms, s, m or h")]
    Unit,
    /// More milliseconds than a `u64` holds.
    #[error("the duration is too long")]
    TooLong,
    /// Nothing, for what is done again and again.
    #[error("the interval must be longer than nothing")]
    Nothing,
}

/// Reads a whole number followed by `ms`, `s`, `m` or `h`.
pub fn parse(text: &str) -> Result<Duration, DurationError> {
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, unit) = text.split_at(digits);
    if number.is_empty() {
        return Err(DurationError::Number);
    }
    let millis_per_unit: u64 = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return Err(DurationError::Unit),
    };
    // Only digits are left, so the one way to fail is overflow.
    let number: u64 = number.parse().map_err(|_| DurationError::TooLong)?;
    number.checked_mul(millis_per_unit).map(Duration::from_millis).ok_or(DurationError::TooLong)
}

/// Reads a duration that something is done again after: an interval of nothing would be a loop that never rests.
pub fn interval(text: &str) -> Result<Duration, DurationError> {
    parse(text).and_then(|interval| if interval.is_zero() { Err(DurationError::Nothing) } else { Ok(interval) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_unit_is_read() {
        assert_eq!(parse("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(parse("5s"), Ok(Duration::from_secs(5)));
        assert_eq!(parse("2m"), Ok(Duration::from_mins(2)));
        assert_eq!(parse("1h"), Ok(Duration::from_hours(1)));
        assert_eq!(parse("0s"), Ok(Duration::ZERO));
    }

    #[test]
    fn what_could_be_misread_is_refused() {
        for (text, error) in [
            ("", DurationError::Number),
            ("s", DurationError::Number),
            ("-5s", DurationError::Number),
            ("5", DurationError::Unit),
            ("5 s", DurationError::Unit),
            ("1.5s", DurationError::Unit),
            ("5S", DurationError::Unit),
            ("99999999999999999999s", DurationError::TooLong),
            ("18446744073709551615h", DurationError::TooLong),
        ] {
            assert_eq!(parse(text), Err(error), "{text:?}");
        }
    }
}
