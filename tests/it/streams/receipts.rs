//! Receipts in comment lines: any chunking, LF and CRLF, and nothing that is none.

use bursar::ledger::entry::{Anomaly, State};

use super::{DONE, EVENT, RECEIPT, ask, settled, whole};
use crate::support::{Bursar, Origin, Step};

const TAIL: &str = concat!(
    "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":4,\"total_tokens\":7}}\n\n",
    ": service-billed-micro-usd 1234\n",
    ": service-frontier-would-have-cost-micro-usd 99\n",
    ": service-served-by frontier\n",
    ": service-route-version r-17\n\n",
    "data: [DONE]\n\n",
);

async fn check(name: &str, bursar: &Bursar, origin: &Origin, bytes: Vec<u8>, text: &str) {
    origin.push(Step::Answer(bytes));
    let answer = ask(bursar).await;
    assert!(answer.complete, "{name}: complete");
    assert_eq!(answer.text(), text, "{name}: bytes pass unchanged");
    let entry = bursar.entry_of(&answer);
    assert_eq!(entry.state, settled(1234), "{name}");
    let cost = entry.would_have_cost_micro_usd.map(|cost| cost.get());
    assert_eq!(cost, Some(99), "{name}");
    let served_by = entry.served_by.map(|served_by| served_by.as_str());
    assert_eq!(served_by, Some("frontier"), "{name}");
    assert_eq!(entry.route_version.as_deref(), Some("r-17"), "{name}");
    assert_eq!(entry.usage.total_tokens, Some(7), "{name}");
    assert!(entry.anomalies.is_empty(), "{name}: {:?}", entry.anomalies);
}

#[tokio::test]
async fn receipts_are_read_at_every_chunk_border_with_lf_and_crlf() {
    for (kind, text) in [
        ("LF", TAIL.to_owned()),
        ("CRLF", TAIL.replace('\n', "\r\n")),
    ] {
        let origin = Origin::start([]).await;
        let bursar = Bursar::before(&origin.url()).await;
        for at in 1..text.len() {
            let (first, rest) = text.split_at(at);
            let name = format!("{kind} cut at {at}");
            check(&name, &bursar, &origin, whole(&[first, rest]), &text).await;
        }
        let bytes: Vec<&str> = (0..text.len()).map(|at| &text[at..=at]).collect();
        let name = format!("{kind} byte by byte");
        check(&name, &bursar, &origin, whole(&bytes), &text).await;
        check(
            &format!("{kind} in one"),
            &bursar,
            &origin,
            whole(&[&text]),
            &text,
        )
        .await;
    }
}

#[tokio::test]
async fn what_a_stream_tells_is_taken_as_told() {
    let long = format!(": {}\n\n{RECEIPT}", "z".repeat(10 * 1024 * 1024));
    let long_receipt = format!(
        ": service-billed-micro-usd 9{}\n\n{RECEIPT}",
        " ".repeat(1024 * 1024)
    );
    let in_json = format!(
        "data: {{\"c\":\": service-billed-micro-usd 999\\n: service-billed-micro-usd 999\"}}\n\n{RECEIPT}"
    );
    let in_long_json = format!(
        "data: {{\"c\":\"{}: service-billed-micro-usd 999\"}}\n\n{RECEIPT}",
        "w".repeat(300_000)
    );
    let unreported = State::Unreported;
    let malformed = &[Anomaly::Malformed][..];
    let conflicting = &[Anomaly::ConflictingAmounts][..];
    let none = &[][..];
    let rows: Vec<(&str, &str, State, &[Anomaly])> = vec![
        ("absent", "", unreported, none),
        ("zero", ": service-billed-micro-usd 0\n\n", settled(0), none),
        (
            "malformed: a letter",
            ": service-billed-micro-usd 12x\n\n",
            unreported,
            malformed,
        ),
        (
            "malformed: a sign",
            ": service-billed-micro-usd -1\n\n",
            unreported,
            malformed,
        ),
        (
            "malformed: a fraction",
            ": service-billed-micro-usd 1.5\n\n",
            unreported,
            malformed,
        ),
        (
            "malformed: 16 digits",
            ": service-billed-micro-usd 1234567890123456\n\n",
            unreported,
            malformed,
        ),
        (
            "malformed: no value",
            ": service-billed-micro-usd\n\n",
            unreported,
            malformed,
        ),
        (
            "15 digits",
            ": service-billed-micro-usd 999999999999999\n\n",
            settled(999_999_999_999_999),
            &[Anomaly::AboveCeiling],
        ),
        (
            "twice the same",
            ": service-billed-micro-usd 7\n: service-billed-micro-usd 7\n\n",
            settled(7),
            none,
        ),
        (
            "twice, one LF one CRLF",
            ": service-billed-micro-usd 7\r\n: service-billed-micro-usd 7\n\n",
            settled(7),
            none,
        ),
        (
            "two amounts",
            ": service-billed-micro-usd 7\n: service-billed-micro-usd 9\n\n",
            settled(7),
            conflicting,
        ),
        ("inside JSON", &in_json, settled(7), none),
        ("inside long JSON", &in_long_json, settled(7), none),
        (
            "not at column 0",
            " : service-billed-micro-usd 7\n\n",
            unreported,
            none,
        ),
        (
            "no space behind the colon",
            ":service-billed-micro-usd 7\n\n",
            unreported,
            none,
        ),
        (
            "another name",
            ": service-billed-micro-usd-x 7\n\n",
            unreported,
            none,
        ),
        (
            "a longer name",
            ": x-service-billed-micro-usd 7\n\n",
            unreported,
            none,
        ),
        (
            "among keep-alives",
            ": keep-alive\n\n: service-billed-micro-usd 7\n\n: keep-alive\n\n",
            settled(7),
            none,
        ),
        ("behind a 10 MB comment", &long, settled(7), none),
        ("a receipt of 1 MB is none", &long_receipt, settled(7), none),
    ];
    for (name, told, wanted, anomalies) in rows {
        let text = format!("{EVENT}{told}{DONE}");
        let origin = Origin::start([Step::Answer(whole(&[&text]))]).await;
        let bursar = Bursar::before(&origin.url()).await;
        let answer = ask(&bursar).await;
        assert!(answer.complete, "{name}: complete");
        assert!(
            answer.body == text.as_bytes(),
            "{name}: bytes pass unchanged"
        );
        let entry = bursar.entry_of(&answer);
        assert_eq!(entry.state, wanted, "{name}");
        assert_eq!(entry.anomalies, anomalies, "{name}");
    }
}

#[tokio::test]
async fn a_comment_line_without_end_passes_and_costs_no_amount() {
    let text = format!("{EVENT}: service-billed-micro-usd 7");
    let origin = Origin::start([Step::Answer(whole(&[&text]))]).await;
    let bursar = Bursar::before(&origin.url()).await;
    let answer = ask(&bursar).await;
    // A cut `7` may have been `70`: no receipt, so the end without [DONE] is a break.
    assert!(!answer.complete);
    assert_eq!(bursar.settled(1).await[0].billed_micro_usd, None);
}

/// Header and comment both: one amount.
#[tokio::test]
async fn a_header_and_a_comment_tell_one_amount() {
    let rows = [("7", &[][..]), ("8", &[Anomaly::ConflictingAmounts][..])];
    for (header, anomalies) in rows {
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\nX-Service-Billed: {header}\r\nTransfer-Encoding: chunked\r\n\r\n"
        );
        let body = crate::support::origin::chunk(&format!("{EVENT}{RECEIPT}{DONE}"));
        let bytes = [
            head.into_bytes(),
            body,
            crate::support::origin::last_chunk(),
        ]
        .concat();
        let origin = Origin::start([Step::Answer(bytes)]).await;
        let bursar = Bursar::before(&origin.url()).await;
        let entry = bursar.entry_of(&ask(&bursar).await);
        assert_eq!(
            entry
                .billed_micro_usd
                .map(|billed| billed.get().to_string())
                .as_deref(),
            Some(header)
        );
        assert_eq!(entry.anomalies, anomalies);
    }
}
