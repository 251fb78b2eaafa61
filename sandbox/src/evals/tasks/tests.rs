use super::*;

#[test]
fn rows_that_no_task_fits_are_graded_by_what_they_expect() {
    const EXTRACT: &str = "Extract what the note says.";
    const CLASSIFY: &str = "Classify the ticket.";
    const ANSWER: &str = "Answer the question from the text.";
    const WRITE: &str = "Write it for the customer.";
    let long = "We are sorry that it came late and will send you another one at once.";
    let table: [(Value, [&str; 4]); 14] = [
        // Expected; with each of the four prompts: general (open), -extraction, -classification, -answers.
        (
            json!({"mood": "happy"}),
            ["extraction", "classification", "answers", ""],
        ),
        (
            json!({"when": "on the third working day"}),
            ["extraction", "", "answers", ""],
        ),
        (json!({"reply": long}), [""; 4]),
        (
            json!({"spam": true}),
            ["extraction", "classification", "extraction", "extraction"],
        ),
        (
            json!({"stars": 4}),
            ["extraction", "classification", "extraction", "extraction"],
        ),
        (json!({"part": "A-1", "bin": "7"}), ["extraction"; 4]),
        (json!({"part": "A-1", "count": 3}), ["extraction"; 4]),
        (json!({"parts": ["A-1", "B 2"]}), ["extraction"; 4]),
        (json!({"owner": {"name": "Bo Reed"}}), ["extraction"; 4]),
        (json!({"title": "Late", "body": long}), [""; 4]),
        (json!({"notes": ["short", long]}), [""; 4]),
        (json!({"part": null, "bin": "7"}), ["extraction"; 4]),
        (json!({"part": null, "bin": null}), [""; 4]),
        (json!({}), [""; 4]),
    ];
    for (expected, wanted) in table {
        let row: EvalRow = serde_json::from_value(json!({"expected_output": expected})).unwrap();
        for (prompt, wanted) in [EXTRACT, CLASSIFY, ANSWER, WRITE].iter().zip(wanted) {
            let found = own(prompt, std::slice::from_ref(&row));
            let wanted = match wanted {
                "" => "general".to_owned(),
                kind => format!("general-{kind}"),
            };
            assert_eq!(found.id, wanted, "{expected} {prompt}");
            assert!(Scorer::by_id(&found.default_scorer).is_some());
            assert_eq!(by_id(&found.id), Some(found));
        }
    }
}

#[test]
fn one_row_of_another_shape_decides_for_all() {
    let of = |all: &[Value]| {
        let rows: Vec<EvalRow> = all
            .iter()
            .map(|one| serde_json::from_value(json!({"expected_output": one})).unwrap())
            .collect();
        ExpectedShape::of(&rows)
    };
    let long =
        json!({"a": "one two three four five six seven eight nine ten eleven twelve thirteen"});
    let label = json!({"a": "yes"});
    for (rows, shape) in [
        (vec![label.clone()], ExpectedShape::Label),
        (
            vec![label.clone(), json!({"a": null})],
            ExpectedShape::Label,
        ),
        (
            vec![label.clone(), json!({"a": "one two three four"})],
            ExpectedShape::Text,
        ),
        (vec![label.clone(), long], ExpectedShape::Open),
        (
            vec![label.clone(), json!({"b": "no"})],
            ExpectedShape::Fields,
        ),
        (
            vec![label.clone(), json!({"a": ["yes"]})],
            ExpectedShape::Fields,
        ),
        (vec![label, json!({"a": 1})], ExpectedShape::Scalar),
        (
            vec![json!({"a": false}), json!({"a": 2})],
            ExpectedShape::Scalar,
        ),
    ] {
        assert_eq!(of(&rows), shape, "{rows:?}");
    }
}
