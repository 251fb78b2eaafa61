//! bursar polls the eval runs it saw start for their price: by itself, gently, also after a restart,
//! and never records a 0 for a missing price.

use std::sync::Arc;
use std::time::Duration;

use bursar::clock::ManualClock;
use bursar::ledger::entry::State;
use bursar::proxy::EvalRunPoller;
use tokio::sync::watch;

use super::runs::{START, poll, run, started};
use super::{check_metric, reconciled};
use crate::support::daemon::Daemon;
use crate::support::origin::json;
use crate::support::{Answer, Bursar, KEY, Origin, Step, eventually};

const START_MS: u64 = 1_778_284_800_000;

fn refused(status: u16, headers: &[(&str, &str)]) -> Step {
    Step::Answer(json(status, headers, r#"{"detail":"no"}"#))
}

/// bursar on a clock of the test's own, with runs started under these ids.
async fn with_runs(origin: &Origin, clock: &ManualClock, ids: &[&str]) -> (Bursar, Vec<Answer>) {
    let bursar = Bursar::with_clock(&origin.url(), "", Arc::new(clock.clone())).await;
    let mut answers = Vec::new();
    for id in ids {
        origin.push(started(id));
        answers.push(bursar.post("/v1/eval-runs", START).await);
    }
    (bursar, answers)
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

#[tokio::test]
async fn a_run_is_asked_for_until_it_reports_its_price_and_then_no_more() {
    let clock = ManualClock::at(START_MS);
    let origin = Origin::start([]).await;
    let (bursar, answers) = with_runs(&origin, &clock, &["r1"]).await;
    let mut evidence = EvalRunPoller::new(&bursar.gateway);
    let asked = || origin.received().len() - 1;

    evidence.round().await;
    assert_eq!(asked(), 0, "nothing is due yet");
    for (n, status) in ["queued", "running", "evaluating"].into_iter().enumerate() {
        origin.push(run("r1", status, "5"));
        let due = evidence.next().expect("a look is planned");
        clock.advance(due - bursar::clock::Clock::monotonic(&clock));
        evidence.round().await;
        assert_eq!(asked(), n + 1, "{status}");
        assert_eq!(
            bursar.entry_of(&answers[0]).state,
            State::Unreported,
            "{status}"
        );
    }
    origin.push(run("r1", "completed", "1234"));
    clock.advance(seconds(24));
    evidence.round().await;
    assert_eq!(bursar.entry_of(&answers[0]).state, reconciled(1234));
    check_metric("over", &bursar, "bursar_unreported_requests", "", 0.0);
    check_metric(
        "looks",
        &bursar,
        "bursar_eval_run_looks_total",
        "not_yet",
        3.0,
    );
    check_metric("looks", &bursar, "bursar_eval_run_looks_total", "over", 1.0);

    clock.advance(seconds(24 * 3600));
    evidence.round().await;
    assert_eq!(asked(), 4, "it is over");
    assert_eq!(evidence.next(), None);
    assert_eq!(bursar.entries().len(), 1, "looking makes no entry");

    // A poll is a plain GET with the organization's key.
    let look = &origin.received()[1];
    assert_eq!(look.request_line(), "GET /v1/eval-runs/r1 HTTP/1.1");
    assert_eq!(
        look.header("authorization"),
        Some(format!("Bearer {KEY}").as_str())
    );
    assert_eq!(look.header("idempotency-key"), None);
    assert!(look.body.is_empty());
}

/// Absent, malformed and zero are three things here, too (rule I5).
#[tokio::test]
async fn a_run_that_is_over_without_an_amount_stays_unreported_and_is_left_alone() {
    for (cost, wanted) in [
        ("null", State::Unreported),
        ("1.5", State::Unreported),
        ("\"7\"", State::Unreported),
        ("-1", State::Unreported),
        ("0", reconciled(0)),
    ] {
        let clock = ManualClock::at(START_MS);
        let origin = Origin::start([]).await;
        let (bursar, answers) = with_runs(&origin, &clock, &["r1"]).await;
        let mut evidence = EvalRunPoller::new(&bursar.gateway);
        evidence.round().await;
        origin.push(run("r1", "failed", cost));
        for _ in 0..5 {
            clock.advance(seconds(60));
            evidence.round().await;
        }
        assert_eq!(bursar.entry_of(&answers[0]).state, wanted, "{cost}");
        assert_eq!(origin.received().len(), 2, "{cost}: asked once");
        // If an app's own request returns the amount later, it counts all the same.
        if wanted == State::Unreported {
            origin.push(run("r1", "completed", "8"));
            poll(&bursar, "r1").await;
            assert_eq!(bursar.entry_of(&answers[0]).state, reconciled(8), "{cost}");
        }
    }
}

#[tokio::test]
async fn an_apps_own_look_ends_the_asking() {
    let clock = ManualClock::at(START_MS);
    let origin = Origin::start([]).await;
    let (bursar, answers) = with_runs(&origin, &clock, &["r1"]).await;
    let mut evidence = EvalRunPoller::new(&bursar.gateway);
    evidence.round().await;
    origin.push(run("r1", "completed", "7"));
    poll(&bursar, "r1").await;
    clock.advance(seconds(60));
    evidence.round().await;
    assert_eq!(bursar.entry_of(&answers[0]).state, reconciled(7));
    assert_eq!(origin.received().len(), 2, "bursar did not ask");
}

/// The service is left alone for as long as it asks; a run that it does not know is not polled
/// again.
#[tokio::test]
async fn what_a_refusal_means_for_the_asking() {
    // Steps, and whether a poll follows after 4, 20 and 100 more seconds.
    let rows = [
        ("401", refused(401, &[]), [0, 1, 2]),
        ("402", refused(402, &[]), [0, 1, 2]),
        ("429", refused(429, &[("Retry-After", "15")]), [0, 1, 2]),
        ("503", refused(503, &[("Retry-After", "60")]), [0, 0, 1]),
        ("a break", Step::Close, [0, 1, 2]),
        ("404", refused(404, &[]), [0, 0, 0]),
        ("another run", run("r9", "completed", "999"), [0, 1, 2]),
        ("no JSON", Step::Answer(json(200, &[], "<html>")), [0, 1, 2]),
        (
            "a redirect",
            refused(302, &[("Location", "http://127.0.0.1:9/")]),
            [0, 1, 2],
        ),
    ];
    for (name, step, wanted) in rows {
        let clock = ManualClock::at(START_MS);
        let origin = Origin::start([]).await;
        let (bursar, answers) = with_runs(&origin, &clock, &["r1"]).await;
        let mut evidence = EvalRunPoller::new(&bursar.gateway);
        evidence.round().await;
        origin.push(step);
        clock.advance(seconds(3));
        evidence.round().await;
        assert_eq!(origin.received().len(), 2, "{name}");
        for (more, wanted) in [4, 20, 100].into_iter().zip(wanted) {
            origin.push(run("r1", "running", "0"));
            clock.advance(seconds(more));
            evidence.round().await;
            assert_eq!(
                origin.received().len(),
                2 + wanted,
                "{name}, {more} s later"
            );
        }
        assert_eq!(
            bursar.entry_of(&answers[0]).state,
            State::Unreported,
            "{name}"
        );
        assert_eq!(bursar.billed(), 0, "{name}");
    }
}

#[tokio::test]
async fn few_runs_are_asked_for_at_once() {
    let clock = ManualClock::at(START_MS);
    let origin = Origin::start([]).await;
    let ids: Vec<String> = (0..12).map(|n| format!("r{n}")).collect();
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    let (bursar, _) = with_runs(&origin, &clock, &ids).await;
    let mut evidence = EvalRunPoller::new(&bursar.gateway);
    evidence.round().await;
    clock.advance(seconds(3600));
    for round in 1..=3 {
        for _ in 0..4 {
            origin.push(run("none", "running", "0"));
        }
        evidence.round().await;
        assert_eq!(origin.received().len(), 12 + 4 * round, "4 at once");
    }
}

#[tokio::test]
async fn a_run_is_asked_for_at_least_once_and_given_up_after_a_day() {
    let clock = ManualClock::at(START_MS);
    let origin = Origin::start([]).await;
    let (bursar, answers) = with_runs(&origin, &clock, &["r1"]).await;
    clock.advance(seconds(25 * 3600));
    let mut evidence = EvalRunPoller::new(&bursar.gateway);
    evidence.round().await;
    origin.push(run("r1", "running", "0"));
    for _ in 0..3 {
        clock.advance(seconds(60));
        evidence.round().await;
    }
    assert_eq!(origin.received().len(), 2);
    assert_eq!(bursar.entry_of(&answers[0]).state, State::Unreported);
}

#[tokio::test]
async fn asking_can_be_switched_off() {
    let clock = ManualClock::at(START_MS);
    let origin = Origin::start([started("r1")]).await;
    let off = "[reconcile]\npoll_eval_runs = false\n";
    let bursar = Bursar::with_clock(&origin.url(), off, Arc::new(clock.clone())).await;
    bursar.post("/v1/eval-runs", START).await;
    let mut evidence = EvalRunPoller::new(&bursar.gateway);
    for _ in 0..3 {
        clock.advance(seconds(60));
        evidence.round().await;
    }
    assert_eq!(origin.received().len(), 1);
}

/// A poll that hangs delays no shutdown, and none begins afterwards.
#[tokio::test]
async fn a_shutdown_ends_the_asking_at_once() {
    let clock = ManualClock::at(START_MS);
    let origin = Origin::start([]).await;
    let (bursar, _) = with_runs(&origin, &clock, &["r1"]).await;
    origin.push(Step::Stall);
    let stop = watch::Sender::new(false);
    let evidence = EvalRunPoller::new(&bursar.gateway);
    let asking = tokio::spawn(evidence.gather(stop.subscribe()));
    eventually("a look", || async {
        clock.advance(seconds(1));
        (origin.received().len() == 2).then_some(())
    })
    .await;
    stop.send_replace(true);
    let ended = tokio::time::timeout(seconds(5), asking).await;
    ended.expect("it ends at once").expect("it ends well");
    // Its place is kept: the ledger still lists the run.
    assert_eq!(bursar.ledger.waiting_runs().borrow().len(), 1);
}

/// The whole daemon, on the machine's own clock: kill -9 while a run waits, and the next start asks
/// for it; also when the index is lost.
#[tokio::test]
async fn a_restart_takes_the_waiting_runs_up_again() {
    for loses_index in [false, true] {
        let origin = Origin::start([started("r1")]).await;
        let directory = tempfile::tempdir().expect("a directory");
        let state = directory.path().join("state");
        let daemon = Daemon::start(&origin.url(), &state, &[]).await;
        let answer = daemon.connect().await.post("/v1/eval-runs", START).await;
        assert_eq!(answer.status, 200);
        daemon.kill().await;
        if loses_index {
            std::fs::remove_dir_all(state.join("index")).expect("an index");
        }

        origin.push(run("r1", "completed", "77"));
        let daemon = Daemon::start(&origin.url(), &state, &[]).await;
        // The line is in the file a moment before it counts as durable.
        let none_left = "bursar_unreported_requests{operation=\"eval_run\"} 0";
        eventually("the price of the run", || async {
            let metrics = daemon.admin_page("/metrics").await.text();
            metrics.contains(none_left).then_some(())
        })
        .await;
        let entries = crate::support::bursar::entries(&state);
        assert_eq!(entries[0].state, reconciled(77));
        daemon.terminate().await;
        assert_eq!(origin.received().len(), 2, "one start, one look");
    }
}
