mod skill;

use super::*;

fn rows(all: &[Value]) -> Vec<EvalRow> {
    all.iter()
        .map(|row| serde_json::from_value(row.clone()).unwrap())
        .collect()
}

#[test]
fn without_a_task_the_rows_decide_the_form_of_the_answer() {
    let mixed = rows(&[
        json!({"expected_output": {"n": 1, "t": "x"}}),
        json!({"expected_output": {"n": null}}),
    ]);
    let text = rows(&[json!({"expected_output": {"reply": "Thanks"}})]);

    assert_eq!(
        shape_of(&mixed),
        json!({
            "type": "object",
            "properties": {"n": {"type": ["number", "null"]}, "t": {"type": "string"}},
            "required": ["n"],
        })
    );
    assert!(!is_one_text(&shape_of(&mixed)));
    assert!(is_one_text(&shape_of(&text)));
    let label = json!({"properties": {"label": {"type": "string", "enum": ["a"]}}});
    assert!(!is_one_text(&label));
}

#[test]
fn a_document_is_a_part_of_its_kind() {
    let kind = |url| part("scan", url)["type"].clone();

    assert_eq!(kind("data:image/png;base64,AA=="), "image_url");
    assert_eq!(kind("data:audio/wav;base64,AA=="), "input_audio");
    assert_eq!(kind("data:application/pdf;base64,AA=="), "file");
}
