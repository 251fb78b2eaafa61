use super::*;

#[test]
fn equal_texts_give_equal_vectors_of_length_one_in_any_number_of_dimensions() {
    for text in ["a wide river", "!?", "日本語", "the", "naïve façade"] {
        for dimensions in [1, 2, 7, 256, 4_096] {
            let vector = of_text(text, dimensions);

            assert_eq!(vector, of_text(text, dimensions));
            assert_eq!(vector.len(), dimensions);
            let length = cosine(&vector, &vector);
            assert!((length - 1.0).abs() < 1e-5, "{text} {dimensions} {length}");
        }
    }
}

/// The numbers themselves: a client may keep vectors, so they must not change from release to release.
#[test]
fn the_hash_of_a_feature_is_the_same_on_every_machine() {
    assert_eq!(hash(Feature::Word, b"river"), 17_639_021_187_315_853_761);
    assert_ne!(
        hash(Feature::Word, b"river"),
        hash(Feature::Concept, b"river")
    );
}

#[test]
fn a_misspelt_word_and_another_form_are_near_the_word() {
    let near = |a: &str, b: &str| cosine(&of_text(a, 1_024), &of_text(b, 1_024));

    assert!(near("accommodation", "accomodation") > near("accommodation", "recommendation"));
    assert!(near("swimming", "swims") > 0.7);
    assert!(near("dog bites man", "man bites dog") < 1.0);
    assert!(near("colour", "日本語").abs() < 0.2);
}

#[test]
fn token_numbers_are_words_of_their_own() {
    let near = |a: &[u64], b: &[u64]| cosine(&of_tokens(a, 256), &of_tokens(b, 256));

    assert!((near(&[1, 2, 3], &[3, 2, 1]) - 1.0).abs() < 1e-5);
    assert!(near(&[1, 2, 3], &[1, 2, 4]) > near(&[1, 2, 3], &[7, 8, 9]));
}
