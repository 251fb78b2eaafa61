use serde_json::json;

use super::*;

#[test]
fn no_cell_of_outside_text_is_a_formula_and_a_number_stays_one() {
    let table = [
        ("=1+1", "'=1+1"),
        ("+1", "'+1"),
        ("-1", "'-1"),
        ("@sum", "'@sum"),
        ("＝1", "'＝1"),
        ("＋1", "'＋1"),
        ("－1", "'－1"),
        ("＠sum", "'＠sum"),
        (" \u{3000}=1", " \u{3000}'=1"),
        ("\"=1", "\"'=1"),
        // Readers that split at semicolons, tabs or bars; and raw control characters are none any more.
        ("a;=1", "a;'=1"),
        ("a; \"@b", "a; \"'@b"),
        ("a;;＝1;-2", "a;;'＝1;'-2"),
        ("a|=1", "a|'=1"),
        ("a,=1", "a,'=1"),
        ("\t=1", "\\t=1"),
        ("a\r\n=1\0\u{85}\u{202e}", "a\\r\\n=1\\u{0}\\u{85}\\u{202e}"),
        ("a=1", "a=1"),
        ("gpt-4o;v2", "gpt-4o;v2"),
        ("", ""),
    ];
    for (text, wanted) in table {
        assert_eq!(harmless(text), wanted);
    }
    assert_eq!(text(&json!(-5)), "-5");
    assert_eq!(text(&json!("-5")), "'-5");
    assert_eq!(text(&json!([1, "=2"])), "1 '=2");
    assert_eq!(text(&Value::Null), "");
}

#[test]
fn a_cell_with_a_comma_a_quote_or_a_line_end_stands_in_quotes() {
    let mut row = Vec::new();
    let cells = ["a", "b,c", "d\"e", "f\ng", ""].map(str::to_owned);
    write_row(&mut row, cells.into_iter()).unwrap();
    assert_eq!(
        String::from_utf8(row).unwrap(),
        "a,\"b,c\",\"d\"\"e\",\"f\ng\",\n"
    );
}
