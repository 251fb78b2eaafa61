use super::*;

#[test]
fn tags_are_well_formed_or_not() {
    for tag in [
        "en",
        "de-AT",
        "zh-Hant-TW",
        "es-419",
        "sl-rozaj-biske",
        "x-own",
        "english",
    ] {
        assert!(is_tag(tag), "{tag}");
    }
    for tag in [
        "",
        "e",
        "en_US",
        "en-",
        "-en",
        "e1",
        "en--us",
        "x",
        "en-verylongpart",
        "дe",
    ] {
        assert!(!is_tag(tag), "{tag}");
    }
    assert!(!is_tag(&format!("en{}", "-abcdefgh".repeat(5))));
    assert_eq!(
        (two_letters("de-AT"), two_letters("deu")),
        (Some("de"), None)
    );
}

#[test]
fn the_language_of_a_text_is_recognized_or_und() {
    for (text, language) in [
        ("The river is wide and it runs to the sea.", "en"),
        ("Der Fluss ist breit und das Wasser nicht kalt.", "de"),
        ("Vous êtes dans le bureau et je suis pas là.", "fr"),
        ("El perro y los gatos con una casa.", "es"),
        ("Привет, мир", "ru"),
        ("世界こんにちは", "ja"),
        ("世界", "zh"),
        ("안녕하세요", "ko"),
        ("xyzzy 42", "und"),
        ("", "und"),
    ] {
        assert_eq!(of_text(text), language, "{text}");
    }
}
