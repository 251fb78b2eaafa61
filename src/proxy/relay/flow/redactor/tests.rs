use super::*;

/// A key that overlaps with itself is the hardest to cut; the last ones end and begin in what JSON escapes.
const KEYS: [&str; 6] = [
    "sk-0123456789abcdef",
    "aaaa",
    "abab",
    "a",
    r#"sk"01\23\"#,
    r#"\"a"#,
];

/// As it stands inside of a JSON string.
fn in_json(key: &str) -> String {
    let text = serde_json::to_string(key).unwrap();
    text[1..text.len() - 1].to_owned()
}

fn struck(key: &str, pieces: &[&[u8]]) -> Vec<u8> {
    let mut strike = Redactor::new(ApiKey::from_text(key.as_bytes()).unwrap());
    let mut out = Vec::new();
    for piece in pieces {
        out.extend_from_slice(&strike.pass(Bytes::copy_from_slice(piece)));
        assert!(strike.held.len() < 6 * key.len(), "{key}: too much is held");
    }
    out.extend_from_slice(&strike.rest());
    out
}

#[test]
fn no_chunking_lets_a_key_through_and_lengths_stay() {
    for key in KEYS {
        for text in [
            key.to_owned(),
            format!("x{key}y"),
            format!("{key}{key}"),
            format!("{}{key}", &key[..key.len() - 1]),
            format!("data: {key}\n\n: {key}\n\ndata: [DONE]\n\n"),
            in_json(key),
            format!("data: {}\n\n: {key}\n\n", in_json(key)),
        ] {
            let whole = struck(key, &[text.as_bytes()]);
            for size in 1..=text.len() {
                let pieces: Vec<&[u8]> = text.as_bytes().chunks(size).collect();
                let out = struck(key, &pieces);
                assert_eq!(out.len(), text.len(), "{key}: {text:?} by {size}");
                let shown = String::from_utf8(out.clone()).unwrap();
                assert!(!shown.contains(key), "{key}: {shown:?} by {size}");
                assert!(!shown.contains(&in_json(key)), "{key}: {shown:?} by {size}");
                assert_eq!(out, whole, "{key}: {text:?} by {size}");
            }
        }
    }
}

#[test]
fn other_bytes_pass_as_they_are_and_at_once() {
    let mut strike = Redactor::new(ApiKey::from_text(b"sk-0123456789abcdef").unwrap());
    for text in ["data: {}\n\n", "", "skk", "sk-0123456789abcdeg\n", "\n"] {
        assert_eq!(strike.pass(Bytes::from(text)), text);
    }
    assert_eq!(strike.pass(Bytes::from("ask-01")), "a");
    assert_eq!(strike.pass(Bytes::from("\n")), "sk-01\n");
    assert!(strike.rest().is_empty());
}
