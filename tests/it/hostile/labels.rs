//! Words of the service that become labels, log fields and printed text: they are closed or bounded
//! sets, whatever the words are.

use super::{Ask, Books, Case, Stage, case, events, exposition, head_with, play, whole};
use crate::support::{Step, chat};

const PAID: Books = Books::Settled(7);

/// Texts that would break out of a label, a line, or a terminal.
pub fn texts() -> Vec<(&'static str, String)> {
    vec![
        ("a quote and a brace", r#"x"} 1"#.to_owned()),
        (
            "a quote, a brace and a sample",
            r#"x"} 1\nbursar_billed_usd_total 999"#.to_owned(),
        ),
        ("a backslash", r"x\".to_owned()),
        ("two backslashes and a quote", r#"x\\""#.to_owned()),
        ("a brace", "{x}".to_owned()),
        ("a comma and a label", r#"x",app="other"#.to_owned()),
        ("a hash", "# TYPE bursar_billed_usd_total gauge".to_owned()),
        (
            "a field of JSON",
            r#"x","billed_micro_usd":999,"x":"#.to_owned(),
        ),
        ("a formula", "=cmd|' /C calc'!A0".to_owned()),
        (
            "letters of other scripts",
            "\u{202e}\u{430}\u{2028}".to_owned(),
        ),
        ("10 KB", "x".repeat(10_000)),
        ("upper case", "CODE".to_owned()),
        ("spaces", "a b  c".to_owned()),
        ("a tab", "a\tb".to_owned()),
        ("a path", "../../etc/passwd".to_owned()),
        ("markup", "<script>alert(1)</script>".to_owned()),
        ("a word of the set", "other".to_owned()),
        ("nothing", String::new()),
    ]
}

/// All words at once, in each place where the service puts one.
fn head(text: &str) -> Vec<u8> {
    let lines: String = [
        "X-Service-Specialist",
        "X-Service-Served-By",
        "X-Service-Escalated",
        "X-Service-Route-Version",
        "X-Service-Input-Required",
        "X-Request-Id",
        "Retry-After",
        "X-Should-Retry",
    ]
    .iter()
    .map(|name| format!("{name}: {text}\r\n"))
    .collect();
    head_with(&format!("X-Service-Billed: 7\r\n{lines}"))
}

pub fn cases() -> Vec<Case> {
    let in_heads = texts().into_iter().map(|(name, text)| {
        let name = format!("words in a head: {name}");
        // 10 KB eight times are more than a head may have.
        let app = if text.len() > 8_000 {
            super::BROKEN
        } else {
            whole("{}")
        };
        case(23, Ask::Chat, name, head(&text), app, PAID)
    });
    let in_comments = texts().into_iter().map(|(name, text)| {
        let text = format!(
            ": service-served-by {text}\n: service-route-version {text}\n: service-billed-micro-usd 7\n\ndata: [DONE]\n\n"
        );
        case(26, Ask::Stream, format!("words in comments: {name}"), events(&text), whole(&text), PAID)
    });
    let raw = ["\x1b[31mred", "\x07", "a\rb", "\u{9b}31m"];
    let raw = raw.into_iter().map(|text| {
        let name = format!("control bytes in comments: {text:?}");
        let text = format!(
            ": service-route-version {text}\n: service-served-by {text}\n: service-billed-micro-usd 7\n: {text}\n\ndata: [DONE]\n\n"
        );
        case(25, Ask::Stream, name, events(&text), whole(&text), PAID)
    });
    in_heads.chain(in_comments).chain(raw).collect()
}

#[tokio::test]
async fn words_of_the_service_stay_words() {
    play(cases()).await;
}

/// The number of series does not grow with the service's words.
#[tokio::test]
async fn a_hundred_words_make_no_hundred_series() {
    let stage = Stage::with(super::ONCE).await;
    let mut wire = stage.bursar.connect().await;
    let mut counts = Vec::new();
    for n in 0..100 {
        let lines = format!(
            "X-Service-Billed: 7\r\nX-Service-Specialist: word-{n}\r\nX-Service-Served-By: word-{n}\r\nX-Service-Escalated: word-{n}\r\nX-Service-Route-Version: word-{n}\r\n"
        );
        stage.origin.push(Step::Answer(head_with(&lines)));
        let asks = crate::support::wire::request("POST", super::CHAT, &[], &chat(&n.to_string()));
        wire.send(asks).await;
        assert_eq!(wire.answer().await.status, 200);
        let samples = exposition::samples(&stage.bursar.metrics_text()).expect("metrics");
        counts.push(samples.len());
    }
    assert_eq!(counts[40], counts[99], "series went on to grow: {counts:?}");
    let metrics = stage.bursar.metrics_text();
    let count = |family: &str| {
        metrics
            .lines()
            .filter(|line| line.starts_with(family))
            .count()
    };
    assert_eq!(
        count("bursar_specialist_answers_total{"),
        33,
        "32 and other"
    );
    assert_eq!(count("bursar_route_version_info{"), 1, "the last one");
    assert_eq!(count("bursar_billed_usd_total{"), 1, "other");
    assert!(metrics.contains("version=\"word-99\""));
}
