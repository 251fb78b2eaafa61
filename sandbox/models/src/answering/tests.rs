use super::*;

const PAGE: &str = "Boathouse rules\nKeys: the office, ground floor.\nBoats are oiled every 6 months by Ola Berg.\nA canoe weighs 28 kg and is 4.9 m long.\nFees rose from 40 to 45 a season.\nClosed on Mondays.";

fn asked(question: &str) -> String {
    let given = PromptParts {
        page: PAGE.to_owned(),
        named: vec![("question".to_owned(), question.to_owned())],
        ..PromptParts::default()
    };
    answer(&given).unwrap()
}

#[test]
fn the_answer_is_the_part_of_the_page_that_was_asked_for() {
    let rows = [
        ("How often are the boats oiled?", "every 6 months"),
        ("Who oils the boats?", "Ola Berg"),
        ("What does a canoe weigh?", "28 kg"),
        ("What are the new fees?", "45 a season"),
        ("Where are the keys?", "the office, ground floor"),
    ];
    for (question, expected) in rows {
        assert_eq!(asked(question), expected, "{question}");
    }
}
