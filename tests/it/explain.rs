//! `bursar explain`: what happened to one request and why it cost what it cost, read from the
//! journal or asked of a daemon; and the listings by state that lead to it.

mod own_time;
mod screen;

use std::sync::Arc;
use std::time::Duration;

use bursar::clock::ManualClock;
use bursar::ledger::entry::{InDoubt, Side, Stage, State};
use serde_json::Value;

use crate::support::bursar::entries;
use crate::support::daemon::{Daemon, command};
use crate::support::origin::{chunk, json, last_chunk, stream_head};
use crate::support::wire::request;
use crate::support::{Bursar, KEY, Origin, Sandbox, Step, chat, chat_stream, eventually};

const CHAT: &str = "/v1/chat/completions";
const SPEECH: &str = "/v1/audio/speech";
const BODY: &str = r#"{"id":"c1","choices":[],"usage":{"prompt_tokens":3,"completion_tokens":4}}"#;

/// What a run of the command printed, and its exit code.
async fn run(arguments: &[&str]) -> (String, String, Option<i32>) {
    let done = command(arguments).output().await.expect("it runs");
    let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
    (text(done.stdout), text(done.stderr), done.status.code())
}

async fn explain(bursar: &Bursar, id: &str) -> String {
    let state = bursar.state_dir();
    let state = state.to_str().expect("a path");
    let (printed, error, code) =
        run(&["explain", "--wide", "--tz", "UTC", "--state-dir", state, id]).await;
    assert_eq!(code, Some(0), "{error}");
    printed
}

/// The head of an answer whose body breaks.
fn broken(headers: &str) -> Vec<u8> {
    format!("HTTP/1.1 200 OK\r\n{headers}Content-Length: 1000\r\n\r\n{{").into_bytes()
}

#[tokio::test]
async fn each_attempt_is_shown_with_its_own_receipt_lines_and_why_the_amount_stands() {
    let headers = [
        ("X-Service-Billed", "0"),
        ("Idempotent-Replayed", "true"),
        ("x-request-id", "req-77"),
    ];
    let origin = Origin::start([
        Step::Answer(json(503, &[], r#"{"detail":"warming"}"#)),
        Step::AnswerAndClose(broken(
            "X-Service-Billed: 42\r\nX-Service-Served-By: frontier\r\n",
        )),
        Step::Answer(json(200, &headers, BODY)),
    ])
    .await;
    let bursar = Bursar::before(&origin.url()).await;

    let answer = bursar.post(CHAT, &chat("hi")).await;

    let entry = bursar.entry_of(&answer);
    let lines: Vec<&[String]> = entry
        .attempts
        .iter()
        .map(|attempt| attempt.receipt_lines.as_slice())
        .collect();
    assert!(lines[0].is_empty());
    assert_eq!(
        lines[1],
        ["x-service-billed: 42", "x-service-served-by: frontier"]
    );
    assert_eq!(
        lines[2],
        ["x-service-billed: 0", "idempotent-replayed: true"]
    );
    let id = entry.id.to_string();
    let key = entry.key.expect("a key");
    let printed = explain(&bursar, &id).await;
    for wanted in [
        &*format!("entry         {id}\n"),
        &*format!("key           {key} (minted by bursar)\n"),
        "attempts      1. at once: 503, failed at the service",
        "refused with  warming\n",
        ": 200, the answer broke off (the connection was closed), took ",
        "                   x-service-billed: 42\n",
        "                   x-service-billed: 0\n",
        "state         settled, $0.000042\n",
        "why           An earlier attempt's head contained this amount before its body broke",
        "request id    req-77\n",
        "a stored replay, 3 tokens in, 4 tokens out",
    ] {
        assert!(printed.contains(wanted), "{wanted:?} in:\n{printed}");
    }
    assert!(!printed.contains('\x1b'), "no colours in a pipe");
    for other in [&id[28..], &id[24..], &id[..8], &id[..13], &key, "req-77"] {
        assert_eq!(explain(&bursar, other).await, printed, "by {other}");
    }
}

/// Steps, route, the app's key, and what is printed of the last entry.
type Row = (
    Vec<Step>,
    &'static str,
    Option<&'static str>,
    &'static str,
    &'static str,
);

#[tokio::test]
async fn every_state_is_shown_with_its_reason() {
    let answered = |headers: &[(&str, &str)]| Step::Answer(json(200, headers, BODY));
    let billed = |text| answered(&[("X-Service-Billed", text)]);
    let clarified = [
        ("X-Service-Billed", "0"),
        ("X-Service-Served-By", "none"),
        ("X-Service-Input-Required", "document"),
    ];
    let rows: Vec<Row> = vec![
        (
            vec![billed("7")],
            CHAT,
            None,
            "settled, $0.000007",
            "reported this amount in a header",
        ),
        (
            vec![billed("0")],
            CHAT,
            None,
            "settled, $0.000000",
            "reported 0 in a header",
        ),
        (
            vec![answered(&clarified)],
            CHAT,
            None,
            "settled, $0.000000",
            "is a clarification",
        ),
        (
            vec![Step::Answer(json(400, &[], r#"{"detail":"no"}"#))],
            CHAT,
            None,
            "failed, $0.000000",
            "Each attempt ended with an error of the service. A request that fails bills nothing.",
        ),
        (
            vec![answered(&[])],
            CHAT,
            None,
            "unreported, amount not known",
            "carries no amount",
        ),
        (
            vec![billed("4x2")],
            CHAT,
            None,
            "unreported, amount not known",
            "cannot be read",
        ),
        (
            vec![billed("4x2")],
            CHAT,
            None,
            "x-service-billed: 4x2",
            "The reported amount cannot be read.",
        ),
        (
            vec![answered(&[])],
            SPEECH,
            None,
            "unreported, amount not known",
            "no amount for audio",
        ),
        (
            vec![Step::Close],
            CHAT,
            None,
            "in doubt (no response), amount not known",
            "settles it    An answer under the same key",
        ),
        (
            vec![Step::Answer(
                b"HTTP/1.1 502 X\r\nContent-Length: 3\r\n\r\nbad".to_vec(),
            )],
            SPEECH,
            None,
            "in doubt (gateway), amount not known",
            "settles it    Nothing that the interface offers",
        ),
        (
            vec![Step::AnswerAndClose(broken(""))],
            CHAT,
            None,
            "in doubt (stream drop), amount not known",
            "closed        the service broke off (the connection was closed) while the answer was read",
        ),
        (
            vec![answered(&[
                ("X-Service-Billed", "0"),
                ("Idempotent-Replayed", "true"),
            ])],
            CHAT,
            Some("lost"),
            "in doubt (replay lost amount), amount not known",
            "a repeat shows 0",
        ),
    ];

    for (steps, route, key, state, why) in rows {
        let origin = Origin::start(steps).await;
        let bursar = Bursar::with(&origin.url(), "[retry]\nattempts = 1\n").await;
        let key = key.map(|key| ("Idempotency-Key", key));
        let headers: Vec<(&str, &str)> = key.into_iter().collect();
        let mut wire = bursar.connect().await;
        wire.send(request("POST", route, &headers, &chat("hi")))
            .await;
        wire.answer().await;
        let entry = bursar.settled(1).await.pop().expect("an entry");

        let printed = explain(&bursar, &entry.id.to_string()).await;

        assert!(printed.contains(state), "{state:?} in:\n{printed}");
        assert!(printed.contains(why), "{why:?} in:\n{printed}");
    }
}

#[tokio::test]
async fn a_purchase_is_shown_with_all_its_entries_and_what_brought_its_amount() {
    let replay = [("X-Service-Billed", "0"), ("Idempotent-Replayed", "true")];
    let origin = Origin::start([
        Step::Close,
        Step::Answer(json(200, &[("X-Service-Billed", "42")], BODY)),
        Step::Answer(json(200, &replay, BODY)),
    ])
    .await;
    let bursar = Bursar::with(&origin.url(), "[retry]\nattempts = 1\n").await;
    for _ in 0..3 {
        let mut wire = bursar.connect().await;
        let headers = [("Idempotency-Key", "mine")];
        wire.send(request("POST", CHAT, &headers, &chat("hi")))
            .await;
        wire.answer().await;
    }
    let entries = bursar.settled(3).await;
    let ids: Vec<String> = entries.iter().map(|entry| entry.id.to_string()).collect();

    let first = explain(&bursar, &ids[0]).await;
    let last = explain(&bursar, &ids[2]).await;

    assert!(
        first.contains("state         reconciled, $0.000000\n"),
        "{first}"
    );
    assert!(
        first.contains(&format!("it is on entry {}.", ids[1])),
        "{first}"
    );
    assert!(
        first.contains("until then it was in doubt (no response)"),
        "{first}"
    );
    assert!(
        first.contains("key           mine (the app's own)"),
        "{first}"
    );
    let stands = format!(
        "this key's $0.000042 is on entry {}: this one adds 0.",
        ids[1]
    );
    assert!(
        last.contains("state         replayed, $0.000000\n") && last.contains(&stands),
        "{last}"
    );
    for printed in [&first, &last] {
        assert!(
            printed.contains("\nall of this key: billed $0.000042 in 3 entries\n"),
            "{printed}"
        );
        assert!(
            ids.iter().all(|id| printed.contains(&id[id.len() - 12..])),
            "{printed}"
        );
    }
}

#[tokio::test]
async fn the_side_that_left_is_kept_and_a_doubt_leads_from_the_listing_to_its_story() {
    let event = chunk("data: {\"choices\":[]}\n\n");
    let mut pieces = vec![event.clone(); 3000];
    pieces[0] = [stream_head(), event].concat();
    let origin = Origin::start([Step::Pieces(pieces)]).await;
    let bursar = Bursar::with(&origin.url(), "[streams]\non_disconnect = \"cancel\"\n").await;
    let mut wire = bursar.connect().await;
    wire.send(request("POST", CHAT, &[], &chat_stream("hi")))
        .await;
    origin.go();
    wire.head().await;
    drop(wire);
    // It shows that it has gone when something is written to it.
    let entry = eventually("the end", || async {
        origin.go();
        let entry = bursar.entries().pop();
        entry.filter(|entry| entry.state != State::Open)
    })
    .await;

    assert_eq!(
        entry.state,
        State::InDoubt {
            reason: InDoubt::ClientGone
        }
    );
    let sides: Vec<(Side, Stage)> = entry
        .closed
        .iter()
        .map(|side| (side.by, side.stage))
        .collect();
    assert_eq!(
        sides,
        [
            (Side::App, Stage::Streaming),
            (Side::Bursar, Stage::Streaming)
        ]
    );
    let printed = explain(&bursar, &entry.id.to_string()).await;
    assert!(
        printed.contains("closed        the app left while the answer flowed, 0."),
        "{printed}"
    );
    assert!(
        printed.contains("bursar ended the reading for an app that had left"),
        "{printed}"
    );
    let state = bursar.state_dir();
    let state = state.to_str().expect("a path");
    let list = |more: &'static [&'static str]| async move {
        run(&[&["receipts", "--state-dir", state], more].concat())
            .await
            .0
    };
    let doubts = list(&["--state", "in-doubt", "--reason", "client-gone"]).await;
    assert!(doubts.contains(&entry.id.to_string()[24..]), "{doubts}");
    assert!(
        doubts.contains("\n1 shown: 1 in doubt(client gone).\n"),
        "{doubts}"
    );
    assert!(doubts.contains("`bursar explain ID`"), "{doubts}");
    assert_eq!(list(&["--reason", "crash"]).await, "No receipt matches.\n");
}

#[tokio::test]
async fn an_unreadable_price_stands_apart_from_an_absent_one() {
    let malformed = json(200, &[("X-Service-Billed", "4x2")], BODY);
    let origin = Origin::start([Step::Answer(malformed), Step::Answer(json(200, &[], BODY))]).await;
    let bursar = Bursar::before(&origin.url()).await;
    let unreadable = bursar.post(CHAT, &chat("a")).await;
    let without_price = bursar.post(CHAT, &chat("b")).await;
    let state = bursar.state_dir();
    let state = state.to_str().expect("a path");

    let (sums, ..) = run(&["spend", "--by", "state", "--json", "--state-dir", state]).await;
    let (listed, ..) = run(&["receipts", "--state", "malformed", "--state-dir", state]).await;
    let (both, ..) = run(&["receipts", "--state", "unreported", "--state-dir", state]).await;

    let sums: Value = serde_json::from_str(&sums).expect("JSON");
    let rows: Vec<(&str, u64, u64)> = sums["rows"]
        .as_array()
        .expect("rows")
        .iter()
        .map(|row| {
            let count = |name: &str| row[name].as_u64().expect("a count");
            (
                row["state"].as_str().expect("a state"),
                count("requests"),
                count("unreported"),
            )
        })
        .collect();
    assert_eq!(rows, [("malformed", 1, 1), ("unreported", 1, 1)]);
    let id = |answer: &crate::support::Answer| {
        answer.header("x-bursar-entry").expect("an id")[24..].to_owned()
    };
    assert!(
        listed.contains(&id(&unreadable)) && !listed.contains(&id(&without_price)),
        "{listed}"
    );
    assert!(
        both.contains("2 shown: 1 unreported, 1 unreported(malformed)."),
        "{both}"
    );
    assert!(
        listed.contains("1 shown: 1 unreported(malformed)."),
        "{listed}"
    );
}

#[tokio::test]
async fn what_is_not_there_or_not_one_entry_is_said_with_exit_code_1() {
    let origin = Origin::always(Step::Answer(json(200, &[("X-Service-Billed", "1")], BODY))).await;
    let clock = ManualClock::at(1_778_284_800_000);
    let bursar = Bursar::with_clock(&origin.url(), "", Arc::new(clock.clone())).await;
    let first = bursar.post(CHAT, &chat("a")).await;
    clock.advance(Duration::from_millis(10));
    let second = bursar.post(CHAT, &chat("b")).await;
    let ids = [first, second].map(|answer| bursar.entry_of(&answer).id.to_string());
    let state = bursar.state_dir();
    let state = state.to_str().expect("a path");

    let (printed, error, code) = run(&["explain", "--state-dir", state, &ids[0][..8]]).await;
    assert_eq!(code, Some(1));
    assert!(
        ids.iter().all(|id| printed.contains(&id[id.len() - 12..])),
        "{printed}"
    );
    assert!(
        error.contains("2 ids begin or end with") && error.contains("give more of it"),
        "{error}"
    );

    let (printed, error, code) = run(&["explain", "--state-dir", state, "no-such-key"]).await;
    assert_eq!((printed.as_str(), code), ("", Some(1)));
    assert!(
        error.contains("no-such-key") && error.contains("retention"),
        "{error}"
    );

    let (printed, _, code) = run(&["explain", "--json", "--state-dir", state, "no-such-key"]).await;
    let document: Value = serde_json::from_str(&printed).expect("JSON");
    assert_eq!((document["found_by"].is_null(), code), (true, Some(1)));
}

#[tokio::test]
async fn a_daemon_and_the_journal_show_the_same_and_comment_lines_stand_as_they_came() {
    let sandbox = Sandbox::start().await;
    let directory = tempfile::tempdir().expect("a directory");
    let state = directory.path().join("state");
    let daemon = Daemon::start(&sandbox.url(), &state, &[]).await;
    let app = daemon.connect().await;
    let answer = app.post(CHAT, &chat_stream("What is 2 + 3?")).await;
    let id = answer.header("x-bursar-entry").expect("an id").to_owned();
    let path = state.to_str().expect("a path");
    let admin = format!("unix:{path}/admin.sock");

    let (asked, ..) = run(&["explain", "--json", "--admin", &admin, &id]).await;
    let (read, ..) = run(&["explain", "--json", "--state-dir", path, &id]).await;
    daemon.terminate().await;
    let (offline, ..) = run(&["explain", "--json", "--state-dir", path, &id]).await;

    assert!(
        asked == read && read == offline,
        "{asked}\n{read}\n{offline}"
    );
    let document: Value = serde_json::from_str(&read).expect("JSON");
    let kept: Vec<&str> = document["entries"][0]["attempts"][0]["receipt_lines"]
        .as_array()
        .expect("lines")
        .iter()
        .filter_map(Value::as_str)
        .filter(|line| line.starts_with(": "))
        .collect();
    let text = answer.text();
    let came: Vec<&str> = text
        .lines()
        .filter(|line| line.starts_with(": service-"))
        .collect();
    assert!(!came.is_empty() && kept == came, "{kept:?}\n{came:?}");
    let debited = sandbox.debited().await;
    assert!(
        kept.contains(&&*format!(": service-billed-micro-usd {debited}")),
        "{kept:?}"
    );
    assert_eq!(document["purchase"]["billed_micro_usd"], debited);
}

/// A key is enough to get an answer again, whichever app paid for it, and any program can reach a
/// port.
#[tokio::test]
async fn keys_are_shown_through_the_socket_and_not_on_a_port() {
    let sandbox = Sandbox::start().await;
    let directory = tempfile::tempdir().expect("a directory");
    let state = directory.path().join("state");
    let daemon = Daemon::start(&sandbox.url(), &state, &[]).await;
    let long = "secret-".repeat(50);
    for key in ["my-secret-key", &long] {
        let mut app = daemon.connect().await;
        let own = [("Idempotency-Key", key)];
        app.send(request("POST", CHAT, &own, &chat("hi"))).await;
        assert_eq!(app.answer().await.status, 200);
    }
    daemon.connect().await.post(CHAT, &chat("minted")).await;
    let hash = entries(&state)[1].key_hash.expect("a hash").to_string();
    let minted = entries(&state)[2].key.clone().expect("a key");
    let port = daemon.admin.to_string();
    let socket = format!("unix:{}/admin.sock", state.to_str().expect("a path"));
    let names = ["my-secret-key", &hash, &minted, "secret-secret-"];

    for asked in ["my-secret-key", &long, &hash, &minted] {
        let (printed, error, code) = run(&["explain", "--json", "--admin", &port, asked]).await;
        assert_eq!(code, Some(0), "{asked:.20} is found: {error}");
        let is_shown = names.iter().any(|name| printed.contains(name));
        assert!(!is_shown, "{asked:.20}: {printed}");
        let (printed, ..) = run(&["explain", "--json", "--admin", &socket, asked]).await;
        let document: Value = serde_json::from_str(&printed).expect("JSON");
        let name = if asked == long { &hash } else { asked };
        for place in [&document["entries"][0], &document["purchase"]] {
            let key = place["key"].as_str().or(place["key_hash"].as_str());
            assert_eq!(key, Some(name), "{printed}");
        }
        let (printed, ..) = run(&["explain", "--admin", &port, asked]).await;
        assert!(printed.contains("not shown on a port"), "{printed}");
    }
    let (on_port, ..) = run(&["receipts", "--json", "--admin", &port]).await;
    let (printed, ..) = run(&["receipts", "--json", "--admin", &socket]).await;
    for name in &names[..3] {
        assert!(printed.contains(name), "{name}: {printed}");
        assert!(!on_port.contains(name), "{name}: {on_port}");
    }
    daemon.terminate().await;
}

#[tokio::test]
async fn no_receipt_line_holds_the_key_or_a_text_of_the_answer() {
    // Where a kept value is cut to its length, a piece of the key would be left.
    let behind_60 = format!("{}{KEY}", "v".repeat(60));
    let behind_120 = format!("{}{KEY}", "r".repeat(120));
    let echo = [
        ("X-Service-Billed", KEY),
        ("X-Service-Escalated", KEY),
        ("X-Service-Route-Version", &behind_60),
        ("X-Service-Input-Required", KEY),
        ("X-Service-Specialist", KEY),
        ("x-request-id", &behind_120),
    ];
    let stream = [
        stream_head(),
        chunk(&format!(
            ": service-route-version {behind_60}\n: service-billed-micro-usd {KEY}\n: secret thought\n\n"
        )),
        chunk("data: {\"choices\":[]}\n\ndata: [DONE]\n\n"),
        last_chunk(),
    ]
    .concat();
    let origin = Origin::start([Step::Answer(json(200, &echo, BODY)), Step::Answer(stream)]).await;
    let bursar = Bursar::before(&origin.url()).await;
    bursar.post(CHAT, &chat("a")).await;
    bursar.post(CHAT, &chat_stream("b")).await;
    let entries = bursar.settled(2).await;
    let stars = "*".repeat(KEY.len());

    assert_eq!(
        entries[0].attempts[0].receipt_lines[0],
        "x-service-billed: ***"
    );
    assert_eq!(
        entries[1].attempts[0].receipt_lines,
        [
            // In a stream each letter becomes a star.
            format!(": service-route-version {}{stars}", "v".repeat(60)),
            format!(": service-billed-micro-usd {stars}")
        ]
    );
    let started = &entries[0];
    assert_eq!(started.request_id, Some(format!("{}***", "r".repeat(120))));
    let journal = bursar.state_dir().join("journal/00000001.jsonl");
    let journal = std::fs::read_to_string(journal).expect("the journal");
    assert!(!journal.contains(&KEY[..5]) && !journal.contains("secret thought"));
    assert!(!bursar.metrics_text().contains(&KEY[..5]), "metrics");
}
