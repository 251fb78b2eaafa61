//! What is kept, for how long, and for whom.

use std::time::Duration;

use super::{Bounds, Given, ITEM_OVERHEAD, Item, Memory};

const APP: &str = "app";
const NOW: Duration = Duration::from_secs(5);

/// An answer with one item of output, `item_N`, behind `input` bytes.
fn given(number: usize, input: usize) -> Given {
    let output = (format!("item_{number}"), Item::new("{}"));
    Given::new(
        format!("resp_{number}"),
        vec![Item::new("x".repeat(input))],
        vec![output],
    )
}

fn memory(bytes: usize) -> Memory {
    Memory::new(Bounds {
        bytes,
        ..Bounds::default()
    })
}

fn knows(memory: &Memory, id: &str) -> bool {
    memory.find(APP, id, NOW).is_some()
}

#[test]
fn an_answer_is_found_by_its_id_and_by_those_of_its_items() {
    let mut memory = memory(10_000);
    memory.keep(APP, given(1, 3), NOW);
    let whole = memory.find(APP, "resp_1", NOW).expect("the conversation");
    let texts: Vec<&str> = whole.iter().map(Item::json).collect();
    assert_eq!(texts, ["xxx", "{}"]);
    let item = memory.find(APP, "item_1", NOW).expect("the item");
    assert_eq!(item.iter().map(Item::json).collect::<Vec<_>>(), ["{}"]);
    assert!(!knows(&memory, "resp_2"));
}

#[test]
fn no_app_finds_what_another_was_given() {
    let mut memory = memory(10_000);
    memory.keep("other", given(1, 3), NOW);
    assert!(!knows(&memory, "resp_1") && !knows(&memory, "item_1"));
}

#[test]
fn the_eldest_answer_goes_first_and_whole_and_the_sum_stays_within_the_bound() {
    let bound = given(0, 1_000).bytes() * 3;
    let mut memory = memory(bound);
    for number in 0..10 {
        memory.keep(APP, given(number, 1_000), NOW);
        assert!(memory.bytes() <= bound);
    }
    let known: Vec<usize> = (0..10)
        .filter(|number| knows(&memory, &format!("resp_{number}")))
        .collect();
    assert_eq!(known, [7, 8, 9]);
    assert!(!knows(&memory, "item_6") && knows(&memory, "item_7"));
}

#[test]
fn an_answer_beyond_the_bound_is_not_kept_and_drives_nothing_out() {
    let mut memory = memory(given(1, 100).bytes());
    memory.keep(APP, given(1, 100), NOW);
    memory.keep(APP, given(2, 101), NOW);
    assert!(knows(&memory, "resp_1") && !knows(&memory, "resp_2"));
}

#[test]
fn an_hour_later_it_is_gone() {
    let mut memory = memory(10_000);
    memory.keep(APP, given(1, 3), NOW);
    let hour = Duration::from_secs(3_600);
    let just_before = NOW + hour - Duration::from_millis(1);
    assert!(memory.find(APP, "resp_1", just_before).is_some());
    assert!(memory.find(APP, "resp_1", NOW + hour).is_none());
    memory.expire(just_before);
    assert!(memory.bytes() > 0);
    memory.expire(NOW + hour);
    assert_eq!(memory.bytes(), 0);
}

#[test]
fn the_same_answer_twice_counts_once() {
    let mut memory = memory(10_000);
    memory.keep(APP, given(1, 3), NOW);
    let bytes = memory.bytes();
    memory.keep(APP, given(1, 3), NOW);
    assert_eq!(memory.bytes(), bytes);
}

#[test]
fn bytes_count_texts_names_and_what_they_cost_beside() {
    let bytes = given(1, 100).bytes();
    assert_eq!(
        bytes,
        "resp_1".len() + 100 + 2 + "item_1".len() + 3 * ITEM_OVERHEAD
    );
}

#[test]
fn an_item_shows_its_size_alone() {
    assert_eq!(format!("{:?}", Item::new("secret")), "Item(6 B)");
}

#[test]
fn all_apps_together_stay_within_their_bound_and_the_eldest_answer_goes_whosever_it_is() {
    let one = given(0, 1_000).bytes();
    let mut memory = Memory::new(Bounds {
        of_all: one * 3,
        ..Bounds::default()
    });
    for number in 0..6 {
        let now = Duration::from_secs(u64::try_from(number).expect("few"));
        memory.keep(&format!("app_{number}"), given(number, 1_000), now);
        assert!(memory.bytes() <= one * 4);
    }
    let known = |number: usize| {
        let id = format!("resp_{number}");
        memory.find(&format!("app_{number}"), &id, NOW).is_some()
    };
    let known: Vec<usize> = (0..6).filter(|number| known(*number)).collect();
    assert_eq!(known, [3, 4, 5]);
}
