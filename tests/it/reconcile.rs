//! `bursar reconcile`: the ledger held against the service's figure, to the micro-dollar, and every
//! difference with its kind.

use std::path::Path;

use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::support::daemon::{Daemon, command};
use crate::support::origin::{self, Received};
use crate::support::wire::{Wire, request};
use crate::support::{Answer, KEY, Origin, Sandbox, Step, chat, chat_stream, eventually};

const CHAT: &str = "/v1/chat/completions";
const AGENT: &str = "/agent/v1/chat/completions";

struct Place {
    sandbox: Sandbox,
    daemon: Daemon,
    directory: tempfile::TempDir,
}

/// What a command printed and how it ended.
struct Reported {
    code: Option<i32>,
    out: String,
    err: String,
}

// === impl Place ===

impl Place {
    async fn with(config: &str) -> Self {
        let sandbox = Sandbox::start().await;
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("config.toml");
        let config = format!("[retry]\nattempts = 1\n{config}");
        std::fs::write(&file, config).expect("a file");
        let file = file.to_str().expect("a path").to_owned();
        let state = directory.path().join("state");
        let daemon = Daemon::start(&sandbox.url(), &state, &["--config", &file]).await;
        Self {
            sandbox,
            daemon,
            directory,
        }
    }

    fn state(&self) -> std::path::PathBuf {
        self.directory.path().join("state")
    }

    async fn buy(&self, path: &str, body: &str) -> Answer {
        self.daemon.connect().await.post(path, body).await
    }

    /// As another machine with the same key would.
    async fn buy_outside(&self, prompt: &str) -> u64 {
        let authorization = format!("Bearer {KEY}");
        let mut wire = Wire::tcp(self.sandbox.address).await;
        let headers = [("Authorization", authorization.as_str())];
        wire.send(request("POST", CHAT, &headers, &chat(prompt)))
            .await;
        let answer = wire.answer().await;
        assert_eq!(answer.status, 200);
        let billed = answer.header("x-service-billed").expect("an amount");
        billed.parse().expect("a number")
    }

    /// `bursar reconcile --json`, asked of the daemon's socket: the document and the exit code.
    async fn reconciled(&self) -> (Value, Option<i32>) {
        let ran = reconcile(&self.state(), &["--json"]).await;
        assert!(!ran.out.contains(KEY) && !ran.err.contains(KEY));
        let document = serde_json::from_str(&ran.out);
        (document.unwrap_or_else(|_| panic!("{}", ran.err)), ran.code)
    }
}

async fn reconcile(state: &Path, arguments: &[&str]) -> Reported {
    let state = state.to_str().expect("a path");
    let arguments = [&["reconcile", "--wide", "--state-dir", state], arguments].concat();
    let done = command(&arguments).output().await.expect("it runs");
    Reported {
        code: done.status.code(),
        out: String::from_utf8(done.stdout).expect("UTF-8"),
        err: String::from_utf8(done.stderr).expect("UTF-8"),
    }
}

/// Kind and bound of each reason on the side where the service is higher.
fn higher(document: &Value) -> Vec<(String, Option<u64>)> {
    let reasons = document["reasons"].as_array().expect("reasons");
    let higher = reasons
        .iter()
        .filter(|reason| reason["service_is"] == "higher");
    higher
        .map(|reason| {
            let kind = reason["kind"].as_str().expect("a kind").to_owned();
            (kind, reason["at_most_micro_usd"].as_u64())
        })
        .collect()
}

#[tokio::test]
async fn a_ledger_that_saw_everything_is_equal_to_the_services_figure() {
    let place = Place::with("").await;
    for prompt in ["What is 2 + 3?", "hard: why?"] {
        assert_eq!(place.buy(CHAT, &chat(prompt)).await.status, 200);
        assert!(place.buy(CHAT, &chat_stream(prompt)).await.complete);
    }
    let before = place.daemon.admin_page("/metrics").await.text();
    assert!(
        !before.contains("\nbursar_reconcile_difference_usd "),
        "not asked yet"
    );

    let (document, code) = place.reconciled().await;

    let debited = place.sandbox.debited().await;
    assert!(debited > 0);
    assert_eq!(document["conclusion"], "equal", "{document}");
    assert_eq!(document["service_micro_usd"], debited);
    assert_eq!(document["ledger_micro_usd"], debited);
    assert_eq!(document["difference_micro_usd"], 0);
    assert_eq!(document["source"], "billed_micro_usd_30d");
    assert_eq!(higher(&document), []);
    assert_eq!(code, Some(0));
    let metrics = place.daemon.admin_page("/metrics").await.text();
    assert!(
        metrics.contains("\nbursar_reconcile_difference_usd 0.000000\n"),
        "{metrics}"
    );
    let refused = json!({"fault": {"status": 500}});
    place.sandbox.control("/sandbox/faults", refused).await;
    place.buy(CHAT, &chat("What is 2 + 3?")).await;
    let table = reconcile(&place.state(), &[]).await;
    let zeros = "1 that failed and 0 that were replayed count as 0";
    assert!(table.out.contains(zeros), "{}", table.out);
    assert!(
        table.out.contains("Equal to the micro-dollar."),
        "{}",
        table.out
    );
}

#[tokio::test]
async fn what_was_spent_outside_is_reported_to_the_micro_dollar() {
    let place = Place::with("").await;
    place.buy(CHAT, &chat("What is 2 + 3?")).await;
    let outside = place.buy_outside("What is 4 + 5?").await;

    let (document, code) = place.reconciled().await;

    assert_eq!(document["conclusion"], "unexplained", "{document}");
    assert_eq!(document["difference_micro_usd"], outside);
    assert_eq!(document["unexplained_micro_usd"], outside);
    assert_eq!(code, Some(1));
    let table = reconcile(&place.state(), &[]).await;
    assert!(table.out.contains("Spent outside bursar"), "{}", table.out);
    let gauge = format!("\nbursar_reconcile_difference_usd 0.{outside:06}\n");
    let metrics = place.daemon.admin_page("/metrics").await.text();
    assert!(metrics.contains(&gauge), "{gauge}");
    let unexplained = format!("\nbursar_reconcile_unexplained_usd 0.{outside:06}\n");
    assert!(metrics.contains(&unexplained), "{unexplained}");
}

/// Nobody has to ask: what was spent outside shows by itself.
#[tokio::test]
async fn on_a_schedule_bursar_compares_by_itself() {
    let place = Place::with("[reconcile]\nevery_h = 1\n").await;

    eventually("a comparison", || async {
        let metrics = place.daemon.admin_page("/metrics").await.text();
        let made = "bursar_reconciliations_total{result=\"equal\"} 1";
        let gauge = "\nbursar_reconcile_difference_usd 0.000000\n";
        (metrics.contains(made) && metrics.contains(gauge)).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_lost_reply_explains_what_it_may_have_cost_and_no_more() {
    let place = Place::with("").await;
    // A frontier's answer, so that it is dearer than the one that is lost.
    let answer = place.buy(CHAT, &chat("hard: why?")).await;
    let amount = |name| -> u64 {
        let amount = answer.header(name).expect("an amount");
        amount.parse().expect("a number")
    };
    let seen = amount("x-service-billed");
    let most = seen.max(amount("x-service-frontier-would-have-cost"));
    let lost = json!({"fault": {"cut_before_head": true}});
    place.sandbox.control("/sandbox/faults", lost).await;
    place.buy(CHAT, &chat("What is 2 + 3?")).await;
    let lost = place.sandbox.debited().await - seen;
    assert!((1..seen).contains(&lost), "{lost} of {seen}");

    let (document, code) = place.reconciled().await;
    assert_eq!(document["difference_micro_usd"], lost, "{document}");
    assert_eq!(document["conclusion"], "explained");
    assert_eq!(higher(&document), [("in_doubt".to_owned(), Some(most))]);
    assert_eq!(code, Some(0));

    let mut outside = 0;
    while outside + lost <= most {
        outside += place.buy_outside("hard: why not?").await;
    }
    let (document, code) = place.reconciled().await;
    assert_eq!(document["conclusion"], "unexplained");
    assert_eq!(document["unexplained_micro_usd"], outside + lost - most);
    assert_eq!(code, Some(1));
}

/// An agent stream carries no price, and no other agent turn did: nothing bounds it.
#[tokio::test]
async fn an_operation_without_any_price_can_explain_any_amount() {
    let place = Place::with("").await;
    assert!(
        place
            .buy(AGENT, &chat_stream("What is 2 + 3?"))
            .await
            .complete
    );
    let (document, code) = place.reconciled().await;
    assert_eq!(
        higher(&document),
        [("unreported".to_owned(), None)],
        "{document}"
    );
    assert_eq!(document["conclusion"], "explained");
    assert_eq!(code, Some(0));
    let table = reconcile(&place.state(), &[]).await;
    assert!(table.out.contains("any amount"), "{}", table.out);
}

#[tokio::test]
async fn the_ledgers_own_last_minutes_explain_a_service_that_is_behind() {
    let place = Place::with("").await;
    place.buy(CHAT, &chat("What is 2 + 3?")).await;
    let month = json!({"advance_s": 32 * 24 * 3600});
    place.sandbox.control("/sandbox/clock", month).await;
    let (document, code) = place.reconciled().await;
    assert_eq!(document["service_micro_usd"], 0, "{document}");
    assert!(document["difference_micro_usd"].as_i64() < Some(0));
    assert_eq!(document["conclusion"], "explained");
    assert_eq!(code, Some(0));
}

#[tokio::test]
async fn another_field_is_an_error_that_lists_the_fields_there_are() {
    let place = Place::with("[reconcile]\nspend_field = \"spend.total\"\n").await;
    place.buy(CHAT, &chat("What is 2 + 3?")).await;
    let ran = reconcile(&place.state(), &[]).await;
    assert_eq!(ran.code, Some(1));
    for part in [
        "\"spend.total\"",
        "spend_field",
        "requests_30d = 1",
        "billed_micro_usd_30d = ",
    ] {
        assert!(ran.err.contains(part), "{part}: {}", ran.err);
    }
    assert_eq!(ran.err.trim_end().lines().count(), 1, "{}", ran.err);
}

#[tokio::test]
async fn a_service_that_gives_no_figures_is_reported_in_words() {
    let place = Place::with("").await;
    for (fault, says) in [
        (
            json!({"fault": {"status": 401}}),
            "it does not take the key",
        ),
        (json!({"fault": {"status": 503}}), "answered 503"),
        (
            json!({"fault": {"cut_before_head": true}}),
            "was not reached",
        ),
        (
            json!({"fault": {"status": 200, "body": "<html>"}}),
            "is not a JSON object",
        ),
    ] {
        place.sandbox.control("/sandbox/faults", fault).await;
        let ran = reconcile(&place.state(), &[]).await;
        assert_eq!(ran.code, Some(1), "{says}");
        assert!(ran.err.contains(says), "{says}: {}", ran.err);
        assert!(!ran.err.contains(KEY));
    }
}

/// An invoice in hand, without a daemon: the journal's files are enough.
#[tokio::test]
async fn a_figure_that_is_typed_in_is_compared_exactly() {
    let place = Place::with("").await;
    place.buy(CHAT, &chat("What is 2 + 3?")).await;
    let debited = place.sandbox.debited().await;
    let state = place.state();
    let exact = format!("0.{debited:06}");
    let off = format!("{}.{debited:06}", 9_007_199_254_u64);
    let beside = reconcile(&state, &["--billed-usd", &exact, "--since", "1h"]).await;
    assert_eq!(beside.code, Some(0), "{}", beside.err);
    let Place {
        daemon,
        directory: _kept,
        ..
    } = place;
    daemon.terminate().await;

    let span = ["--since", "2026-01-01", "--tz", "Europe/Berlin", "--json"];
    for (figure, code, conclusion) in [(&exact, 0, "equal"), (&off, 1, "unexplained")] {
        let ran = reconcile(&state, &[&["--billed-usd", figure], &span[..]].concat()).await;
        assert_eq!(ran.code, Some(code), "{}", ran.err);
        let document: Value = serde_json::from_str(&ran.out).expect("JSON");
        assert_eq!(document["conclusion"], conclusion, "{document}");
        if code == 1 {
            let more = 9_007_199_254_000_000_u64;
            assert_eq!(document["difference_micro_usd"], more, "exact");
        }
    }
    // Nothing was spent before this year's beginning.
    let past = [
        "--billed-usd",
        "0",
        "--since",
        "2020-01-01",
        "--until",
        "2020-02-01",
        "--json",
    ];
    assert_eq!(reconcile(&state, &past).await.code, Some(0));
    let table = reconcile(&state, &["--billed-usd", "9", "--since", "1h"]).await;
    assert!(table.out.contains("for other days"), "{}", table.out);
    assert!(!table.out.contains("spend_field"), "{}", table.out);

    let ran = reconcile(&state, &[]).await;
    assert_eq!(ran.code, Some(1), "the service is asked by a daemon only");
    assert!(ran.err.contains("--billed-usd"), "{}", ran.err);
    for wrong in [
        &["--billed-usd", "1e3", "--since", "1h"][..],
        &["--billed-usd", "1.0000001", "--since", "1h"],
        &["--billed-usd", "1"],
        &["--since", "1h"],
        &["--billed-usd", "1", "--since", "2999-01-01"],
    ] {
        assert_eq!(reconcile(&state, wrong).await.code, Some(2), "{wrong:?}");
    }
}

/// Calls of the service's rollup that arrived.
fn asked(origin: &Origin) -> usize {
    let received = origin.received();
    let of_rollup = |one: &&Received| one.request_line() == "GET /v1/auto/metrics HTTP/1.1";
    received.iter().filter(of_rollup).count()
}

#[tokio::test]
async fn readers_at_a_port_make_one_call_together_and_the_owner_asks_at_will() {
    for (rollup, status, part) in [
        (
            origin::json(200, &[], r#"{"billed_micro_usd_30d":0}"#),
            200,
            "\"age_s\":",
        ),
        (
            origin::json(503, &[], r#"{"detail":"busy"}"#),
            502,
            "answered 503",
        ),
    ] {
        let origin = Origin::always(Step::Answer(rollup)).await;
        let directory = tempfile::tempdir().expect("a directory");
        let state = directory.path().join("state");
        let daemon = Daemon::start(&origin.url(), &state, &[]).await;
        // Some hang up before they are answered.
        for _ in 0..40 {
            let mut wire = Wire::tcp(daemon.admin).await;
            wire.send(request("GET", "/api/reconcile", &[], "")).await;
        }
        let readers = (0..200).map(|_| daemon.admin_page("/api/reconcile"));
        for answer in join_all(readers).await {
            assert_eq!(answer.status, status, "{}", answer.text());
            assert!(answer.text().contains(part), "{}", answer.text());
        }
        assert_eq!(asked(&origin), 1, "{status}");
        for calls in [2, 3] {
            reconcile(&state, &["--json"]).await;
            assert_eq!(asked(&origin), calls, "the owner's question");
        }
        daemon.admin_page("/api/reconcile").await;
        assert_eq!(asked(&origin), 3);
        daemon.terminate().await;
    }
}
