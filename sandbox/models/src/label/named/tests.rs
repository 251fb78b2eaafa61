use super::*;

#[test]
fn labels_are_read_as_people_name_them() {
    for (text, expected) in [
        (
            "Classify the sentiment as positive, negative or neutral",
            "positive negative neutral",
        ),
        ("Is this review positive or negative?", "positive negative"),
        (
            "Answer with one of: refund, cancel, other.",
            "refund cancel other",
        ),
        ("Labels: `spam` | `ham`", "spam ham"),
        (
            "Decide whether the message is urgent or normal for the desk",
            "urgent normal",
        ),
        (
            "Label each ticket with billing, technical, or account.",
            "billing technical account",
        ),
        (
            "Choose the category:\n- shipping\n- returns",
            "shipping returns",
        ),
        (
            "Sort the mail into \"to do\", \"to read\" and \"to keep\" or junk",
            "to do|to read|to keep|junk",
        ),
    ] {
        let split = if text.contains("junk") { '|' } else { ' ' };
        let expected: Vec<&str> = expected.split(split).collect();
        assert_eq!(labels(text), expected, "{text}");
    }
}

#[test]
fn what_offers_no_choice_names_no_labels() {
    for text in [
        "Summarize as short and clear as you can",
        "Write a Rust function that reverses a string",
        "Extract the name, the date and the amount",
        "Tell me about rivers, bridges and ledgers",
        "What is 12 + 30?",
        "Compare tea and coffee in a table",
    ] {
        assert_eq!(labels(text), [] as [&str; 0], "{text}");
    }
}
