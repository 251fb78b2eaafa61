//! Lying receipts: amounts in other grammars, sent twice, on answers that bill nothing, and too large
//! to be believed without a warning.

use bursar::ledger::entry::{Anomaly, InDoubt};

use super::{App, Ask, Books, Case, case, events, head_with, play, whole};
use crate::support::origin::json;
use crate::support::{KEY, Step};

const MALFORMED: &[Anomaly] = &[Anomaly::Malformed];
const CONFLICT: &[Anomaly] = &[Anomaly::ConflictingAmounts];
const TOO_LARGE: &[Anomaly] = &[Anomaly::AboveCeiling];
const NONE: &[Anomaly] = &[];

/// The text in the place of an amount, and the ledger's reading of it.
fn amounts() -> Vec<(&'static str, &'static str, Books, &'static [Anomaly])> {
    let bad = Books::Unreported;
    vec![
        ("16 digits", "1000000000000000", bad, MALFORMED),
        (
            "16 digits, most of them 0",
            "0000000000000007",
            bad,
            MALFORMED,
        ),
        ("20 digits", "18446744073709551623", bad, MALFORMED),
        ("a plus", "+7", bad, MALFORMED),
        ("a minus", "-7", bad, MALFORMED),
        ("minus zero", "-0", bad, MALFORMED),
        ("an exponent", "7e3", bad, MALFORMED),
        ("hexadecimal", "0x7", bad, MALFORMED),
        ("a fraction", "7.0", bad, MALFORMED),
        ("a space inside", "7 7", bad, MALFORMED),
        ("a tab inside", "7\t7", bad, MALFORMED),
        ("a comma", "7,000", bad, MALFORMED),
        ("an underscore", "7_000", bad, MALFORMED),
        ("a list", "7, 7", bad, MALFORMED),
        ("a currency", "$7", bad, MALFORMED),
        ("quotes", "\"7\"", bad, MALFORMED),
        ("a parameter", "7;q=1", bad, MALFORMED),
        ("digits of another script", "\u{667}", bad, MALFORMED),
        ("wide digits", "\u{ff17}", bad, MALFORMED),
        ("a space without a break", "\u{a0}7", bad, MALFORMED),
        ("a joiner", "7\u{200d}", bad, MALFORMED),
        ("null", "null", bad, MALFORMED),
        ("not a number", "NaN", bad, MALFORMED),
        ("infinity", "inf", bad, MALFORMED),
        ("true", "true", bad, MALFORMED),
        ("leading zeros", "000000000000007", Books::Settled(7), NONE),
        (
            "zero in 15 digits",
            "000000000000000",
            Books::Settled(0),
            NONE,
        ),
        (
            "the ceiling",
            "1000000000",
            Books::Settled(1_000_000_000),
            NONE,
        ),
        (
            "one above the ceiling",
            "1000000001",
            Books::Settled(1_000_000_001),
            TOO_LARGE,
        ),
        (
            "the largest amount",
            "999999999999999",
            Books::Settled(999_999_999_999_999),
            TOO_LARGE,
        ),
    ]
}

fn in_headers() -> Vec<Case> {
    let tables = amounts().into_iter().map(|(name, amount, books, odd)| {
        let sends = head_with(&format!("X-Service-Billed: {amount}\r\n"));
        case(
            22,
            Ask::Chat,
            format!("header: {name}"),
            sends,
            whole("{}"),
            books,
        )
        .odd(odd)
    });
    tables.collect()
}

fn in_comments() -> Vec<Case> {
    let tables = amounts().into_iter().map(|(name, amount, books, odd)| {
        let text = format!("data: {{}}\n\n: service-billed-micro-usd {amount}\n\ndata: [DONE]\n\n");
        let name = format!("comment: {name}");
        case(22, Ask::Stream, name, events(&text), whole(&text), books).odd(odd)
    });
    tables.collect()
}

fn comments() -> Vec<Case> {
    let done = "data: [DONE]\n\n";
    let stream = |name: &str, text: String, books, odd| {
        case(22, Ask::Stream, name, events(&text), whole(&text), books).odd(odd)
    };
    let receipt = |amount: u64| format!(": service-billed-micro-usd {amount}\n\n");
    let with_comments = |text: &str| format!("data: {{}}\n\n{text}\n\n{done}");
    let nothing = Books::Unreported;
    vec![
        stream(
            "two equal comments",
            with_comments(&receipt(7).repeat(2)),
            Books::Settled(7),
            NONE,
        ),
        stream(
            "500 equal comments",
            with_comments(&receipt(7).repeat(500)),
            Books::Settled(7),
            NONE,
        ),
        stream(
            "two amounts in comments",
            with_comments(&[receipt(7), receipt(9)].concat()),
            Books::Settled(7),
            CONFLICT,
        ),
        stream(
            "500 amounts in comments",
            with_comments(&(1..=500).map(receipt).collect::<String>()),
            Books::Settled(1),
            CONFLICT,
        ),
        stream(
            "a zero behind an amount",
            with_comments(&[receipt(7), receipt(0)].concat()),
            Books::Settled(7),
            CONFLICT,
        ),
        stream(
            "an amount behind what is none",
            with_comments(&format!(": service-billed-micro-usd x\n\n{}", receipt(7))),
            nothing,
            &[Anomaly::ConflictingAmounts, Anomaly::Malformed],
        ),
        stream(
            "an amount behind the end mark",
            format!("data: {{}}\n\n{done}{}", receipt(7)),
            nothing,
            NONE,
        ),
        stream(
            "another amount behind the end mark",
            format!("{}{done}{}", receipt(7), receipt(9)),
            Books::Settled(7),
            NONE,
        ),
        stream(
            "no space before the name",
            with_comments(":service-billed-micro-usd 7"),
            nothing,
            NONE,
        ),
        stream(
            "two spaces before the name",
            with_comments(":  service-billed-micro-usd 7"),
            nothing,
            NONE,
        ),
        stream(
            "two spaces before the amount",
            with_comments(": service-billed-micro-usd  7"),
            nothing,
            MALFORMED,
        ),
        stream(
            "a space before the colon of a comment",
            with_comments(" : service-billed-micro-usd 7"),
            nothing,
            NONE,
        ),
        stream(
            "upper case",
            with_comments(": SERVICE-BILLED-MICRO-USD 7"),
            nothing,
            NONE,
        ),
        stream(
            "an equals sign",
            with_comments(": service-billed-micro-usd=7"),
            nothing,
            NONE,
        ),
        stream(
            "a name that goes on",
            with_comments(": service-billed-micro-usd-x 7"),
            nothing,
            NONE,
        ),
        stream(
            "behind a byte order mark",
            format!("\u{feff}{}{done}", receipt(7)),
            nothing,
            NONE,
        ),
        stream(
            "as data",
            with_comments("data: : service-billed-micro-usd 7"),
            nothing,
            NONE,
        ),
        stream(
            "as an event",
            with_comments("event: : service-billed-micro-usd 7"),
            nothing,
            NONE,
        ),
        stream(
            "as a field",
            with_comments("service-billed-micro-usd: 7"),
            nothing,
            NONE,
        ),
        stream(
            "a comment of 300 bytes",
            with_comments(&format!(": service-billed-micro-usd {}7", "0".repeat(300))),
            nothing,
            NONE,
        ),
        stream(
            "an estimate of 16 digits",
            with_comments(&format!(
                ": service-frontier-would-have-cost-micro-usd 1000000000000000\n\n{}",
                receipt(7)
            )),
            Books::Settled(7),
            NONE,
        ),
    ]
}

fn headers() -> Vec<Case> {
    let answer = |name: &str, lines: &str, books, odd| {
        case(22, Ask::Chat, name, head_with(lines), whole("{}"), books).odd(odd)
    };
    let error = |name: &str, status, headers: &[(&str, &str)], odd| {
        let sends = json(status, headers, "{}");
        case(
            22,
            Ask::Chat,
            name,
            sends,
            App::Whole(status, b"{}".to_vec()),
            Books::Failed,
        )
        .odd(odd)
    };
    let lost = Books::InDoubt(InDoubt::ReplayLostAmount);
    let many: String = (1..=60)
        .map(|n| format!("X-Service-Billed: {n}\r\n"))
        .collect();
    vec![
        answer("60 amounts in headers", &many, Books::Settled(1), CONFLICT),
        answer(
            "60 equal headers",
            &"X-Service-Billed: 7\r\n".repeat(60),
            Books::Settled(7),
            NONE,
        ),
        answer(
            "an underscore in the name",
            "X_Service_Billed: 7\r\n",
            Books::Unreported,
            NONE,
        ),
        answer(
            "an estimate and no amount",
            "X-Service-Frontier-Would-Have-Cost: 7\r\n",
            Books::Unreported,
            NONE,
        ),
        answer(
            "an estimate that is none",
            "X-Service-Billed: 7\r\nX-Service-Frontier-Would-Have-Cost: -1\r\n",
            Books::Settled(7),
            NONE,
        ),
        answer(
            "escalated perhaps",
            "X-Service-Billed: 7\r\nX-Service-Escalated: perhaps\r\nX-Service-Escalated: true\r\n",
            Books::Settled(7),
            NONE,
        ),
        answer(
            "an amount on a replay",
            "X-Service-Billed: 7\r\nIdempotent-Replayed: true\r\n",
            lost,
            &[Anomaly::AmountOnReplay],
        ),
        answer(
            "zero on a replay",
            "X-Service-Billed: 0\r\nIdempotent-Replayed: true\r\n",
            lost,
            NONE,
        ),
        answer(
            "replayed, perhaps",
            "X-Service-Billed: 7\r\nIdempotent-Replayed: maybe\r\n",
            Books::Settled(7),
            NONE,
        ),
        answer(
            "a clarification that bills",
            "X-Service-Billed: 7\r\nX-Service-Served-By: none\r\nX-Service-Input-Required: document\r\n",
            Books::Settled(7),
            NONE,
        ),
        error(
            "an amount on a 400",
            400,
            &[("X-Service-Billed", "7")],
            &[Anomaly::AmountOnFailure],
        ),
        error(
            "an amount on a 500",
            500,
            &[("X-Service-Billed", "7")],
            &[Anomaly::AmountOnFailure],
        ),
        error(
            "an amount above the ceiling on a 402",
            402,
            &[("X-Service-Billed", "999999999999999")],
            &[Anomaly::AmountOnFailure],
        ),
        error(
            "an amount on a redirect",
            302,
            &[("X-Service-Billed", "7"), ("Location", "http://elsewhere/")],
            &[Anomaly::AmountOnFailure],
        ),
        error(
            "no amount on a 500",
            500,
            &[("X-Service-Billed", "lots")],
            MALFORMED,
        ),
    ]
}

pub fn cases() -> Vec<Case> {
    [in_headers(), in_comments(), comments(), headers()].concat()
}

#[tokio::test]
async fn amounts_in_headers() {
    play([in_headers(), headers()].concat()).await;
}

#[tokio::test]
async fn amounts_in_comments() {
    play([in_comments(), comments()].concat()).await;
}

/// The sums hold what no amount can: they are wider than the largest ones together.
#[tokio::test]
async fn sums_of_the_largest_amounts_are_exact() {
    let stage = super::Stage::with(super::ONCE).await;
    let largest = "999999999999999";
    for n in 0..20 {
        let usage =
            r#"{"usage":{"prompt_tokens":999999999999999,"completion_tokens":999999999999999}}"#;
        let headers = [
            ("X-Service-Billed", largest),
            ("X-Service-Frontier-Would-Have-Cost", largest),
        ];
        stage.origin.push(Step::Answer(json(200, &headers, usage)));
        let answer = stage
            .bursar
            .post(super::CHAT, &crate::support::chat(&n.to_string()))
            .await;
        assert_eq!(answer.status, 200);
    }
    let metrics = stage.bursar.metrics_text();
    let sum = "19999999999.999980";
    let line = |family: &str| {
        let lines = metrics.lines().filter(|line| line.starts_with(family));
        lines
            .map(|line| line.rsplit(' ').next().unwrap_or_default().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(line("bursar_billed_usd_total{"), [sum]);
    assert_eq!(line("bursar_frontier_would_have_cost_usd_total{"), [sum]);
    assert_eq!(
        stage
            .bursar
            .metric("bursar_receipt_anomalies_total", "above_ceiling") as u64,
        20
    );
    assert!(!metrics.contains(KEY));
    stage.check_what_is_kept();
}
