use super::*;

fn peek_in(body: &str, piece_bytes: usize) -> Option<RequestPeek> {
    let mut skeleton = Skeleton::default();
    for piece in body.as_bytes().chunks(piece_bytes) {
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
            format!(r#"{{"prompt":"{text}","model":["{text}"]}}"#),
        ] {
            let whole = RequestPeek::read(body.as_bytes());
            for piece_bytes in [1, 7, 4096, 1_000_000] {
                assert_eq!(
                    peek_in(&body, piece_bytes).as_ref(),
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
        // Too many short ones.
        format!("[{}1]", "\"short\",".repeat(20_000)),
        // No JSON, or not all of it.
        format!(r#"{{"model":"auto","prompt":"{long}"#),
        format!(r#"{{"model":"auto","prompt":"{long}""#),
        format!(r#"{{"model":"auto","prompt":"{long}"}} more"#),
        "--boundary\r\n\"".to_owned(),
        String::new(),
    ] {
        assert_eq!(peek_in(&body, 1000), None, "{body:.60}");
    }
}
