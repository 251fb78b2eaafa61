use super::*;

#[test]
fn a_name_is_fit_for_a_label_and_a_file() {
    let long = "a".repeat(32);
    for name in [
        "a",
        "0",
        "nightly",
        "team-b_2.x",
        &long,
        "default",
        "others",
    ] {
        assert_eq!(App::check_name(name), Ok(()), "{name}");
    }
    let too_long = "a".repeat(33);
    for name in [
        "", "A", ".a", "-a", "_a", "a b", "a/b", "a\"", "ä", "a\n", "..", &too_long,
    ] {
        assert_eq!(App::check_name(name), Err(NameError::Form), "{name:?}");
    }
    for reserved in ["all", "other"] {
        assert!(
            matches!(App::check_name(reserved), Err(NameError::Reserved { word, .. }) if word == reserved),
            "{reserved}"
        );
    }
}
