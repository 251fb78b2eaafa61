use super::*;

/// An operator's order and a hello hand no lines over.
#[test]
fn what_is_wrong_with_data_is_in_the_lines_where_a_call_hands_lines_over() {
    let lines = "the fleet's database refused lines for what is in them: no";
    let refused = "the fleet's database refused: no";
    let revoked = "the ledger was revoked";
    // The state of SQL, what is said of a call that hands lines over, and of any other.
    let cases = [
        ("23514", lines, refused),
        ("22P02", lines, refused),
        ("BF005", lines, lines),
        ("BF009", refused, refused),
        ("57014", refused, refused),
        ("BF002", revoked, revoked),
    ];
    for (code, of_lines, of_others) in cases {
        let state = SqlState::from_code(code);
        for (error, wanted) in [
            (FleetError::refusal_of_lines(&state, "no"), of_lines),
            (FleetError::refusal(&state, "no"), of_others),
        ] {
            let said = error.to_string();
            assert!(said.starts_with(wanted), "{code}: {said}");
            assert_eq!(said.ends_with(&format!("no ({code})")), wanted != revoked);
        }
    }
}
