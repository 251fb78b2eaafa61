use super::*;

#[test]
fn endings_case_and_spelling_do_not_count() {
    for (one, other) in [
        ("Summarise the articles!", "summarizes article"),
        ("ranking Products", "rank product"),
        ("supplier's invoices", "suppliers invoice"),
        ("localisation", "localization"),
        ("CVs and PDFs", "cv pdf"),
    ] {
        assert_eq!(stems(one), stems(other), "{one}");
    }
}

#[test]
fn words_that_say_nothing_and_numbers_are_left_out() {
    assert_eq!(stems("The of and to, 12345 ?!"), Vec::<String>::new());
    assert_eq!(stems("3d").len(), 1);
}

#[test]
fn pairs_keep_their_order() {
    let of = |text| pairs(&stems(text)).collect::<Vec<_>>();

    assert_eq!(of("text to speech"), ["text speech"]);
    assert_eq!(of("speech to text"), ["speech text"]);
    assert!(of("speech").is_empty());
}
