use super::*;

#[test]
fn every_id_is_shown_in_the_allowed_form_and_comes_back() {
    let cases = [
        ("call_1", "call_1"),
        ("toolu_01A-b", "toolu_01A-b"),
        ("functions.Bash:0", "tx_functions_2eBash_3a0"),
        ("call.x:2", "tx_call_2ex_3a2"),
        ("a b", "tx_a_20b"),
        ("é", "tx__c3_a9"),
        // One that looks like a shown one.
        ("tx_", "tx_tx_5f"),
        ("tx_a_2eb", "tx_tx_5fa_5f2eb"),
    ];
    for (id, expected) in cases {
        let shown = shown(id);
        assert_eq!(shown, expected);
        let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
        assert!(shown.bytes().all(is_allowed), "{shown}");
        assert_eq!(restored(&shown).as_deref().unwrap_or(&shown), id);
    }
}

#[test]
fn an_id_that_was_never_shown_is_not_restored() {
    for id in [
        "", "tx", "tx_", "tx_a", "tx_a_2", "tx_a_2g", "tx_a_2E", "tx__ff", "tx_a_41", "call_2e",
    ] {
        assert_eq!(restored(id), None, "{id}");
    }
}
