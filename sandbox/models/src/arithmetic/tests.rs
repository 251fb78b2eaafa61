use super::*;

#[test]
fn sums_are_exact() {
    let value = |text| solve(text).map(|(_, value)| value);

    assert_eq!(value("What is 12 + 30?"), Some(42));
    assert_eq!(value("compute (2+3)*4 - 6/3"), Some(18));
    assert_eq!(value("7 x 6"), Some(42));
    assert_eq!(value("7 / 2"), None);
    assert_eq!(value("the sum of 3, 4 and 5"), Some(12));
    assert_eq!(value("1 / 0"), None);
    assert_eq!(value("no numbers here"), None);
    assert_eq!(value(&"(".repeat(100_000)), None);
}
