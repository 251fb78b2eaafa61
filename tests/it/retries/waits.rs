//! Waits between attempts, the deadline, and the connections that attempts use.

use std::time::{Duration, SystemTime};

use bursar::clock::SystemClock;
use bursar::ledger::entry::State;
use tokio::time::Instant;

use super::routes::rows;
use super::{request_of, state_word};
use crate::dialects::answers;
use crate::retries::kinds::Kind;
use crate::support::origin::{billed, json};
use crate::support::wire::request;
use crate::support::{Answer, Bursar, Origin, Step, chat, eventually};

const CHAT: &str = "/v1/chat/completions";

fn busy(headers: &[(&str, &str)]) -> Step {
    Step::Answer(json(503, headers, r#"{"detail":"busy"}"#))
}

fn now_on_the_wall() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_millis(SystemClock::shared().wall_ms())
}

async fn ask(bursar: &Bursar, headers: &[(&str, &str)]) -> Answer {
    let mut wire = bursar.connect().await;
    wire.send(request("POST", CHAT, headers, &chat("hi"))).await;
    wire.answer().await
}

#[tokio::test]
async fn the_wait_that_the_service_asked_for_is_kept() {
    let past = httpdate::fmt_http_date(now_on_the_wall() - Duration::from_secs(30));
    let rows: [(&str, Vec<(&str, &str)>, u64, u64); 6] = [
        ("seconds", vec![("Retry-After", "1")], 1_000, 1_900),
        ("a fraction", vec![("Retry-After", "0.3")], 300, 1_000),
        ("milliseconds", vec![("retry-after-ms", "300")], 300, 1_000),
        (
            "milliseconds win",
            vec![("Retry-After", "9"), ("retry-after-ms", "250")],
            250,
            1_000,
        ),
        (
            "a date that has passed",
            vec![("Retry-After", past.as_str())],
            0,
            700,
        ),
        ("nonsense is no wish", vec![("Retry-After", "soon")], 0, 700),
    ];
    let runs = rows.iter().map(|(name, headers, least, most)| async move {
        let origin = Origin::start([busy(headers), Step::Answer(billed(7))]).await;
        let bursar = Bursar::before(&origin.url()).await;
        let answer = ask(&bursar, &[]).await;
        assert_eq!(answer.status, 200, "{name}");
        let received = origin.received();
        let waited = received[1].at.duration_since(received[0].at);
        assert!(
            waited >= Duration::from_millis(*least),
            "{name}: waited only {waited:?}"
        );
        assert!(
            waited <= Duration::from_millis(*most),
            "{name}: waited {waited:?}"
        );
        let attempts = bursar.entry_of(&answer).attempts;
        let waited = Duration::from_millis(attempts[1].wait_ms);
        assert!(
            waited + Duration::from_millis(2) >= Duration::from_millis(*least),
            "{name}: the ledger says {waited:?}"
        );
    });
    futures_util::future::join_all(runs).await;
}

/// The app leaves during the wait, so the attempt behind it is not made.
#[tokio::test]
async fn a_wait_that_leads_to_no_attempt_is_not_bursars_own_time() {
    let origin = Origin::start([busy(&[("Retry-After", "1")])]).await;
    let bursar = Bursar::before(&origin.url()).await;
    let mut wire = bursar.connect().await;
    wire.send(request("POST", CHAT, &[], &chat("hi"))).await;
    eventually("an attempt", || async {
        (origin.received().len() == 1).then_some(())
    })
    .await;
    drop(wire);
    let entry = bursar.settled(1).await.remove(0);
    assert_eq!(entry.attempts.len(), 1);
    let timings = entry.timings.expect("timings");
    let waited_us = 1_000_000;
    assert!(timings.total_ms >= 1_000, "{timings:?}");
    let most_us = (timings.total_ms + 1) * 1_000 - waited_us;
    assert!(timings.own_us <= most_us, "{timings:?}");
}

#[tokio::test]
async fn a_date_is_waited_for() {
    let (wall, now) = (now_on_the_wall(), Instant::now());
    let date = httpdate::fmt_http_date(wall + Duration::from_secs(4));
    let after = httpdate::parse_http_date(&date)
        .unwrap()
        .duration_since(wall)
        .unwrap();
    let origin = Origin::start([busy(&[("Retry-After", &date)]), Step::Answer(billed(7))]).await;
    let bursar = Bursar::before(&origin.url()).await;
    assert_eq!(ask(&bursar, &[]).await.status, 200);
    let second = origin.received()[1].at;
    let early = (now + after).saturating_duration_since(second);
    assert!(early < Duration::from_millis(20), "{early:?} too early");
    let late = second.saturating_duration_since(now + after);
    assert!(late < Duration::from_secs(2), "{late:?} late");
}

#[tokio::test]
async fn a_wait_beyond_the_patience_returns_the_error_at_once() {
    let rows = [
        ("read timeout", "x-stainless-read-timeout", "5", "30", true),
        ("node's timeout", "x-stainless-timeout", "5.5", "30", true),
        (
            "less the larger of 1 s and 10 %",
            "x-stainless-read-timeout",
            "2",
            "1",
            true,
        ),
        // Half of so short a patience is left.
        ("a second", "x-stainless-read-timeout", "1", "1", true),
        ("default patience", "x-other", "5", "601", true),
        // An hour less 10 % are 3240 s.
        (
            "an hour at most",
            "x-stainless-read-timeout",
            "1000000000",
            "3300",
            true,
        ),
        (
            "a wait that fits",
            "x-stainless-read-timeout",
            "3",
            "1",
            false,
        ),
    ];
    for (name, header, patience, wish, at_once) in rows {
        let origin = Origin::start([busy(&[("Retry-After", wish)]), Step::Answer(billed(7))]).await;
        let bursar = Bursar::before(&origin.url()).await;
        let began = Instant::now();
        let answer = ask(&bursar, &[(header, patience)]).await;
        if at_once {
            assert_eq!(answer.status, 503, "{name}");
            assert_eq!(
                answer.header("retry-after"),
                Some(wish),
                "{name}: Retry-After is kept"
            );
            assert_eq!(
                answer.header("x-should-retry"),
                None,
                "{name}: retries are left"
            );
            assert_eq!(origin.received().len(), 1, "{name}: attempts");
            assert!(
                began.elapsed() < Duration::from_millis(900),
                "{name}: at once"
            );
            assert_eq!(bursar.entry_of(&answer).state, State::Failed, "{name}");
        } else {
            assert_eq!(answer.status, 200, "{name}");
            assert_eq!(origin.received().len(), 2, "{name}: attempts");
        }
    }
}

/// The deadline "never cuts a running attempt, for that would burn a paid answer".
#[tokio::test]
async fn the_deadline_does_not_cut_a_running_attempt() {
    let origin = Origin::start([Step::Pieces(vec![billed(7)])]).await;
    let bursar = Bursar::before(&origin.url()).await;
    let mut wire = bursar.connect().await;
    // 1 s of patience leaves nothing for waits.
    let headers = [("x-stainless-read-timeout", "1")];
    wire.send(request("POST", CHAT, &headers, &chat("hi")))
        .await;
    let began = Instant::now();
    crate::support::eventually("the deadline to pass", || async {
        (began.elapsed() > Duration::from_millis(1_200)).then_some(())
    })
    .await;
    origin.go();
    let answer = wire.answer().await;
    assert_eq!(answer.status, 200);
    assert_eq!(
        bursar
            .entry_of(&answer)
            .billed_micro_usd
            .map(|billed| billed.get()),
        Some(7)
    );
}

#[tokio::test]
async fn a_service_that_says_no_to_retries_is_obeyed() {
    for status in [408, 409, 429, 500, 503] {
        let no = json(status, &[("X-Should-Retry", "false")], r#"{"detail":"no"}"#);
        let origin = Origin::always(Step::Answer(no)).await;
        let bursar = Bursar::before(&origin.url()).await;
        let answer = ask(&bursar, &[]).await;
        assert_eq!(answer.status, status);
        assert_eq!(answer.header("x-should-retry"), Some("false"), "{status}");
        assert_eq!(origin.received().len(), 1, "{status}: attempts");
    }
}

#[tokio::test]
async fn a_service_that_says_yes_does_not_widen_the_table() {
    let yes = json(400, &[("X-Should-Retry", "true")], r#"{"detail":"no"}"#);
    let origin = Origin::always(Step::Answer(yes)).await;
    let bursar = Bursar::before(&origin.url()).await;
    let answer = ask(&bursar, &[]).await;
    assert_eq!((answer.status, origin.received().len()), (400, 1));
}

#[tokio::test]
async fn the_connection_of_a_refused_attempt_is_reused() {
    for status in [429, 503, 500, 409] {
        let refusal = || Step::Answer(json(status, &[], r#"{"detail":"busy"}"#));
        let origin = Origin::start([refusal(), refusal(), Step::Answer(billed(7))]).await;
        let bursar = Bursar::before(&origin.url()).await;
        let answer = ask(&bursar, &[]).await;
        assert_eq!(answer.status, 200, "{status}");
        let used: Vec<_> = origin.received().iter().map(|one| one.connection).collect();
        assert_eq!(used, [0, 0, 0], "{status}: connections");
    }
}

/// The service closes a pooled connection just when it is used again.
#[tokio::test]
async fn a_stale_pooled_connection_costs_no_error() {
    for row in rows() {
        let name = format!("{} {}", row.method, row.pattern);
        let origin = Origin::start([
            Step::Answer(answers(7, "first")),
            Step::Close,
            Step::Answer(answers(8, "second")),
        ])
        .await;
        let bursar = Bursar::before(&origin.url()).await;
        let mut wire = bursar.connect().await;
        wire.send(request_of(row, "")).await;
        assert_eq!(wire.answer().await.status, 200, "{name}: the first");
        wire.send(request_of(row, "")).await;
        let answer = wire.answer().await;
        let used: Vec<_> = origin.received().iter().map(|one| one.connection).collect();
        if matches!(row.kind, Kind::Keyed | Kind::Harmless) {
            assert_eq!(answer.status, 200, "{name}: {}", answer.text());
            assert_eq!(used, [0, 0, 1], "{name}: a stale connection is left");
            if row.kind.is_metered() {
                assert_eq!(bursar.billed(), 7 + 8, "{name}: each is billed once");
            }
        } else {
            // Never on a pooled connection, so what is lost here is not staleness but an answer.
            assert_eq!(used, [0, 1], "{name}: a connection of its own");
            assert_eq!(answer.code(), Some("outcome_unknown"), "{name}");
            if row.kind.is_metered() {
                assert_eq!(
                    state_word(bursar.entry_of(&answer).state),
                    "no_response",
                    "{name}"
                );
            }
        }
    }
}

#[tokio::test]
async fn routes_that_are_sent_once_take_a_fresh_connection_each() {
    for row in rows() {
        let name = format!("{} {}", row.method, row.pattern);
        let origin = Origin::always(Step::Answer(answers(7, "hi"))).await;
        let bursar = Bursar::before(&origin.url()).await;
        let mut wire = bursar.connect().await;
        for _ in 0..3 {
            wire.send(request_of(row, "")).await;
            assert_eq!(wire.answer().await.status, 200, "{name}");
        }
        let used: Vec<_> = origin.received().iter().map(|one| one.connection).collect();
        let fresh = !matches!(row.kind, Kind::Keyed | Kind::Harmless);
        let wanted = if fresh { [0, 1, 2] } else { [0, 0, 0] };
        assert_eq!(used, wanted, "{name}");
    }
}

#[tokio::test]
async fn the_reasons_of_retries_are_counted() {
    let origin = Origin::start([busy(&[]), Step::Close, Step::Answer(billed(7))]).await;
    let bursar = Bursar::before(&origin.url()).await;
    assert_eq!(ask(&bursar, &[]).await.status, 200);
    for reason in ["busy", "no_head"] {
        let counted = bursar.metric("bursar_retries_total", &format!("reason=\"{reason}\""));
        assert!((counted - 1.0).abs() < 0.1, "{reason}: {counted}");
    }
}
