use super::{super::tasks, *};
use serde_json::json;

fn rows(all: &[Value]) -> Vec<EvalRow> {
    all.iter()
        .map(|row| serde_json::from_value(row.clone()).unwrap())
        .collect()
}

fn open_text() -> &'static Task {
    tasks::by_id("general").unwrap()
}

fn reviews() -> Vec<EvalRow> {
    rows(&[
        json!({"input": {"review": "Lovely."}, "expected_output": {"mood": "happy"}}),
        json!({"input": {"review": "Broke at once."}, "expected_output": {"mood": "sad"}}),
    ])
}

#[test]
fn a_prompt_lines_up_by_the_stem_of_a_field_a_label_or_the_task() {
    let general = open_text();
    let table = [
        ("Tell the mood.", true),
        ("What do these reviews say?", true),
        ("Is the writer happy?", true),
        ("Judge it.", true),
        ("Translate into French.", false),
        ("Broke at once", false),
        ("Tell me about it please", false),
        ("reviewing", true),
    ];

    for (prompt, expected) in table {
        assert_eq!(lines_up(prompt, &reviews(), general), expected, "{prompt}");
    }
}

#[test]
fn names_that_are_fillers_count_in_quotes_or_all_together() {
    let fillers = rows(&[
        json!({"input": {"a": "x"}, "expected_output": {"i": "no"}}),
        json!({"input": {"a": "y"}, "expected_output": {"i": "in"}}),
    ]);
    let table = [
        ("Give `i`.", true),
        ("Say \"no\" or 'in'.", true),
        ("Set the field “a”.", true),
        ("From a tell i.", true),
        ("Bake a cake", false),
        ("I bake it", false),
    ];
    for (prompt, expected) in table {
        let found = lines_up(prompt, &fillers, open_text());
        assert_eq!(found, expected, "{prompt}");
    }
    assert!(!lines_up("Is \"it\" a cake?", &reviews(), open_text()));
}

#[test]
fn every_refusal_suggests_a_prompt_that_would_be_taken() {
    let general = open_text();
    for (given, wanted) in [
        (json!({"a": "x"}), json!({"i": "no"})),
        (json!({"": "x"}), json!({"": "no"})),
        (json!({"?": "x"}), json!({"!": 1})),
        (json!({}), json!({"no": {"of": 1}})),
        (json!({"a`\"": "x"}), json!({"the": true})),
        (
            json!({"x".repeat(600): "x"}),
            json!({"y ".repeat(300): "no"}),
        ),
    ] {
        let rows = rows(&[json!({"input": given, "expected_output": wanted})]);
        let refused = check("Bake cakes", &rows, general).unwrap_err().to_string();
        let suggested: Vec<&str> = refused.split('"').skip(1).step_by(2).collect();

        assert!(!suggested.is_empty(), "{refused}");
        for one in suggested {
            assert!(check(one, &rows, general).is_ok(), "{one}");
        }
    }
}

#[test]
fn names_are_split_and_nested_fields_count() {
    let nested = rows(&[
        json!({"input": {"rawText": "x"}, "expected_output": {"line_items": [{"unitPrice": 3}]}}),
    ]);

    for prompt in ["find the prices", "the raw thing", "every item"] {
        assert!(lines_up(prompt, &nested, open_text()), "{prompt}");
    }
}

#[test]
fn a_refusal_suggests_prompts_that_would_be_taken() {
    let contact = crate::catalog::task("contact-extraction").unwrap();
    let contacts: Vec<EvalRow> = contact
        .examples
        .iter()
        .map(|row| serde_json::from_value(json!(row)).unwrap())
        .collect();

    for (rows, task) in [(reviews(), open_text()), (contacts, contact)] {
        let refused = check("Bake a cake", &rows, task).unwrap_err().to_string();
        let suggested: Vec<&str> = refused.split('"').skip(1).step_by(2).collect();

        assert_eq!(suggested.len(), 2, "{refused}");
        for one in suggested {
            assert!(check(one, &rows, task).is_ok(), "{one}");
        }
    }
    let refused = check("Bake a cake", &reviews(), open_text()).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "prompt does not line up with the data; try \"Classify the review as happy or sad.\" or \"Give mood for each review.\""
    );
}
