use super::*;

#[test]
fn the_spend_is_the_whole_number_that_the_config_names() {
    let document =
        br#"{"billed": 7, "a.b": 8, "a": {"b": 9, "c": {"d": 10}}, "big": 9007199254740993}"#;
    for (field, spend) in [
        ("billed", 7),
        ("a.b", 8),
        ("a.c.d", 10),
        ("big", 9_007_199_254_740_993),
    ] {
        assert_eq!(
            spend_in(document, field),
            Ok(MicroUsd::new(spend)),
            "{field}"
        );
    }
}

#[test]
fn another_document_is_an_error_that_lists_what_it_has() {
    let document = br#"{"requests_30d": 3, "rate": 0.5, "spend": {"usd": "1.5", "cents": 150},
        "minus": -4, "none": null, "list": [1], "exp": 1e3}"#;
    let known = "Its whole numbers: requests_30d = 3, spend.cents = 150";
    for (field, says) in [
        ("billed", "has no member \"billed\""),
        ("spend.eur", "has no member \"spend.eur\""),
        ("rate", "is another number"),
        ("minus", "is another number"),
        ("exp", "is another number"),
        ("none", "is null"),
        ("list", "is a list"),
        ("spend", "is an object"),
        ("spend.usd", "is a string"),
    ] {
        let text = spend_in(document, field).unwrap_err().to_string();
        assert!(
            text.contains(says) && text.contains(known),
            "{field}: {text}"
        );
    }
    for document in [&b"[]"[..], b"", b"<html>", b"7"] {
        assert_eq!(spend_in(document, "billed"), Err(FigureError::NoObject));
    }
    let text = spend_in(b"{}", "billed").unwrap_err().to_string();
    assert!(text.ends_with("Its whole numbers: none"), "{text}");
}
