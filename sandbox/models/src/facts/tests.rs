use super::*;

#[test]
fn a_day_is_read_in_the_forms_people_write() {
    for text in [
        "on 2026-03-02",
        "2 March 2026",
        "March 2nd, 2026",
        "02.03.2026",
        "paid 2/3/2026 GBP 4",
        "03/02/2026, total USD 9",
        "due 3/2/2026, sent 2/28/2026",
    ] {
        assert_eq!(dates(text)[0].value.to_string(), "2026-03-02", "{text}");
    }
    assert!(dates("31.02.2026 and 1.2 of 2026").is_empty());
}

#[test]
fn an_amount_is_a_number_that_is_no_part_of_a_word_or_a_day() {
    let of = |text: &str| {
        amounts(text)
            .iter()
            .map(|one| one.value.value)
            .collect::<Vec<_>>()
    };

    assert_eq!(of("60  Boards 24x120  1,432.00"), [60.0, 1432.0]);
    assert_eq!(of("1.240,50 or 12,50 or -5"), [1240.5, 12.5, -5.0]);
    assert_eq!(of("2026-03-02 x12 A7"), Vec::<f64>::new());
    assert!(amounts("VAT 20%")[0].value.percent);
    assert_eq!(of("order ORD-1003, item A-7 and -4"), [-4.0]);
    assert_eq!(of("2019-2024"), [2019.0, 2024.0]);
}

#[test]
fn a_telephone_number_is_no_day_and_no_pair_of_years() {
    assert_eq!(
        phones("call +47 555 01 420 or (555) 010-9000"),
        ["+47 555 01 420", "(555) 010-9000"]
    );
    assert_eq!(
        phones("2019-2024, 2026-03-01, 1234567.50, 1483"),
        Vec::<&str>::new()
    );
    assert_eq!(currency("12 €"), Some("EUR".to_owned()));
}

#[test]
fn every_pattern_compiles() {
    assert_eq!(emails("a@b.example, c"), ["a@b.example"]);
    assert_eq!(
        addresses("see https://b.example/x."),
        ["https://b.example/x"]
    );
    assert!(currency("none").is_none());
}
