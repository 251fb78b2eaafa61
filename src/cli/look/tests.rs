use super::*;

#[test]
fn a_line_is_broken_between_words_and_a_key_is_not() {
    let look = Look::of_width(40);
    let text = "why           The service reported this amount in a header.";
    let key = "a".repeat(60);

    assert_eq!(
        look.wrapped(text, 14),
        "why           The service reported this\n\
         \x20             amount in a header."
    );
    assert_eq!(
        look.wrapped(&format!("key           {key} (own)"), 14),
        format!("key           {key}\n\x20             (own)")
    );
    assert_eq!(
        look.wrapped(
            "1 is unreported, see (`bursar receipts --state unreported`).",
            0
        ),
        "1 is unreported, see\n(`bursar receipts --state unreported`)."
    );
    assert_eq!(look.wrapped("short\n\nlines", 14), "short\n\nlines");
    assert_eq!(Look::unlimited().wrapped(text, 14), text);
}

#[test]
fn colours_are_for_a_screen_that_has_them() {
    let screen = Look::of_width(80).with_colours();
    assert_eq!(screen.inked(Ink::Red, "x"), "\u{1b}[31mx\u{1b}[0m");
    assert_eq!(screen.inked(Ink::Plain, "x"), "x");
    assert_eq!(Look::of_width(80).inked(Ink::Red, "x"), "x");
}
