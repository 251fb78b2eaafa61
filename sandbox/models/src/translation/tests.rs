use super::*;

fn translated(text: &str, from: &str, to: &str) -> String {
    let given = PromptParts {
        named: vec![
            ("text".to_owned(), text.to_owned()),
            ("source_language".to_owned(), from.to_owned()),
            ("target_language".to_owned(), to.to_owned()),
        ],
        ..PromptParts::default()
    };
    write(&given).unwrap()
}

#[test]
fn known_words_are_translated_and_names_and_figures_stay() {
    assert_eq!(
        translated("Das Haus ist alt.", "de", "en"),
        "The house is old."
    );
    assert_eq!(
        translated("Eastport 9:40, Gleis 3", "de", "en"),
        "Eastport 9:40, platform 3"
    );
    assert_eq!(
        translated("The water is cold.", "en", "es"),
        "El agua es frío."
    );
    assert_eq!(
        translated("Nothing changes.", "en", "en"),
        "Nothing changes."
    );
}

#[test]
fn every_line_of_the_dictionary_has_five_languages() {
    for meaning in MEANINGS.values() {
        let forms = meaning.iter().filter(|form| !form.is_empty());
        assert!(forms.count() >= 3, "{meaning:?}");
    }
    assert_eq!(language_of("Wo ist der Schlüssel?"), 1);
}
