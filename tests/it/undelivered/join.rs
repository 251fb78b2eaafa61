//! Join: the running request, or its kept answer, goes to the app's next equal request.

use bursar::ledger::entry::State;
use bursar::money::MicroUsd;
use serde_json::json;

use super::{CHAT, ask, avoided, joined, key, left, on_cue, received, send};
use crate::support::origin::{billed, chunk, last_chunk, stream_head};
use crate::support::wire::request;
use crate::support::{Answer, Bursar, Origin, Sandbox, Step, chat, chat_stream, eventually};

fn billed_of(answer: &Answer) -> Option<&str> {
    answer.header("x-service-billed")
}

#[tokio::test]
async fn a_retry_joins_the_request_that_is_still_running() {
    let origin = Origin::start([on_cue(billed(7)), Step::Answer(billed(8))]).await;
    let bursar = Bursar::before(&origin.url()).await;
    let first = send(&bursar, &origin, &chat("hi"), &[]).await;
    drop(first);
    left(&bursar, 1).await;
    let mut second = bursar.connect().await;
    second.send(request("POST", CHAT, &[], &chat("hi"))).await;
    joined(&bursar, 1).await;
    origin.go();
    let answer = second.answer().await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(billed_of(&answer), Some("7"), "the real receipt");
    assert_eq!(origin.received().len(), 1, "one upstream request");
    let entries = bursar.settled(1).await;
    assert_eq!(entries.len(), 1, "one entry");
    let id = entries[0].id.0.to_string();
    assert_eq!(answer.header("x-bursar-entry"), Some(id.as_str()));
    assert_eq!(answer.header("x-bursar-adopted"), Some(id.as_str()));
    assert_eq!(bursar.billed(), 7);
    assert_eq!(avoided(&bursar), 7, "one repeat was no purchase");

    let third = ask(&bursar, &chat("hi"), &[]).await;
    assert_eq!(billed_of(&third), Some("8"), "a third is a new purchase");
    assert_eq!(third.header("x-bursar-adopted"), None);
    assert_ne!(key(&origin, 0), key(&origin, 1));
}

/// Its browser would keep the answer from it: the request that it joins was a program's.
#[tokio::test]
async fn a_listed_page_that_joins_a_programs_request_reads_the_answer() {
    let origin = Origin::start([on_cue(billed(7))]).await;
    let lines = "[listen]\nallowed_origins = ['app://obsidian.md']\n";
    let bursar = Bursar::with(&origin.url(), lines).await;
    drop(send(&bursar, &origin, &chat("hi"), &[]).await);
    left(&bursar, 1).await;
    let mut page = bursar.connect().await;
    let headers = [("Origin", "app://obsidian.md")];
    page.send(request("POST", CHAT, &headers, &chat("hi")))
        .await;
    joined(&bursar, 1).await;
    origin.go();

    let answer = page.answer().await;

    assert_eq!(billed_of(&answer), Some("7"), "{}", answer.text());
    let allowed = answer.header("access-control-allow-origin");
    assert_eq!(allowed, Some("app://obsidian.md"));
    assert_eq!(answer.header("access-control-expose-headers"), Some("*"));
}

#[tokio::test]
async fn a_retry_within_a_minute_takes_the_kept_answer_once() {
    let rows = [
        ("json", chat("hi"), vec![billed(7)]),
        (
            "stream",
            chat_stream("hi"),
            vec![
                [
                    stream_head(),
                    chunk("data: {\"n\":1}\n\n"),
                    chunk(": service-billed-micro-usd 7\n\ndata: [DONE]\n\n"),
                    last_chunk(),
                ]
                .concat(),
            ],
        ),
    ];
    for (name, body, pieces) in rows {
        let origin = Origin::start([Step::Pieces(pieces), Step::Answer(billed(8))]).await;
        let bursar = Bursar::before(&origin.url()).await;
        drop(send(&bursar, &origin, &body, &[]).await);
        left(&bursar, 1).await;
        origin.go();
        let entries = bursar.settled(1).await;
        assert_eq!(avoided(&bursar), 0, "{name}: nothing was asked again");
        let second = ask(&bursar, &body, &[]).await;
        assert_eq!(second.status, 200, "{name}: {}", second.text());
        assert_eq!(
            avoided(&bursar),
            7,
            "{name}: its price was known before it came"
        );
        assert!(second.complete, "{name}: complete");
        let id = entries[0].id.0.to_string();
        assert_eq!(second.header("x-bursar-entry"), Some(id.as_str()), "{name}");
        assert_eq!(
            second.header("x-bursar-adopted"),
            Some(id.as_str()),
            "{name}"
        );
        if name == "stream" {
            assert!(
                second.text().ends_with("data: [DONE]\n\n"),
                "{name}: {}",
                second.text()
            );
        } else {
            assert_eq!(billed_of(&second), Some("7"), "{name}: the real receipt");
        }
        assert_eq!(origin.received().len(), 1, "{name}: one upstream request");
        let third = ask(&bursar, &body, &[]).await;
        assert_eq!(
            billed_of(&third),
            Some("8"),
            "{name}: a third is a new purchase"
        );
        assert_eq!(origin.received().len(), 2, "{name}");
    }
}

/// "it waits up to 20 ms for that connection's end to show": nothing else is waited for here.
#[tokio::test]
async fn a_marked_retry_that_overtakes_the_end_of_its_connection_joins() {
    let origin = Origin::start([on_cue(billed(7)), Step::Answer(billed(8))]).await;
    let bursar = Bursar::before(&origin.url()).await;
    let first = send(&bursar, &origin, &chat("hi"), &[]).await;
    let mut second = bursar.connect().await;
    let marked = [("x-stainless-retry-count", "1")];
    second
        .send(request("POST", CHAT, &marked, &chat("hi")))
        .await;
    drop(first);
    joined(&bursar, 1).await;
    origin.go();
    assert_eq!(billed_of(&second.answer().await), Some("7"));
    assert_eq!(origin.received().len(), 1);
}

/// The reader of a joined answer may leave too: the third attempt is the same purchase.
#[tokio::test]
async fn a_joined_request_that_is_left_is_joined_again() {
    let origin = Origin::start([on_cue(billed(7)), Step::Answer(billed(8))]).await;
    let bursar = Bursar::before(&origin.url()).await;
    drop(send(&bursar, &origin, &chat("hi"), &[]).await);
    left(&bursar, 1).await;
    let mut second = bursar.connect().await;
    second.send(request("POST", CHAT, &[], &chat("hi"))).await;
    joined(&bursar, 1).await;
    drop(second);
    // The third may come before the end of the second shows; only a marked one waits for that.
    let mut third = bursar.connect().await;
    let marked = [("x-stainless-retry-count", "2")];
    third
        .send(request("POST", CHAT, &marked, &chat("hi")))
        .await;
    joined(&bursar, 2).await;
    origin.go();
    assert_eq!(billed_of(&third.answer().await), Some("7"));
    assert_eq!(origin.received().len(), 1);
}

#[tokio::test]
async fn five_equal_requests_that_all_time_out_are_five_purchases_and_no_more() {
    let sandbox = Sandbox::start().await;
    let hold = json!({"times": 5, "fault": {"hold": "all"}});
    sandbox.control("/sandbox/faults", hold).await;
    let bursar = Bursar::before(&sandbox.url()).await;
    let mut apps = Vec::new();
    for _ in 0..5 {
        let mut wire = bursar.connect().await;
        wire.send(request("POST", CHAT, &[], &chat("the same")))
            .await;
        apps.push(wire);
    }
    eventually("five requests upstream", || async {
        let limits = sandbox.get("/sandbox/limits").await;
        (limits["in_flight"] == 5).then_some(())
    })
    .await;
    drop(apps);
    left(&bursar, 5).await;
    let mut retries = Vec::new();
    for _ in 0..5 {
        let mut wire = bursar.connect().await;
        let marked = [("x-stainless-retry-count", "1")];
        wire.send(request("POST", CHAT, &marked, &chat("the same")))
            .await;
        retries.push(wire);
    }
    joined(&bursar, 5).await;
    sandbox
        .control("/sandbox/release", json!({"hold": "all"}))
        .await;
    let mut ids = Vec::new();
    for wire in &mut retries {
        let answer = wire.answer().await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        ids.push(answer.json()["id"].as_str().expect("an id").to_owned());
    }
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 5, "five distinct answers");
    assert_eq!(sandbox.debits().await.len(), 5, "five debits");
    assert_eq!(bursar.settled(5).await.len(), 5, "five entries");
    assert_eq!(bursar.billed(), sandbox.debited().await);
}

#[tokio::test]
async fn a_half_closed_client_gets_its_answer_and_no_other_does() {
    for body in [chat("hi"), chat_stream("hi")] {
        let stream = [
            stream_head(),
            chunk("data: {\"n\":1}\n\n: service-billed-micro-usd 7\n\ndata: [DONE]\n\n"),
            last_chunk(),
        ]
        .concat();
        let is_stream = body.contains("stream");
        let bytes = if is_stream { stream } else { billed(7) };
        let origin = Origin::start([on_cue(bytes), Step::Answer(billed(8))]).await;
        let bursar = Bursar::before(&origin.url()).await;
        let mut first = send(&bursar, &origin, &body, &[]).await;
        first.half_close().await;
        left(&bursar, 1).await;
        origin.go();
        let answer = first.answer().await;
        assert_eq!(answer.status, 200, "stream {is_stream}: {}", answer.text());
        assert!(answer.complete, "stream {is_stream}");
        let second = ask(&bursar, &body, &[]).await;
        assert_eq!(
            billed_of(&second),
            Some("8"),
            "stream {is_stream}: not given twice"
        );
        assert_eq!(second.header("x-bursar-adopted"), None);
        assert_ne!(key(&origin, 0), key(&origin, 1));
    }
}

/// Both halves of its connection are open.
#[tokio::test]
async fn an_app_that_sends_far_ahead_has_not_given_up_its_request() {
    let origin = Origin::start([on_cue(billed(7)), Step::Answer(billed(8))]).await;
    let bursar = Bursar::before(&origin.url()).await;
    let mut first = send(&bursar, &origin, &chat("hi"), &[]).await;
    let mut second = bursar.connect().await;
    let next = request("POST", CHAT, &[], &chat(&"far ahead ".repeat(10 << 10)));
    let closing = [("Connection", "close")];
    let both = [request("POST", CHAT, &closing, &chat("hi")), next].concat();
    second.send(both).await;
    assert_eq!(billed_of(&second.answer().await), Some("8"));
    origin.go();
    assert_eq!(billed_of(&first.answer().await), Some("7"));
}

/// "for section 4 a suspect connection already counts as gone: its answer may be joined".
#[tokio::test]
async fn a_suspect_loses_its_answer_to_the_one_that_joined() {
    let origin = Origin::start([on_cue(billed(7))]).await;
    let bursar = Bursar::before(&origin.url()).await;
    let mut first = send(&bursar, &origin, &chat("hi"), &[]).await;
    first.half_close().await;
    left(&bursar, 1).await;
    let mut second = bursar.connect().await;
    second.send(request("POST", CHAT, &[], &chat("hi"))).await;
    joined(&bursar, 1).await;
    origin.go();
    assert_eq!(billed_of(&second.answer().await), Some("7"));
    let answer = first.answer().await;
    assert_eq!(answer.status, 0, "the answer is given once");
}

#[tokio::test]
async fn a_stream_is_joined_before_its_first_byte_and_not_after() {
    let stream = || {
        Step::Pieces(vec![
            [stream_head(), chunk("data: {\"n\":1}\n\n")].concat(),
            [
                chunk(": service-billed-micro-usd 7\n\ndata: [DONE]\n\n"),
                last_chunk(),
            ]
            .concat(),
        ])
    };
    let body = chat_stream("hi");

    let origin = Origin::start([stream(), stream()]).await;
    let bursar = Bursar::before(&origin.url()).await;
    drop(send(&bursar, &origin, &body, &[]).await);
    left(&bursar, 1).await;
    let mut second = bursar.connect().await;
    second.send(request("POST", CHAT, &[], &body)).await;
    joined(&bursar, 1).await;
    origin.go();
    let mut answer = second.head().await;
    let piece = second
        .chunk(&mut answer)
        .await
        .expect("a piece, before the next is there");
    assert_eq!(String::from_utf8_lossy(&piece), "data: {\"n\":1}\n\n");
    assert_eq!(
        answer.header("x-bursar-adopted"),
        answer.header("x-bursar-entry")
    );
    origin.go();
    let mut rest = Vec::new();
    while let Some(piece) = second
        .chunk(&mut answer)
        .await
        .filter(|piece| !piece.is_empty())
    {
        rest.extend_from_slice(&piece);
    }
    assert!(String::from_utf8_lossy(&rest).ends_with("[DONE]\n\n"));
    assert_eq!(origin.received().len(), 1);
    assert_eq!(
        bursar.settled(1).await[0].state,
        State::Settled {
            billed: MicroUsd::new(7)
        }
    );

    let origin = Origin::start([stream(), stream()]).await;
    let bursar = Bursar::before(&origin.url()).await;
    let mut first = send(&bursar, &origin, &body, &[]).await;
    origin.go();
    let mut answer = first.head().await;
    first.chunk(&mut answer).await.expect("a piece");
    drop(first);
    left(&bursar, 1).await;
    let mut second = bursar.connect().await;
    second.send(request("POST", CHAT, &[], &body)).await;
    received(&origin, 2).await;
    assert_ne!(key(&origin, 0), key(&origin, 1), "a run of its own");
}

#[tokio::test]
async fn only_equal_requests_join() {
    let other_body = chat("hi ");
    let rows: [(&str, &str, String, Vec<(&str, &str)>); 5] = [
        ("another body", CHAT, other_body, vec![]),
        (
            "another path",
            "/agent/v1/chat/completions",
            chat("hi"),
            vec![],
        ),
        ("a query", "/v1/chat/completions?a=1", chat("hi"), vec![]),
        (
            "another session",
            CHAT,
            chat("hi"),
            vec![("X-Service-Session", "s2")],
        ),
        (
            "another RTE query",
            CHAT,
            chat("hi"),
            vec![("X-Service-RTE-Query", "q")],
        ),
    ];
    for (name, path, body, headers) in rows {
        let origin = Origin::start([on_cue(billed(7)), Step::Answer(billed(8))]).await;
        let bursar = Bursar::before(&origin.url()).await;
        drop(send(&bursar, &origin, &chat("hi"), &[]).await);
        left(&bursar, 1).await;
        let mut wire = bursar.connect().await;
        wire.send(request("POST", path, &headers, &body)).await;
        let answer = wire.answer().await;
        assert_eq!(billed_of(&answer), Some("8"), "{name}");
        assert_ne!(key(&origin, 0), key(&origin, 1), "{name}");
    }
}

#[tokio::test]
async fn a_delivered_answer_is_never_collapsed_with_a_later_request() {
    let origin = Origin::always(Step::Answer(billed(7))).await;
    let bursar = Bursar::before(&origin.url()).await;
    for _ in 0..5 {
        let marked = [("x-stainless-retry-count", "1")];
        let answer = ask(&bursar, &chat("hi"), &marked).await;
        assert_eq!(billed_of(&answer), Some("7"));
        assert_eq!(answer.header("x-bursar-adopted"), None);
    }
    let mut keys: Vec<_> = (0..5).map(|index| key(&origin, index)).collect();
    keys.sort();
    keys.dedup();
    assert_eq!(keys.len(), 5, "five keys");
    assert_eq!(bursar.settled(5).await.len(), 5);
}

#[tokio::test]
async fn equal_requests_in_flight_with_their_apps_still_there_are_separate() {
    let origin = Origin::start([on_cue(billed(7)), on_cue(billed(8))]).await;
    let bursar = Bursar::before(&origin.url()).await;
    let mut first = send(&bursar, &origin, &chat("hi"), &[]).await;
    let mut second = send(&bursar, &origin, &chat("hi"), &[]).await;
    origin.go();
    origin.go();
    eventually("both answers to be asked for", || async {
        origin.go();
        (bursar
            .entries()
            .iter()
            .filter(|entry| entry.ended_ms.is_some())
            .count()
            == 2)
            .then_some(())
    })
    .await;
    let mut amounts = [
        billed_of(&first.answer().await).map(str::to_owned),
        billed_of(&second.answer().await).map(str::to_owned),
    ];
    amounts.sort();
    assert_eq!(amounts, [Some("7".to_owned()), Some("8".to_owned())]);
}

#[tokio::test]
async fn free_routes_are_never_joined() {
    let models = || on_cue(crate::support::origin::json(200, &[], r#"{"data":[]}"#));
    let origin = Origin::start([models(), models()]).await;
    let bursar = Bursar::before(&origin.url()).await;
    let get = "GET /v1/models HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let mut first = bursar.connect().await;
    first.send(get).await;
    received(&origin, 1).await;
    drop(first);
    left(&bursar, 1).await;
    let mut second = bursar.connect().await;
    second.send(get).await;
    received(&origin, 2).await;
    assert!(bursar.entries().is_empty());
}

/// Unkeyed spending routes have no key to adopt, but a running one can be joined.
#[tokio::test]
async fn an_unkeyed_spending_request_is_joined_too() {
    let speech = crate::support::origin::json(200, &[], r#"{"audio_base64":"","duration_s":1.5}"#);
    let origin = Origin::start([on_cue(speech.clone()), Step::Answer(speech)]).await;
    let bursar = Bursar::before(&origin.url()).await;
    let ask = request("POST", "/v1/audio/speech", &[], r#"{"text":"hi"}"#);
    let mut first = bursar.connect().await;
    first.send(&ask).await;
    received(&origin, 1).await;
    drop(first);
    left(&bursar, 1).await;
    let mut second = bursar.connect().await;
    second.send(&ask).await;
    joined(&bursar, 1).await;
    origin.go();
    assert_eq!(second.answer().await.status, 200);
    assert_eq!(origin.received().len(), 1, "the audio ran once");
}

/// Every answer names its entry, an error that a joined request gets as well.
#[tokio::test]
async fn a_request_that_joins_a_failure_gets_it_and_may_try_again_under_the_same_key() {
    let origin = Origin::start([Step::Pieces(vec![]), Step::Answer(billed(7))]).await;
    origin.push(Step::Answer(billed(8)));
    // The first step writes nothing and waits for the next request on its connection: a stall.
    let bursar = Bursar::with(
        &origin.url(),
        "[upstream]\nread_timeout_s = 1\n[retry]\nattempts = 1\n",
    )
    .await;
    drop(send(&bursar, &origin, &chat("hi"), &[]).await);
    left(&bursar, 1).await;
    let mut second = bursar.connect().await;
    second.send(request("POST", CHAT, &[], &chat("hi"))).await;
    joined(&bursar, 1).await;
    let answer = second.answer().await;
    assert_eq!(answer.code(), Some("upstream_timeout"), "{}", answer.text());
    let entries = bursar.settled(1).await;
    let id = entries[0].id.0.to_string();
    assert_eq!(answer.header("x-bursar-entry"), Some(id.as_str()));
    assert_eq!(answer.header("x-bursar-adopted"), Some(id.as_str()));
    assert_eq!(
        answer.header("x-should-retry"),
        None,
        "the app's retry is welcome"
    );
    let third = ask(&bursar, &chat("hi"), &[]).await;
    assert_eq!(billed_of(&third), Some("7"));
    assert_eq!(third.header("x-bursar-adopted"), Some(id.as_str()));
    assert_eq!(key(&origin, 0), key(&origin, 1), "the same purchase");
    let fourth = ask(&bursar, &chat("hi"), &[]).await;
    assert_eq!(billed_of(&fourth), Some("8"));
    assert_ne!(key(&origin, 1), key(&origin, 2), "a new purchase");
}
