use super::*;

#[test]
fn a_question_about_spend_is_read() {
    let asked = spend("since_ms=5&until_ms=7&by=app,served_by&tz=UTC").unwrap();

    assert_eq!((asked.since_ms, asked.until_ms), (Some(5), Some(7)));
    assert_eq!(asked.by, [GroupBy::App, GroupBy::ServedBy]);
}

#[test]
fn a_word_that_is_repeated_makes_no_longer_rows() {
    let asked = spend(&format!("by=app{}", ",day,app".repeat(1_000))).unwrap();

    assert_eq!(asked.by, [GroupBy::App, GroupBy::Day]);
}

#[test]
fn a_listing_is_never_without_a_limit() {
    for query in ["", "after_seq=0", "state=open&since_ms=1"] {
        assert_eq!(
            receipts(query).unwrap().filter.limit,
            Some(RECEIPTS_MAX),
            "{query}"
        );
    }
}

#[test]
fn a_filter_is_read_and_limited() {
    let filter =
        receipts("app=a%20b&state=in_doubt&reason=crash&after_seq=9&operation=rerank&model=m")
            .unwrap()
            .filter;
    assert_eq!(filter.operation, Some(crate::protocol::Operation::Rerank));
    assert_eq!(filter.model.as_deref(), Some("m"));

    assert_eq!(filter.app.as_deref(), Some("a b"));
    assert_eq!(filter.state, Some(StateWord::InDoubt));
    assert_eq!(filter.reason, Some(InDoubt::Crash));
    assert_eq!(filter.after_seq, Some(9));
    assert_eq!(explain("id=a%2Fb%22").unwrap(), "a/b\"");
    assert_eq!(filter.limit, Some(RECEIPTS_MAX));
}

#[test]
fn an_id_is_whole_or_the_end_of_one() {
    let whole = receipts("id=018f3c00-0000-7000-8000-000000000001").unwrap();
    assert!(whole.filter.id.is_some() && whole.id_part.is_none());
    let end = receipts("id=00000001").unwrap();
    assert_eq!(
        (end.filter.id, end.id_part.as_deref()),
        (None, Some("00000001"))
    );
    assert!(receipts("id=0000001").is_err() && receipts("id=0000000g").is_err());
}

#[test]
fn what_is_not_understood_is_refused_by_name() {
    let cases = [
        spend("since=5").err(),
        spend("since_ms=yesterday").err(),
        spend("since_ms=%2B5").err(),
        spend("by=weather").err(),
        spend("tz=Mars/Olympus").err(),
        receipts("operation=Chat").err(),
        receipts("limit=0").err(),
        receipts("limit=1001").err(),
        receipts("state=lost").err(),
        receipts("id=7").err(),
        receipts("tz=UTC").err(),
        receipts("reason=weather").err(),
        explain("").err(),
        explain("id=%20").err(),
        explain("id=0190&tz=UTC").err(),
        nothing("x").err(),
    ];

    for (index, error) in cases.into_iter().enumerate() {
        assert!(error.is_some(), "case {index}");
    }
    assert_eq!(
        spend("since=5").unwrap_err().to_string(),
        "the parameter \"since\" is not known here"
    );
}

#[test]
fn what_is_no_escape_stays_as_it_is() {
    assert_eq!(explain("id=%zz%4").unwrap(), "%zz%4");
    assert_eq!(explain("id=a+b").unwrap(), "a b");
}

#[test]
fn a_line_is_asked_for_an_app_and_a_session_and_nothing_else() {
    let asked = line("app=nightly&session=5d1b%2D11").unwrap();
    assert_eq!(asked.app.as_deref(), Some("nightly"));
    assert_eq!(asked.session.as_deref(), Some("5d1b-11"));
    assert_eq!(line("").unwrap(), LineQuestion::default());
    let long = format!("session={}", "x".repeat(SESSION_BYTES_MAX + 1));
    for wrong in ["session=", &long, "apps=x"] {
        line(wrong).expect_err(wrong);
    }
}
