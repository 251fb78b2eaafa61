use super::*;

#[test]
fn the_first_values_keep_their_names_and_later_ones_are_other() {
    let labels = FirstSeen::new(2);

    let held: Vec<_> = ["a", "b", "c", "a", "b", "c"]
        .into_iter()
        .map(|value| labels.hold(value))
        .collect();

    assert_eq!(held, ["a", "b", OTHER, "a", "b", OTHER]);
}

#[test]
fn a_malformed_value_takes_no_place() {
    let labels = FirstSeen::new(1);
    let long = "x".repeat(VALUE_BYTES_MAX + 1);

    for value in [
        "",
        "two words",
        "quo\"te",
        "back\\slash",
        "ünï",
        long.as_str(),
    ] {
        assert_eq!(labels.hold(value), OTHER);
    }
    assert_eq!(labels.hold("fine"), "fine");
}
