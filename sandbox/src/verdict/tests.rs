//! Each rule on small logs: what breaks it, and what comes close but does not.

use super::judge;
use crate::received::Received;
use serde_json::{Value, json};

/// A request: arrival and answer in ms, status, key, and what differs from the rest.
fn one(at_ms: u64, ended_ms: u64, status: u16, key: &str, more: Value) -> Received {
    let text = |name: &str| more.get(name).and_then(Value::as_str).map(str::to_owned);
    Received {
        n: 0,
        at: String::new(),
        at_ms,
        ended_ms: Some(ended_ms),
        org: Some(text("org").unwrap_or_else(|| "org-1".to_owned())),
        method: text("method").unwrap_or_else(|| "POST".to_owned()),
        path: text("path").unwrap_or_else(|| "/v1/chat/completions".to_owned()),
        request_id: format!("req_{at_ms}"),
        idempotency_key: Some(key.to_owned()).filter(|key| !key.is_empty()),
        authorization: "ok",
        header_names: Vec::new(),
        session: text("session"),
        body_bytes: Some(1),
        body_sha256: text("body").or_else(|| Some("b".to_owned())),
        stream: false,
        status: Some(status).filter(|status| *status > 0),
        replayed: more.get("replayed").is_some(),
        retry_after_s: more.get("retry_after_s").and_then(Value::as_u64),
        fault: more.get("fault").cloned(),
    }
}

fn none() -> Value {
    json!({})
}

/// Names of the findings and, with a `?`, of the remarks.
fn rules(log: &[Received]) -> Vec<String> {
    let verdict = judge(log);
    assert_eq!(verdict.ok, verdict.findings.is_empty());
    let findings = verdict.findings.iter().map(|one| one.rule.to_owned());
    let remarks = verdict.remarks.iter().map(|one| format!("{}?", one.rule));
    findings.chain(remarks).collect()
}

#[test]
fn a_polite_client_gets_no_finding() {
    let log = [
        one(0, 10, 503, "a", json!({"retry_after_s": 1})),
        one(1_010, 1_020, 502, "a", none()),
        one(2_000, 2_020, 200, "a", none()),
        one(2_030, 2_040, 200, "b", none()),
        one(2_050, 2_060, 200, "a", json!({"replayed": true})),
        one(2_070, 2_080, 404, "", json!({"method": "GET"})),
        one(2_090, 2_091, 404, "", json!({"method": "GET"})),
    ];

    assert_eq!(rules(&log), [] as [&str; 0]);
}

// Interface, Errors: "retry with exponential backoff and jitter, honoring `Retry-After`".
#[test]
fn each_rule_finds_what_breaks_it_and_nothing_else() {
    let wait = |s: u64| json!({"retry_after_s": s});
    let cut = |name: &str| json!({"fault": {name: true}});
    let rows: Vec<(&str, Vec<Received>, &[&str])> = vec![
        (
            "back too soon",
            vec![
                one(0, 10, 429, "a", wait(2)),
                one(2_009, 2_010, 200, "a", none()),
            ],
            &["retry-after-ignored"],
        ),
        (
            "back in time",
            vec![
                one(0, 10, 429, "a", wait(2)),
                one(2_010, 2_011, 200, "a", none()),
            ],
            &[],
        ),
        (
            "another request meanwhile",
            vec![
                one(0, 10, 503, "a", wait(2)),
                one(20, 30, 200, "b", json!({"body": "c"})),
            ],
            &[],
        ),
        (
            "another key",
            vec![
                one(0, 10, 503, "a", none()),
                one(600, 610, 200, "b", none()),
            ],
            &["key-changed"],
        ),
        (
            "another purchase beside it",
            vec![
                one(0, 10, 503, "a", none()),
                one(600, 610, 200, "b", none()),
                one(700, 710, 200, "a", none()),
            ],
            &[],
        ),
        (
            "another organization",
            vec![
                one(0, 10, 503, "a", none()),
                one(600, 610, 200, "b", json!({"org": "org-2"})),
            ],
            &[],
        ),
        (
            "no key at all",
            vec![one(0, 10, 200, "", none())],
            &["no-key?"],
        ),
        (
            "a retry without key",
            vec![one(0, 10, 502, "", none()), one(600, 610, 200, "", none())],
            &["retried-without-key", "no-key?"],
        ),
        (
            "after a ceiling without key",
            vec![
                one(0, 10, 429, "", wait(1)),
                one(1_600, 1_610, 200, "", none()),
            ],
            &["no-key?"],
        ),
        (
            "a route that knows no key",
            vec![
                one(0, 10, 502, "", json!({"path": "/v1/audio/speech"})),
                one(600, 610, 200, "", json!({"path": "/v1/audio/speech"})),
            ],
            &[],
        ),
        (
            "one key, two bodies",
            vec![
                one(0, 10, 200, "a", none()),
                one(20, 30, 422, "a", json!({"body": "c"})),
            ],
            &["key-reused"],
        ),
        (
            "one key, two sessions",
            vec![
                one(0, 10, 200, "a", none()),
                one(20, 30, 422, "a", json!({"session": "s"})),
            ],
            &["key-reused"],
        ),
        ("422 of its own", vec![one(0, 10, 422, "a", none())], &[]),
        (
            "after a day",
            vec![
                one(0, 10, 200, "a", none()),
                one(86_400_000, 86_400_010, 200, "a", none()),
            ],
            &["key-outlived"],
        ),
        (
            "within the day",
            vec![
                one(0, 10, 200, "a", none()),
                one(86_399_999, 86_400_000, 200, "a", json!({"replayed": true})),
            ],
            &[],
        ),
        (
            "402 again",
            vec![
                one(0, 10, 402, "a", none()),
                one(2_000, 2_010, 402, "a", none()),
            ],
            &["retried-final"],
        ),
        (
            "402 after a top-up",
            vec![
                one(0, 10, 402, "a", none()),
                one(60_011, 60_020, 200, "a", none()),
            ],
            &[],
        ),
        (
            "413 again",
            vec![
                one(0, 10, 413, "a", none()),
                one(500, 510, 413, "a", none()),
            ],
            &["retried-final"],
        ),
        (
            "hammering",
            (0..4)
                .map(|n| one(n * 60, n * 60 + 10, 503, "a", none()))
                .collect(),
            &["hammered"],
        ),
        (
            "two at once",
            (0..3)
                .map(|n| one(n * 60, n * 60 + 10, 503, "a", none()))
                .collect(),
            &[],
        ),
        (
            "many in a minute",
            (0..12)
                .map(|n| one(n * 1_000, n * 1_000 + 10, 503, "a", none()))
                .collect(),
            &["hammered"],
        ),
        (
            "many in an hour",
            (0..12)
                .map(|n| one(n * 9_000, n * 9_000 + 10, 503, "a", none()))
                .collect(),
            &[],
        ),
        (
            "in flight",
            vec![one(0, 1, 429, "a", wait(5))],
            &["too-many-in-flight"],
        ),
        (
            "per minute",
            vec![one(0, 1, 429, "a", wait(15))],
            &["too-many-per-minute"],
        ),
        (
            "a fault that looks like a ceiling",
            vec![one(
                0,
                1,
                429,
                "a",
                json!({"retry_after_s": 5, "fault": {"status": 429}}),
            )],
            &[],
        ),
        (
            "cut and left",
            vec![one(0, 1, 200, "a", cut("cut_after_chunks"))],
            &["not-asked-again?"],
        ),
        (
            "cut and asked again",
            vec![
                one(0, 1, 0, "a", cut("cut_before_head")),
                one(600, 610, 200, "a", none()),
            ],
            &[],
        ),
        (
            "cut and asked again with another key",
            vec![
                one(0, 1, 0, "a", cut("cut_before_head")),
                one(600, 610, 200, "z", none()),
            ],
            &["key-changed"],
        ),
    ];
    for (what, log, wanted) in rows {
        assert_eq!(rules(&log), wanted, "{what}");
    }
}

#[test]
fn examples_are_request_ids_and_few() {
    let log: Vec<Received> = (0..9)
        .map(|n| {
            one(
                n,
                n,
                429,
                &n.to_string(),
                json!({"retry_after_s": 5, "body": n.to_string()}),
            )
        })
        .collect();

    let verdict = judge(&log);

    let finding = &verdict.findings[0];
    assert_eq!((finding.count, finding.examples.len()), (9, 5));
    assert_eq!(finding.examples[0], "req_0");
    let text = verdict.to_string();
    assert!(text.contains("NOT ok, 9 requests"), "{text}");
    assert!(text.contains("too-many-in-flight (9x)"), "{text}");
}
