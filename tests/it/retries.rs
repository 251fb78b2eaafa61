//! The retry table: every route of the interface, every kind of failure, over raw sockets that
//! refuse, reset, cut and stall (rules I4, I6, I7).
// Tables are spelled where they are read.
#![allow(clippy::type_complexity)]

mod ages;
pub mod kinds;
mod refusals;
mod requests;
pub mod routes;
mod tls;
mod waits;

use bursar::ledger::entry::{InDoubt, State};
use futures_util::future::join_all;

use self::kinds::{FAILURES, Failure, Kind};
use self::routes::{Row, rows};
use crate::support::{Answer, Bursar, Origin, Step};

const SESSION: &str = "conversation-7";

/// The request of a row, with a session, as an app would send it.
pub fn request_of(row: &Row, headers: &str) -> String {
    let (media_type, body) = row.body.content();
    let content = if body.is_empty() {
        String::new()
    } else {
        format!(
            "Content-Type: {media_type}\r\nContent-Length: {}\r\n",
            body.len()
        )
    };
    format!(
        "{} {} HTTP/1.1\r\nHost: localhost\r\nX-Service-Session: {SESSION}\r\n{headers}{content}\r\n{body}",
        row.method, row.path,
    )
}

async fn ask(bursar: &Bursar, row: &Row) -> Answer {
    let mut wire = bursar.connect().await;
    wire.send(request_of(row, "")).await;
    wire.answer().await
}

/// What every attempt of a row repeats, whatever its failure (rule I6).
fn check_attempts(name: &str, row: &Row, origin: &Origin, wanted: usize) {
    let (path, body) = row.sent();
    let line = format!("{} {path} HTTP/1.1", row.method);
    let attempts: Vec<_> = origin
        .received()
        .into_iter()
        .filter(|received| received.request_line() == line && received.body == body.as_bytes())
        .collect();
    assert_eq!(attempts.len(), wanted, "{name}: attempts");
    let (media_type, _) = row.body.content();
    let key = attempts[0].header("idempotency-key");
    assert_eq!(
        key.is_some(),
        row.kind == Kind::Keyed,
        "{name}: a key on keyed routes only"
    );
    assert!(
        key.is_none_or(|key| key.len() >= 32),
        "{name}: 128 random bits"
    );
    for attempt in &attempts {
        assert_eq!(attempt.body, body.as_bytes(), "{name}: the body's bytes");
        assert_eq!(attempt.header("idempotency-key"), key, "{name}: one key");
        assert_eq!(
            attempt.header("x-service-session"),
            Some(SESSION),
            "{name}: the session"
        );
        let sent_type = (!body.is_empty()).then_some(media_type);
        assert_eq!(
            attempt.header("content-type"),
            sent_type,
            "{name}: the content type"
        );
    }
}

/// The entry's state as one word; `in_doubt` by its reason.
fn state_word(state: State) -> &'static str {
    match state {
        State::Failed => "failed",
        State::InDoubt { reason } => reason.as_str(),
        State::Settled { .. } => "settled",
        State::Unreported => "unreported",
        State::Replayed => "replayed",
        State::Reconciled { .. } => "reconciled",
        State::Open => "open",
    }
}

fn check_answer(name: &str, bursar: &Bursar, row: &Row, failure: &Failure, answer: &Answer) {
    assert_eq!(answer.status, failure.status, "{name}: {}", answer.text());
    assert_eq!(answer.code(), failure.code, "{name}: the code");
    assert!(answer.complete, "{name}: a whole answer");
    // A refused key or balance would be refused again.
    let account = failure.code.is_none() && matches!(failure.status, 401 | 402);
    let stop = failure.stop[row.kind as usize] || account;
    let should_retry = answer.header("x-should-retry");
    assert_eq!(
        should_retry,
        stop.then_some("false"),
        "{name}: x-should-retry"
    );
    let id = answer.header("x-bursar-entry");
    assert!(id.is_some(), "{name}: X-Bursar-Entry");
    if let Some(wanted) = failure.state(row.kind) {
        let entry = bursar.entry_of(answer);
        assert_eq!(state_word(entry.state), wanted, "{name}: the entry's state");
        let attempts = failure.attempts[row.kind as usize];
        assert_eq!(
            entry.attempts.len(),
            attempts,
            "{name}: the entry's attempts"
        );
        let free = matches!(entry.state, State::Failed);
        let billed = entry.billed_micro_usd.map(|billed| billed.get());
        assert_eq!(
            billed,
            free.then_some(0),
            "{name}: only a failure is known to be 0"
        );
    } else {
        let entries = bursar.entries();
        let entry = entries
            .iter()
            .find(|entry| Some(entry.id.0.to_string().as_str()) == id);
        assert!(entry.is_none(), "{name}: a free route makes no entry");
    }
}

async fn run_failure(failure: &Failure, config: &str) {
    let origin = Origin::always(failure.step()).await;
    let bursar = Bursar::with(&origin.url(), config).await;
    let answers = if matches!(failure.status, 401 | 402) {
        // The answer to one request holds for those after it.
        let mut answers = Vec::new();
        for row in rows() {
            answers.push(ask(&bursar, row).await);
            bursar.forget_refusals();
        }
        answers
    } else {
        join_all(rows().map(|row| ask(&bursar, row))).await
    };
    for (row, answer) in rows().zip(&answers) {
        let name = format!("{} {} × {}", row.method, row.pattern, failure.name);
        check_attempts(&name, row, &origin, failure.attempts[row.kind as usize]);
        check_answer(&name, &bursar, row, failure, answer);
    }
}

#[tokio::test]
async fn every_route_and_failure_has_its_number_of_attempts() {
    for failure in FAILURES {
        run_failure(failure, "").await;
    }
}

#[tokio::test]
async fn a_stall_counts_as_sent_without_a_head() {
    run_failure(&kinds::STALL, "[upstream]\nread_timeout_s = 1\n").await;
}

#[tokio::test]
async fn one_attempt_is_made_when_the_config_allows_one() {
    for failure in FAILURES
        .iter()
        .filter(|failure| matches!(failure.name, "503" | "close"))
    {
        let origin = Origin::always(failure.step()).await;
        let config = "[retry]\nbase_ms = 1\ncap_ms = 2\nattempts = 1\n";
        let bursar = Bursar::with(&origin.url(), config).await;
        for row in rows() {
            let name = format!("{} {} × {}", row.method, row.pattern, failure.name);
            ask(&bursar, row).await;
            check_attempts(&name, row, &origin, 1);
        }
    }
}

#[tokio::test]
async fn a_refused_connect_is_retried_on_every_route_and_costs_nothing() {
    let address = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap()
    };
    for row in rows() {
        let name = format!("{} {}", row.method, row.pattern);
        let bursar = Bursar::before(&format!("http://{address}")).await;
        let answer = ask(&bursar, row).await;
        assert_eq!(answer.status, 502, "{name}");
        assert_eq!(answer.code(), Some("upstream_unreachable"), "{name}");
        assert_eq!(answer.header("x-should-retry"), Some("false"), "{name}");
        let attempts = bursar.metric("bursar_upstream_attempts_total", r#"result="not_sent""#);
        assert!((attempts - 3.0).abs() < 0.1, "{name}: {attempts} attempts");
        if row.kind.is_metered() {
            let entry = bursar.entry_of(&answer);
            assert_eq!(entry.state, State::Failed, "{name}");
            assert_eq!(entry.attempts.len(), 3, "{name}");
        }
    }
}

/// A body with a text that the service gets too: what a dialect has no name for is left out.
fn body_with(row: &Row, text: &str) -> String {
    match row.path {
        "/v1/responses" | "/agent/v1/responses" => {
            format!(r#"{{"model":"auto","input":"{text}"}}"#)
        }
        "/agent/v1/messages" => format!(
            r#"{{"model":"auto","max_tokens":9,"messages":[{{"role":"user","content":"{text}"}}]}}"#
        ),
        _ => format!(r#"{{"model":"auto","padding":"{text}"}}"#),
    }
}

/// Fewer than all bytes handed to the kernel: *not sent*, also where nothing may be repeated.
#[tokio::test]
async fn a_reset_before_the_request_was_read_whole_is_not_sent() {
    let padding = "x".repeat(16 * 1024 * 1024);
    let json_routes = rows().filter(|row| row.kind.is_metered() && row.body.is_json());
    for row in json_routes {
        let name = format!("{} {}", row.method, row.pattern);
        let origin = Origin::always(Step::Close).await;
        origin.reset_before_body(3);
        let bursar = Bursar::before(&origin.url()).await;
        let answer = bursar.post(row.path, &body_with(row, &padding)).await;
        assert_eq!(answer.code(), Some("upstream_unreachable"), "{name}");
        let attempts = origin.received();
        assert_eq!(attempts.len(), 3, "{name}: attempts");
        for attempt in &attempts {
            let announced = attempt.header("content-length").expect("a length");
            let announced: usize = announced.parse().expect("a number");
            assert!(announced > padding.len(), "{name}: {announced} bytes");
        }
        let entry = bursar.entry_of(&answer);
        assert_eq!(entry.state, State::Failed, "{name}");
    }
}

#[tokio::test]
async fn a_certificate_that_is_refused_is_not_offered_the_key_again() {
    let origin = tls::Impostor::start().await;
    let bursar = Bursar::before(&origin.url()).await;
    let answer = bursar
        .post("/v1/chat/completions", &crate::support::chat("hi"))
        .await;
    assert_eq!(answer.status, 502, "{}", answer.text());
    assert_eq!(answer.code(), Some("upstream_tls"));
    assert_eq!(answer.header("x-should-retry"), Some("false"));
    assert_eq!(origin.handshakes(), 1, "handshakes");
    assert_eq!(origin.bytes_read(), 0, "no byte of a request left");
    assert_eq!(bursar.entry_of(&answer).state, State::Failed);
}

/// What several attempts of one request come to.
#[tokio::test]
async fn an_entry_is_folded_over_all_its_attempts() {
    use crate::support::origin::{billed, json};
    let busy = || Step::Answer(json(503, &[], r#"{"detail":"busy"}"#));
    let conflict = || Step::Answer(json(409, &[], r#"{"detail":"first still running"}"#));
    let zero = || Step::Answer(billed(0));
    let paid = || Step::Answer(billed(7));
    let cut = || {
        Step::AnswerAndClose(
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nX-Service-Billed: 7\r\nContent-Length: 90\r\n\r\n{".to_vec(),
    )
    };
    let settled = |micro_usd| State::Settled {
        billed: bursar::money::MicroUsd::new(micro_usd),
    };
    let doubt = |reason| State::InDoubt { reason };
    let rows: Vec<(&str, Vec<Step>, State)> = vec![
        ("busy, then paid", vec![busy(), paid()], settled(7)),
        (
            "busy twice, then paid",
            vec![busy(), busy(), paid()],
            settled(7),
        ),
        (
            "busy, then 0: nothing else may have run",
            vec![busy(), zero()],
            settled(0),
        ),
        ("lost, then paid", vec![Step::Close, paid()], settled(7)),
        (
            "lost, then 0",
            vec![Step::Close, zero()],
            doubt(InDoubt::ReplayLostAmount),
        ),
        (
            "conflict, then 0",
            vec![conflict(), zero()],
            doubt(InDoubt::ReplayLostAmount),
        ),
        ("conflict, then paid", vec![conflict(), paid()], settled(7)),
        (
            "lost, then busy",
            vec![Step::Reset, busy(), busy()],
            doubt(InDoubt::NoResponse),
        ),
        (
            "cut behind its amount, then 0",
            vec![cut(), zero()],
            settled(7),
        ),
        (
            "cut behind its amount, then cut at 0",
            vec![cut(), Step::Close, Step::Close],
            settled(7),
        ),
        (
            "lost, then refused",
            vec![
                Step::Close,
                Step::Answer(json(402, &[], r#"{"detail":"empty"}"#)),
            ],
            doubt(InDoubt::NoResponse),
        ),
    ];
    for (name, steps, wanted) in rows {
        let origin = Origin::start(steps).await;
        let bursar = Bursar::before(&origin.url()).await;
        let answer = bursar
            .post("/v1/chat/completions", &crate::support::chat(name))
            .await;
        assert_eq!(bursar.entry_of(&answer).state, wanted, "{name}");
    }
}

/// The first amount in a broken answer's head is the key's, whatever later heads show.
#[tokio::test]
async fn an_amount_reported_before_a_break_outlives_further_breaks() {
    let cut = |amount: u64, replayed: &str| {
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nX-Service-Billed: {amount}\r\n{replayed}Content-Length: 90\r\n\r\n{{"
        );
        Step::AnswerAndClose(head.into_bytes())
    };
    let replay = "Idempotent-Replayed: true\r\n";
    let steps = [cut(500, ""), cut(0, replay), cut(0, replay)];
    let origin = Origin::start(steps).await;
    let bursar = Bursar::before(&origin.url()).await;
    let answer = bursar
        .post("/v1/chat/completions", &crate::support::chat("hi"))
        .await;
    assert_eq!(answer.status, 502);
    let entry = bursar.entry_of(&answer);
    assert_eq!(
        entry.billed_micro_usd.map(|billed| billed.get()),
        Some(500),
        "{:?}",
        entry.state
    );
}
