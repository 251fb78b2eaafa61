//! A break reaches the app as a break; what is complete is never broken.

use bursar::ledger::entry::{InDoubt, State};

use super::{CHAT, DONE, EVENT, RECEIPT, ask, open, settled, whole};
use crate::support::origin::stream_head;
use crate::support::wire::request;
use crate::support::{Answer, Bursar, Origin, Step, chat_stream};

const DROPPED: State = State::InDoubt {
    reason: InDoubt::StreamDrop,
};

/// The error event that ends a broken stream, as SDKs parse it.
fn error_event(name: &str, answer: &Answer, given: &str) {
    let text = answer.text();
    let rest = text
        .strip_prefix(given)
        .unwrap_or_else(|| panic!("{name}: {text:?} does not begin with {given:?}"));
    let event = rest
        .trim_start_matches('\n')
        .strip_prefix("data: ")
        .and_then(|event| event.strip_suffix("\n\n"))
        .unwrap_or_else(|| panic!("{name}: no event in {rest:?}"));
    let event: serde_json::Value = serde_json::from_str(event).expect(name);
    assert_eq!(event["error"]["code"], "upstream_broken", "{name}");
    assert!(event["error"]["message"].is_string(), "{name}");
    assert!(
        event.get("detail").is_none(),
        "{name}: SDKs hand a detail event to the app"
    );
    assert!(!text.contains("[DONE]"), "{name}: no invented [DONE]");
}

#[tokio::test]
async fn a_stream_that_drops_ends_with_an_error_event_and_no_end() {
    let half = "data: {\"choices\":[{\"del";
    let two = format!("{EVENT}{half}");
    let held = format!("{EVENT}data: [DON");
    let rows: Vec<(&str, Step, &str, State)> = vec![
        (
            "close",
            Step::AnswerAndClose(open(&[EVENT])),
            EVENT,
            DROPPED,
        ),
        (
            "reset",
            Step::AnswerAndReset(open(&[EVENT])),
            EVENT,
            DROPPED,
        ),
        (
            "inside an event",
            Step::AnswerAndClose(open(&[EVENT, half])),
            &two,
            DROPPED,
        ),
        (
            "inside the end mark",
            Step::AnswerAndClose(open(&[&held])),
            EVENT,
            DROPPED,
        ),
        (
            "inside a chunk",
            Step::AnswerAndClose(
                [stream_head(), b"ff\r\n".to_vec(), EVENT.as_bytes().to_vec()].concat(),
            ),
            EVENT,
            DROPPED,
        ),
        (
            "a clean end without [DONE]",
            Step::Answer(whole(&[EVENT])),
            EVENT,
            DROPPED,
        ),
    ];
    for (name, step, given, state) in rows {
        let origin = Origin::start([step]).await;
        let bursar = Bursar::before(&origin.url()).await;
        let answer = ask(&bursar).await;
        assert_eq!(answer.status, 200, "{name}");
        assert!(!answer.complete, "{name}: the body has no end");
        error_event(name, &answer, given);
        assert_eq!(bursar.settled(1).await[0].state, state, "{name}");
        assert_eq!(
            origin.received().len(),
            1,
            "{name}: never repeated once a byte went out"
        );
    }
}

/// The receipt came and `[DONE]` did not: the amount is known, and the break is still a break.
#[tokio::test]
async fn a_drop_behind_the_receipt_is_settled() {
    let given = format!("{EVENT}{RECEIPT}");
    let origin = Origin::start([Step::AnswerAndClose(open(&[&given]))]).await;
    let bursar = Bursar::before(&origin.url()).await;
    let answer = ask(&bursar).await;
    assert!(!answer.complete);
    error_event("behind the receipt", &answer, &given);
    assert_eq!(bursar.settled(1).await[0].state, settled(7));
}

#[tokio::test]
async fn a_stall_inside_a_stream_is_a_break() {
    let origin = Origin::start([Step::Pieces(vec![open(&[EVENT]), vec![]])]).await;
    let bursar = Bursar::with(&origin.url(), "[upstream]\nread_timeout_s = 1\n").await;
    let mut wire = super::begin(&bursar).await;
    origin.go();
    let answer = wire.answer().await;
    assert!(!answer.complete);
    error_event("stall", &answer, EVENT);
    assert_eq!(bursar.settled(1).await[0].state, DROPPED);
}

/// "A clean upstream end of a chat stream without [DONE]: with a receipt, settle and pass the end".
#[tokio::test]
async fn a_clean_end_with_a_receipt_is_an_end() {
    let given = format!("{EVENT}{RECEIPT}");
    let origin = Origin::start([Step::Answer(whole(&[&given]))]).await;
    let bursar = Bursar::before(&origin.url()).await;
    let answer = ask(&bursar).await;
    assert!(answer.complete);
    assert_eq!(answer.text(), given);
    assert_eq!(bursar.entries()[0].state, settled(7));
}

#[tokio::test]
async fn a_break_behind_the_end_mark_changes_nothing() {
    let given = format!("{EVENT}{RECEIPT}{DONE}");
    let rows = [
        ("close", Step::AnswerAndClose(open(&[&given]))),
        ("reset", Step::AnswerAndReset(open(&[&given]))),
    ];
    for (name, step) in rows {
        let origin = Origin::start([step]).await;
        let bursar = Bursar::before(&origin.url()).await;
        let answer = ask(&bursar).await;
        assert!(answer.complete, "{name}: complete");
        assert_eq!(answer.text(), given, "{name}");
        assert_eq!(bursar.entries()[0].state, settled(7), "{name}");
    }
}

#[tokio::test]
async fn a_stream_that_breaks_before_its_first_byte_is_repeated() {
    let whole_stream = || Step::Answer(whole(&[EVENT, RECEIPT, DONE]));
    let rows = [
        ("close behind the head", Step::AnswerAndClose(stream_head())),
        ("reset behind the head", Step::AnswerAndReset(stream_head())),
        ("a clean end without a byte", Step::Answer(whole(&[]))),
    ];
    for (name, step) in rows {
        let origin = Origin::start([step, whole_stream()]).await;
        let bursar = Bursar::before(&origin.url()).await;
        let answer = ask(&bursar).await;
        assert!(answer.complete, "{name}");
        assert_eq!(answer.text(), format!("{EVENT}{RECEIPT}{DONE}"), "{name}");
        let received = origin.received();
        assert_eq!(received.len(), 2, "{name}: attempts");
        let key = received[0].header("idempotency-key");
        assert_eq!(
            received[1].header("idempotency-key"),
            key,
            "{name}: one key"
        );
        assert_eq!(bursar.entries()[0].state, settled(7), "{name}");
    }
}

/// Towards a close-delimited app a clean close would look like success.
#[tokio::test]
async fn an_http_1_0_app_sees_a_reset_on_a_break_and_a_close_on_success() {
    let old = |body: &str| request("POST", CHAT, &[], body).replacen("HTTP/1.1", "HTTP/1.0", 1);
    let given = format!("{EVENT}{RECEIPT}{DONE}");
    let origin = Origin::start([Step::Answer(whole(&[EVENT, RECEIPT, DONE]))]).await;
    let bursar = Bursar::before(&origin.url()).await;
    let mut wire = bursar.connect().await;
    wire.send(old(&chat_stream("hi"))).await;
    let answer = wire.answer().await;
    assert_eq!(
        answer.header("transfer-encoding"),
        None,
        "1.0 knows no chunks"
    );
    assert!(answer.complete && !answer.reset);
    assert_eq!(answer.text(), given);
    assert_eq!(bursar.entries()[0].state, settled(7));

    for step in [
        Step::AnswerAndClose(open(&[EVENT, EVENT])),
        Step::AnswerAndReset(open(&[EVENT, EVENT])),
        Step::Answer(whole(&[EVENT, EVENT])),
        Step::AnswerAndClose(open(&[EVENT])),
    ] {
        let name = format!("{step:?}");
        let origin = Origin::start([step]).await;
        let bursar = Bursar::before(&origin.url()).await;
        let mut wire = bursar.connect().await;
        wire.send(old(&chat_stream("hi"))).await;
        let answer = wire.answer().await;
        assert!(answer.reset, "{name}: a reset, not a close: {answer:?}");
        assert!(!answer.text().contains("[DONE]"), "{name}");
        assert_eq!(bursar.settled(1).await[0].state, DROPPED, "{name}");
    }
}

/// The same for `Connection: close`: HTTP/1.1 stays chunked, so an end can be distinguished from a
/// break.
#[tokio::test]
async fn an_http_1_1_app_that_closes_still_gets_chunks() {
    let origin = Origin::start([Step::AnswerAndClose(open(&[EVENT]))]).await;
    let bursar = Bursar::before(&origin.url()).await;
    let mut wire = bursar.connect().await;
    wire.send(request(
        "POST",
        CHAT,
        &[("Connection", "close")],
        &chat_stream("hi"),
    ))
    .await;
    let answer = wire.answer().await;
    assert_eq!(answer.header("transfer-encoding"), Some("chunked"));
    assert!(!answer.complete);
}

/// A deploy that breaks: no error event of ours among named ones, and no clean end.
#[tokio::test]
async fn a_deploy_that_breaks_is_a_break() {
    let event = "event: progress\ndata: {}\n\n";
    let origin = Origin::start([Step::AnswerAndClose(open(&[event]))]).await;
    let bursar = Bursar::before(&origin.url()).await;
    let mut wire = bursar.connect().await;
    wire.send(request("POST", "/v1/endpoints", &[], r#"{"task":"t"}"#))
        .await;
    let answer = wire.answer().await;
    assert!(!answer.complete);
    assert_eq!(answer.text(), event);
    assert_eq!(bursar.settled(1).await[0].state, DROPPED);
    assert_eq!(origin.received().len(), 1);
}

/// A large JSON answer that breaks after its first MiB has no clean end either.
#[tokio::test]
async fn a_large_answer_that_breaks_is_a_break() {
    let body = "x".repeat(2 * 1024 * 1024);
    let framings = [
        (
            "length",
            format!("Content-Length: {}", body.len() + 10),
            body.clone(),
        ),
        (
            "chunked",
            "Transfer-Encoding: chunked".to_owned(),
            format!("{:x}\r\n{body}\r\n", body.len()),
        ),
    ];
    for (name, framing, sent) in framings {
        let bytes =
            format!("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n{framing}\r\n\r\n{sent}");
        let origin = Origin::start([Step::AnswerAndClose(bytes.into_bytes())]).await;
        let bursar = Bursar::before(&origin.url()).await;
        let answer = bursar.post(CHAT, &crate::support::chat("hi")).await;
        assert_eq!(answer.status, 200, "{name}");
        assert!(!answer.complete, "{name}");
        assert_eq!(bursar.settled(1).await[0].state, DROPPED, "{name}");
    }
}
