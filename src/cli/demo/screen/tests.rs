use super::*;

#[test]
fn prose_is_broken_between_words_only() {
    let mut layout = Layout::default();
    let word = "x".repeat(PROSE_COLUMN + 1);

    assert_eq!(layout.lay(&word), word);
    assert_eq!(layout.lay("yz"), "yz", "the word goes on");
    assert_eq!(
        layout.lay(" next"),
        format!("\n{}next", " ".repeat(LABEL + 2))
    );
    assert_eq!(layout.lay(" one"), " one");
}

#[test]
fn an_empty_line_of_an_answer_stays_empty() {
    let mut layout = Layout::default();
    let indent = " ".repeat(LABEL + 2);

    assert_eq!(layout.lay("a.\n\n"), "a.\n\n");
    assert_eq!(layout.lay("b"), format!("{indent}b"));
}

#[test]
fn control_characters_of_an_answer_are_shown_and_not_sent() {
    let mut layout = Layout::default();

    assert_eq!(layout.lay("a\x1b[31mb"), "a\\u{1b}[31mb");
}

#[test]
fn without_colours_a_line_is_its_text() {
    let screen = Screen {
        look: Look::of_width(80),
    };

    assert_eq!(screen.inked(Ink::Red, "text"), "text");
    assert_eq!(screen.label("base URL"), "  base URL   ");
}

#[test]
fn words_keep_the_spaces_before_them() {
    assert_eq!(
        words("a  bc d").collect::<Vec<_>>(),
        ["a", " ", " bc", " d"]
    );
    assert_eq!(words(" a").collect::<String>(), " a");
    assert_eq!(words("").collect::<String>(), "");
}
