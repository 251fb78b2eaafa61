use super::*;
use std::collections::BTreeSet;

fn said(user: &str, seed: u64) -> String {
    let mut rng = Rng::from_parts(&[&seed.to_le_bytes()]);
    sentences(user, 3, &mut rng).join(" ")
}

#[test]
fn every_topic_that_is_named_has_its_sentence() {
    for seed in 0..20 {
        let text = said("Tell me about rivers, bridges and ledgers", seed);
        for name in ["river", "bridge", "ledger"] {
            let topic = TOPICS
                .iter()
                .find(|(names, _)| text::listed(name, names))
                .unwrap();
            assert!(topic.1.iter().any(|fact| text.contains(fact)), "{text}");
        }
    }
}

#[test]
fn seeds_differ_and_no_sentence_stands_twice_in_an_answer() {
    let all: BTreeSet<String> = (0..20)
        .map(|seed| said("Tell me about rivers", seed))
        .collect();
    assert!(all.len() > 15, "{}", all.len());
    for text in all {
        let facts: Vec<&str> = text.split_inclusive(". ").collect();
        assert_eq!(
            facts.iter().collect::<BTreeSet<_>>().len(),
            facts.len(),
            "{text}"
        );
    }
}

#[test]
fn a_message_outside_of_the_list_is_quoted_in_the_answer() {
    let text = said("hard: who carved the third door?", 1);
    assert!(
        text.starts_with("You wrote: “who carved the third door?”"),
        "{text}"
    );
    assert!(said("Good morning", 1).len() > 10);
    assert!(!said("", 1).contains('“'));
}

#[test]
fn every_sentence_is_whole() {
    let all = TOPICS.iter().chain(PHRASES.iter());
    for sentence in all.flat_map(|(_, sentences)| sentences) {
        assert!(
            sentence.ends_with('.') && sentence.starts_with(char::is_uppercase),
            "{sentence}"
        );
    }
    assert!(TOPICS.iter().all(|(_, sentences)| sentences.len() >= 5));
    for category in [
        "general-chat",
        "coding",
        "vision",
        "extraction",
        "summarization",
    ] {
        assert!(phrases(category).len() >= 5, "{category}");
    }
    for shape in ["welcome", "offer", "pleasure", "self", "limit", "way"] {
        assert!(phrases(shape).len() >= 4, "{shape}");
    }
}

#[test]
fn why_there_is_no_better_answer_can_stand_behind_any_word_of_what_answers() {
    for sentence in phrases("limit") {
        let words = text::words(sentence);
        assert!(!text::has_any(&words, "it its he she they"), "{sentence}");
    }
}
