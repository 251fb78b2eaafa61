use super::*;

#[test]
fn a_spelled_text_is_cut_between_units_only() {
    let cases: [(&str, usize, &[&str]); 14] = [
        ("", 4, &[]),
        ("abc", 1, &["a", "b", "c"]),
        ("abcdef", 4, &["abcd", "ef"]),
        ("aé", 2, &["aé"]),
        ("€€", 1, &["€", "€"]),
        (r"a\nb", 2, &[r"a\n", "b"]),
        (r"ab\n", 2, &["ab", r"\n"]),
        (r"a\ncde", 4, &[r"a\nc", "de"]),
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

/// As it is cut unit by unit.
#[test]
fn letters_that_are_passed_over_are_cut_as_those_that_are_looked_at() {
    let units = [
        "a",
        "é",
        "€",
        "😀",
        r"\n",
        r"\\",
        r"\u00e9",
        r"\ud83d\ude00",
        r"\ud83d",
    ];
    for first in units {
        for second in units {
            let text = format!("{first}{second}").repeat(20);
            for bytes in 1..40 {
                let mut plain = vec![String::new()];
                let mut rest = text.as_str();
                while !rest.is_empty() {
                    let (unit, behind) = rest.split_at(unit_len(rest));
                    if plain.last().is_some_and(|piece| piece.len() >= bytes) {
                        plain.push(String::new());
                    }
                    plain.last_mut().expect("a piece").push_str(unit);
                    rest = behind;
                }
                let found: Vec<&str> = pieces(&text, bytes).collect();
                assert_eq!(found, plain, "{text} by {bytes}");
            }
        }
    }
}

#[test]
fn what_is_no_spelled_text_is_cut_all_the_same_and_loses_nothing() {
    for text in [
        r"\",
        r"\u",
        r"\u12",
        r"a\ud83d\ud",
        r"\ud83d\udc",
        r"\é",
        "\\\u{1F600}",
    ] {
        for bytes in [1, 3, 100] {
            let found: String = pieces(text, bytes).collect();
            assert_eq!(found, text);
        }
    }
}
