use super::*;

#[test]
fn pieces_joined_give_the_text_back() {
    for text in [
        "",
        " ",
        "Hello, world",
        "naïve  façade\n\nx=1;",
        "日本語のテキスト",
        "a ",
    ] {
        assert_eq!(pieces(text).concat(), text);
    }
}

#[test]
fn a_token_is_six_letters_or_one_sign() {
    assert_eq!(
        pieces("Hello, international"),
        ["Hello", ",", " intern", "ationa", "l"]
    );
    assert_eq!(count("12 + 30 ="), 4);
    assert_eq!(count(""), 0);
}
