//! What counts, what does not, and when counting begins again.

use std::sync::Arc;
use std::time::Duration;

use bursar::clock::ManualClock;
use bursar::ledger::entry::State;

use super::{CHAT, ask, is_reached, on_cue, received};
use crate::support::origin::{billed, json, stream_head};
use crate::support::wire::request;
use crate::support::{
    Bursar, Origin, Sandbox, Step, chat, chat_stream, eventually, messages_stream, responses_stream,
};

/// 2026-03-28T22:30:00Z: half an hour before midnight in Berlin, on the day before summer time.
const EVENING: u64 = 1_774_737_000_000;
const HOUR: Duration = Duration::from_secs(3600);

#[tokio::test]
async fn at_the_cap_a_request_is_refused_before_it_is_sent_and_free_routes_go_on() {
    let sandbox = Sandbox::start().await;
    let caps = "[caps]\ntime_zone = \"UTC\"\nday_micro_usd = 1\nrequest_floor_micro_usd = 0\n";
    let bursar = Bursar::with(&sandbox.url(), caps).await;
    let first = bursar.post(CHAT, &chat("what is 1 + 1?")).await;
    assert_eq!(
        first.status,
        200,
        "below the cap one goes: {}",
        first.text()
    );
    for body in [chat("what is 2 + 2?"), chat_stream("what is 3 + 3?")] {
        let refused = bursar.post(CHAT, &body).await;
        is_reached(&refused);
        let text = refused.text();
        for part in [
            "all apps together",
            "$0.000001",
            "in the day",
            "00:00:00 (UTC)",
        ] {
            assert!(text.contains(part), "{part:?} is not in {text}");
        }
    }
    assert_eq!(sandbox.debits().await.len(), 1);
    assert_eq!(bursar.settled(1).await.len(), 1, "a refusal makes no entry");
    assert_eq!(
        bursar.metric("bursar_total_cap_refusals_total", "period=\"day\""),
        2.0
    );
    assert!(bursar.metric("bursar_total_cap_spent_usd", "") > 0.0);
    let free = bursar.connect().await.get("/v1/models").await;
    assert_eq!(free.status, 200);
}

#[tokio::test]
async fn every_metered_operation_counts() {
    let sandbox = Sandbox::start().await;
    let lines = "[upstream]\nextra_routes = [\"POST /v1/x\"]\n[caps]\nmonth_micro_usd = 0\n";
    let bursar = Bursar::with(&sandbox.url(), lines).await;
    for path in [
        CHAT,
        "/agent/v1/chat/completions",
        "/v1/embeddings",
        "/v1/rerank",
        "/v1/images/generations",
        "/v1/audio/transcriptions",
        "/v1/audio/speech",
        "/v1/playground/frontier",
        "/v1/eval-runs",
        "/v1/endpoints",
        "/v1/x",
        "/v1/responses",
        "/agent/v1/responses",
        "/agent/v1/messages",
    ] {
        let body = match path {
            "/v1/responses" | "/agent/v1/responses" => responses_stream("hi"),
            "/agent/v1/messages" => messages_stream("hi"),
            _ => chat("hi"),
        };
        let refused = bursar.post(path, &body).await;
        assert_eq!(refused.status, 402, "{path}: {}", refused.text());
    }
    assert!(sandbox.debits().await.is_empty());
}

#[tokio::test]
async fn an_app_has_its_own_cap_beside_that_of_all() {
    let origin = Origin::always(Step::Answer(billed(60))).await;
    let caps = "[caps]\nday_micro_usd = 100000\nrequest_floor_micro_usd = 0\n\
                [[app]]\nname = \"default\"\ncap_hour_micro_usd = 100\n";
    let bursar = Bursar::with(&origin.url(), caps).await;
    for _ in 0..2 {
        assert_eq!(ask(&bursar, &chat("hi"), &[]).await.status, 200);
    }
    let refused = ask(&bursar, &chat("hi"), &[]).await;
    is_reached(&refused);
    assert!(
        refused.text().contains("the app default"),
        "{}",
        refused.text()
    );
    assert_eq!(origin.received().len(), 2);
}

#[tokio::test]
async fn what_failed_gives_back_and_what_is_in_doubt_stays_charged_over_a_restart() {
    let busy = || Step::Answer(json(503, &[], r#"{"detail":"busy"}"#));
    let origin = Origin::start([busy(), Step::Close]).await;
    let caps = "[retry]\nattempts = 1\n\
                [caps]\nmonth_micro_usd = 500\nrequest_floor_micro_usd = 500\n";
    let bursar = Bursar::with(&origin.url(), caps).await;
    assert_eq!(ask(&bursar, &chat("failed"), &[]).await.status, 503);
    let doubtful = ask(&bursar, &chat("doubtful"), &[]).await;
    assert_eq!(doubtful.status, 502, "{}", doubtful.text());
    is_reached(&ask(&bursar, &chat("other"), &[]).await);
    assert_eq!(bursar.billed(), 0, "what is held is no billed money");
    assert!((bursar.metric("bursar_total_cap_held_usd", "") - 0.0005).abs() < 1e-9);

    let bursar = bursar.restart(caps).await;
    is_reached(&ask(&bursar, &chat("other"), &[]).await);
    // Its repeat is charged already: it passes, and its price replaces the held amount.
    origin.push(Step::Answer(billed(7)));
    let adopted = ask(&bursar, &chat("doubtful"), &[]).await;
    assert_eq!(adopted.status, 200, "{}", adopted.text());
    assert!(adopted.header("x-bursar-adopted").is_some());
    origin.push(Step::Answer(billed(7)));
    assert_eq!(ask(&bursar, &chat("other"), &[]).await.status, 200);
    assert_eq!(bursar.metric("bursar_total_cap_held_usd", ""), 0.0);
}

#[tokio::test]
async fn an_answer_without_a_price_stays_charged_at_its_reservation() {
    let body = r#"{"choices":[],"usage":{"total_tokens":3}}"#;
    let origin = Origin::always(Step::Answer(json(200, &[], body))).await;
    let caps = "[caps]\nday_micro_usd = 250\nrequest_floor_micro_usd = 100\n";
    let bursar = Bursar::with(&origin.url(), caps).await;
    for _ in 0..3 {
        assert_eq!(ask(&bursar, &chat("hi"), &[]).await.status, 200);
    }
    is_reached(&ask(&bursar, &chat("hi"), &[]).await);
    let entries = bursar.settled(3).await;
    assert!(entries.iter().all(|entry| entry.state == State::Unreported));
}

#[tokio::test]
async fn a_replay_under_the_apps_own_key_passes_at_the_cap() {
    let sandbox = Sandbox::start().await;
    let caps = "[caps]\nday_micro_usd = 1\nrequest_floor_micro_usd = 0\n";
    let bursar = Bursar::with(&sandbox.url(), caps).await;
    let own = [("Idempotency-Key", "mine")];
    let first = ask(&bursar, &chat("what is 1 + 1?"), &own).await;
    assert_eq!(first.status, 200, "{}", first.text());
    let again = ask(&bursar, &chat("what is 1 + 1?"), &own).await;
    assert_eq!(again.status, 200, "{}", again.text());
    assert_eq!(again.header("idempotent-replayed"), Some("true"));
    let new_key = [("Idempotency-Key", "another")];
    is_reached(&ask(&bursar, &chat("what is 1 + 1?"), &new_key).await);
    assert_eq!(sandbox.debits().await.len(), 1);
}

#[tokio::test]
async fn windows_begin_at_midnight_of_their_zone_and_a_day_may_have_23_hours() {
    let origin = Origin::always(Step::Answer(billed(60))).await;
    let clock = ManualClock::at(EVENING);
    let caps = "[caps]\ntime_zone = \"Europe/Berlin\"\nday_micro_usd = 50\n\
                request_floor_micro_usd = 0\n";
    let bursar = Bursar::with_clock(&origin.url(), caps, Arc::new(clock.clone())).await;
    let buys = async || ask(&bursar, &chat("hi"), &[]).await.status;
    assert_eq!(buys().await, 200);
    let refused = ask(&bursar, &chat("hi"), &[]).await;
    assert!(
        refused
            .text()
            .contains("2026-03-29 00:00:00 (Europe/Berlin)"),
        "{}",
        refused.text()
    );
    clock.advance(HOUR);
    assert_eq!(buys().await, 200, "midnight is over");
    // From 00:30 on, the day with 23 hours has 22.5 left.
    clock.advance(HOUR * 22);
    assert_eq!(buys().await, 402);
    clock.advance(HOUR / 2);
    assert_eq!(buys().await, 200);
}

#[tokio::test]
async fn waiting_requests_get_room_in_the_order_of_arrival() {
    let origin = Origin::start([on_cue(billed(90)), on_cue(billed(1)), on_cue(billed(1))]).await;
    let caps = "[caps]\nday_micro_usd = 1000\nrequest_floor_micro_usd = 600\n";
    let bursar = Bursar::with(&origin.url(), caps).await;
    let send = async |prompt: &str| {
        let mut wire = bursar.connect().await;
        wire.send(request("POST", CHAT, &[], &chat(prompt))).await;
        wire
    };
    let waiting = async |count: f64| {
        eventually("requests to wait", || async {
            (bursar.metric("bursar_cap_waiting_requests", "") == count).then_some(())
        })
        .await;
    };
    let mut first = send("first").await;
    received(&origin, 1).await;
    let mut second = send("second").await;
    waiting(1.0).await;
    let leaves = send("leaves").await;
    waiting(2.0).await;
    let mut third = send("third").await;
    waiting(3.0).await;
    drop(leaves);
    waiting(2.0).await;
    for (count, wire) in [(2, &mut first), (3, &mut second), (3, &mut third)] {
        origin.go();
        assert_eq!(wire.answer().await.status, 200);
        received(&origin, count).await;
    }
    let bodies: Vec<_> = origin
        .received()
        .iter()
        .map(|received| String::from_utf8_lossy(&received.body).into_owned())
        .collect();
    assert!(
        bodies[1].contains("second") && bodies[2].contains("third"),
        "{bodies:?}"
    );
}

#[tokio::test]
async fn a_running_stream_keeps_its_reservation_until_its_receipt() {
    let mut piece = stream_head();
    piece.extend(crate::support::origin::chunk("data: {\"choices\":[]}\n\n"));
    let mut end = crate::support::origin::chunk(
        ": service-billed-micro-usd 40\n: service-served-by specialist\n\ndata: [DONE]\n\n",
    );
    end.extend(crate::support::origin::last_chunk());
    let origin = Origin::start([
        Step::Answer(billed(40)),
        Step::Pieces(vec![piece, end]),
        Step::Answer(billed(40)),
    ])
    .await;
    let caps = "[caps]\nday_micro_usd = 130\nrequest_floor_micro_usd = 0\n";
    let bursar = Bursar::with(&origin.url(), caps).await;
    assert_eq!(ask(&bursar, &chat("priced"), &[]).await.status, 200);
    let mut stream = bursar.connect().await;
    stream
        .send(request("POST", CHAT, &[], &chat_stream("long")))
        .await;
    received(&origin, 2).await;
    origin.go();
    let mut head = stream.head().await;
    assert_eq!(head.status, 200);
    let mut beside = bursar.connect().await;
    beside
        .send(request("POST", CHAT, &[], &chat("beside")))
        .await;
    eventually("it to wait", || async {
        (bursar.metric("bursar_cap_waiting_requests", "") == 1.0).then_some(())
    })
    .await;
    // Its body is a little larger than the one whose price is known.
    let reserved = bursar.metric("bursar_total_cap_reserved_usd", "");
    assert!((0.00004..0.00006).contains(&reserved), "{reserved}");
    origin.go();
    stream.rest(&mut head).await;
    assert_eq!(beside.answer().await.status, 200);
    assert_eq!(bursar.billed(), 120);
}

/// An answer with the price that the frontier's model would have taken.
fn beside_the_frontier(billed: u64, frontier: u64) -> Vec<u8> {
    let (billed, frontier) = (billed.to_string(), frontier.to_string());
    let headers = [
        ("X-Service-Billed", billed.as_str()),
        ("X-Service-Frontier-Would-Have-Cost", frontier.as_str()),
    ];
    json(200, &headers, r#"{"choices":[]}"#)
}

/// Cheap answers, and then two at once that are escalated: they run beside each other exactly where both
/// fit.
#[tokio::test]
async fn two_that_may_be_escalated_go_beside_each_other_where_both_fit_below_the_cap() {
    for (cap, beside) in [(10 + 520, true), (10 + 519, false)] {
        let dear = || on_cue(beside_the_frontier(260, 260));
        let cheap = Step::Answer(beside_the_frontier(10, 260));
        let origin = Origin::start([cheap, dear(), dear()]).await;
        let caps = format!("[caps]\nday_micro_usd = {cap}\nrequest_floor_micro_usd = 0\n");
        let bursar = Bursar::with(&origin.url(), &caps).await;
        assert_eq!(ask(&bursar, &chat("cheap"), &[]).await.status, 200);
        bursar.settled(1).await;
        let mut two = Vec::new();
        for prompt in ["one", "two"] {
            let mut wire = bursar.connect().await;
            wire.send(request("POST", CHAT, &[], &chat(prompt))).await;
            two.push(wire);
        }
        eventually("both to be where they may", || async {
            let waits = bursar.gateway.caps().view().waiting == 1;
            let sent = origin.received().len() == 3;
            (waits || sent).then_some(())
        })
        .await;
        assert_eq!(origin.received().len() == 3, beside, "{cap}");
        for wire in &mut two {
            origin.go();
            assert_eq!(wire.answer().await.status, 200, "{cap}");
        }
        assert_eq!(bursar.billed(), 530);
        is_reached(&ask(&bursar, &chat("three"), &[]).await);
    }
}
