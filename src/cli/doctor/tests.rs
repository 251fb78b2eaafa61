use super::*;

#[test]
fn the_page_for_operators_has_the_table_of_the_checks() {
    let page = include_str!("../../../docs/operations.md");
    for DoctorCheck {
        name, what, remedy, ..
    } in &CHECKS
    {
        let row = format!("| {name} | {what} | {remedy} |");
        assert!(page.contains(&row), "docs/operations.md lacks:\n{row}");
    }
}

#[test]
fn a_line_has_the_remedy_of_what_fails_and_no_control_of_the_terminal() {
    let row = CheckDocument {
        check: "key",
        what: "it is taken",
        verdict: CheckVerdict::FAIL,
        found: "it\n\u{1b}[2Jis refused".to_owned(),
        remedy: Some("another one".to_owned()),
    };
    let line = row.line();
    assert!(line.starts_with("FAIL  key              it"), "{line:?}");
    assert!(line.ends_with("refused. Remedy: another one"), "{line:?}");
    assert!(!line.contains(['\n', '\u{1b}']), "{line:?}");
}
