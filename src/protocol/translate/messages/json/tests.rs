use super::*;

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
