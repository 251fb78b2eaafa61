//! `[[app]] cost_in_usage`: what an answer cost, in its `usage`, where programs look for it. One place changes; what is
//! not known is not there.

use serde_json::Value;

use crate::support::origin::{chunk, json, last_chunk, stream_head};
use crate::support::wire::request;
use crate::support::{Answer, Bursar, Origin, Step, chat, eventually};

const CHAT: &str = "/v1/chat/completions";
const AGENT: &str = "/agent/v1/chat/completions";
const SHOWN: &str = "[[app]]\nname = \"default\"\ncost_in_usage = true\n";
/// An answer, in two parts: the cost stands between them.
const BODY: [&str; 2] = [
    r#"{ "id":"c1", "choices":[{"index":0,"message":{"role":"assistant","content":"usage {}"},"finish_reason":"stop"}],  "usage" : {"prompt_tokens":3, "completion_tokens":4,"total_tokens":7 "#,
    r#"} , "x":1.0 }"#,
];

fn answer(billed: Option<&str>, replayed: bool) -> Step {
    let billed = billed.map(|billed| ("X-Service-Billed", billed));
    let replayed = replayed.then_some(("Idempotent-Replayed", "true"));
    let headers: Vec<_> = billed.into_iter().chain(replayed).collect();
    Step::Answer(json(200, &headers, &BODY.concat()))
}

async fn ask(bursar: &Bursar, path: &str, body: &str, key: Option<&str>) -> Answer {
    let headers: Vec<_> = key
        .map(|key| ("Idempotency-Key", key))
        .into_iter()
        .collect();
    let mut wire = bursar.connect().await;
    wire.send(request("POST", path, &headers, body)).await;
    wire.answer().await
}

fn with(cost: &str) -> String {
    BODY.join(&format!(",\"cost\":{cost}"))
}

#[tokio::test]
async fn a_whole_answer_says_what_its_key_was_billed_and_every_other_byte_stays() {
    for path in [CHAT, AGENT] {
        for (billed, cost) in [
            ("1234567", "1.234567"),
            ("7", "0.000007"),
            ("999999999999999", "999999999.999999"),
            ("0", "0.000000"),
        ] {
            let origin = Origin::start([answer(Some(billed), false)]).await;
            let bursar = Bursar::with(&origin.url(), SHOWN).await;
            let got = ask(&bursar, path, &chat("x"), None).await;
            assert!(got.complete);
            assert_eq!(got.text(), with(cost), "{path}");
        }
    }
}

#[tokio::test]
async fn without_a_price_or_the_setting_an_answer_is_the_services() {
    let off = SHOWN.replace("true", "false");
    for (lines, billed) in [
        (SHOWN, None),
        (SHOWN, Some("seven")),
        ("", Some("7")),
        (&*off, Some("7")),
    ] {
        let origin = Origin::start([answer(billed, false)]).await;
        let bursar = Bursar::with(&origin.url(), lines).await;
        let got = ask(&bursar, CHAT, &chat("x"), None).await;
        assert_eq!(got.text(), BODY.concat(), "{lines} {billed:?}");
    }
}

/// The repeat's own header says 0 or nothing.
#[tokio::test]
async fn a_repeat_says_what_its_key_was_billed_before() {
    for (first, again, cost) in [
        (Some("7"), Some("0"), Some("0.000007")),
        (Some("7"), None, Some("0.000007")),
        (None, Some("0"), None),
    ] {
        let steps = [answer(first, false), answer(again, true)];
        let origin = Origin::start(steps).await;
        let bursar = Bursar::with(&origin.url(), SHOWN).await;
        ask(&bursar, CHAT, &chat("x"), Some("k1")).await;
        let got = ask(&bursar, CHAT, &chat("x"), Some("k1")).await;
        let wanted = cost.map_or_else(|| BODY.concat(), with);
        assert_eq!(got.text(), wanted, "{first:?} {again:?}");
    }
}

/// The app asked, and left before anything of the answer came.
async fn left(bursar: &Bursar, origin: &Origin, path: &str, body: &str) {
    let mut wire = bursar.connect().await;
    wire.send(request("POST", path, &[], body)).await;
    eventually("the service to receive", || async {
        (origin.received().len() == 1).then_some(())
    })
    .await;
    wire.hang_up();
    eventually("bursar to notice", || async {
        (bursar.metric("bursar_client_disconnects_total", "") >= 1.0).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_repeat_that_joins_or_adopts_an_answer_says_what_its_key_was_billed() {
    let whole = json(200, &[("X-Service-Billed", "7")], &BODY.concat());
    let told = [EVENT, &USAGE.concat(), RECEIPT, DONE].concat();
    let stream = [stream_head(), chunk(&told), last_chunk()].concat();
    let priced = USAGE.join(",\"cost\":0.000007");
    let priced = [EVENT, &priced, RECEIPT, DONE].concat();
    let rows = [
        (CHAT, chat("x"), &whole, with("0.000007")),
        (AGENT, chat("x"), &whole, with("0.000007")),
        (CHAT, streamed(true), &stream, priced),
    ];
    for (path, body, sent, wanted) in rows {
        for joins in [true, false] {
            let origin = Origin::start([Step::Pieces(vec![sent.clone()])]).await;
            let bursar = Bursar::with(&origin.url(), SHOWN).await;
            left(&bursar, &origin, path, &body).await;
            if !joins {
                origin.go();
                bursar.settled(1).await;
            }
            let mut wire = bursar.connect().await;
            wire.send(request("POST", path, &[], &body)).await;
            if joins {
                eventually("it to join", || async {
                    (bursar.metric("bursar_joined_retries_total", "") >= 1.0).then_some(())
                })
                .await;
                origin.go();
            }
            let got = wire.answer().await;
            assert!(got.complete, "{path} {joins}");
            assert_eq!(got.text(), wanted, "{path} {joins}");
            assert!(got.header("x-bursar-adopted").is_some(), "{path} {joins}");
            assert_eq!(origin.received().len(), 1, "{path} {joins}");
            bursar.settled(1).await;
            assert_eq!(bursar.billed(), 7, "{path} {joins}");
        }
    }
}

/// What was kept of the answer goes with the process; the service bills 0 for what it gives again.
#[tokio::test]
async fn a_repeat_behind_a_restart_says_what_its_key_was_billed() {
    for path in [CHAT, AGENT] {
        let whole = json(200, &[("X-Service-Billed", "7")], &BODY.concat());
        let origin = Origin::start([Step::Pieces(vec![whole])]).await;
        let bursar = Bursar::with(&origin.url(), SHOWN).await;
        left(&bursar, &origin, path, &chat("x")).await;
        origin.go();
        bursar.settled(1).await;
        let bursar = bursar.restart(SHOWN).await;
        origin.push(answer(Some("0"), true));

        let got = ask(&bursar, path, &chat("x"), None).await;

        assert_eq!(got.text(), with("0.000007"), "{path}");
        assert!(got.header("x-bursar-adopted").is_some(), "{path}");
        assert_eq!(origin.received().len(), 2, "{path}");
        bursar.settled(2).await;
        assert_eq!(bursar.billed(), 7, "{path}");
    }
}

#[tokio::test]
async fn other_answers_are_left_as_they_are() {
    for body in [
        r#"{"detail":"no"}"#,
        r#"{"id":"c1","choices":[]}"#,
        r#"{"id":"c1","usage":null}"#,
        r#"{"id":"c1","usage":[1]}"#,
        r#"{"id":"c1","usage":{"cost":5}}"#,
        r#"{"id":"c1","usage":{"a":1},"usage":{"a":1}}"#,
        r#"{"id":"c1","usage":{"a":1}"#,
        "usage",
    ] {
        let step = Step::Answer(json(200, &[("X-Service-Billed", "7")], body));
        let origin = Origin::start([step]).await;
        let bursar = Bursar::with(&origin.url(), SHOWN).await;
        let got = ask(&bursar, CHAT, &chat("x"), None).await;
        assert_eq!(got.text(), body);
    }
}

const EVENT: &str = "data: {\"choices\":[{\"delta\":{\"content\":\"x\"}}]}\n\n";
const USAGE: [&str; 2] = [
    "data: {\"id\":\"c1\",\"choices\":[],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":4,\"total_tokens\":7",
    "}}\n\n",
];
const RECEIPT: &str = ": service-billed-micro-usd 7\n\n";
const DONE: &str = "data: [DONE]\n\n";

fn streamed(include_usage: bool) -> String {
    let options = match include_usage {
        true => r#","stream_options":{"include_usage":true}"#,
        false => "",
    };
    format!(
        r#"{{"model":"auto","stream":true{options},"messages":[{{"role":"user","content":"x"}}]}}"#
    )
}

/// A stream in pieces of so many bytes.
fn pieces(text: &str, bytes: usize) -> Step {
    let mut stream = stream_head();
    let letters: Vec<char> = text.chars().collect();
    for piece in letters.chunks(bytes) {
        stream.extend(chunk(&piece.iter().collect::<String>()));
    }
    Step::Answer([stream, last_chunk()].concat())
}

#[tokio::test]
async fn a_stream_says_it_in_the_chunk_with_usage_that_the_app_asked_for() {
    let usage = USAGE.concat();
    let priced = USAGE.join(",\"cost\":0.000007");
    let speaking = usage.replace("[]", r#"[{"index":0,"delta":{"content":"x"}}]"#);
    let told = [EVENT, &usage, RECEIPT, DONE].concat();
    let rows = [
        (
            "asked for",
            true,
            told.clone(),
            [EVENT, &priced, RECEIPT, DONE].concat(),
        ),
        ("not asked for", false, told.clone(), told),
        (
            "without a price",
            true,
            [EVENT, &usage, DONE].concat(),
            [EVENT, &usage, DONE].concat(),
        ),
        (
            "without usage",
            true,
            [EVENT, RECEIPT, DONE].concat(),
            [EVENT, RECEIPT, DONE].concat(),
        ),
        (
            "in several chunks",
            true,
            [&usage, EVENT, &usage, RECEIPT, DONE].concat(),
            [&usage, EVENT, &priced, RECEIPT, DONE].concat(),
        ),
        (
            "followed by another chunk: one more, behind all others",
            true,
            [&usage, RECEIPT, EVENT, DONE].concat(),
            [&usage, RECEIPT, EVENT, &priced, DONE].concat(),
        ),
        (
            "followed by another chunk, and not asked for",
            false,
            [&usage, RECEIPT, EVENT, DONE].concat(),
            [&usage, RECEIPT, EVENT, DONE].concat(),
        ),
        (
            "followed by another chunk, without a price",
            true,
            [&usage, EVENT, DONE].concat(),
            [&usage, EVENT, DONE].concat(),
        ),
        (
            "with a text, and followed by another chunk: the text is not said twice",
            true,
            [&speaking, EVENT, RECEIPT, DONE].concat(),
            [&speaking, EVENT, RECEIPT, &priced, DONE].concat(),
        ),
        (
            "with a cost of the service's own",
            true,
            [&priced, EVENT, RECEIPT, DONE].concat(),
            [&priced, EVENT, RECEIPT, DONE].concat(),
        ),
    ];
    for (name, asked, sent, wanted) in rows {
        for bytes in [1, 5, 64, 10_000] {
            let origin = Origin::start([pieces(&sent, bytes)]).await;
            let bursar = Bursar::with(&origin.url(), SHOWN).await;
            let got = ask(&bursar, CHAT, &streamed(asked), None).await;
            assert!(got.complete, "{name}");
            assert_eq!(got.text(), wanted, "{name}, {bytes}");
        }
    }
}

/// Nothing else waits for it.
#[tokio::test]
async fn what_comes_before_the_last_chunk_flows_as_it_comes() {
    let mut first = stream_head();
    first.extend(chunk(EVENT));
    let mut second = chunk(&USAGE.concat());
    second.extend(chunk(EVENT));
    let mut rest = chunk(&[&*USAGE.concat(), RECEIPT, DONE].concat());
    rest.extend(last_chunk());
    let origin = Origin::start([Step::Pieces(vec![first, second, rest])]).await;
    let bursar = Bursar::with(&origin.url(), SHOWN).await;
    let mut wire = bursar.connect().await;
    wire.send(request("POST", CHAT, &[], &streamed(true))).await;
    origin.go();
    let mut got = wire.head().await;
    let mut wanted = String::new();
    for part in [EVENT.to_owned(), [&*USAGE.concat(), EVENT].concat()] {
        wanted.push_str(&part);
        while got.body.len() < wanted.len() {
            let piece = wire.chunk(&mut got).await.expect("a piece");
            assert!(!piece.is_empty(), "ended after {:?}", got.text());
            got.body.extend_from_slice(&piece);
        }
        assert_eq!(got.text(), wanted);
        origin.go();
    }
    wire.rest(&mut got).await;
    wanted.push_str(&[&*USAGE.join(",\"cost\":0.000007"), RECEIPT, DONE].concat());
    assert!(got.complete);
    assert_eq!(got.text(), wanted);
}

#[tokio::test]
async fn a_stream_that_is_made_of_a_whole_turn_says_it_where_usage_was_asked_for() {
    let lines = format!("[streams]\nagent_receipts = \"exact\"\n{SHOWN}");
    for asked in [true, false] {
        let origin = Origin::start([answer(Some("7"), false)]).await;
        let bursar = Bursar::with(&origin.url(), &lines).await;
        let got = ask(&bursar, AGENT, &streamed(asked), None).await;
        let text = got.text();
        let usage = text
            .lines()
            .filter_map(|line| serde_json::from_str::<Value>(line.strip_prefix("data: ")?).ok())
            .find_map(|chunk| chunk.get("usage").cloned());
        let usage = usage.expect("a chunk with usage");
        assert_eq!(usage["total_tokens"], 7);
        let cost = usage.get("cost").map(ToString::to_string);
        assert_eq!(cost.is_some(), asked, "{usage}");
        assert_eq!(text.contains("\"cost\":0.000007"), asked, "{text}");
    }
}
