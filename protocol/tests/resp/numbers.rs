//! Numbers are read and printed as real servers do.

use kvlab_protocol::resp::number::{
    DoubleStyle, LongDouble, double_text, format_double, format_long_double_human, parse_f64,
};
use proptest::prelude::*;

use crate::vectors::rows;

#[test]
fn doubles_print_as_recorded() {
    let rows = rows(include_str!("../data/resp/doubles_printed.json"), "doubles");
    for [bits, seventeen, shortest] in rows {
        let value = f64::from_bits(u64::from_str_radix(&bits, 16).unwrap());
        assert_eq!(
            text(value, DoubleStyle::SeventeenDigits),
            seventeen,
            "{bits}"
        );
        assert_eq!(text(value, DoubleStyle::Shortest), shortest, "{bits}");
    }
}

#[test]
fn doubles_that_are_not_finite_have_names() {
    for style in [DoubleStyle::SeventeenDigits, DoubleStyle::Shortest] {
        assert_eq!(text(f64::INFINITY, style), "inf");
        assert_eq!(text(f64::NEG_INFINITY, style), "-inf");
        assert_eq!(text(f64::NAN, style), "nan");
        assert_eq!(text(-f64::NAN, style), "nan");
    }
}

#[test]
fn doubles_read_as_recorded() {
    for [given, expected] in rows(include_str!("../data/resp/doubles_read.json"), "texts") {
        let found = match parse_f64(given.as_bytes()) {
            Some(value) => text(value, DoubleStyle::SeventeenDigits),
            None => "ERR value is not a valid float".to_owned(),
        };
        assert_eq!(found, expected, "{given:?}");
    }
}

#[test]
fn sums_of_long_doubles_are_those_recorded() {
    for [value, increment, expected] in rows(include_str!("../data/resp/float_sums.json"), "sums") {
        let found = incr_by_float(value.as_bytes(), increment.as_bytes());
        assert_eq!(found, expected, "{value:?} + {increment:?}");
    }
}

/// What `INCRBYFLOAT` answers.
fn incr_by_float(value: &[u8], increment: &[u8]) -> String {
    let (Some(value), Some(increment)) = (LongDouble::parse(value), LongDouble::parse(increment))
    else {
        return "ERR value is not a valid float".to_owned();
    };
    match value.checked_add(increment).filter(LongDouble::is_finite) {
        Some(sum) => sum.human_text(),
        None => "ERR increment would produce NaN or Infinity".to_owned(),
    }
}

#[test]
fn long_texts_are_refused() {
    let digits = vec![b'0'; LongDouble::TEXT_MAX];
    assert!(LongDouble::parse(&digits).is_some());
    assert!(LongDouble::parse(&[&digits[..], b"0"].concat()).is_none());
}

#[test]
fn doubles_print_in_human_form() {
    // Exact decimal expansions, cut to 17 places.
    assert_eq!(format_long_double_human(0.1), "0.10000000000000001");
    assert_eq!(format_long_double_human(-1.5), "-1.5");
    assert_eq!(format_long_double_human(-0.0), "0");
    assert_eq!(format_long_double_human(1e23), "99999999999999991611392");
    assert_eq!(format_long_double_human(f64::NEG_INFINITY), "-inf");
    assert_eq!(format_long_double_human(5e-324), "0");
}

fn text(value: f64, style: DoubleStyle) -> String {
    let mut out = Vec::new();
    format_double(value, style, &mut out);
    assert_eq!(out, &*double_text(value, style));
    String::from_utf8(out).unwrap()
}

proptest! {
    #[test]
    fn printed_doubles_read_back(bits: u64) {
        let value = f64::from_bits(bits);
        prop_assume!(value.is_finite());
        for style in [DoubleStyle::SeventeenDigits, DoubleStyle::Shortest] {
            let printed = text(value, style);
            // The standard library reads, so that a fault of ours cannot hide behind another.
            prop_assert_eq!(printed.parse::<f64>().unwrap(), value);
            prop_assert_eq!(parse_f64(printed.as_bytes()), Some(value));
        }
    }

    #[test]
    fn hexadecimal_and_decimal_agree(fraction in 0u64..1 << 53, exponent in -1074i32..=971) {
        let hex = format!("-0x{fraction:x}p{exponent}");
        let power = format!("0x1p{exponent}");
        let power = parse_f64(power.as_bytes()).unwrap();
        prop_assert_eq!(parse_f64(hex.as_bytes()), Some(-(fraction as f64) * power));
    }

    #[test]
    fn long_double_sums_of_whole_numbers_are_exact(a in -1i64 << 62..1 << 62, b in -1i64 << 62..1 << 62) {
        let sum = incr_by_float(a.to_string().as_bytes(), b.to_string().as_bytes());
        prop_assert_eq!(sum, (a + b).to_string());
    }

    #[test]
    fn any_text_is_read_or_refused(text in "[-+]?(0x)?[0-9a-fA-F.]{0,12}([eEpP][-+]?[0-9]{0,7})?") {
        let double = parse_f64(text.as_bytes());
        // Whatever is in range of a double is in range of a long double.
        prop_assert!(double.is_none() || LongDouble::parse(text.as_bytes()).is_some());
    }
}
