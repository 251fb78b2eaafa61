use super::*;

const ANSWER: &str = r#"{"paused" : true, "caps" : [{"cap" : "team", "period" : "day", "zone" : "Europe/Berlin",
    "limit_micro_usd" : 25000000, "charged_micro_usd" : 99999999999999999999, "since_ms" : 5, "until_ms" : 9,
    "largest_micro_usd" : null, "ahead_windows" : 3, "ahead_micro_usd" : 2000000}], "leases" : [
    {"lease" : "00000000-0000-4000-8000-000000000007", "cap" : "team", "since_ms" : 5, "until_ms" : 9,
    "begins_in_ms" : 0, "ends_in_ms" : 3, "granted_micro_usd" : 40, "given_back_micro_usd" : 30,
    "give_back_number" : 2, "billed_micro_usd" : 8}]}"#;

#[test]
fn an_answer_is_read_as_it_stands_also_where_a_sum_is_beyond_64_bits() {
    let held = held(ANSWER).unwrap();
    assert!(held.is_paused);
    let cap = held.caps.first().unwrap();
    assert_eq!(
        (cap.period, cap.limit, cap.largest, cap.ahead_windows),
        (Period::Day, MicroUsd::new(25_000_000), None, 3)
    );
    assert_eq!(cap.charged.get(), 99_999_999_999_999_999_999);
    let live = held.leases.first().unwrap();
    assert_eq!((live.begins_in_ms, live.ends_in_ms), (0, 3));
    assert_eq!(live.billed.get(), 8);
    assert_eq!(
        live.lease.totals,
        LeaseTotals {
            granted: MicroUsd::new(40),
            given_back: MicroUsd::new(30),
            give_back_number: 2,
        }
    );
}

#[test]
fn a_lease_is_stated_by_the_names_that_the_answer_has() {
    let lease = held(ANSWER).unwrap().leases.remove(0).lease;
    assert_eq!(
        stated(&[lease]).unwrap(),
        r#"[{"lease":"00000000-0000-4000-8000-000000000007","cap":"team","since_ms":5,"until_ms":9,"granted_micro_usd":40,"given_back_micro_usd":30,"give_back_number":2}]"#
    );
    assert_eq!(stated(&[]).unwrap(), "[]");
}

#[test]
fn an_answer_that_lacks_an_amount_is_refused() {
    for member in ["granted_micro_usd", "limit_micro_usd", "ends_in_ms"] {
        let refused = held(&ANSWER.replace(member, "other")).unwrap_err();
        assert!(refused.to_string().contains(member), "{refused}");
    }
    let negative = ANSWER.replace(
        r#""granted_micro_usd" : 40"#,
        r#""granted_micro_usd" : -40"#,
    );
    assert!(held(&negative).is_err());
}
