use super::*;

#[test]
fn a_clock_that_is_more_than_five_seconds_off_is_said_with_its_side() {
    for (ahead_ms, wanted) in [
        (9_000, "is 9 s ahead of the database's"),
        (-9_000, "is 9 s behind the database's"),
    ] {
        let said = skewed(ahead_ms).unwrap();
        assert!(said.contains(wanted), "{said}");
    }
    for ahead_ms in [4_000, 0, -4_000] {
        assert_eq!(skewed(ahead_ms), None, "{ahead_ms} ms");
    }
}
