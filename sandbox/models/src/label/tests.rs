use super::*;
use serde_json::json;

fn chosen(text: &str, labels: &[&str]) -> String {
    let choices: Vec<Value> = labels.iter().map(|label| json!(label)).collect();
    let given = PromptParts::plain(text);
    let value = choose(&given, text, &choices, Skills::frontier()).unwrap();
    value.as_str().unwrap().to_owned()
}

#[test]
fn a_label_is_chosen_by_what_it_means_whatever_it_is_called() {
    let rows = [
        (
            "What a lovely room, I adore the view.",
            vec!["happy", "sad"],
            "happy",
        ),
        (
            "What a lovely room, I adore the view.",
            vec!["bad", "good"],
            "good",
        ),
        (
            "I am not happy with the broken handle.",
            vec!["positive", "negative", "neutral"],
            "negative",
        ),
        (
            "Not bad, I must say.",
            vec!["positive", "negative", "neutral"],
            "positive",
        ),
        (
            "The box holds a lamp.",
            vec!["positive", "negative", "neutral"],
            "neutral",
        ),
        (
            "Please send my money back.",
            vec!["refund", "cancel", "other"],
            "refund",
        ),
    ];
    for (text, labels, expected) in rows {
        assert_eq!(chosen(text, &labels), expected, "{text}");
    }
}

#[test]
fn labels_without_a_known_meaning_are_learnt_from_examples_in_the_prompt() {
    let prompt = "Label the fruit.\napples from the orchard -> zig\nboats in the harbour -> zag\n\nAn orchard of pears";
    let choices = [json!("zag"), json!("zig")];
    let given = PromptParts {
        text: "An orchard of pears".to_owned(),
        ..PromptParts::default()
    };

    assert_eq!(
        choose(&given, prompt, &choices, Skills::frontier()),
        Some(json!("zig"))
    );
}

#[test]
fn praise_of_a_nuisance_is_blame_when_read_between_the_lines() {
    let given = PromptParts::plain("Wonderful, it crashed again.");
    let choices = [json!("positive"), json!("negative")];
    let of = |skills| choose(&given, "", &choices, skills).unwrap();

    assert_eq!(of(Skills::frontier()), "negative");
    assert_eq!(of(Skills::without(&[Skill::BetweenLines])), "positive");
}
