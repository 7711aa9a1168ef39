use std::cmp::Ordering;

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn quantity(text: &str) -> Quantity {
    Quantity::parse(text).unwrap_or_else(|error| panic!("{text:?} {error}"))
}

#[test]
fn the_canonical_form_is_what_the_server_prints() {
    // Judged once by k8s.io/apimachinery v0.37.2.
    for (written, canonical) in [
        ("0", "0"),
        ("-0", "0"),
        ("000", "0"),
        ("1", "1"),
        ("+1", "1"),
        ("-1", "-1"),
        ("007", "7"),
        ("1.", "1"),
        (".5", "500m"),
        ("1.5", "1500m"),
        ("0.1m", "100u"),
        ("500m", "500m"),
        ("1000m", "1"),
        ("100m", "100m"),
        ("1000", "1k"),
        ("1024", "1024"),
        ("1024Ki", "1Mi"),
        ("1.5Gi", "1536Mi"),
        ("0.5Ki", "512"),
        ("1023.5Ki", "1048064"),
        ("0.0001Ki", "102400u"),
        ("2.1Gi", "2254857830400m"),
        ("0.6G", "600M"),
        ("644245094400m", "644245094400m"),
        ("2254857830400m", "2254857830400m"),
        ("12e6", "12e6"),
        ("12E6", "12e6"),
        ("1e3", "1e3"),
        ("1e1", "10"),
        ("1e-1", "100e-3"),
        ("1E", "1E"),
        ("1e+3", "1e3"),
        ("1.25e2", "125"),
        ("1e-10", "1e-9"),
        ("0.0000000001", "1n"),
        ("1.0000000001n", "2n"),
        ("3.00000000000368547008Ei", "3458764513824789985709817117n"),
        ("0.00000000000000000000001Ki", "1n"),
        ("0.99999999999999999999999999Ki", "1Ki"),
        ("8Ei", "9223372036854775807"),
        ("9223372036854775807", "9223372036854775807"),
        ("9223372036854775808", "9223372036854775808"),
        ("100E", "100E"),
        ("1e4294967299", "1e3"),
    ] {
        assert_eq!(quantity(written).to_string(), canonical, "{written}");
    }
}

#[test]
fn b68_suffixes_are_told_apart_by_case_and_unknown_ones_are_errors() {
    for (written, units) in [
        ("500k", 500_000_i64),
        ("500Ki", 512_000),
        ("1M", 1_000_000),
        ("1Mi", 1_048_576),
        ("1P", 1_000_000_000_000_000),
        ("1Pi", 1_125_899_906_842_624),
        ("1E", 1_000_000_000_000_000_000),
        ("1Ei", 1_152_921_504_606_846_976),
    ] {
        assert_eq!(quantity(written), quantity(&units.to_string()), "{written}");
    }
    for unknown in
        ["500K", "1KI", "1ki", "1mi", "1g", "1Gib", "1GB", "1e", "1E+", "1ee3", "1e1.5", "1 Gi", "1k3", "1,5"]
    {
        assert_eq!(Quantity::parse(unknown), Err(QuantityError::Suffix), "{unknown}");
    }
    for none in ["", ".", "-", "+", "Ki", "k", "e3", "abc", "--1", "0x10", "１", "NaN", "inf"] {
        assert!(Quantity::parse(none).is_err(), "{none}");
    }
}

#[test]
fn b70_thousandths_of_a_byte_are_ordinary_quantities() {
    let odd = quantity("2254857830400m");
    assert!(odd < quantity("3Gi") && odd > quantity("2Gi"));
    assert_eq!(odd, quantity("2.1Gi"));
    assert_eq!(quantity("644245094400m"), quantity("0.6442450944G"));
}

#[test]
fn b15_numbers_in_json_are_quantities_too() {
    for (value, same) in [
        (json!(1), "1"),
        (json!(536_870_912), "512Mi"),
        (json!(0.5), "500m"),
        (json!(1e3), "1k"),
        (json!(" 1Gi "), "1Gi"),
    ] {
        assert_eq!(Quantity::from_json(&value), Ok(quantity(same)), "{value}");
    }
    for value in [json!(null), json!(true), json!([]), json!({})] {
        assert_eq!(Quantity::from_json(&value), Err(QuantityError::Type), "{value}");
    }
}

#[test]
fn amounts_beyond_any_machine_are_still_larger_than_every_ceiling() {
    let digits = "9".repeat(100_000);
    for huge in ["1e2147483647", "99999999999999999999999999E", digits.as_str(), "9999999999999999999999Ei"] {
        assert!(quantity(huge) > quantity("1Ei"));
    }
    let tiny = format!("0.{}1Ei", "0".repeat(100_000));
    assert!(!quantity(&tiny).is_zero());
    assert!(quantity("1e-2147483648") == quantity("1n"));
    assert!(quantity("-1e2147483647").is_negative());
    // Rounding is what leads to the end of the range.
    let end = quantity("99999999999999999999999999999.9999999999");
    assert_eq!(quantity(&end.to_string()), end);
}

#[test]
fn a_multiple_and_a_sum_keep_the_notation() {
    assert_eq!(quantity("512Mi").times(4).to_string(), "2Gi");
    assert_eq!(quantity("500m").times(4).to_string(), "2");
    assert_eq!(quantity("256Mi").plus(quantity("256Mi")).to_string(), "512Mi");
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused_without_a_panic(text in ".*") {
        let _ = Quantity::parse(&text);
    }

    #[test]
    fn what_is_printed_reads_back_as_the_same_amount(
        sign in "[+-]?",
        number in "[0-9]{0,12}(\\.[0-9]{0,12})?",
        suffix in "(n|u|m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei|[eE]-?[0-9]{1,2})?",
    ) {
        if let Ok(quantity) = Quantity::parse(&format!("{sign}{number}{suffix}")) {
            let printed = quantity.to_string();
            prop_assert_eq!(Quantity::parse(&printed), Ok(quantity), "{}", printed);
        }
    }

    #[test]
    fn order_is_that_of_the_numbers(a in -1_000_000_i64..1_000_000, b in -1_000_000_i64..1_000_000) {
        let milli = |number: i64| quantity(&format!("{number}m"));
        let order: Ordering = a.cmp(&b);
        prop_assert_eq!(milli(a).cmp(&milli(b)), order);
        prop_assert_eq!(quantity(&format!("{a}Ki")).cmp(&quantity(&format!("{b}Ki"))), order);
    }
}

#[test]
fn a_size_in_whole_bytes_is_never_more_than_the_size() {
    for (text, bytes) in
        [("256Mi", 268_435_456), ("1.5", 1), ("999m", 0), ("0", 0), ("-1", 0), ("1e30", u64::MAX), ("1k", 1000)]
    {
        assert_eq!(Quantity::parse(text).unwrap().whole_units(), bytes, "{text}");
    }
}
