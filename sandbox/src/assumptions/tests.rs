use super::*;

#[test]
fn every_id_is_one_word_and_stands_once() {
    for (at, one) in ALL.iter().enumerate() {
        assert!(
            one.id
                .bytes()
                .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-'),
            "{}",
            one.id
        );
        assert!(
            ALL.iter().skip(at + 1).all(|other| other.id != one.id),
            "{}",
            one.id
        );
        assert!(
            !one.text.is_empty() && one.text.ends_with('.'),
            "{}",
            one.id
        );
    }
}
