use super::*;

#[test]
fn a_line_is_broken_between_words_wherever_their_pieces_end() {
    let mut layout = Layout::default();
    let word = "x".repeat(TEXT_COLUMNS - 3);

    assert_eq!(layout.lay(&word), "", "its end has not come");
    assert_eq!(layout.lay(" a"), word);
    assert_eq!(layout.lay("b"), "");
    assert_eq!(layout.lay(" "), " ab");
    assert_eq!(layout.lay("next "), format!("\n{}next", " ".repeat(INDENT)));
    assert_eq!(layout.lay("one"), "");
    assert_eq!(layout.end_word(), " one");
}

#[test]
fn no_line_has_more_than_80_columns_but_for_a_word_that_has() {
    let text = laid(&"words of a long answer ".repeat(20));
    let mut lines = text.lines();
    let first = lines.next().map_or(0, |line| line.len() + INDENT);
    assert!(first <= 80 && lines.all(|line| line.len() <= 80), "{text}");
    let url = format!("http://{}", "x".repeat(100));
    assert_eq!(
        laid(&format!("a {url}")),
        format!("a\n{}{url}", " ".repeat(INDENT))
    );
}

#[test]
fn an_empty_line_of_an_answer_stays_empty() {
    let indent = " ".repeat(INDENT);

    assert_eq!(laid("a.\n\nb"), format!("a.\n\n{indent}b"));
}

#[test]
fn control_characters_of_an_answer_are_shown_and_not_sent() {
    assert_eq!(laid("a\x1b[31mb"), "a\\u{1b}[31mb");
}

#[test]
fn without_colours_a_line_is_its_text() {
    let screen = Screen {
        look: Look::of_width(80),
    };

    assert_eq!(screen.inked(Ink::Red, "text"), "text");
    assert_eq!(screen.label("base URL"), "  base URL   ");
}
