//! Which part of a model's text is the answer.

use super::*;

#[test]
fn the_answer_is_found_in_prose_fences_and_bare_text() {
    let one = json!({"label": "refund"});
    let two = json!({"a": 1, "b": 2});
    let list = json!({"ranking": ["x", "y"]});
    let code = json!({"code": "x = {}\n"});
    let cases = [
        // JSON alone.
        (&two, r#"{"a": 1, "b": 2}"#, json!({"a": 1, "b": 2})),
        (&two, " \n{\"a\": 1}\n ", json!({"a": 1})),
        // In a fence, with and without a language.
        (&two, "```json\n{\"a\": 1}\n```", json!({"a": 1})),
        (&two, "Here:\n```\n{\"a\": 1}\n```\nDone.", json!({"a": 1})),
        // In prose.
        (
            &two,
            r#"I find {"a": 1, "b": 3}, all in all."#,
            json!({"a": 1, "b": 3}),
        ),
        // The object with most of the names; of equals the last.
        (
            &two,
            r#"{"a": 0} then {"a": 1, "b": 2} or {"c": 3}"#,
            json!({"a": 1, "b": 2}),
        ),
        (&two, r#"first {"a": 1}, no: {"a": 2}"#, json!({"a": 2})),
        // Braces that are no JSON before it.
        (&two, r#"the set {x} and {"a": 1}"#, json!({"a": 1})),
        // An object with none of the names, when several are expected.
        (&two, r#"{"c": 1}"#, json!({"c": 1})),
        // A label as it is, quoted, bold, with a full stop.
        (&one, "refund", json!({"label": "refund"})),
        (&one, " Refund.\n", json!({"label": "Refund"})),
        (&one, "\"refund\"", json!({"label": "refund"})),
        (&one, "**refund**.", json!({"label": "refund"})),
        (&one, r#"{"label": "refund"}"#, json!({"label": "refund"})),
        (
            &one,
            "The answer is `{\"label\": \"x\"}`.",
            json!({"label": "x"}),
        ),
        // A list for a field that is one.
        (&list, r#"["y", "x"]"#, json!({"ranking": ["y", "x"]})),
        (&list, "```json\n[\"y\"]\n```", json!({"ranking": ["y"]})),
        (&list, "x > y", json!({"ranking": "x > y"})),
        // Code, whose braces are no answer.
        (&code, "```python\nx = {}\n```", json!({"code": "x = {}"})),
        (&code, "y = {\"a\": 1}", json!({"code": "y = {\"a\": 1}"})),
    ];
    for (expected, text, wanted) in cases {
        assert_eq!(read_answer(text, expected), Ok(wanted), "{text}");
    }
}

#[test]
fn an_object_of_scores_in_a_text_is_the_single_field() {
    let expected = json!({"relevance": {"p1": 2, "p2": 0}});

    let answer = read_answer("Scores: {\"p1\": 0.9, \"p2\": 0.1}", &expected);

    let wanted = json!({"relevance": {"p1": 0.9, "p2": 0.1}});
    assert_eq!(answer, Ok(wanted));
}

#[test]
fn several_fields_and_no_object_have_a_reason() {
    let expected = json!({"a": 1, "b": 2});
    for text in [
        "",
        "a is 1",
        "{\"a\": 1",
        "[1, 2]",
        "{{{{",
        "```json\n{a}\n```",
    ] {
        let refused = read_answer(text, &expected).unwrap_err();
        assert_eq!(refused.to_string(), "there is no JSON object in the answer");
    }
    let long = "x".repeat(TEXT_BYTES_MAX + 1);
    let refused = read_answer(&long, &expected).unwrap_err();
    assert!(refused.to_string().contains("1 MiB"));
}

#[test]
fn hostile_texts_are_read_in_bounded_time() {
    let expected = json!({"a": 1, "b": 2});
    let hostile = [
        "{".repeat(TEXT_BYTES_MAX),
        "{\"a\":".repeat(TEXT_BYTES_MAX / 5),
        "[{\"a\":[".repeat(TEXT_BYTES_MAX / 7),
        "```".repeat(TEXT_BYTES_MAX / 3),
        "{\"a\":\"".repeat(TEXT_BYTES_MAX / 6),
    ];
    for text in hostile {
        assert!(read_answer(&text, &expected).is_err());
    }
}
