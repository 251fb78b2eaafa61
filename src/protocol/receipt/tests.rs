use super::*;

fn names() -> ServiceNames {
    ServiceNames::new("service").unwrap()
}

fn headers(pairs: &[(&str, &str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in pairs {
        headers.append(
            HeaderName::try_from(*name).unwrap(),
            HeaderValue::from_bytes(value.as_bytes()).unwrap(),
        );
    }
    headers
}

fn read(pairs: &[(&str, &str)]) -> Receipt {
    Receipt::from_headers(&names(), &headers(pairs))
}

fn usd(micro_usd: u64) -> Reported<MicroUsd> {
    Reported::Value(MicroUsd::new(micro_usd))
}

#[test]
fn the_whole_receipt_is_read_from_the_headers_of_a_json_answer() {
    let receipt = read(&[
        ("Content-Type", "application/json"),
        ("X-Service-Billed", "1234"),
        ("X-Service-Frontier-Would-Have-Cost", "9000"),
        ("X-Service-Served-By", "frontier"),
        ("X-Service-Specialist", "general-chat"),
        ("X-Service-Escalated", "true"),
        ("X-Service-Route-Version", "2026-05-01.3"),
    ]);

    assert_eq!(
        receipt,
        Receipt {
            billed: usd(1234),
            source: Some(ReceiptSource::Header),
            would_have_cost: usd(9000),
            served_by: Some(ServedBy::Frontier),
            specialist: Some("general-chat".to_owned()),
            escalated: Escalated::True,
            route_version: Some("2026-05-01.3".to_owned()),
            ..Receipt::default()
        }
    );
}

#[test]
fn absent_malformed_and_zero_are_three_different_things() {
    assert_eq!(read(&[]).billed, Reported::Absent);
    assert_eq!(read(&[]).source, None);
    assert_eq!(read(&[("x-service-billed", "0")]).billed, usd(0));

    let malformed = [
        "",
        "-1",
        "+1",
        "1.0",
        "1e3",
        "0x10",
        "12 34",
        "12,12",
        "12; 13",
        "$12",
        "1_000",
        "é",
        "1234567890123456",
        "\"12\"",
        "null",
    ];
    for value in malformed {
        let receipt = read(&[("x-service-billed", value)]);
        assert_eq!(receipt.billed, Reported::Malformed, "{value:?}");
        assert_eq!(receipt.source, Some(ReceiptSource::Header), "{value:?}");
    }
}

#[test]
fn the_largest_amount_of_the_grammar_is_read() {
    let receipt = read(&[("x-service-billed", "999999999999999")]);
    assert_eq!(receipt.billed, usd(999_999_999_999_999));
}

#[test]
fn white_space_around_a_header_value_is_no_part_of_it() {
    assert_eq!(read(&[("x-service-billed", " 12\t")]).billed, usd(12));
}

/// Every place an amount can be in, in the order in which one answer sends them.
const PLACES: [ReceiptSource; 3] = [
    ReceiptSource::Header,
    ReceiptSource::Sse,
    ReceiptSource::Body,
];

fn with(receipt: Receipt, place: ReceiptSource, value: &str) -> Receipt {
    let value = value.as_bytes();
    match place {
        ReceiptSource::Header => receipt.with_billed(amount(value), place),
        ReceiptSource::Sse => receipt.with_comment(&names(), b"service-billed-micro-usd", value),
        ReceiptSource::Body => receipt.with_body_cost(amount(value)),
    }
}

#[test]
fn i3_the_first_positive_amount_stands_wherever_two_are_reported() {
    // The first and the second value; which one counts; whether they contradict each other.
    let table: [(&str, &str, Reported<MicroUsd>, usize, u32); 16] = [
        ("12", "12", usd(12), 0, 0),
        ("12", "0012", usd(12), 0, 0),
        ("12", "13", usd(12), 0, 1),
        ("13", "12", usd(13), 0, 1),
        // A 0 does not count beside an amount.
        ("0", "100", usd(100), 1, 0),
        ("000", "100", usd(100), 1, 0),
        ("100", "0", usd(100), 0, 1),
        ("0", "0", usd(0), 1, 0),
        ("0", "00", usd(0), 1, 0),
        // An unreadable value is not a 0 either, and no later amount replaces it.
        ("x", "12", Reported::Malformed, 0, 1),
        ("12", "x", usd(12), 0, 1),
        ("0", "x", Reported::Malformed, 1, 0),
        ("x", "0", Reported::Malformed, 0, 1),
        ("-1", "1.5", Reported::Malformed, 0, 0),
        ("", "7", Reported::Malformed, 0, 1),
        ("1234567890123456", "0", Reported::Malformed, 0, 1),
    ];
    for (first, second, billed, stands, conflicts) in table {
        for (place, other) in PLACES
            .iter()
            .enumerate()
            .flat_map(|(at, place)| PLACES[at..].iter().map(move |other| (*place, *other)))
        {
            let name = format!("{first:?} in {place:?}, {second:?} in {other:?}");
            let receipt = with(with(Receipt::default(), place, first), other, second);
            let source = [place, other][stands];
            assert_eq!(receipt.billed, billed, "{name}");
            assert_eq!(receipt.source, Some(source), "{name}");
            assert_eq!(receipt.conflicting_amounts, conflicts, "{name}");
        }
    }
}

#[test]
fn of_a_repeated_header_the_first_positive_amount_stands() {
    // Values of the header; amount; conflicts.
    let table: [(&[&str], Reported<MicroUsd>, u32); 7] = [
        (&["12", "12"], usd(12), 0),
        (&["12", "13", "12", "14"], usd(12), 2),
        (&["0", "12", "0"], usd(12), 1),
        (&["0", "12", "13"], usd(12), 1),
        (&["x", "12"], Reported::Malformed, 1),
        (&["0", "x", "12"], Reported::Malformed, 1),
        (&["0", "0", "x"], Reported::Malformed, 0),
    ];
    for (values, billed, conflicts) in table {
        let pairs: Vec<_> = values
            .iter()
            .map(|value| ("x-service-billed", *value))
            .collect();
        let receipt = read(&pairs);
        assert_eq!(receipt.billed, billed, "{values:?}");
        assert_eq!(receipt.conflicting_amounts, conflicts, "{values:?}");
    }
}

#[test]
fn a_zero_in_the_head_of_a_stream_that_broke_is_no_amount() {
    const STREAM: (&str, &str) = ("content-type", "text/event-stream");
    const JSON: (&str, &str) = ("content-type", "application/json");
    const ZERO: (&str, &str) = ("x-service-billed", "0");
    const ASKS: (&str, &str) = ("x-service-input-required", "document");
    let table = [
        (vec![STREAM, ZERO], Reported::Absent),
        (vec![STREAM, ZERO, ASKS], usd(0)),
        (vec![STREAM, ("x-service-billed", "7")], usd(7)),
        (vec![STREAM, ("x-service-billed", "x")], Reported::Malformed),
        (vec![STREAM], Reported::Absent),
        (vec![JSON, ZERO], usd(0)),
    ];
    for (pairs, billed) in table {
        let receipt = Receipt::from_broken_head(&names(), &headers(&pairs));
        assert_eq!(receipt.billed, billed, "{pairs:?}");
        assert_eq!(receipt.source.is_none(), billed.is_absent(), "{pairs:?}");
    }
}

#[test]
fn differing_estimates_are_no_conflict_of_billed_money() {
    let receipt = read(&[
        ("x-service-frontier-would-have-cost", "5"),
        ("x-service-frontier-would-have-cost", "6"),
    ]);
    assert_eq!(receipt.would_have_cost, usd(5));
    assert_eq!(receipt.conflicting_amounts, 0);
}

#[test]
fn served_by_is_a_closed_set() {
    let table = [
        ("specialist", ServedBy::Specialist),
        ("frontier", ServedBy::Frontier),
        ("none", ServedBy::None),
        ("Frontier", ServedBy::Other),
        ("model-7b", ServedBy::Other),
        ("", ServedBy::Other),
        ("é", ServedBy::Other),
    ];
    for (value, expected) in table {
        assert_eq!(
            read(&[("x-service-served-by", value)]).served_by,
            Some(expected),
            "{value:?}"
        );
    }
    assert_eq!(read(&[]).served_by, None);
}

#[test]
fn a_specialist_that_could_not_be_a_metric_label_is_dropped() {
    let (longest, longer) = ("a".repeat(32), "a".repeat(33));
    for good in ["coding", "general-chat", "x2", &longest] {
        assert_eq!(
            read(&[("x-service-specialist", good)])
                .specialist
                .as_deref(),
            Some(good)
        );
    }
    for bad in ["", "Coding", "a b", "a\"b", "a{b}", "é", &longer] {
        assert_eq!(
            read(&[("x-service-specialist", bad)]).specialist,
            None,
            "{bad:?}"
        );
    }
}

#[test]
fn a_missing_escalated_is_false_only_where_the_route_is_reported() {
    let served = ("x-service-served-by", "specialist");
    let billed = ("x-service-billed", "1");
    let stream = ("content-type", "Text/Event-Stream; charset=utf-8");
    let table: [(&[(&str, &str)], Escalated); 9] = [
        (&[], Escalated::Unknown),
        (&[billed], Escalated::Unknown),
        (&[served], Escalated::False),
        (&[served, stream], Escalated::Unknown),
        (&[served, ("x-service-escalated", "true")], Escalated::True),
        (
            &[served, ("x-service-escalated", "false")],
            Escalated::False,
        ),
        (
            &[served, ("x-service-escalated", "TRUE")],
            Escalated::Unknown,
        ),
        (
            &[
                ("x-service-escalated", "true"),
                ("x-service-escalated", "false"),
            ],
            Escalated::Unknown,
        ),
        (
            &[
                ("x-service-escalated", "true"),
                ("x-service-escalated", "true"),
            ],
            Escalated::True,
        ),
    ];
    for (pairs, expected) in table {
        assert_eq!(read(pairs).escalated, expected, "{pairs:?}");
    }
}

#[test]
fn a_route_version_is_printable_and_bounded() {
    let long = "v".repeat(100);
    let stamp = |value: &str| read(&[("x-service-route-version", value)]).route_version;

    assert_eq!(stamp("rev 7 (a1b2)").as_deref(), Some("rev 7 (a1b2)"));
    assert_eq!(stamp(&long).as_deref(), Some(&long[..64]));
    assert_eq!(stamp(""), None);
    assert_eq!(stamp("v\té"), None);
}

#[test]
fn a_clarification_is_one_even_when_its_text_is_odd() {
    let input = |value: &str| read(&[("x-service-input-required", value)]).input_required;

    assert_eq!(input("document").as_deref(), Some("document"));
    assert_eq!(input("a\tb é").as_deref(), Some("a?b ??"));
    assert_eq!(input(&"x".repeat(999)).map(|text| text.len()), Some(64));
    assert_eq!(input(""), None);
}

#[test]
fn only_the_exact_word_true_is_a_replay() {
    assert!(read(&[("idempotent-replayed", "true")]).replayed);
    for value in ["True", "1", "false", "true, true", ""] {
        assert!(
            !read(&[("idempotent-replayed", value)]).replayed,
            "{value:?}"
        );
    }
    assert!(!read(&[]).replayed);
}

#[test]
fn comments_fill_in_what_headers_lack() {
    let names = names();
    let would_have_cost = b"service-frontier-would-have-cost-micro-usd";

    let receipt = read(&[("content-type", "text/event-stream")])
        .with_comment(&names, b"service-billed-micro-usd", b"77")
        .with_comment(&names, would_have_cost, b"900")
        .with_comment(&names, b"service-served-by", b"specialist")
        .with_comment(&names, b"service-route-version", b"r9")
        .with_comment(&names, b"keep-alive", b"");

    assert_eq!(
        receipt,
        Receipt {
            billed: usd(77),
            source: Some(ReceiptSource::Sse),
            would_have_cost: usd(900),
            served_by: Some(ServedBy::Specialist),
            route_version: Some("r9".to_owned()),
            ..Receipt::default()
        }
    );
}

#[test]
fn headers_win_over_comments() {
    let names = names();
    let head = read(&[
        ("x-service-billed", "5"),
        ("x-service-served-by", "frontier"),
        ("x-service-route-version", "r1"),
    ]);

    let same = head.with_comment(&names, b"service-billed-micro-usd", b"5");
    assert_eq!(same.conflicting_amounts, 0);
    let receipt = same
        .with_comment(&names, b"service-billed-micro-usd", b"6")
        .with_comment(&names, b"service-served-by", b"specialist")
        .with_comment(&names, b"service-route-version", b"r2");

    assert_eq!(receipt.billed, usd(5));
    assert_eq!(receipt.source, Some(ReceiptSource::Header));
    assert_eq!(receipt.conflicting_amounts, 1);
    assert_eq!(receipt.served_by, Some(ServedBy::Frontier));
    assert_eq!(receipt.route_version.as_deref(), Some("r1"));
}

#[test]
fn a_comment_amount_has_the_grammar_of_a_header_amount_and_no_room_around_it() {
    for value in [
        &b""[..],
        b" 12",
        b"12 ",
        b"12\r",
        b"-1",
        b"1.0",
        b"1234567890123456",
    ] {
        let none = Receipt::default();
        let receipt = none.with_comment(&names(), b"service-billed-micro-usd", value);
        assert_eq!(receipt.billed, Reported::Malformed, "{value:?}");
    }
}

#[test]
fn comment_names_match_exactly() {
    for name in [
        &b"Service-billed-micro-usd"[..],
        b"service-billed-micro-usd:",
        b"service-billed-micro-us",
        b"x-service-billed",
        b"other-billed-micro-usd",
    ] {
        let receipt = Receipt::default().with_comment(&names(), name, b"12");
        assert_eq!(receipt, Receipt::default());
    }
}

#[test]
fn a_body_amount_is_a_receipt_when_no_header_has_one() {
    let none = Receipt::default().with_body_cost(Reported::Absent);
    assert_eq!(none, Receipt::default());

    let receipt = none.with_body_cost(usd(40));
    assert_eq!(
        (receipt.billed, receipt.source),
        (usd(40), Some(ReceiptSource::Body))
    );

    let billed_in_header = read(&[("x-service-billed", "41")]).with_body_cost(usd(40));
    assert_eq!(billed_in_header.billed, usd(41));
    assert_eq!(billed_in_header.conflicting_amounts, 1);
}
