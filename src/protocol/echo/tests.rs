use tokio::time::Instant;

use super::*;

fn left(text: &str, other: &str) -> String {
    let mut echo = Echo::of(text);
    echo.hears(other.as_bytes());
    echo.left(text.len(), 1000)
}

#[test]
fn a_run_of_16_bytes_that_stands_in_the_other_text_is_struck_out_however_it_is_spelled() {
    let prompt = "My secret: \"Zürich\" 😀\nnext line";
    let json = serde_json::to_string(prompt).unwrap();
    let ascii: String = prompt
        .encode_utf16()
        .map(|unit| format!("\\u{unit:04x}"))
        .collect();
    let twice = serde_json::to_string(&json).unwrap();
    let spellings = [prompt, &json, &ascii, &twice, &prompt.to_uppercase()];
    for said in spellings {
        for asked in spellings {
            // A capital Ü is another letter: what stands before it is a run of its own.
            if said.contains('Ü') == asked.contains('Ü') {
                let left = left(&format!("no: {said} <- "), &format!("{{{asked}}}"));
                assert!(left.starts_with("no: ") && left.ends_with("<- "), "{left}");
                assert!(left.chars().count() < 18, "{said} in {asked}: {left}");
            }
        }
    }
}

#[test]
fn what_is_shorter_or_differs_stays() {
    let table = [
        ("0123456789abcde", "0123456789abcde", "0123456789abcde"),
        ("0123456789abcdef", "0123456789abcdef", "…"),
        ("<0123456789abcdef>", "x0123456789abcdefx", "<…>"),
        (
            "<0123456789abcdef>",
            "0123456789abcde",
            "<0123456789abcdef>",
        ),
        ("", "0123456789abcdef", ""),
        ("field required: messages", "", "field required: messages"),
        // Two runs that touch are one, and a character is struck out whole.
        (
            "aaaaaaaaaaaaaaaabbbbbbbbbbbbbbbb",
            "aaaaaaaaaaaaaaaa bbbbbbbbbbbbbbbb",
            "…",
        ),
        ("é0123456789abcde", "\u{a9}0123456789abcde", "…"),
        ("a\\b", "a\\b", "a\\b"),
    ];
    for (text, other, wanted) in table {
        assert_eq!(left(text, other), wanted, "{text} in {other}");
    }
}

#[test]
fn a_run_is_found_at_every_place_of_a_long_text() {
    let run = "0123456789abcdef";
    for before in (0..40).chain(PIECE_BYTES - 40..PIECE_BYTES + 40) {
        let other = format!("{}{run}{}", "-".repeat(before), "=".repeat(30));
        assert_eq!(left(&format!("({run})"), &other), "(…)", "behind {before}");
        let escaped = "\\u0030123456789abcde\\u0066";
        let other = format!("{}{escaped}{}", "-".repeat(before), "=".repeat(30));
        assert_eq!(left(&format!("({run})"), &other), "(…)", "behind {before}");
    }
}

#[test]
fn the_comparison_finds_what_a_plain_one_finds() {
    // Few letters: many runs nearly fit.
    let mut state = 7u64;
    let mut letters = |count: usize| -> String {
        (0..count)
            .map(|_| {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                if state >> 63 == 0 { 'a' } else { 'b' }
            })
            .collect()
    };
    for _ in 0..50 {
        let (text, other) = (letters(60), letters(3000));
        let mut wanted = vec![false; text.len()];
        for at in 0..=text.len() - RUN_BYTES {
            if other.contains(&text[at..at + RUN_BYTES]) {
                wanted[at..at + RUN_BYTES].fill(true);
            }
        }
        let mut shown = String::new();
        for (letter, is_struck) in text.chars().zip(wanted) {
            match is_struck {
                true if shown.ends_with(STRUCK) => {}
                true => shown.push(STRUCK),
                false => shown.push(letter),
            }
        }
        assert_eq!(left(&text, &other), shown);
    }
}

#[test]
fn what_is_left_keeps_within_its_bounds() {
    let of = |text: &str, bytes_max, chars_max| Echo::of(text).left(bytes_max, chars_max);
    assert_eq!(of("abc", 3, 3), "abc");
    assert_eq!(of("abcd", 4, 3), "ab…");
    assert_eq!(of("abcd", 3, 10), "abc…");
    assert_eq!(of("äöüß", 8, 4), "äöüß");
    assert_eq!(of("äöüß!", 9, 4), "äöü…");
    let mut echo = Echo::of("the key is here");
    echo.strike(4..7);
    assert_eq!(echo.left(100, 100), "the … is here");
}

/// What a hostile service and a hostile app make together: all the same, and nearly the same everywhere.
#[tokio::test]
async fn time_does_not_grow_with_the_product_of_the_lengths() {
    let body_bytes = 4 << 20;
    let hostile = [
        ("a".repeat(8192), "a".repeat(body_bytes)),
        ("ab".repeat(4096), "ab".repeat(body_bytes / 2)),
        ("aaaaaaaab".repeat(900), "aaaaaaaac".repeat(body_bytes / 9)),
        ("\\".repeat(8192), "\\".repeat(body_bytes)),
        ("\\u0061".repeat(1300), "\\u0061".repeat(body_bytes / 6)),
    ];
    for (text, other) in &hostile {
        let began = Instant::now();
        let mut echo = Echo::of(text);
        echo.hears(other.as_bytes());
        drop(echo.left(4096, 256));
        // The product would be 3 * 10^10 steps.
        assert!(began.elapsed().as_secs() < 20, "{:?}", began.elapsed());
    }
}
