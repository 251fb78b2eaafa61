//! The table of undelivered requests survives a restart: which purchase an app's retry belongs to is
//! known to the next process too.

use std::sync::Arc;
use std::time::Duration;

use bursar::clock::{Clock, ManualClock};
use bursar::ledger::entry::{InDoubt, KeyOrigin, State};

use super::{CHAT, ask, joined, key, left, on_cue, received, send};
use crate::support::origin::{billed, chunk, json, last_chunk, stream_head};
use crate::support::wire::request;
use crate::support::{Answer, Bursar, Origin, Step, Wire, chat, chat_stream, eventually};

const ONCE: &str = "[retry]\nattempts = 1\n";
const AGENT: &str = "/agent/v1/chat/completions";

fn entry_id(answer: &Answer) -> Option<&str> {
    answer.header("x-bursar-entry")
}

/// The kinds of the journal's lines, in their order.
fn kinds(bursar: &Bursar) -> Vec<String> {
    let path = bursar.state_dir().join("journal/00000001.jsonl");
    let text = std::fs::read_to_string(path).expect("a journal");
    text.lines()
        .filter(|line| !line.is_empty())
        .map(|line| serde_json::from_str::<serde_json::Value>(line).expect("JSON"))
        .map(|line| line["kind"].as_str().expect("a kind").to_owned())
        .collect()
}

/// Sends `body` until it was lost in the way of `failure`, restarts, and sends it again.
#[tokio::test]
async fn a_retry_after_a_restart_is_the_same_purchase() {
    let conflict = || Step::Answer(json(409, &[], r#"{"detail":"still running"}"#));
    let cut = || {
        Step::AnswerAndClose(
            b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{"
                .to_vec(),
        )
    };
    let empty_stream = || Step::AnswerAndClose(stream_head());
    type Row = (&'static str, &'static str, String, fn() -> Step);
    let rows: [Row; 6] = [
        ("close", CHAT, chat("hi"), || Step::Close),
        ("reset", CHAT, chat("hi"), || Step::Reset),
        ("409", CHAT, chat("hi"), conflict),
        ("cut", CHAT, chat("hi"), cut),
        (
            "a stream without a byte",
            CHAT,
            chat_stream("hi"),
            empty_stream,
        ),
        ("an agent turn", AGENT, chat("hi"), || Step::Close),
    ];
    for (name, path, body, failure) in rows {
        let origin =
            Origin::start([failure(), Step::Answer(billed(7)), Step::Answer(billed(8))]).await;
        let bursar = Bursar::with(&origin.url(), ONCE).await;
        let first = bursar.post(path, &body).await;
        assert!(first.status >= 409, "{name}: {}", first.status);
        let bursar = bursar.restart(ONCE).await;
        let second = bursar.post(path, &body).await;
        assert_eq!(second.status, 200, "{name}: {}", second.text());
        assert_eq!(
            second.header("x-bursar-adopted"),
            entry_id(&first),
            "{name}"
        );
        assert_eq!(key(&origin, 0), key(&origin, 1), "{name}: one key");
        let entries = bursar.settled(2).await;
        assert_eq!(
            entries[1].key_origin,
            Some(KeyOrigin::Adopted {
                from: entries[0].id
            }),
            "{name}"
        );
        assert_eq!(bursar.billed(), 7, "{name}");
        let bursar = bursar.restart(ONCE).await;
        let third = bursar.post(path, &body).await;
        assert_eq!(third.header("x-bursar-adopted"), None, "{name}");
        assert_ne!(key(&origin, 1), key(&origin, 2), "{name}: a new purchase");
    }
}

/// A delivered answer is never collapsed with a later request, and costs two lines.
#[tokio::test]
async fn what_was_delivered_stays_delivered_over_a_restart() {
    let origin = Origin::start([Step::Answer(billed(7)), Step::Answer(billed(8))]).await;
    let bursar = Bursar::with(&origin.url(), ONCE).await;
    assert_eq!(ask(&bursar, &chat("hi"), &[]).await.status, 200);
    let bursar = bursar.restart(ONCE).await;
    let second = ask(&bursar, &chat("hi"), &[]).await;
    assert_eq!(second.header("x-bursar-adopted"), None);
    assert_ne!(key(&origin, 0), key(&origin, 1));
    let wanted = ["segment", "intent", "outcome", "intent", "outcome"];
    assert_eq!(kinds(&bursar), wanted);
    assert_eq!(bursar.billed(), 15);
}

/// So is a stream: with its first byte as long as bursar lives, and to its end where it stops in order.
#[tokio::test]
async fn a_clean_stream_costs_two_lines_and_stays_delivered() {
    let stream = || {
        let end = ": service-billed-micro-usd 7\n\ndata: [DONE]\n\n";
        let parts = [stream_head(), chunk("data: {}\n\n"), chunk(end)];
        Step::Answer([parts.concat(), last_chunk()].concat())
    };
    let origin = Origin::start([stream(), stream()]).await;
    let bursar = Bursar::with(&origin.url(), ONCE).await;
    let first = ask(&bursar, &chat_stream("hi"), &[]).await;
    assert!(first.complete);
    let bursar = bursar.restart(ONCE).await;
    let second = ask(&bursar, &chat_stream("hi"), &[]).await;
    assert_eq!(second.header("x-bursar-adopted"), None);
    assert_ne!(key(&origin, 0), key(&origin, 1), "two purchases");
    let wanted = ["segment", "intent", "outcome", "intent", "outcome"];
    assert_eq!(kinds(&bursar), wanted);
}

/// An app that leaves in the middle of a stream has it, as long as bursar lives: no line more, and the
/// same request again is another purchase.
#[tokio::test]
async fn a_stream_that_was_left_in_the_middle_is_delivered_while_bursar_lives() {
    let begin = [stream_head(), chunk("data: {}\n\n")].concat();
    let end = chunk(": service-billed-micro-usd 7\n\ndata: [DONE]\n\n");
    let end = [end, last_chunk()].concat();
    let origin = Origin::start([Step::Pieces(vec![begin, end]), Step::Answer(billed(8))]).await;
    let bursar = Bursar::with(&origin.url(), ONCE).await;
    let mut app = send(&bursar, &origin, &chat_stream("hi"), &[]).await;
    origin.go();
    let mut answer = app.head().await;
    app.chunk(&mut answer).await.expect("an event");
    drop(app);
    left(&bursar, 1).await;
    origin.go();
    bursar.settled(1).await;
    let again = ask(&bursar, &chat_stream("hi"), &[]).await;
    assert_eq!(again.header("x-bursar-adopted"), None);
    assert_ne!(key(&origin, 0), key(&origin, 1), "two purchases");
    let wanted = ["segment", "intent", "outcome", "intent", "outcome"];
    assert_eq!(kinds(&bursar), wanted);
}

/// A failure that is known to have cost nothing leaves nothing, and costs two lines.
#[tokio::test]
async fn a_known_zero_is_closed_over_a_restart() {
    let refusal = Step::Answer(json(402, &[], r#"{"detail":"empty"}"#));
    let origin = Origin::start([refusal, Step::Answer(billed(8))]).await;
    let bursar = Bursar::with(&origin.url(), ONCE).await;
    assert_eq!(ask(&bursar, &chat("hi"), &[]).await.status, 402);
    let bursar = bursar.restart(ONCE).await;
    ask(&bursar, &chat("hi"), &[]).await;
    assert_ne!(key(&origin, 0), key(&origin, 1));
    assert_eq!(kinds(&bursar).len(), 5);
}

/// Read to its end without a reader: settled, and never received.
#[tokio::test]
async fn an_answer_whose_app_had_left_is_bought_once_over_a_restart() {
    let origin = Origin::start([
        on_cue(billed(7)),
        Step::Answer(billed(0)),
        Step::Answer(billed(8)),
    ])
    .await;
    let bursar = Bursar::with(&origin.url(), ONCE).await;
    drop(send(&bursar, &origin, &chat("hi"), &[]).await);
    left(&bursar, 1).await;
    origin.go();
    bursar.settled(1).await;
    let bursar = bursar.restart(ONCE).await;
    let second = ask(&bursar, &chat("hi"), &[]).await;
    assert!(second.header("x-bursar-adopted").is_some());
    assert_eq!(key(&origin, 0), key(&origin, 1));
    assert_eq!(bursar.billed(), 7);
    let bursar = bursar.restart(ONCE).await;
    ask(&bursar, &chat("hi"), &[]).await;
    assert_ne!(key(&origin, 1), key(&origin, 2));
}

/// The receipt is settled before the answer is written (rule I2): that the write fails is known too
/// late for the outcome.
#[tokio::test]
async fn an_answer_that_broke_on_its_way_to_the_app_is_noted() {
    let origin = Origin::start([Step::Answer(large()), Step::Answer(billed(0))]).await;
    let bursar = Bursar::with(&origin.url(), ONCE).await;
    let app = slow_app(&bursar).await;
    bursar.settled(1).await;
    drop(app);
    left(&bursar, 1).await;
    eventually("the note", || async {
        (kinds(&bursar).last().map(String::as_str) == Some("delivery")).then_some(())
    })
    .await;
    let bursar = bursar.restart(ONCE).await;
    let second = ask(&bursar, &chat("hi"), &[]).await;
    assert!(second.header("x-bursar-adopted").is_some());
    assert_eq!(key(&origin, 0), key(&origin, 1));
}

/// Killed while an app reads slowly, bursar knows that the answer was not delivered; when the app has
/// it after all, that is known too.
#[tokio::test]
async fn an_answer_that_is_written_slowly_is_noted_before_and_after() {
    let origin = Origin::start([Step::Answer(large()), Step::Answer(billed(8))]).await;
    let bursar = Bursar::with(&origin.url(), ONCE).await;
    let mut app = slow_app(&bursar).await;
    noted(&bursar, 1).await;
    assert!(app.answer().await.complete);
    noted(&bursar, 2).await;
    let bursar = bursar.restart(ONCE).await;
    let second = ask(&bursar, &chat("hi"), &[]).await;
    assert_eq!(second.header("x-bursar-adopted"), None, "a new purchase");
}

/// A stream whose end is only kept for its app: the next process would treat it as undelivered; this one
/// goes by its first byte, and a request of the app meanwhile is another purchase.
#[tokio::test]
async fn a_stream_whose_end_is_kept_is_noted_and_delivered_while_bursar_lives() {
    let event = chunk(&format!("data: \"{}\"\n\n", "x".repeat(1_000_000)));
    let end = chunk(": service-billed-micro-usd 7\n\ndata: [DONE]\n\n");
    let stream = [stream_head(), event, end, last_chunk()].concat();
    let steps = [stream, billed(8), billed(9)].map(Step::Answer);
    let origin = Origin::start(steps).await;
    let bursar = Bursar::with(&origin.url(), ONCE).await;
    let mut app = Wire::unix(&bursar.socket).await;
    app.send(request("POST", CHAT, &[], &chat_stream("hi")))
        .await;
    noted(&bursar, 1).await;
    let meanwhile = ask(&bursar, &chat_stream("hi"), &[]).await;
    assert_eq!(meanwhile.header("x-bursar-adopted"), None);
    assert_ne!(key(&origin, 0), key(&origin, 1), "two purchases");
    assert!(app.answer().await.complete);
    noted(&bursar, 2).await;
    let bursar = bursar.restart(ONCE).await;
    let after = ask(&bursar, &chat_stream("hi"), &[]).await;
    assert_eq!(after.header("x-bursar-adopted"), None, "a new purchase");
}

/// Waits until the ledger has that many records of what became of an answer.
async fn noted(bursar: &Bursar, count: usize) {
    eventually("the note", || async {
        let kinds = kinds(bursar);
        let noted = kinds.iter().filter(|kind| *kind == "delivery").count();
        (noted == count).then_some(())
    })
    .await;
}

/// An answer that does not fit into the buffers between bursar and an app.
fn large() -> Vec<u8> {
    let text = "x".repeat(1_000_000);
    let body = format!(r#"{{"t":"{text}"}}"#);
    json(200, &[("X-Service-Billed", "7")], &body)
}

/// Sends a request, and reads nothing. Over the Unix socket, whose buffer is smaller than the
/// answer; the loopback's is not.
async fn slow_app(bursar: &Bursar) -> Wire {
    let mut app = Wire::unix(&bursar.socket).await;
    app.send(request("POST", CHAT, &[], &chat("hi"))).await;
    app
}

#[tokio::test]
async fn a_kept_answer_that_was_taken_is_delivered_over_a_restart() {
    let origin = Origin::start([on_cue(billed(7)), Step::Answer(billed(8))]).await;
    let bursar = Bursar::with(&origin.url(), ONCE).await;
    drop(send(&bursar, &origin, &chat("hi"), &[]).await);
    left(&bursar, 1).await;
    origin.go();
    bursar.settled(1).await;
    assert_eq!(ask(&bursar, &chat("hi"), &[]).await.status, 200);
    joined(&bursar, 1).await;
    let bursar = bursar.restart(ONCE).await;
    let third = ask(&bursar, &chat("hi"), &[]).await;
    assert_eq!(third.header("x-bursar-adopted"), None, "a new purchase");
    assert_ne!(key(&origin, 0), key(&origin, 1));
}

/// "leftovers `in_doubt(shutdown)` with their keys adoptable after the restart".
#[tokio::test]
async fn what_a_shutdown_cut_is_adopted_after_it() {
    for body in [chat("hi"), chat_stream("hi")] {
        let origin = Origin::start([Step::Stall, Step::Answer(billed(7))]).await;
        let bursar = Bursar::with(&origin.url(), ONCE).await;
        let mut app = send(&bursar, &origin, &body, &[]).await;
        let bursar = bursar.restart(ONCE).await;
        let first = app.answer().await;
        assert_eq!(first.code(), Some("shutting_down"));
        let reason = InDoubt::Shutdown;
        assert_eq!(bursar.entries()[0].state, State::InDoubt { reason });
        let second = ask(&bursar, &body, &[]).await;
        assert_eq!(second.header("x-bursar-adopted"), entry_id(&first));
        assert_eq!(key(&origin, 0), key(&origin, 1));
    }
}

/// A stream of a megabyte, its receipt and its end: more than a Unix socket takes.
fn large_stream() -> Vec<u8> {
    let event = chunk(&format!("data: \"{}\"\n\n", "x".repeat(1_000_000)));
    let end = chunk(": service-billed-micro-usd 7\n\ndata: [DONE]\n\n");
    [stream_head(), event, end, last_chunk()].concat()
}

/// The app asks the next process again: the same key is sent, and costs nothing.
async fn bought_once(name: &str, bursar: &Bursar, origin: &Origin, path: &str, body: &str) {
    let again = bursar.post(path, body).await;
    assert_eq!(again.status, 200, "{name}: {}", again.text());
    assert!(again.header("x-bursar-adopted").is_some(), "{name}");
    assert_eq!(key(origin, 0), key(origin, 1), "{name}: one purchase");
}

/// Settled, and cut by a stop before its app had the end of it: as if bursar had been killed.
#[tokio::test]
async fn an_answer_whose_end_a_stop_cut_is_adopted_after_it() {
    const EXACT: &str = "[retry]\nattempts = 1\n[streams]\nagent_receipts = \"exact\"\n";
    let document = || {
        let body = format!(r#"{{"t":"{}"}}"#, "x".repeat(2_000_000));
        json(200, &[("X-Service-Billed", "7")], &body)
    };
    let turn = || {
        let text = "x".repeat(900_000);
        let body = format!(
            r#"{{"object":"chat.completion","choices":[{{"index":0,"message":{{"role":"assistant","content":"{text}"}},"finish_reason":"stop"}}]}}"#
        );
        json(200, &[("X-Service-Billed", "7")], &body)
    };
    type Row = (
        &'static str,
        &'static str,
        &'static str,
        String,
        fn() -> Vec<u8>,
        &'static str,
    );
    let rows: [Row; 5] = [
        ("stream", ONCE, CHAT, chat_stream("hi"), large_stream, "1.1"),
        ("1.0", ONCE, CHAT, chat_stream("hi"), large_stream, "1.0"),
        ("whole", ONCE, CHAT, chat("hi"), large, "1.1"),
        ("document", ONCE, CHAT, chat("hi"), document, "1.1"),
        ("exact turn", EXACT, AGENT, chat_stream("hi"), turn, "1.1"),
    ];
    for (name, lines, path, body, answer, version) in rows {
        let again = if name == "exact turn" {
            turn()
        } else {
            billed(0)
        };
        let origin = Origin::start([answer(), again].map(Step::Answer)).await;
        let bursar = Bursar::with(&origin.url(), lines).await;
        let mut app = Wire::unix(&bursar.socket).await;
        let text = request("POST", path, &[], &body);
        app.send(text.replacen("1.1", version, 1)).await;
        noted(&bursar, 1).await;
        assert!(matches!(bursar.entries()[0].state, State::Settled { .. }));
        let bursar = bursar.restart(lines).await;
        assert!(version == "1.0" || !app.answer().await.complete, "{name}");
        bought_once(name, &bursar, &origin, path, &body).await;
    }
}

/// A stream counts as delivered with its first byte as long as bursar lives: a cut is bursar's own end.
#[tokio::test]
async fn a_stream_that_a_stop_cut_in_the_middle_is_adopted_after_it() {
    for leaves in [false, true] {
        let name = if leaves { "its app had left" } else { "read" };
        let begin = [stream_head(), chunk("data: {}\n\n")].concat();
        let never = Step::Pieces(vec![begin, last_chunk()]);
        let origin = Origin::start([never, Step::Answer(billed(7))]).await;
        let bursar = Bursar::with(&origin.url(), ONCE).await;
        let mut app = send(&bursar, &origin, &chat_stream("hi"), &[]).await;
        origin.go();
        let mut answer = app.head().await;
        app.chunk(&mut answer).await.expect("an event");
        if leaves {
            drop(app);
            left(&bursar, 1).await;
        }
        let bursar = bursar.restart(ONCE).await;
        let reason = InDoubt::Shutdown;
        assert_eq!(
            bursar.entries()[0].state,
            State::InDoubt { reason },
            "{name}"
        );
        bought_once(name, &bursar, &origin, CHAT, &chat_stream("hi")).await;
    }
}

/// The request that took the answer over had its first byte, and a stop cut the rest.
#[tokio::test]
async fn a_stream_whose_end_a_stop_cut_for_a_follower_is_adopted_after_it() {
    let origin = Origin::start([on_cue(large_stream()), Step::Answer(billed(0))]).await;
    let bursar = Bursar::with(&origin.url(), ONCE).await;
    drop(send(&bursar, &origin, &chat_stream("hi"), &[]).await);
    left(&bursar, 1).await;
    let mut follower = Wire::unix(&bursar.socket).await;
    follower
        .send(request("POST", CHAT, &[], &chat_stream("hi")))
        .await;
    joined(&bursar, 1).await;
    origin.go();
    bursar.settled(1).await;
    noted(&bursar, 1).await;
    let bursar = bursar.restart(ONCE).await;
    assert!(!follower.answer().await.complete);
    bought_once("follower", &bursar, &origin, CHAT, &chat_stream("hi")).await;
}

/// A request that took the answer over to its end has it, whatever was noted meanwhile.
#[tokio::test]
async fn a_stream_that_a_follower_has_to_its_end_is_delivered_over_a_restart() {
    let origin = Origin::start([on_cue(large_stream()), Step::Answer(billed(8))]).await;
    let bursar = Bursar::with(&origin.url(), ONCE).await;
    drop(send(&bursar, &origin, &chat_stream("hi"), &[]).await);
    left(&bursar, 1).await;
    let mut follower = Wire::unix(&bursar.socket).await;
    follower
        .send(request("POST", CHAT, &[], &chat_stream("hi")))
        .await;
    joined(&bursar, 1).await;
    origin.go();
    noted(&bursar, 1).await;
    assert!(follower.answer().await.complete);
    noted(&bursar, 2).await;
    let bursar = bursar.restart(ONCE).await;
    let after = ask(&bursar, &chat_stream("hi"), &[]).await;
    assert_eq!(after.header("x-bursar-adopted"), None, "a new purchase");
}

#[tokio::test]
async fn several_undelivered_equals_are_adopted_oldest_first_and_once_each() {
    let lost = [Step::Close, Step::Close, Step::Close];
    let origin = Origin::start(lost).await;
    (7..11).for_each(|amount| origin.push(Step::Answer(billed(amount))));
    let marked_only = format!("{ONCE}adopt = \"marked\"\n");
    let bursar = Bursar::with(&origin.url(), &marked_only).await;
    let mut ids = Vec::new();
    // Unmarked: three purchases, all lost.
    for _ in 0..3 {
        let answer = ask(&bursar, &chat("hi"), &[]).await;
        ids.push(entry_id(&answer).map(str::to_owned));
    }
    let bursar = bursar.restart(ONCE).await;
    let mut adopted = Vec::new();
    for _ in 0..4 {
        let answer = ask(&bursar, &chat("hi"), &[]).await;
        adopted.push(answer.header("x-bursar-adopted").map(str::to_owned));
    }
    ids.push(None);
    assert_eq!(adopted, ids);
    let keys: Vec<_> = (0..7).map(|index| key(&origin, index)).collect();
    assert_eq!(keys[..3], keys[3..6]);
    assert!(!keys[..3].contains(&keys[6]));
}

/// One purchase over all restarts. Its adoptions are counted over them as well: after three the
/// answer says not to retry.
#[tokio::test]
async fn an_adopted_request_that_fails_again_passes_its_key_on_over_restarts() {
    let busy = || Step::Answer(json(503, &[], r#"{"detail":"busy"}"#));
    let origin = Origin::start([Step::Close, busy(), Step::Close, busy()]).await;
    origin.push(Step::Answer(billed(7)));
    origin.push(Step::Answer(billed(8)));
    let mut bursar = Bursar::with(&origin.url(), ONCE).await;
    let mut should_retry = Vec::new();
    for _ in 0..4 {
        let answer = ask(&bursar, &chat("hi"), &[]).await;
        should_retry.push(answer.header("x-should-retry").map(str::to_owned));
        bursar = bursar.restart(ONCE).await;
    }
    assert_eq!(should_retry, [None, None, None, Some("false".to_owned())]);
    assert_eq!(ask(&bursar, &chat("hi"), &[]).await.status, 200);
    let bursar = bursar.restart(ONCE).await;
    ask(&bursar, &chat("hi"), &[]).await;
    let keys: Vec<_> = (0..6).map(|index| key(&origin, index)).collect();
    assert!(keys[..5].iter().all(|one| *one == keys[0]), "{keys:?}");
    assert_ne!(keys[5], keys[0]);
    assert_eq!(bursar.billed(), 15);
}

#[tokio::test]
async fn config_decides_adoption_over_a_restart_and_own_keys_stay_the_apps() {
    let marked = [("x-stainless-retry-count", "1")];
    let own = [("Idempotency-Key", "mine")];
    type Headers<'a> = &'a [(&'a str, &'a str)];
    let rows: [(&str, &str, Headers, Headers, bool); 7] = [
        ("always", "always", &[], &[], true),
        ("marked, unmarked", "marked", &[], &[], false),
        ("marked, marked", "marked", &[], &marked, true),
        ("never, marked", "never", &[], &marked, false),
        ("own, then none", "always", &own, &[], false),
        ("none, then own", "always", &[], &own, false),
        ("own, then the same", "always", &own, &own, false),
    ];
    for (name, policy, first, second, adopts) in rows {
        let origin = Origin::start([Step::Close, Step::Answer(billed(7))]).await;
        let config = format!("{ONCE}adopt = \"{policy}\"\n");
        let bursar = Bursar::with(&origin.url(), &config).await;
        ask(&bursar, &chat("hi"), first).await;
        let bursar = bursar.restart(&config).await;
        let answer = ask(&bursar, &chat("hi"), second).await;
        assert_eq!(answer.status, 200, "{name}");
        let adopted = answer.header("x-bursar-adopted").is_some();
        assert_eq!(adopted, adopts, "{name}");
        let same = key(&origin, 0) == key(&origin, 1);
        assert_eq!(same, adopts || name == "own, then the same", "{name}");
    }
}

/// The window counts from the key's first use, and a doubtful clock ends it (rule I6).
#[tokio::test]
async fn a_key_is_adopted_over_a_restart_while_its_age_is_sure_and_small() {
    type Move = fn(&ManualClock);
    let rows: [(&str, Move, bool); 6] = [
        (
            "in time",
            |clock| clock.advance(Duration::from_secs(900)),
            true,
        ),
        (
            "late",
            |clock| clock.advance(Duration::from_secs(901)),
            false,
        ),
        ("rebooted", ManualClock::reboot, false),
        (
            "set ahead",
            |clock| clock.set_wall_ms(clock.wall_ms() + 600_000),
            false,
        ),
        (
            "set back",
            |clock| clock.set_wall_ms(clock.wall_ms() - 600_000),
            false,
        ),
        (
            "set back behind the last record, within tolerance of the key's age",
            |clock| clock.set_wall_ms(clock.wall_ms() - 2_000),
            false,
        ),
    ];
    for (name, moved, adopts) in rows {
        let origin = Origin::start([Step::Close, Step::Answer(billed(7))]).await;
        let clock = ManualClock::at(1_790_000_000_000);
        let shared = Arc::new(clock.clone());
        let bursar = Bursar::with_clock(&origin.url(), ONCE, shared).await;
        ask(&bursar, &chat("hi"), &[]).await;
        moved(&clock);
        let bursar = bursar.restart(ONCE).await;
        let answer = ask(&bursar, &chat("hi"), &[]).await;
        assert_eq!(answer.status, 200, "{name}");
        assert_eq!(key(&origin, 0) == key(&origin, 1), adopts, "{name}");
    }
}

/// A table of another app, or of another prompt, is not asked.
#[tokio::test]
async fn only_an_equal_request_adopts_after_a_restart() {
    let origin = Origin::start([Step::Close, Step::Answer(billed(7))]).await;
    let bursar = Bursar::with(&origin.url(), ONCE).await;
    ask(&bursar, &chat("hi"), &[]).await;
    let bursar = bursar.restart(ONCE).await;
    ask(&bursar, &chat("ho"), &[]).await;
    received(&origin, 2).await;
    assert_ne!(key(&origin, 0), key(&origin, 1));
}
