//! `[streams] translated = "live"`: a Responses stream is given while the service writes it. What an app can act on
//! still waits for the receipt, and a break is a break.

use bursar::ledger::entry::{InDoubt, State};
use serde_json::{Value, json};

use super::{
    AGENT_RESPONSES, MESSAGES, RESPONSES, answers, ask, asks, delta, events, settled, text_of,
};
use crate::support::origin::{chunk, json as json_answer, last_chunk, stream_head};
use crate::support::wire::request;
use crate::support::{Answer, Bursar, Origin, Sandbox, Step, Wire, eventually};

const LIVE: &str = "[streams]\ntranslated = \"live\"\n";

/// The chunk that says why an answer ends.
const FINISH: &str = r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#;

const PATHS: [&str; 2] = [RESPONSES, AGENT_RESPONSES];

/// A chunk of the service's stream with this delta.
fn said(delta: &Value) -> Vec<u8> {
    let chunk_of = json!({"id": "c", "created": 1_700_000_000, "model": "auto",
        "choices": [{"index": 0, "delta": delta, "finish_reason": null}]});
    chunk(&format!("data: {chunk_of}\n\n"))
}

fn text(words: &str) -> Vec<u8> {
    said(&json!({"content": words}))
}

/// Its end: the counts, the receipt and the end mark.
fn end(billed: u64) -> Vec<u8> {
    let usage = json!({"choices": [], "usage":
        {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}});
    let end = format!(
        "data: {FINISH}\n\ndata: {usage}\n\n: service-billed-micro-usd {billed}\n\ndata: [DONE]\n\n"
    );
    [chunk(&end), last_chunk()].concat()
}

fn pieces(parts: &[&[u8]]) -> Step {
    Step::Pieces(parts.iter().map(|part| part.to_vec()).collect())
}

async fn begin(bursar: &Bursar, path: &str) -> Wire {
    let mut wire = bursar.connect().await;
    wire.send(request("POST", path, &[], &asks(path, "live?", true)))
        .await;
    wire
}

/// A request whose app hangs up before the service has said anything, and the repeat that has joined it.
async fn joined(bursar: &Bursar, origin: &Origin) -> Wire {
    let app = begin(bursar, RESPONSES).await;
    eventually("the service to receive", || async {
        (!origin.received().is_empty()).then_some(())
    })
    .await;
    app.hang_up();
    eventually("bursar to notice", || async {
        (bursar.metric("bursar_client_disconnects_total", "") >= 1.0).then_some(())
    })
    .await;
    let again = begin(bursar, RESPONSES).await;
    eventually("it to join", || async {
        (bursar.metric("bursar_joined_retries_total", "") >= 1.0).then_some(())
    })
    .await;
    again
}

/// Reads until the events have this many deltas.
async fn read_deltas(wire: &mut Wire, answer: &mut Answer, count: usize) -> Vec<String> {
    loop {
        let text = answer.text();
        let complete = text.rfind("\n\n").map_or("", |end| &text[..end + 2]);
        let whole = Answer {
            body: complete.as_bytes().to_vec(),
            ..answer.clone()
        };
        let deltas: Vec<String> = events(&whole).iter().filter_map(delta).collect();
        if deltas.len() >= count {
            return deltas;
        }
        let piece = wire.chunk(answer).await.expect("more of the answer");
        answer.body.extend_from_slice(&piece);
    }
}

async fn read_until(wire: &mut Wire, answer: &mut Answer, awaited: &str) {
    while !answer.text().contains(awaited) {
        let piece = wire.chunk(answer).await.expect("more of the answer");
        answer.body.extend_from_slice(&piece);
    }
}

fn last(answer: &Answer) -> Value {
    events(answer).pop().expect("an end")
}

#[tokio::test]
async fn a_live_stream_gets_comments_while_the_service_is_silent_and_no_event_is_changed() {
    const COMMENT: &str = ": keepalive\n\n";
    for path in PATHS {
        let first = [stream_head(), text("Hel")].concat();
        let origin = Origin::start([pieces(&[&first, &text("lo"), &end(50)])]).await;
        let config = format!("{LIVE}keepalive_s = 1\n");
        let bursar = Bursar::with(&origin.url(), &config).await;
        let mut app = begin(&bursar, path).await;

        origin.go();
        let mut answer = app.head().await;
        for awaited in ["Hel", COMMENT] {
            read_until(&mut app, &mut answer, awaited).await;
        }
        origin.go();
        read_until(&mut app, &mut answer, "\"lo\"").await;
        origin.go();
        app.rest(&mut answer).await;

        let events = answer.text().replace(COMMENT, "");
        answer.body = events.into_bytes();
        assert_eq!(text_of(path, &answer), "Hello", "{path}");
        assert_eq!(last(&answer)["type"], "response.completed", "{path}");
        assert_eq!(bursar.settled(1).await[0].state, settled(50), "{path}");
    }
}

#[tokio::test]
async fn text_comes_while_the_service_writes_and_the_end_behind_the_receipt() {
    for path in PATHS {
        let head = stream_head();
        let first = [head, said(&json!({"role": "assistant"})), text("Hel")].concat();
        let end = match path {
            RESPONSES => end(50),
            // The interface names no amount in the streams of agent turns.
            _ => [
                chunk(&format!("data: {FINISH}\n\ndata: [DONE]\n\n")),
                last_chunk(),
            ]
            .concat(),
        };
        let origin = Origin::start([pieces(&[&first, &text("lo"), &end])]).await;
        let bursar = Bursar::with(&origin.url(), LIVE).await;
        let mut app = begin(&bursar, path).await;

        origin.go();
        let mut answer = app.head().await;
        assert_eq!(answer.status, 200, "{path}");
        assert_eq!(answer.header("content-type"), Some("text/event-stream"));
        assert_eq!(
            read_deltas(&mut app, &mut answer, 1).await,
            ["Hel"],
            "{path}"
        );
        origin.go();
        assert_eq!(
            read_deltas(&mut app, &mut answer, 2).await,
            ["Hel", "lo"],
            "{path}"
        );
        assert!(!answer.text().contains("output_text.done"), "{path}");
        assert_eq!(bursar.entries().len(), 1, "{path}");
        assert_eq!(bursar.billed(), 0, "{path}: nothing is settled yet");
        origin.go();
        app.rest(&mut answer).await;

        assert_eq!(text_of(path, &answer), "Hello", "{path}");
        let completed = last(&answer);
        assert_eq!(completed["type"], "response.completed", "{path}");
        let numbers = events(&answer)
            .iter()
            .map(|event| event["sequence_number"].as_u64())
            .collect::<Vec<_>>();
        assert!(
            numbers
                .iter()
                .copied()
                .eq((0..).map(Some).take(numbers.len())),
            "{path}"
        );
        let sent: Value = serde_json::from_slice(&origin.received()[0].body).expect("JSON");
        assert_eq!(sent["stream"], true, "{path}");
        assert_eq!(sent["stream_options"]["include_usage"], true, "{path}");
        assert_eq!(
            origin.received()[0].header("accept"),
            Some("text/event-stream")
        );
        let entry = bursar.entry_of(&answer);
        match path {
            RESPONSES => {
                assert_eq!(entry.state, settled(50));
                assert_eq!(completed["response"]["usage"]["cost"], 0.000_05);
                assert_eq!(completed["response"]["usage"]["input_tokens"], 3);
            }
            _ => {
                assert_eq!(entry.state, State::Unreported);
                assert_eq!(completed["response"]["usage"].get("cost"), None);
            }
        }
    }
}

#[tokio::test]
async fn a_tool_call_is_given_whole_behind_the_receipt() {
    let call = |arguments: &str| {
        said(
            &json!({"tool_calls": [{"index": 0, "id": "call_1", "type": "function",
            "function": {"name": "f", "arguments": arguments}}]}),
        )
    };
    let parts = [stream_head(), text("I look."), call("{\"n\":"), call("1}")].concat();
    let origin = Origin::start([pieces(&[&parts, &end(9)])]).await;
    let bursar = Bursar::with(&origin.url(), LIVE).await;
    let mut app = begin(&bursar, RESPONSES).await;
    origin.go();
    let mut answer = app.head().await;
    read_deltas(&mut app, &mut answer, 1).await;
    assert!(
        !answer.text().contains("function_call"),
        "{}",
        answer.text()
    );
    origin.go();
    app.rest(&mut answer).await;

    let completed = last(&answer);
    let output = &completed["response"]["output"];
    assert_eq!(output[1]["arguments"], "{\"n\":1}", "{completed}");
    assert_eq!(bursar.entry_of(&answer).state, settled(9));
}

#[tokio::test]
async fn a_stream_that_breaks_ends_as_failed_and_its_price_is_in_doubt() {
    for path in PATHS {
        let begun = [stream_head(), text("Hel")].concat();
        let origin = Origin::start([Step::AnswerAndClose(begun)]).await;
        let bursar = Bursar::with(&origin.url(), LIVE).await;
        let mut app = begin(&bursar, path).await;
        let answer = app.answer().await;

        assert!(!answer.complete, "{path}: {}", answer.text());
        let failed = last(&answer);
        assert_eq!(failed["type"], "response.failed", "{path}");
        assert_eq!(
            failed["response"]["error"]["code"], "upstream_broken",
            "{path}"
        );
        assert_eq!(
            bursar.settled(1).await[0].state,
            State::InDoubt {
                reason: InDoubt::StreamDrop
            },
            "{path}"
        );
        assert_eq!(
            origin.received().len(),
            1,
            "{path}: what began is not repeated"
        );
    }
}

#[tokio::test]
async fn a_stream_that_breaks_or_ends_before_its_first_byte_is_repeated_under_its_key() {
    let ended = [stream_head(), last_chunk()].concat();
    for first in [Step::AnswerAndClose(stream_head()), Step::Answer(ended)] {
        let whole = [stream_head(), text("again"), end(5)].concat();
        let origin = Origin::start([first, Step::Answer(whole)]).await;
        let settings = format!("{LIVE}[retry]\nbase_ms = 1\ncap_ms = 2\n");
        let bursar = Bursar::with(&origin.url(), &settings).await;
        let mut app = begin(&bursar, RESPONSES).await;
        let answer = app.answer().await;

        assert_eq!(text_of(RESPONSES, &answer), "again");
        let received = origin.received();
        assert_eq!(received.len(), 2);
        assert_eq!(received[0].body, received[1].body);
        assert_eq!(
            received[0].header("idempotency-key"),
            received[1].header("idempotency-key")
        );
    }
}

#[tokio::test]
async fn a_repeat_before_the_first_byte_joins_and_reads_the_same_events_to_the_break() {
    for breaks in [false, true] {
        let begun = [stream_head(), text("Hel")].concat();
        let rest = [text("lo"), end(50)].concat();
        let step = match breaks {
            true => Step::PiecesAndClose(vec![begun.clone()]),
            false => pieces(&[&begun, &rest]),
        };
        let origin = Origin::start([step]).await;
        let bursar = Bursar::with(&origin.url(), LIVE).await;
        let mut again = joined(&bursar, &origin).await;
        origin.go();
        origin.go();
        let mut answer = again.head().await;
        read_deltas(&mut again, &mut answer, 1).await;
        origin.go();
        again.rest(&mut answer).await;

        assert_eq!(origin.received().len(), 1);
        let kind = last(&answer)["type"].clone();
        match breaks {
            true => {
                assert_eq!(kind, "response.failed", "{}", answer.text());
                assert!(!answer.complete);
                assert_eq!(
                    bursar.settled(1).await[0].state,
                    State::InDoubt {
                        reason: InDoubt::StreamDrop
                    }
                );
            }
            false => {
                assert_eq!(kind, "response.completed", "{}", answer.text());
                assert_eq!(text_of(RESPONSES, &answer), "Hello");
                assert_eq!(bursar.billed(), 50);
            }
        }
    }
}

#[tokio::test]
async fn an_app_reads_in_its_dialect_that_the_ledger_failed_also_where_it_has_joined() {
    for joins in [false, true] {
        let begun = [stream_head(), text("Hel")].concat();
        let rest = [text("lo"), end(50)].concat();
        let origin = Origin::start([pieces(&[&begun, &rest])]).await;
        let bursar = Bursar::with(&origin.url(), LIVE).await;
        let mut app = match joins {
            true => joined(&bursar, &origin).await,
            false => begin(&bursar, RESPONSES).await,
        };
        origin.go();
        let mut answer = app.head().await;
        read_deltas(&mut app, &mut answer, 1).await;
        bursar.ledger.close().await;
        origin.go();
        app.rest(&mut answer).await;

        assert!(!answer.complete, "{joins}: {}", answer.text());
        let failed = last(&answer);
        assert_eq!(failed["type"], "response.failed", "{joins}");
        let error = &failed["response"]["error"];
        assert_eq!(error["code"], "ledger_unavailable", "{joins}");
    }
}

#[tokio::test]
async fn an_answer_ends_with_the_end_mark_although_the_service_holds_its_stream_open() {
    let end = end(50);
    let (with_mark, last) = end.split_at(end.len() - last_chunk().len());
    let first = [&stream_head()[..], &text("Hello"), with_mark].concat();
    let origin = Origin::start([pieces(&[&first, last])]).await;
    let bursar = Bursar::with(&origin.url(), LIVE).await;
    let mut app = begin(&bursar, RESPONSES).await;
    origin.go();
    let answer = app.answer().await;

    assert!(answer.complete, "{}", answer.text());
    assert_eq!(text_of(RESPONSES, &answer), "Hello");
    assert_eq!(bursar.entry_of(&answer).state, settled(50));
}

#[tokio::test]
async fn the_first_byte_delivers_so_a_repeat_after_a_cut_is_another_purchase() {
    let first = [stream_head(), text("one")].concat();
    let second = [stream_head(), text("two"), end(8)].concat();
    let origin = Origin::start([pieces(&[&first, &end(7)]), Step::Answer(second)]).await;
    let bursar = Bursar::with(&origin.url(), LIVE).await;
    let mut app = begin(&bursar, RESPONSES).await;
    origin.go();
    let mut answer = app.head().await;
    read_deltas(&mut app, &mut answer, 1).await;
    app.hang_up();

    let mut again = begin(&bursar, RESPONSES).await;
    let answer = again.answer().await;

    assert_eq!(text_of(RESPONSES, &answer), "two");
    let received = origin.received();
    assert_eq!(received.len(), 2);
    assert_ne!(
        received[0].header("idempotency-key"),
        received[1].header("idempotency-key")
    );
    origin.go();
    bursar.settled(2).await;
    assert_eq!(bursar.billed(), 15, "the first is read on for its receipt");
}

#[tokio::test]
async fn what_the_service_gives_whole_is_given_as_events_and_an_error_as_an_error() {
    let refuses = json_answer(429, &[("Retry-After", "0")], r#"{"detail":"slow down"}"#);
    let rows = [
        (Step::Answer(answers(6, "whole")), 200),
        (Step::Answer(refuses), 429),
    ];
    for (step, status) in rows {
        let origin = Origin::start([step]).await;
        let settings = format!("{LIVE}[retry]\nattempts = 1\n");
        let bursar = Bursar::with(&origin.url(), &settings).await;
        let mut app = begin(&bursar, RESPONSES).await;
        let answer = app.answer().await;
        assert_eq!(answer.status, status, "{}", answer.text());
        match status {
            200 => {
                assert_eq!(text_of(RESPONSES, &answer), "whole");
                assert_eq!(bursar.entry_of(&answer).state, settled(6));
            }
            _ => assert_eq!(answer.json()["error"]["message"], "slow down"),
        }
    }
}

#[tokio::test]
async fn an_answer_that_cannot_be_given_is_billed_and_ends_as_failed() {
    let call = said(&json!({"tool_calls": [{"index": 0, "id": "call_1",
        "function": {"name": "f", "arguments": "{\"n\":"}}]}));
    let origin = Origin::start([Step::Answer([stream_head(), call, end(70)].concat())]).await;
    let bursar = Bursar::with(&origin.url(), LIVE).await;
    let mut app = begin(&bursar, RESPONSES).await;
    let answer = app.answer().await;

    assert!(answer.complete, "the service's stream was complete");
    let failed = last(&answer);
    assert_eq!(failed["type"], "response.failed");
    assert_eq!(failed["response"]["usage"]["cost"], 0.000_07);
    assert!(
        !answer.text().contains("function_call"),
        "{}",
        answer.text()
    );
    assert_eq!(bursar.entry_of(&answer).state, settled(70));
}

#[tokio::test]
async fn what_has_to_be_whole_stays_whole() {
    let whole_turns = format!("{LIVE}agent_receipts = \"exact\"\n");
    let rows = [
        ("Messages", LIVE, MESSAGES, true),
        ("no stream", LIVE, RESPONSES, false),
        ("a turn with a price", &whole_turns, AGENT_RESPONSES, true),
        ("the default", "", RESPONSES, true),
        (
            "an app of its own",
            "[streams]\ntranslated = \"live\"\n[[app]]\nname = \"default\"\ntranslated = \"whole\"\n",
            RESPONSES,
            true,
        ),
    ];
    for (name, settings, path, stream) in rows {
        let origin = Origin::start([Step::Answer(answers(6, "whole"))]).await;
        let bursar = Bursar::with(&origin.url(), settings).await;
        let answer = ask(&bursar, path, &asks(path, name, stream), &[]).await;
        assert_eq!(text_of(path, &answer), "whole", "{name}");
        let sent: Value = serde_json::from_slice(&origin.received()[0].body).expect("JSON");
        assert_ne!(sent["stream"], true, "{name}: {sent}");
        assert_eq!(bursar.entry_of(&answer).state, settled(6), "{name}");
    }
}

#[tokio::test]
async fn a_coded_stream_is_not_passed_as_what_it_is_not() {
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Encoding: br\r\n\
                Transfer-Encoding: chunked\r\n\r\n";
    let coded = [head.as_bytes(), &chunk("\u{1}\u{2}")[..], &last_chunk()].concat();
    let origin = Origin::start([Step::Answer(coded)]).await;
    let settings = format!("{LIVE}[retry]\nattempts = 1\n");
    let bursar = Bursar::with(&origin.url(), &settings).await;
    let mut app = begin(&bursar, RESPONSES).await;
    let answer = app.answer().await;
    assert_eq!(answer.code(), Some("upstream_broken"), "{}", answer.text());
}

#[tokio::test]
async fn a_live_answer_can_be_referred_to_by_the_next_turn() {
    let whole = |words: &str| Step::Answer([stream_head(), text(words), end(5)].concat());
    let origin = Origin::start([whole("the secret is 5"), whole("five")]).await;
    let bursar = Bursar::with(&origin.url(), LIVE).await;
    let mut app = begin(&bursar, RESPONSES).await;
    let first = last(&app.answer().await);
    let id = &first["response"]["id"];
    let next =
        json!({"model": "auto", "stream": true, "input": "which?", "previous_response_id": id});

    let answer = ask(&bursar, RESPONSES, &next.to_string(), &[]).await;

    assert_eq!(text_of(RESPONSES, &answer), "five");
    let sent: Value = serde_json::from_slice(&origin.received()[1].body).expect("JSON");
    assert_eq!(sent["messages"][1]["content"], "the secret is 5", "{sent}");
}

#[tokio::test]
async fn the_books_of_the_service_equal_the_ledger() {
    let sandbox = Sandbox::start().await;
    let bursar = Bursar::with(&sandbox.url(), LIVE).await;
    for number in 0..3 {
        let prompt = format!("Write a sentence about the number {number}.");
        let answer = ask(&bursar, RESPONSES, &asks(RESPONSES, &prompt, true), &[]).await;
        let deltas = events(&answer).iter().filter_map(delta).count();
        assert!(deltas > 1, "it comes in pieces: {}", answer.text());
        let completed = last(&answer);
        assert_eq!(completed["type"], "response.completed");
        assert!(
            completed["response"]["usage"]["cost"].is_number(),
            "{completed}"
        );
    }
    assert_eq!(bursar.billed(), sandbox.debited().await);
}
