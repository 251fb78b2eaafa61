use super::*;

#[test]
fn a_ledger_that_left_without_its_database_is_named_as_an_operator_revokes_it() {
    let ledger = Uuid::from_u128(0x12_3456_789a_bcde);
    let said = untold(ledger);
    for wanted in [
        "the fleet was not told",
        "`bursar fleet revoke 3456789abcde`",
    ] {
        assert!(said.contains(wanted), "{said}");
    }
}
