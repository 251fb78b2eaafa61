use super::*;

#[test]
fn a_person_and_a_firm_are_distinguished_by_the_words_around_them() {
    let rows = [
        (
            "Dear team, I spoke with Aline Moreau of Castell Shipping yesterday.",
            Some("Aline Moreau"),
            Some("Castell Shipping"),
        ),
        (
            "Bo Strand\nStrand & Sons\nbo@strandsons.example",
            Some("Bo Strand"),
            Some("Strand & Sons"),
        ),
        ("nothing to see here", None, None),
        ("The tap on Mill Lane drips.", None, None),
    ];
    for (text, name, firm) in rows {
        assert_eq!(person(text).as_deref(), name, "{text}");
        assert_eq!(organization(text).as_deref(), firm, "{text}");
    }
}
