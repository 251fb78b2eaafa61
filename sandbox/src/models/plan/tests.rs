use super::*;
use serde_json::json;

fn prompt(text: &str) -> Prompt {
    Prompt::of(&[json!({"role": "user", "content": text})])
}

#[test]
fn the_category_follows_from_words_form_and_lane() {
    let rows = [
        (
            "Extract the email from: a@b.co",
            false,
            Lane::Inference,
            "extraction",
        ),
        ("Who is Ada?", true, Lane::Inference, "extraction"),
        ("Write a Rust function", false, Lane::Inference, "coding"),
        (
            "Summarize: rivers run.",
            false,
            Lane::Inference,
            "summarization",
        ),
        ("Summarize: rivers run.", false, Lane::Agent, "general-chat"),
        ("Fix this bug", false, Lane::Agent, "coding"),
        ("Good morning", false, Lane::Inference, "general-chat"),
        (
            "Summarize.\n\nThe fields were bare, and code was scarce.",
            false,
            Lane::Inference,
            "summarization",
        ),
        (
            "Rivers run to the sea.\nSummarize the text.",
            false,
            Lane::Inference,
            "summarization",
        ),
    ];

    for (text, structured, lane, expected) in rows {
        assert_eq!(
            category(&prompt(text), structured, lane).as_str(),
            expected,
            "{text}"
        );
    }
}

#[test]
fn a_reference_to_an_input_that_is_not_there_is_noticed() {
    let rows = [
        (
            "What does the attached document say?",
            Some(MissingInput::Document),
        ),
        ("Describe this image", Some(MissingInput::Image)),
        ("I uploaded a photo of a cat", Some(MissingInput::Image)),
        ("Read this pdf", Some(MissingInput::Document)),
        ("How do I open a file in Rust?", None),
        ("Pay this invoice: 12 USD", None),
        ("I am attached to my cat", None),
    ];

    for (text, expected) in rows {
        assert_eq!(missing_input(&prompt(text)), expected, "{text}");
    }
}
