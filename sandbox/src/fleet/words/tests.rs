use super::*;

#[test]
fn a_conversation_is_shown_by_role_and_of_a_long_one_the_newest() {
    let said = |role: &str, text: &str| (role.to_owned(), text.to_owned());
    let short = [said("system", "Be brief."), said("user", "a < b?")];
    assert_eq!(
        asked(&short),
        "<conversation>\n<message role=\"system\">Be brief.</message>\n\
         <message role=\"user\">a &lt; b?</message>\n</conversation>"
    );
    assert_eq!(asked(&short[1..]), "<question>a &lt; b?</question>");

    let long: Vec<_> = (0..100)
        .map(|n| said("user", &format!("{n}. {}", "x".repeat(1_000))))
        .collect();
    let shown = asked(&long);
    assert!(shown.chars().count() < SHOWN_MAX + 1_000);
    assert!(shown.contains("99. x") && shown.contains("70. x") && !shown.contains("1. xx</"));
    assert!(!shown.contains(">10. x"));
    let huge = [
        said("user", "old"),
        said("user", &"x".repeat(SHOWN_MAX * 2)),
    ];
    assert!(asked(&huge).contains("xxx") && !asked(&huge).contains("old"));
}

#[test]
fn a_score_is_one_number_from_0_to_1_and_nothing_is_guessed() {
    let rows = [
        ("0.8", Some(0.8)),
        (" 1\n", Some(1.0)),
        ("Score: 0.25.", Some(0.25)),
        ("<think>maybe 0.3 or 0.4</think>0.9", Some(0.9)),
        ("```json\n{\"score\": 0.5}\n```", Some(0.5)),
        ("8/10", None),
        ("7", None),
        ("-0.5", None),
        ("0.8.1", None),
        ("good", None),
        ("", None),
    ];

    for (said, expected) in rows {
        assert_eq!(score(said), expected, "{said}");
    }
}
