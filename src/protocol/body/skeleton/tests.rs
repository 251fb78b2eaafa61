use proptest::prelude::*;

use super::*;

fn peek_in(body: &[u8], piece_bytes: usize) -> Option<RequestPeek> {
    let mut skeleton = Skeleton::default();
    for piece in body.chunks(piece_bytes) {
        skeleton.feed(piece);
    }
    assert!(skeleton.kept.len() <= KEPT_BYTES_MAX);
    skeleton.peek()
}

/// Strings that are cut at any place: plain ones, escapes of all kinds, and characters of several bytes.
fn long_texts() -> Vec<String> {
    let units = [
        "a",
        "\\n",
        "\\\\",
        "\\\"",
        "\\u4e2d",
        "中",
        "\\ud83d\\ude00",
        "{[\\\"]},:",
    ];
    let mut texts = Vec::new();
    for unit in units {
        for before in 0..7 {
            texts.push(format!("{}{}", "x".repeat(before), unit.repeat(3000)));
        }
    }
    texts
}

#[test]
fn what_is_read_of_a_long_body_is_what_stands_in_the_whole_in_any_chunking() {
    for text in long_texts() {
        for body in [
            format!(r#"{{"model":"auto","prompt":"{text}","stream":true}}"#),
            format!(
                r#"{{"messages":[{{"content":"{text}"}}, "{text}"], "stream" : true, "model": "a\"b"}}"#
            ),
            format!(r#"{{"prompt":"{text}","model":"one","model":"two"}}"#),
            format!(r#"{{"prompt":["{text}"],"model":["auto"]}}"#),
        ] {
            let whole = RequestPeek::read(body.as_bytes());
            for piece_bytes in [1, 7, 4096, 1_000_000] {
                assert_eq!(
                    peek_in(body.as_bytes(), piece_bytes).as_ref(),
                    Some(&whole),
                    "{body:.60}"
                );
            }
        }
    }
}

#[test]
fn what_cannot_be_read_without_the_whole_is_not() {
    let long = "x".repeat(10_000);
    for body in [
        // The name itself is cut.
        format!(r#"{{"model":"{long}"}}"#),
        format!(r#"{{"model":{{"of":"{long}"}}}}"#),
        format!(r#"{{"model":"auto","stream":"{long}"}}"#),
        // A name of a member may be that of one that is wanted, and then is judged more strictly.
        format!(r#"{{"model":"auto","{long}" : 1}}"#),
        // No JSON: the whole has no member.
        format!("{{\"model\":\"auto\",\"prompt\":\"{long}\n\"}}"),
        format!(r#"{{"model":"auto","prompt":"{long}\x"}}"#),
        format!(r#"{{"model":"auto","prompt":"{long}\u12"}}"#),
        // Too many short ones.
        format!("[{}1]", "\"short\",".repeat(20_000)),
        // No JSON, or not all of it.
        format!(r#"{{"model":"auto","prompt":"{long}"#),
        format!(r#"{{"model":"auto","prompt":"{long}""#),
        format!(r#"{{"model":"auto","prompt":"{long}"}} more"#),
        "--boundary\r\n\"".to_owned(),
        String::new(),
    ] {
        assert_eq!(peek_in(body.as_bytes(), 1000), None, "{body:.60}");
    }
}

/// What bodies are made of, and what breaks them.
fn body_part() -> impl Strategy<Value = Vec<u8>> {
    let literals = [
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        " ",
        "\n",
        "\"",
        "\\",
        "\\\"",
        "\\u006d",
        "\\u12",
        "\\ud83d",
        "\\ude00",
        "\\x",
        "\u{1}",
        "中",
        "\"model\":",
        "\"\\u006dodel\":",
        "\"stream\":true",
        "\"stream\" : tru",
        "\"auto\"",
        "1e9",
        "null",
    ];
    prop_oneof![
        4 => proptest::sample::select(literals.to_vec()).prop_map(|text| text.as_bytes().to_vec()),
        1 => proptest::sample::select(vec![&b"\xff"[..], b"\xe4\xb8", b"\xed\xa0\x80"]).prop_map(<[u8]>::to_vec),
        // Around the border to what is left out.
        3 => (TEXT_BYTES_MAX - 8..TEXT_BYTES_MAX + 8).prop_map(|count| vec![b'x'; count]),
        1 => (1usize..300).prop_map(|count| [b"[".repeat(count), b"]".repeat(count)].concat()),
    ]
}

/// A member of an object, well-formed or nearly so: what is in its key and its value is any of the parts.
fn member() -> impl Strategy<Value = Vec<u8>> {
    let inside = || proptest::collection::vec(body_part(), 0..4).prop_map(|parts| parts.concat());
    let key = prop_oneof![
        3 => Just(b"prompt".to_vec()),
        3 => Just(b"model".to_vec()),
        1 => Just(b"\\u006dodel".to_vec()),
        1 => Just(b"stream".to_vec()),
        1 => inside(),
    ];
    let value = prop_oneof![
        4 => inside().prop_map(|text| [b"\"", &text[..], b"\""].concat()),
        1 => inside().prop_map(|text| [b"[\"", &text[..], b"\", {}]"].concat()),
        1 => Just(b"true".to_vec()),
        1 => inside(),
    ];
    (key, value).prop_map(|(key, value)| [b"\"", &key[..], b"\": ", &value].concat())
}

proptest! {
    /// A body has the same fields whether it is large enough to be read while it arrives or not.
    #[test]
    fn no_body_is_read_otherwise_than_whole(
        members in proptest::collection::vec(member(), 0..6),
        behind in prop_oneof![4 => Just(Vec::new()), 1 => body_part()],
        piece_bytes in prop_oneof![1usize..8, 2000usize..5000],
    ) {
        let body = [b"{", &members.join(&b","[..])[..], b"}", &behind].concat();
        if let Some(read) = peek_in(&body, piece_bytes) {
            prop_assert_eq!(read, RequestPeek::read(&body));
        }
    }
}

#[test]
fn a_control_byte_is_seen_wherever_it_stands() {
    for byte in u8::MIN..=u8::MAX {
        for around in [b' ', 0x7f, 0x80, u8::MAX] {
            for length in 1..20 {
                for at in 0..length {
                    let mut text = vec![around; length];
                    text[at] = byte;
                    assert_eq!(
                        has_control(&text),
                        byte < b' ',
                        "{byte} at {at} of {text:?}"
                    );
                }
            }
        }
    }
}
