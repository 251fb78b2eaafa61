//! What is kept, for how long, and for whom.

use std::time::Duration;

use super::{Bounds, Given, ITEM_OVERHEAD, Item, Memory, PLACE_OVERHEAD};

const APP: &str = "app";
const NOW: Duration = Duration::from_secs(5);
const HOUR: Duration = Duration::from_hours(1);
const MINUTE: Duration = Duration::from_mins(1);

/// An answer with one item of output, `item_N`, behind `input` bytes.
fn given(number: usize, input: usize) -> Given {
    answer(number, vec![Item::new("x".repeat(input))])
}

fn answer(number: usize, input: Vec<Item>) -> Given {
    let mut conversation = input;
    conversation.push(output(number));
    Given::new(format!("resp_{number}"), conversation)
}

fn output(number: usize) -> Item {
    Item::known_as(format!("item_{number}"), "{}")
}

fn memory(conversations: usize) -> Memory {
    Memory::new(Bounds {
        conversations,
        ..Bounds::default()
    })
}

fn knows(memory: &mut Memory, id: &str) -> bool {
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
    assert!(!knows(&mut memory, "resp_2"));
}

#[test]
fn no_app_finds_what_another_was_given() {
    let mut memory = memory(10_000);
    memory.keep("other", given(1, 3), NOW);
    assert!(!knows(&mut memory, "resp_1") && !knows(&mut memory, "item_1"));
}

#[test]
fn the_eldest_conversation_goes_first_and_its_items_stay() {
    let bound = given(0, 1_000).bytes() * 3;
    let mut memory = memory(bound);
    for number in 0..10 {
        memory.keep(APP, given(number, 1_000), NOW);
    }
    let known: Vec<usize> = (0..10)
        .filter(|number| knows(&mut memory, &format!("resp_{number}")))
        .collect();
    assert_eq!(known, [7, 8, 9]);
    assert!((0..10).all(|number| knows(&mut memory, &format!("item_{number}"))));
}

#[test]
fn items_have_a_bound_of_their_own_and_the_eldest_goes_first() {
    let of_item = "item_0".len() + PLACE_OVERHEAD + 2 + ITEM_OVERHEAD;
    let mut memory = Memory::new(Bounds {
        conversations: 0,
        items: of_item * 3,
        ..Bounds::default()
    });
    for number in 0..9 {
        memory.keep(APP, given(number, 1_000), NOW);
        assert!(memory.bytes() <= of_item * 3);
        // What is used is not the eldest.
        assert!(knows(&mut memory, "item_0"), "{number}");
    }
    let known: Vec<usize> = (0..9)
        .filter(|number| knows(&mut memory, &format!("item_{number}")))
        .collect();
    assert_eq!(known, [0, 7, 8]);
}

#[test]
fn a_chat_with_images_refers_to_its_first_turn_however_many_follow() {
    let mut memory = Memory::new(Bounds::default());
    let image = || Item::new("x".repeat(5 * 1024 * 1024));
    for turn in 0..8 {
        // As the Vercel SDK has it: the user's messages whole, the answers by their ids.
        let mut input = Vec::new();
        for number in 0..turn {
            input.push(image());
            let found = memory.find(APP, &format!("item_{number}"), NOW);
            input.push(found.expect("an earlier turn's item")[0].clone());
        }
        input.push(image());
        memory.keep(APP, answer(turn, input), NOW);
        assert!(memory.bytes() <= 64 * 1024 * 1024);
    }
}

#[test]
fn a_chat_that_goes_on_is_known_after_its_first_hour() {
    let mut memory = Memory::new(Bounds::default());
    let mut now = NOW;
    for turn in 0..10 {
        let mut input = Vec::new();
        for number in 0..turn {
            let found = memory.find(APP, &format!("item_{number}"), now);
            input.push(found.expect("an earlier turn's item")[0].clone());
        }
        memory.keep(APP, answer(turn, input), now);
        now += 10 * MINUTE;
        memory.expire(now);
    }
    // By answers as well: the conversation that goes on has all items.
    let items = memory.find(APP, "resp_9", now).expect("the last answer");
    memory.keep(APP, answer(10, items.to_vec()), now + 50 * MINUTE);
    let later = now + 100 * MINUTE;
    for number in 0..=10 {
        let found = memory.find(APP, &format!("item_{number}"), later);
        assert!(found.is_some(), "{number}");
    }
}

#[test]
fn an_answer_beyond_the_bound_is_not_kept_and_drives_nothing_out() {
    let mut memory = memory(given(1, 100).bytes());
    memory.keep(APP, given(1, 100), NOW);
    memory.keep(APP, given(2, 101), NOW);
    assert!(knows(&mut memory, "resp_1") && !knows(&mut memory, "resp_2"));
}

#[test]
fn an_hour_after_its_last_use_it_is_gone() {
    let mut memory = memory(10_000);
    memory.keep(APP, given(1, 3), NOW);
    let used = NOW + HOUR - Duration::from_millis(1);
    assert!(memory.find(APP, "resp_1", used).is_some());
    assert!(memory.find(APP, "item_1", NOW + HOUR).is_none());
    assert!(memory.find(APP, "resp_1", NOW + HOUR).is_some());
    memory.expire(NOW + HOUR + HOUR - Duration::from_millis(1));
    assert!(memory.bytes() > 0);
    memory.expire(NOW + HOUR + HOUR);
    assert_eq!(memory.bytes(), 0);
    assert!(memory.is_empty());
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
    let mut memory = memory(10_000);
    memory.keep(APP, given(1, 100), NOW);
    let conversation = "resp_1".len() + PLACE_OVERHEAD + 100 + 2 + 2 * ITEM_OVERHEAD;
    let item = "item_1".len() + PLACE_OVERHEAD + 2 + ITEM_OVERHEAD;
    assert_eq!(given(1, 100).bytes(), conversation);
    assert_eq!(memory.bytes(), conversation + item);
}

#[test]
fn an_item_shows_its_size_alone() {
    assert_eq!(format!("{:?}", Item::new("secret")), "Item(6 B)");
}

#[test]
fn all_apps_together_stay_within_their_bound_and_the_eldest_goes_whosever_it_is() {
    let mut memory = memory(10_000);
    memory.keep(APP, given(0, 1_000), NOW);
    let one = memory.bytes();
    let mut memory = Memory::new(Bounds {
        of_all: one * 3,
        ..Bounds::default()
    });
    for number in 0..6 {
        let now = Duration::from_secs(u64::try_from(number).expect("few"));
        memory.keep(&format!("app_{number}"), given(number, 1_000), now);
        assert!(memory.bytes() <= one * 3);
    }
    let mut known = |number: usize| {
        let id = format!("resp_{number}");
        memory.find(&format!("app_{number}"), &id, NOW).is_some()
    };
    let known: Vec<usize> = (0..6).filter(|number| known(*number)).collect();
    assert_eq!(known, [3, 4, 5]);
}
