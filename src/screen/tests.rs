use super::*;

#[test]
fn what_turns_ends_or_hides_text_is_written_out_and_all_other_text_is_as_it_came() {
    let table = [
        (
            "\u{1b}[2J\r\n\t\u{7f}\u{85}\u{9b}1m",
            "\\u{1b}[2J\\r\\n\\t\\u{7f}\\u{85}\\u{9b}1m",
        ),
        ("a\u{202e}gnp.b", "a\\u{202e}gnp.b"),
        (
            "\u{202a}\u{202b}\u{202c}\u{202d}",
            "\\u{202a}\\u{202b}\\u{202c}\\u{202d}",
        ),
        (
            "\u{2066}\u{2067}\u{2068}\u{2069}",
            "\\u{2066}\\u{2067}\\u{2068}\\u{2069}",
        ),
        ("\u{200e}\u{200f}\u{61c}", "\\u{200e}\\u{200f}\\u{61c}"),
        ("a\u{2028}b\u{2029}c", "a\\u{2028}b\\u{2029}c"),
        (
            "\u{200b}\u{200c}\u{200d}\u{2060}\u{feff}\u{ad}",
            "\\u{200b}\\u{200c}\\u{200d}\\u{2060}\\u{feff}\\u{ad}",
        ),
        (
            "\u{e0041}\u{e007f}\u{fe0f}",
            "\\u{e0041}\\u{e007f}\\u{fe0f}",
        ),
        (
            "auto \\u{202e} é ß 模型 नमस्ते عربي 🙂 ＝",
            "auto \\u{202e} é ß 模型 नमस्ते عربي 🙂 ＝",
        ),
        ("", ""),
    ];
    for (text, wanted) in table {
        assert_eq!(shown(text), wanted);
    }
}

#[test]
fn a_document_stays_the_same_document() {
    let name = "a\u{202e}b\u{e0041}\u{7f}\n\"\\ é";
    let document = serde_json::json!({ name: [name, 1.5, null] });
    let text = document.to_string();

    let shown = shown_json(&text);

    assert_eq!(
        serde_json::from_str::<serde_json::Value>(&shown).unwrap(),
        document
    );
    assert!(
        shown.contains("\\u202eb\\udb40\\udc41\\u007f\\n"),
        "{shown}"
    );
    assert!(!shown.chars().any(is_unseen));
    assert_eq!(shown_json("{\"a\":\"é\"}"), "{\"a\":\"é\"}");
}
