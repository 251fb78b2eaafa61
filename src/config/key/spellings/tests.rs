use super::*;

fn found(secret: &str, text: &str, more_comes: bool) -> Option<Hit> {
    Spellings(secret.as_bytes()).find(text.as_bytes(), more_comes)
}

/// What encoders write of the secret: serde and Python, PHP, Go and .NET, and all that JSON allows.
fn spelled(secret: &str) -> Vec<String> {
    let each = |spell: fn(char) -> String| secret.chars().map(spell).collect::<String>();
    vec![
        each(|letter| match letter {
            '"' | '\\' => format!("\\{letter}"),
            plain => plain.to_string(),
        }),
        each(|letter| match letter {
            '"' | '\\' | '/' => format!("\\{letter}"),
            plain => plain.to_string(),
        }),
        each(|letter| match letter {
            '\\' => "\\\\".to_owned(),
            '"' | '<' | '>' | '&' | '\'' | '+' => format!("\\u{:04X}", u32::from(letter)),
            plain => plain.to_string(),
        }),
        each(|letter| format!("\\u{:04x}", u32::from(letter))),
    ]
}

const SECRETS: [&str; 6] = [
    "sk-0123456789",
    r#"sk-"quoted""#,
    r"sk\back\",
    r#"\"/&<k'+"#,
    r"\\",
    "aabaab",
];

#[test]
fn every_spelling_is_found_where_it_stands() {
    for secret in SECRETS {
        for spelling in spelled(secret).iter().chain([&secret.to_owned()]) {
            for before in ["", "x", r#"{"m":""#, r"\n", r"\u00"] {
                let text = format!("{before}{spelling}\"}}");
                let Some(Hit::Whole(span)) = found(secret, &text, false) else {
                    panic!("{secret} in {text}");
                };
                assert!(span.start <= before.len(), "{secret} in {text}: {span:?}");
                assert!(
                    span.end >= before.len() + spelling.len(),
                    "{secret} in {text}: {span:?}"
                );
            }
        }
    }
}

#[test]
fn a_possible_beginning_of_the_secret_is_found_up_to_its_last_byte() {
    for secret in SECRETS {
        for spelling in spelled(secret) {
            for cut in 1..spelling.len() {
                let text = format!("x {}", &spelling[..cut]);
                match found(secret, &text, true) {
                    Some(Hit::Begins(at)) => assert_eq!(at, 2, "{secret} in {text}"),
                    // As it is, it is all there before the last escape.
                    Some(Hit::Whole(_)) => assert!(text.contains(secret), "{secret} in {text}"),
                    None => panic!("{secret} in {text}"),
                }
            }
        }
    }
}

#[test]
fn what_is_something_else_is_not_found() {
    for (secret, text) in [
        ("sk-0123456789", r"sk-012345678\u0038"),
        ("sk-0123456789", r"\sk-\0123456789"),
        (r#"a"b"#, r#"a\\"c"#),
        ("ab", r"a\u006"),
        ("ab", r"\u0061\n"),
        ("ab", ""),
        ("ab", "a"),
    ] {
        assert_eq!(found(secret, text, false), None, "{secret} in {text}");
    }
    assert_eq!(found("ab", "xa", true), Some(Hit::Begins(1)));
    assert_eq!(found("ab", r"xa\u006", true), Some(Hit::Begins(1)));
    assert_eq!(found("ab", r"xa\u0063", true), None);
    assert_eq!(found("", "x", true), None);
}
