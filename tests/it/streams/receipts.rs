//! Receipts in comment lines: any chunking, LF and CRLF, and lines that merely look like receipts.

use bursar::ledger::entry::{Anomaly, InDoubt, State};

use super::{DONE, EVENT, RECEIPT, ask, settled, whole};
use crate::support::origin::{chunk, last_chunk};
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
async fn the_amount_in_a_stream_is_taken_as_it_stands() {
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
    for (name, comments, wanted, anomalies) in rows {
        let text = format!("{EVENT}{comments}{DONE}");
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

fn head_with_billed(billed: &str, further: &str) -> Vec<u8> {
    format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\nX-Service-Billed: {billed}\r\n{further}Transfer-Encoding: chunked\r\n\r\n"
    )
    .into_bytes()
}

/// Header and comment both: one amount, the first positive one (rule I3).
#[tokio::test]
async fn a_header_and_a_comment_give_one_amount() {
    let conflicting = &[Anomaly::ConflictingAmounts][..];
    let none = &[][..];
    // In the head; in the comment; what it is worth.
    let rows: [(&str, &str, State, &[Anomaly]); 8] = [
        ("7", "7", settled(7), none),
        ("8", "7", settled(8), conflicting),
        ("0", "100", settled(100), none),
        ("100", "0", settled(100), conflicting),
        ("0", "0", settled(0), none),
        ("0", "-1", State::Unreported, &[Anomaly::Malformed]),
        (
            "x",
            "100",
            State::Unreported,
            &[Anomaly::ConflictingAmounts, Anomaly::Malformed],
        ),
        (
            "x",
            "0",
            State::Unreported,
            &[Anomaly::ConflictingAmounts, Anomaly::Malformed],
        ),
    ];
    for (header, comment, state, anomalies) in rows {
        let name = format!("{header} in the head, {comment} in the comment");
        let text = format!("{EVENT}: service-billed-micro-usd {comment}\n\n{DONE}");
        let bytes = [head_with_billed(header, ""), chunk(&text), last_chunk()].concat();
        let origin = Origin::start([Step::Answer(bytes)]).await;
        let bursar = Bursar::before(&origin.url()).await;
        let answer = ask(&bursar).await;
        assert!(answer.complete, "{name}");
        let entry = bursar.entry_of(&answer);
        assert_eq!(entry.state, state, "{name}");
        assert_eq!(entry.anomalies, anomalies, "{name}");
        let amount = match state {
            State::Settled { billed } => billed.get(),
            _ => 0,
        };
        assert_eq!(bursar.billed(), amount, "{name}: in the sum");
    }
}

/// The head of a stream goes out before its amount is known.
#[tokio::test]
async fn a_zero_in_a_stream_s_head_is_believed_only_with_the_stream_s_end() {
    let dropped = State::InDoubt {
        reason: InDoubt::StreamDrop,
    };
    let question = "X-Service-Served-By: none\r\nX-Service-Input-Required: document\r\n";
    let gzip = "Content-Encoding: gzip\r\n";
    let done = format!("{EVENT}{DONE}");
    let paid = format!("{EVENT}{RECEIPT}");
    // Further fields of the head; what follows it; whether it ends; what it is worth.
    let free = format!("{EVENT}: service-billed-micro-usd 0\n\n");
    let rows: [(&str, &str, &str, bool, State); 9] = [
        ("it ends", "", &done, true, settled(0)),
        ("it drops", "", EVENT, false, dropped),
        ("a clean end without its mark", "", EVENT, true, dropped),
        ("it drops behind its receipt", "", &paid, false, settled(7)),
        (
            "it drops behind a comment of 0",
            "",
            &free,
            false,
            settled(0),
        ),
        (
            "a clean end behind a comment of 0",
            "",
            &free,
            true,
            settled(0),
        ),
        ("a question drops", question, EVENT, false, settled(0)),
        (
            "its comments cannot be read",
            gzip,
            EVENT,
            true,
            State::Unreported,
        ),
        ("nothing came", "", "", false, dropped),
    ];
    for (name, further, text, ends, state) in rows {
        let mut bytes = head_with_billed("0", further);
        if !text.is_empty() {
            bytes.extend(chunk(text));
        }
        let step = if ends {
            Step::Answer([bytes, last_chunk()].concat())
        } else {
            Step::AnswerAndClose(bytes)
        };
        let origin = Origin::start([step]).await;
        let bursar = Bursar::with(&origin.url(), "[retry]\nattempts = 1\n").await;
        ask(&bursar).await;
        assert_eq!(bursar.settled(1).await[0].state, state, "{name}");
    }
}

/// How long an answer is does not depend on what arrives with its end mark, or on how it is cut.
#[tokio::test]
async fn the_bytes_of_an_answer_end_with_its_end_mark() {
    let answer = format!("{EVENT}{RECEIPT}data: [DONE]");
    let wanted = u64::try_from(answer.len()).expect("a length");
    let all = |behind: &str| format!("{answer}{behind}");
    let rows = [
        ("alone", vec![all("\n\n")]),
        (
            "with the end of its line behind it",
            vec![all(""), "\n\n".to_owned()],
        ),
        (
            "cut in two",
            vec![format!("{EVENT}{RECEIPT}data: [DO"), "NE]\n\n".to_owned()],
        ),
        (
            "with words behind it",
            vec![all("\n\n: bye\n\ndata: {}\n\n")],
        ),
        (
            "with words in the next chunk",
            vec![all("\n\n"), ": bye\n\n".to_owned()],
        ),
    ];
    for (name, chunks) in rows {
        let chunks: Vec<&str> = chunks.iter().map(String::as_str).collect();
        let origin = Origin::start([Step::Answer(whole(&chunks))]).await;
        let bursar = Bursar::before(&origin.url()).await;
        let given = ask(&bursar).await;
        assert_eq!(given.text(), chunks.concat(), "{name}: it passes as it is");
        let entry = &bursar.settled(1).await[0];
        assert_eq!(entry.response_bytes, Some(wanted), "{name}");
    }
}
