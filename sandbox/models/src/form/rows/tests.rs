use super::*;

#[test]
fn a_priced_line_is_read_in_the_forms_bills_have() {
    let rows = [
        ("4  Oak shelf 80 cm   96.00", ("Oak shelf 80 cm", 4.0, 96.0)),
        ("Olive oil 5 l     x6   72.30", ("Olive oil 5 l", 6.0, 72.3)),
        ("2 x Desk lamp at 45.00 = 90.00", ("Desk lamp", 2.0, 90.0)),
        (
            "Cleaning, hours (3)   75.00",
            ("Cleaning, hours", 3.0, 75.0),
        ),
        ("Chairs   12 pieces   1,440.00", ("Chairs", 12.0, 1440.0)),
        ("Delivery   EUR 9.50", ("Delivery", 1.0, 9.5)),
    ];
    for (text, (description, quantity, amount)) in rows {
        let found = priced(text);
        assert_eq!(found.len(), 1, "{text}");
        let [count, _, sum, name] = found[0].as_slice() else {
            panic!("{text}");
        };
        assert_eq!(
            (name.1.as_str(), count.1.as_f64(), sum.1.as_f64()),
            (Some(description), Some(quantity), Some(amount))
        );
    }
    for text in [
        "Total EUR 9.50",
        "Payable within 14 days",
        "12 March 2026",
        "Chapter 4",
    ] {
        assert!(priced(text).is_empty(), "{text}");
    }
}
