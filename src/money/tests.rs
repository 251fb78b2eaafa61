//! Amount grammar, display and checked sums.

use super::MicroUsd;

#[test]
fn only_one_to_fifteen_digits_are_an_amount() {
    let cases: &[(&[u8], Option<u64>)] = &[
        (b"0", Some(0)),
        (b"007", Some(7)),
        (b"999999999999999", Some(999_999_999_999_999)),
        (b"1000000000000000", None),
        (b"", None),
        (b"-1", None),
        (b"+1", None),
        (b" 1", None),
        (b"1 ", None),
        (b"1.0", None),
        (b"1e3", None),
        (b"0x10", None),
        ("１".as_bytes(), None),
    ];
    for (text, expected) in cases {
        let parsed = MicroUsd::parse(text).map(MicroUsd::get);
        assert_eq!(parsed, *expected, "{}", text.escape_ascii());
    }
}

#[test]
fn display_is_exact_to_the_micro_dollar() {
    assert_eq!(MicroUsd::new(1_234).to_string(), "$0.001234");
    assert_eq!(MicroUsd::new(12_000_001).to_string(), "$12.000001");
    assert_eq!(format!("{:>12}", MicroUsd::new(1)), "   $0.000001");
}

#[test]
fn a_sum_that_does_not_fit_is_refused() {
    assert_eq!(MicroUsd::new(u64::MAX).checked_add(MicroUsd::new(1)), None);
    assert_eq!(MicroUsd::new(1).checked_sub(MicroUsd::new(2)), None);
}
