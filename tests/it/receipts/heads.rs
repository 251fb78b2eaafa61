//! Prices in headers and bodies.

use bursar::ledger::entry::{Anomaly, State};
use bursar::protocol::Escalated;
use bursar::protocol::receipt::ReceiptSource;

use super::{CHAT, before, check_metric, settled};
use crate::support::origin::json;
use crate::support::{Bursar, Sandbox, chat};

const BODY: &str = r#"{"id":"c1","choices":[],"usage":{"prompt_tokens":3,"completion_tokens":4,"total_tokens":7}}"#;

#[tokio::test]
async fn absent_malformed_and_zero_are_three_things() {
    let none = &[][..];
    let malformed = &[Anomaly::Malformed][..];
    let rows: [(&str, &[(&str, &str)], State, &[Anomaly], &str); 15] = [
        ("absent", &[], State::Unreported, none, "missing"),
        (
            "zero",
            &[("X-Service-Billed", "0")],
            settled(0),
            none,
            "header",
        ),
        (
            "an amount",
            &[("X-Service-Billed", "1234")],
            settled(1234),
            none,
            "header",
        ),
        (
            "leading zeros",
            &[("X-Service-Billed", "007")],
            settled(7),
            none,
            "header",
        ),
        (
            "white space around it",
            &[("x-service-billed", "  7 ")],
            settled(7),
            none,
            "header",
        ),
        (
            "empty",
            &[("X-Service-Billed", "")],
            State::Unreported,
            malformed,
            "malformed",
        ),
        (
            "a letter",
            &[("X-Service-Billed", "12x")],
            State::Unreported,
            malformed,
            "malformed",
        ),
        (
            "a sign",
            &[("X-Service-Billed", "+12")],
            State::Unreported,
            malformed,
            "malformed",
        ),
        (
            "a fraction",
            &[("X-Service-Billed", "1.0")],
            State::Unreported,
            malformed,
            "malformed",
        ),
        (
            "an exponent",
            &[("X-Service-Billed", "1e3")],
            State::Unreported,
            malformed,
            "malformed",
        ),
        (
            "two in one",
            &[("X-Service-Billed", "7, 7")],
            State::Unreported,
            malformed,
            "malformed",
        ),
        (
            "too many digits",
            &[("X-Service-Billed", "1234567890123456")],
            State::Unreported,
            malformed,
            "malformed",
        ),
        (
            "two amounts",
            &[("X-Service-Billed", "7"), ("X-Service-Billed", "9")],
            settled(7),
            &[Anomaly::ConflictingAmounts],
            "header",
        ),
        (
            "zero before an amount",
            &[("X-Service-Billed", "0"), ("X-Service-Billed", "9")],
            settled(9),
            none,
            "header",
        ),
        (
            "zero before what cannot be read",
            &[("X-Service-Billed", "0"), ("X-Service-Billed", "x")],
            State::Unreported,
            malformed,
            "malformed",
        ),
    ];
    for (name, headers, state, anomalies, source) in rows {
        let (_origin, bursar) = before(json(200, headers, BODY)).await;
        let answer = bursar.post(CHAT, &chat("hi")).await;
        assert_eq!(
            answer.status, 200,
            "{name}: a bad receipt does not spoil the answer"
        );
        assert_eq!(answer.text(), BODY, "{name}");
        let entry = bursar.entry_of(&answer);
        assert_eq!(entry.state, state, "{name}");
        assert_eq!(entry.anomalies, anomalies, "{name}");
        assert_eq!(entry.usage.total_tokens, Some(7), "{name}: usage");
        for other in ["header", "sse", "body", "missing", "malformed", "replay"] {
            let wanted = f64::from(u8::from(other == source));
            check_metric(
                name,
                &bursar,
                "bursar_receipts_total",
                &format!("source=\"{other}\""),
                wanted,
            );
        }
        for kind in Anomaly::ALL {
            let wanted = f64::from(u8::from(anomalies.contains(kind)));
            let labels = format!("kind=\"{kind}\"");
            check_metric(
                name,
                &bursar,
                "bursar_receipt_anomalies_total",
                &labels,
                wanted,
            );
        }
        let unreported = f64::from(u8::from(state == State::Unreported));
        check_metric(name, &bursar, "bursar_unreported_requests", "", unreported);
        let billed = match state {
            State::Settled { billed } => billed.get(),
            _ => 0,
        };
        let usd = billed as f64 / 1e6;
        check_metric(name, &bursar, "bursar_billed_usd_total", "", usd);
    }
}

#[tokio::test]
async fn the_route_that_an_answer_reports_is_in_the_ledger() {
    let headers = [
        ("X-Service-Billed", "7"),
        ("X-Service-Frontier-Would-Have-Cost", "70"),
        ("X-Service-Served-By", "frontier"),
        ("X-Service-Specialist", "general-chat"),
        ("X-Service-Escalated", "true"),
        ("X-Service-Route-Version", "r-17"),
        ("X-Request-Id", "req-1"),
    ];
    let (_origin, bursar) = before(json(200, &headers, BODY)).await;
    let answer = bursar.post(CHAT, &chat("hi")).await;
    for (name, value) in headers {
        assert_eq!(
            answer.header(&name.to_lowercase()),
            Some(value),
            "{name} reaches the app"
        );
    }
    let entry = bursar.entry_of(&answer);
    assert_eq!(
        entry.would_have_cost_micro_usd.map(|cost| cost.get()),
        Some(70)
    );
    assert_eq!(
        entry.served_by.map(|served_by| served_by.as_str()),
        Some("frontier")
    );
    assert_eq!(entry.specialist.as_deref(), Some("general-chat"));
    assert_eq!(entry.escalated, Escalated::True);
    assert_eq!(entry.route_version.as_deref(), Some("r-17"));
    assert_eq!(entry.request_id.as_deref(), Some("req-1"));
    assert_eq!(entry.receipt_source, Some(ReceiptSource::Header));
    assert_eq!(bursar.billed(), 7, "an estimate is in no sum");
}

#[tokio::test]
async fn a_clarification_is_settled_at_zero() {
    let headers = [
        ("X-Service-Billed", "0"),
        ("X-Service-Served-By", "none"),
        ("X-Service-Input-Required", "document"),
    ];
    let (_origin, bursar) = before(json(200, &headers, BODY)).await;
    let entry = bursar.entry_of(&bursar.post(CHAT, &chat("hi")).await);
    assert_eq!(entry.state, settled(0));
    assert_eq!(entry.input_required.as_deref(), Some("document"));
    check_metric(
        "clarification",
        &bursar,
        "bursar_clarifications_total",
        "",
        1.0,
    );
}

/// What each route's answer reports, by its own column of the table.
#[tokio::test]
async fn every_metered_route_takes_its_price_from_its_own_place() {
    let frontier = r#"{"model":"m","content":"c","cost_micro_usd":42,"latency_ms":5}"#;
    let in_text = r#"{"model":"m","content":"\"cost_micro_usd\":999","x":{"cost_micro_usd":998}}"#;
    let odd_cost = r#"{"cost_micro_usd":4.2}"#;
    let text_cost = r#"{"cost_micro_usd":"42"}"#;
    let audio = r#"{"text":"t","language":"en","duration_s":12.5}"#;
    let billed = &[("X-Service-Billed", "7")][..];
    let zero = &[("X-Service-Billed", "0")][..];
    let nothing = &[][..];
    let rows: [(&str, &str, &[(&str, &str)], &str, State); 15] = [
        (
            "frontier: the body",
            "/v1/playground/frontier",
            nothing,
            frontier,
            settled(42),
        ),
        (
            "frontier: zero in the head, an amount in the body",
            "/v1/playground/frontier",
            zero,
            frontier,
            settled(42),
        ),
        (
            "frontier: zero",
            "/v1/playground/frontier",
            nothing,
            r#"{"cost_micro_usd":0}"#,
            settled(0),
        ),
        (
            "frontier: not in text",
            "/v1/playground/frontier",
            nothing,
            in_text,
            State::Unreported,
        ),
        (
            "frontier: a fraction",
            "/v1/playground/frontier",
            nothing,
            odd_cost,
            State::Unreported,
        ),
        (
            "frontier: a text",
            "/v1/playground/frontier",
            nothing,
            text_cost,
            State::Unreported,
        ),
        (
            "frontier: none",
            "/v1/playground/frontier",
            nothing,
            "{}",
            State::Unreported,
        ),
        (
            "transcription",
            "/v1/audio/transcriptions",
            nothing,
            audio,
            State::Unreported,
        ),
        (
            "speech",
            "/v1/audio/speech",
            nothing,
            audio,
            State::Unreported,
        ),
        (
            "chat: no body field",
            CHAT,
            nothing,
            frontier,
            State::Unreported,
        ),
        (
            "embeddings without",
            "/v1/embeddings",
            nothing,
            "{}",
            State::Unreported,
        ),
        (
            "embeddings with",
            "/v1/embeddings",
            billed,
            "{}",
            settled(7),
        ),
        ("rerank with", "/v1/rerank", billed, "{}", settled(7)),
        (
            "images with",
            "/v1/images/generations",
            billed,
            "{}",
            settled(7),
        ),
        (
            "agent with",
            "/agent/v1/chat/completions",
            billed,
            "{}",
            settled(7),
        ),
    ];
    for (name, path, headers, body, state) in rows {
        let (_origin, bursar) = before(json(200, headers, body)).await;
        let answer = bursar.post(path, r#"{"model":"auto"}"#).await;
        assert_eq!(
            (answer.status, answer.text().as_str()),
            (200, body),
            "{name}"
        );
        let entry = bursar.entry_of(&answer);
        assert_eq!(entry.state, state, "{name}");
        if path.contains("audio") {
            assert_eq!(
                entry.audio_ms,
                Some(12_500),
                "{name}: its length is reported"
            );
        }
    }
}

/// Their answers are made over, so what is given is no column of the table above.
#[tokio::test]
async fn a_translated_route_takes_its_price_from_the_head_of_the_services_answer_alone() {
    let chat = r#"{"id":"c1","object":"chat.completion","created":1700000000,"model":"auto","cost_micro_usd":42,"choices":[{"index":0,"message":{"role":"assistant","content":"x"},"finish_reason":"stop"}]}"#;
    let input = r#"{"model":"auto","input":"hi"}"#;
    let messages = r#"{"model":"auto","max_tokens":9,"messages":[{"role":"user","content":"hi"}]}"#;
    let rows: [(&[(&str, &str)], State); 3] = [
        (&[("X-Service-Billed", "7")], settled(7)),
        (&[("X-Service-Billed", "0")], settled(0)),
        (&[], State::Unreported),
    ];
    for (path, body) in [
        ("/v1/responses", input),
        ("/agent/v1/responses", input),
        ("/agent/v1/messages", messages),
    ] {
        for (headers, state) in &rows {
            let (_origin, bursar) = before(json(200, headers, chat)).await;
            let answer = bursar.post(path, body).await;
            assert_eq!(answer.status, 200, "{path}: {}", answer.text());
            let entry = bursar.entry_of(&answer);
            assert_eq!(entry.state, *state, "{path} {headers:?}");
        }
    }
}

#[tokio::test]
async fn an_amount_on_a_failure_is_an_anomaly_and_no_amount() {
    for status in [400, 500] {
        let (_origin, bursar) = before(json(status, &[("X-Service-Billed", "7")], "{}")).await;
        let entry = bursar.entry_of(&bursar.post(CHAT, &chat("hi")).await);
        assert_eq!(entry.state, State::Failed, "{status}");
        assert_eq!(entry.anomalies, [Anomaly::AmountOnFailure], "{status}");
        assert_eq!(bursar.billed(), 0, "{status}");
    }
}

/// The service's name in header names is config.
#[tokio::test]
async fn another_service_name_gives_other_headers() {
    let bytes = json(
        200,
        &[("X-Acme-Billed", "5"), ("X-Service-Billed", "7")],
        "{}",
    );
    let origin = crate::support::Origin::always(crate::support::Step::Answer(bytes)).await;
    let bursar = Bursar::with(&origin.url(), "service_name = \"acme\"\n").await;
    let answer = bursar.post(CHAT, &chat("hi")).await;
    assert_eq!(bursar.entry_of(&answer).state, settled(5));
}

/// The books of a real service and the ledger agree, whatever the route reports.
#[tokio::test]
async fn ledger_and_books_agree_on_every_route_that_reports_its_price() {
    let sandbox = Sandbox::start().await;
    let bursar = Bursar::before(&sandbox.url()).await;
    for path in [CHAT, "/agent/v1/chat/completions"] {
        let answer = bursar.post(path, &chat("What is 2 + 3?")).await;
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
    }
    let answer = bursar
        .post(CHAT, &crate::support::chat_stream("What is 4 + 3?"))
        .await;
    assert!(answer.text().ends_with("data: [DONE]\n\n"));
    let debited = sandbox.debited().await;
    assert_eq!(bursar.billed(), debited);
    let usd = bursar.metric("bursar_billed_usd_total", "");
    assert!((usd - debited as f64 / 1e6).abs() < 1e-9, "{usd}");
}
