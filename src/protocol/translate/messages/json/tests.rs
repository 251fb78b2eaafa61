use super::*;

#[test]
fn a_spelled_text_is_cut_between_units_only() {
    let cases: [(&str, usize, &[&str]); 12] = [
        ("", 4, &[]),
        ("abc", 1, &["a", "b", "c"]),
        ("abcdef", 4, &["abcd", "ef"]),
        ("aé", 2, &["aé"]),
        ("€€", 1, &["€", "€"]),
        (r"a\nb", 2, &[r"a\n", "b"]),
        (r"\\n", 1, &[r"\\", "n"]),
        (r"\u00e9x", 1, &[r"\u00e9", "x"]),
        (r"\ud83d\ude00x", 1, &[r"\ud83d\ude00", "x"]),
        // Half a pair, two first halves, and a first half before another escape.
        (r"\ud83dx", 1, &[r"\ud83d", "x"]),
        (r"\ud83d\ud83d\ude00", 1, &[r"\ud83d", r"\ud83d\ude00"]),
        (r"\ud83d\u0041", 1, &[r"\ud83d", r"\u0041"]),
    ];
    for (text, bytes, expected) in cases {
        let found: Vec<&str> = pieces(text, bytes).collect();
        assert_eq!(found, expected, "{text} by {bytes}");
    }
}

#[test]
fn what_is_no_spelled_text_is_cut_all_the_same_and_loses_nothing() {
    for text in [r"\", r"\u", r"\u12", r"a\ud83d\ud", r"\é", "\\\u{1F600}"] {
        let found: String = pieces(text, 1).collect();
        assert_eq!(found, text);
    }
}

#[test]
fn only_an_object_is_an_object() {
    let cases = [
        (r#"{"a": 1}"#, Some(r#"{"a": 1}"#)),
        ("  {}\n", Some("{}")),
        (r#"{"half": "\ud83d"}"#, Some(r#"{"half": "\ud83d"}"#)),
        ("", None),
        ("{", None),
        ("{} {}", None),
        ("[]", None),
        (r#""{}""#, None),
        ("null", None),
        (r#"{"a": 1,}"#, None),
    ];
    for (text, expected) in cases {
        assert_eq!(object(text), expected, "{text}");
    }
}

#[test]
fn joined_texts_have_a_blank_line_between_them_and_empty_ones_add_none() {
    let cases: [(&[&str], &str); 5] = [
        (&[], r#""""#),
        (&["a"], r#""a""#),
        (&["a", "b"], r#""a\n\nb""#),
        (&["", "a", "", "b", ""], r#""a\n\nb""#),
        (&[r"\ud83d", r"\ude00"], r#""\ud83d\n\n\ude00""#),
    ];
    for (texts, expected) in cases {
        let mut out = Vec::new();
        push_joined(&mut out, texts);
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}
