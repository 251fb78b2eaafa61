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

#[test]
fn a_value_that_is_named_has_room_beside_the_first_ones_as_long_as_there_is_any() {
    let labels = FirstSeen::new(2);
    for first in ["a", "b"] {
        labels.hold(first);
    }

    labels.name(["c", "two words", "d", "e"]);

    for (value, label) in [("a", "a"), ("c", "c"), ("d", "d"), ("e", OTHER)] {
        assert_eq!(labels.hold(value), label);
    }
    assert_eq!(labels.hold("two words"), OTHER);
}

/// Its series would begin with what `other` loses, and both would be taken for spend of this moment.
#[test]
fn what_was_other_once_stays_it() {
    let labels = FirstSeen::new(1);
    for value in ["a", "b"] {
        labels.hold(value);
    }

    labels.name(["b", "c"]);

    assert_eq!(labels.hold("b"), OTHER);
    assert_eq!(labels.hold("c"), "c");
}

/// Of so many it is not known any more which were `other`.
#[test]
fn where_too_many_were_other_none_is_named_later() {
    let labels = FirstSeen::new(1);
    for number in 0..OTHERS_MAX + 2 {
        labels.hold(&format!("v{number}"));
    }

    labels.name(["new"]);

    assert_eq!(labels.hold("new"), OTHER);
}
