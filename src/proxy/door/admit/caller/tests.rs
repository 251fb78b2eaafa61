use super::bearer;

#[test]
fn a_token_stands_behind_bearer() {
    for (value, token) in [
        ("Bearer abc", Some("abc")),
        ("bearer abc", Some("abc")),
        ("BEARER   abc ", Some("abc")),
        ("Bearer a b", Some("a b")),
        ("Bearer", None),
        ("Bearer ", None),
        ("Bearerabc", None),
        ("Basic abc", None),
        ("abc", None),
        ("", None),
    ] {
        let found = bearer(value.as_bytes());
        assert_eq!(found, token.map(str::as_bytes), "{value:?}");
    }
}
