use super::*;

#[test]
fn a_summary_is_of_whole_sentences_about_what_the_text_is_about() {
    let text = "The town rebuilds its old bridge. It rained on Tuesday. Engineers say the bridge needs new piers. A cat slept. The bridge work costs 4 million.";

    let one = of(text, Some(2), Skills::frontier());

    assert_eq!(text::sentences_of(&one).len(), 2);
    assert!(
        text::sentences_of(&one)
            .iter()
            .all(|sentence| text.contains(sentence) && sentence.contains("bridge"))
    );
}

#[test]
fn any_text_has_a_summary() {
    for text in ["", "One.", "a b c d e f g"] {
        assert!(of(text, None, Skills::frontier()).len() <= text.len());
    }
}
