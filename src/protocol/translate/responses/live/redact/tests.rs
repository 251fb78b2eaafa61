use super::*;

const SECRET: &str = "sk-0123";

/// As the organization's key is looked for, but in one spelling.
fn redact(text: &[u8], more_comes: bool) -> (Option<Vec<u8>>, usize) {
    let text = std::str::from_utf8(text).expect("UTF-8");
    let clean = text
        .contains(SECRET)
        .then(|| text.replace(SECRET, "*******"));
    let looked_at = clean.as_deref().unwrap_or(text);
    let begins = (1..SECRET.len())
        .rev()
        .find(|length| looked_at.ends_with(&SECRET[..*length]));
    let begins = begins.filter(|_| more_comes).unwrap_or_default();
    (clean.map(String::into_bytes), begins)
}

fn given(redact: Redact, pieces: &[&str]) -> Vec<String> {
    let mut text = RedactedText::without(redact);
    let mut given: Vec<String> = pieces
        .iter()
        .map(|piece| text.pass(piece).into_owned())
        .collect();
    given.push(text.rest());
    given
}

#[test]
fn a_secret_is_struck_out_wherever_it_is_divided() {
    let whole = format!("a {SECRET} b {SECRET}");
    for first in 0..=whole.len() {
        for second in first..=whole.len() {
            let pieces = [&whole[..first], &whole[first..second], &whole[second..]];
            let given = given(Box::new(redact), &pieces).concat();
            assert_eq!(given, "a ******* b *******", "{pieces:?}");
        }
    }
}

#[test]
fn what_only_begins_like_it_is_given_when_more_comes_or_all_is_there() {
    assert_eq!(
        given(Box::new(redact), &["x", "sk-0", "1 y"]),
        ["x", "", "sk-01 y", ""]
    );
    assert_eq!(given(Box::new(redact), &["a sk-"]), ["a ", "sk-"]);
}

/// A search of bytes may hold any of the last ones, and strike out from the middle of an escape.
#[test]
fn no_piece_ends_inside_of_a_character_or_an_escape() {
    let rows = [
        (r"C:\\", 1, ["C:", r"\\"]),
        (r"a\u0073", 3, ["a", r"\u0073"]),
        (r"a\ud83d\ude00", 2, ["a", r"\ud83d\ude00"]),
        ("aü", 1, ["a", "ü"]),
        ("ab", 2, ["", "ab"]),
    ];
    for (piece, begins, wanted) in rows {
        let holds = move |_: &[u8], more: bool| (None, if more { begins } else { 0 });
        assert_eq!(given(Box::new(holds), &[piece]), wanted, "{piece}");
    }
    let cuts = |text: &[u8], _: bool| {
        let clean = String::from_utf8_lossy(text).replace(r"\u0073k", "*******");
        (Some(clean.into_bytes()), 0)
    };
    assert_eq!(
        given(Box::new(cuts), &[r"\\u0073k \\ n"])[0],
        r"******** \\ n"
    );
}

#[test]
fn without_a_secret_a_piece_is_given_as_it_comes() {
    let mut text = RedactedText::default();
    assert!(matches!(text.pass("sk-0"), Cow::Borrowed("sk-0")));
    assert_eq!(text.rest(), "");
}
