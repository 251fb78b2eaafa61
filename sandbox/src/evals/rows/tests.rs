use super::*;

fn error(file: &[u8]) -> String {
    Rows::parse(file).unwrap_err().to_string()
}

#[test]
fn a_file_that_is_not_rows_is_refused_with_line_and_reason() {
    let good = r#"{"input": {}, "expected_output": {}}"#;
    let rows = [
        ("", "items must not be empty"),
        ("\n  \n", "items must not be empty"),
        ("{", "items: line 1: not JSON (column 1)"),
        (
            "[]",
            "items: line 1: must be a JSON object with input and expected_output",
        ),
        (
            r#"{"input": {}}"#,
            "items: line 1: expected_output is missing",
        ),
        (
            r#"{"input": 1, "expected_output": {}}"#,
            "items: line 1: input must be an object",
        ),
        (
            r#"{"input": null, "expected_output": {}}"#,
            "items: line 1: input must be an object",
        ),
        (
            r#"{"input": {}, "expected_output": "x"}"#,
            "items: line 1: expected_output must be an object",
        ),
        (
            r#"{"input": {}, "expected_output": {}, "id": 7}"#,
            "items: line 1: unexpected key id",
        ),
        (
            r#"{"input": {}, "expected_output": {"a": 1}, "expected_output": {}}"#,
            "items: line 1: a key stands twice (column 60)",
        ),
        (
            r#"{"input": {"a": [{"b": 1, "b": 2}]}, "expected_output": {}}"#,
            "items: line 1: a key stands twice (column 29)",
        ),
    ];

    for (file, expected) in rows {
        assert_eq!(error(file.as_bytes()), expected, "{file}");
    }
    let second = format!("{good}\r\n\r\n{{}}\n");
    assert_eq!(
        error(second.as_bytes()),
        "items: line 3: expected_output is missing"
    );
    assert_eq!(error(b"{}\n\xff"), "items: line 2: not UTF-8");
}

#[test]
fn the_first_ten_wrong_lines_are_listed() {
    let text = error("[]\n".repeat(12).as_bytes());

    assert!(
        text.contains("line 10:") && !text.contains("line 11:"),
        "{text}"
    );
    assert!(text.ends_with("; and 2 more"), "{text}");
}

#[test]
fn the_number_of_rows_is_bounded() {
    let row = "{\"input\":{},\"expected_output\":{}}\n";

    assert_eq!(
        Rows::parse(row.repeat(ROWS_MAX).as_bytes())
            .unwrap()
            .rows
            .len(),
        ROWS_MAX
    );
    assert_eq!(
        error(row.repeat(ROWS_MAX + 1).as_bytes()),
        "items: more than 5000 rows"
    );
}

#[test]
fn blank_lines_and_a_byte_order_mark_are_no_rows() {
    let file = "\u{feff}{\"expected_output\":{\"a\":1}}\r\n\n{\"input\":{\"t\":\"x\"},\"expected_output\":{}}";

    let read = Rows::parse(file.as_bytes()).unwrap();

    assert_eq!((read.rows.len(), read.lines), (2, vec![1, 3]));
    assert_eq!(read.rows[0].input, None);
}
