//! Eval runs: each is charged once, to the app that started it, with the books' amount, whichever
//! app asks.

use std::sync::Arc;
use std::time::Duration;

use bursar::apps::AppAdd;
use bursar::clock::{Clock, ManualClock};
use bursar::ledger::entry::{InDoubt, State};
use bursar::money::MicroUsd;
use bursar::proxy::EvalRunPoller;
use serde_json::json;
use tokio::task::JoinSet;

use super::stage::{
    RUNS, ask, cost_of, is_over, new_set, next_start, prices_in_journal, release, rows, run_of,
    seen, send, spend, start,
};
use crate::support::{Answer, Bursar, Sandbox, eventually};

/// 2026-05-09T00:00:00Z
const START_MS: u64 = 1_778_284_800_000;

fn reconciled(billed: u64) -> State {
    State::Reconciled {
        billed: MicroUsd::new(billed),
    }
}

async fn look(bursar: &Bursar, run: &str, headers: &[(&str, &str)]) -> Answer {
    ask(
        bursar.address,
        "GET",
        &format!("{RUNS}/{run}"),
        headers,
        b"",
    )
    .await
}

/// Ledger, command line and metrics agree with the books about eval runs.
async fn agrees(bursar: &Bursar, sandbox: &Sandbox) {
    let debits = sandbox.debits().await;
    let of_runs = debits.iter().filter(|debit| debit["route"] == RUNS);
    let books: u64 = of_runs.map(super::stage::amount).sum();
    let document = spend(&bursar.state_dir(), "operation").await;
    let row = &rows(&document, "operation")["eval_run"];
    assert_eq!(row["billed_micro_usd"], books, "{document}");
    let metric = bursar.metric("bursar_billed_usd_total", "operation=\"eval_run\"");
    assert!((metric - books as f64 / 1e6).abs() < 1e-9, "{metric}");
}

#[tokio::test]
async fn a_run_whose_end_a_hundred_look_for_is_charged_once() {
    let sandbox = Sandbox::start().await;
    let bursar = Bursar::before(&sandbox.url()).await;
    let set = new_set(bursar.address, &[], 3).await;
    next_start(&sandbox, json!({"hold_chunks_name": "end"})).await;
    let (run, answer) = start(bursar.address, &[], &set).await;
    seen(&sandbox, &run, |run| run["status"] == "evaluating").await;
    let early = look(&bursar, &run, &[]).await.json();
    assert!(early["run"]["cost_micro_usd"].as_u64() > Some(0), "{early}");
    assert_eq!(bursar.entry_of(&answer).state, State::Unreported);

    let mut lookers = JoinSet::new();
    for _ in 0..100 {
        let (to, path) = (bursar.address, format!("{RUNS}/{run}"));
        lookers.spawn(async move {
            loop {
                let document = ask(to, "GET", &path, &[], b"").await.json();
                if is_over(&document["run"]) {
                    return document["run"]["cost_micro_usd"].as_u64().expect("a cost");
                }
            }
        });
    }
    release(&sandbox, "end").await;
    let costs = lookers.join_all().await;

    let cost = cost_of(&sandbox, &run).await;
    assert!(cost > 0);
    assert_eq!(costs, vec![cost; 100]);
    assert_eq!(bursar.entry_of(&answer).state, reconciled(cost));
    assert_eq!(bursar.entries().len(), 1, "looking makes no entry");
    assert_eq!(prices_in_journal(&bursar.state_dir(), &run), 1);
    agrees(&bursar, &sandbox).await;
    let again = look(&bursar, &run, &[]).await;
    assert_eq!(again.status, 200);
    assert_eq!(prices_in_journal(&bursar.state_dir(), &run), 1);
}

/// The first app to ask does not pay: the price goes to the app that started the run, and to its
/// cap.
#[tokio::test]
async fn the_look_of_another_app_charges_the_app_that_started_the_run() {
    let sandbox = Sandbox::start().await;
    let caps = "[caps]\ntime_zone = \"UTC\"\nrequest_floor_micro_usd = 1\n";
    let bursar = Bursar::with(&sandbox.url(), caps).await;
    let mut bearers = Vec::new();
    for (name, cap) in [("maker", Some(MicroUsd::new(100))), ("watcher", None)] {
        let new = AppAdd {
            name: name.to_owned(),
            cap_month_micro_usd: cap,
            ..AppAdd::default()
        };
        let token = bursar.apps.add(&new, 1).expect("the app is added");
        bearers.push(format!("Bearer {}", token.reveal()));
    }
    let maker = [("Authorization", bearers[0].as_str())];
    let watcher = [("Authorization", bearers[1].as_str())];
    let set = new_set(bursar.address, &maker, 3).await;
    let (run, answer) = start(bursar.address, &maker, &set).await;
    seen(&sandbox, &run, is_over).await;

    let looked = look(&bursar, &run, &watcher).await.json();

    let cost = cost_of(&sandbox, &run).await;
    assert!(cost > 100, "{cost}: the cap would not be reached");
    assert_eq!(looked["run"]["cost_micro_usd"], cost);
    let entry = bursar.entry_of(&answer);
    assert_eq!((&*entry.app, entry.state), ("maker", reconciled(cost)));
    let document = spend(&bursar.state_dir(), "app").await;
    let by_app = rows(&document, "app");
    assert_eq!(by_app.len(), 1, "{document}");
    assert_eq!(by_app["maker"]["billed_micro_usd"], cost);
    let body = run_of(&set).to_string();
    let refused = ask(bursar.address, "POST", RUNS, &maker, body.as_bytes()).await;
    assert_eq!(refused.code(), Some("cap_reached"), "{}", refused.text());
    let other = ask(bursar.address, "POST", RUNS, &watcher, body.as_bytes()).await;
    assert_eq!(other.status, 200, "{}", other.text());
}

/// bursar on a clock of the test's own; the service's clock is its own.
async fn on_a_clock(sandbox: &Sandbox) -> (Bursar, ManualClock, EvalRunPoller) {
    let clock = ManualClock::at(START_MS);
    let bursar = Bursar::with_clock(&sandbox.url(), "", Arc::new(clock.clone())).await;
    let evidence = EvalRunPoller::new(&bursar.gateway);
    (bursar, clock, evidence)
}

/// Waits until the next poll is due, and polls.
async fn next_round(evidence: &mut EvalRunPoller, clock: &ManualClock) {
    // The ledger lists a run a moment after its entry can be read.
    let planned = async {
        loop {
            evidence.round().await;
            if let Some(due) = evidence.next() {
                break due;
            }
            tokio::task::yield_now().await;
        }
    };
    let due = tokio::time::timeout(Duration::from_secs(20), planned);
    let due = due.await.expect("a look is planned");
    clock.advance(due.saturating_sub(clock.monotonic()));
    evidence.round().await;
}

#[tokio::test]
async fn bursar_learns_the_price_of_a_run_that_no_app_looks_at_also_when_it_fails() {
    let sandbox = Sandbox::start().await;
    let (bursar, clock, mut evidence) = on_a_clock(&sandbox).await;
    let set = new_set(bursar.address, &[], 3).await;
    let (whole, whole_answer) = start(bursar.address, &[], &set).await;
    assert_eq!(seen(&sandbox, &whole, is_over).await["status"], "completed");
    let held = json!({"hold_after_chunks": 2, "hold_chunks_name": "two"});
    next_start(&sandbox, held).await;
    let (failed, failed_answer) = start(bursar.address, &[], &set).await;
    seen(&sandbox, &failed, |run| {
        run["cost_micro_usd"].as_u64() > Some(0)
    })
    .await;
    let empty = json!({"micro_usd": 0});
    sandbox.control("/sandbox/balance", empty).await;
    release(&sandbox, "two").await;
    let end = seen(&sandbox, &failed, is_over).await;
    assert_eq!(end["status"], "failed", "{end}");

    next_round(&mut evidence, &clock).await;
    clock.advance(Duration::from_secs(1));
    evidence.round().await;

    let costs = [
        cost_of(&sandbox, &whole).await,
        cost_of(&sandbox, &failed).await,
    ];
    assert!(0 < costs[1] && costs[1] < costs[0], "{costs:?}");
    assert_eq!(bursar.entry_of(&whole_answer).state, reconciled(costs[0]));
    assert_eq!(bursar.entry_of(&failed_answer).state, reconciled(costs[1]));
    assert_eq!(evidence.next(), None);
    agrees(&bursar, &sandbox).await;
}

/// A record of more than a megabyte flows through, and is read all the same.
#[tokio::test]
async fn the_price_in_a_long_record_counts_whether_app_or_bursar_looks() {
    for by_bursar in [false, true] {
        let sandbox = Sandbox::start().await;
        let (bursar, clock, mut evidence) = on_a_clock(&sandbox).await;
        let set = new_set(bursar.address, &[], 2).await;
        let (run, answer) = start(bursar.address, &[], &set).await;
        let mut record = seen(&sandbox, &run, is_over).await;
        record["error_detail"] = json!("odd: \"cost_micro_usd\": 9");
        let results = vec![json!({"model_id": "frontier-a", "cost_micro_usd": 9}); 40_000];
        let long = json!({"results": results, "run": record});
        assert!(long.to_string().len() > 1 << 20);
        let fault = json!({
            "match": {"method": "GET", "path": format!("{RUNS}/{run}")},
            "fault": {"status": 200, "body": long},
        });
        sandbox.control("/sandbox/faults", fault).await;

        if by_bursar {
            next_round(&mut evidence, &clock).await;
        } else {
            let looked = look(&bursar, &run, &[]).await;
            assert!(looked.complete && looked.json() == long);
        }

        let cost = cost_of(&sandbox, &run).await;
        assert_eq!(
            bursar.entry_of(&answer).state,
            reconciled(cost),
            "{by_bursar}"
        );
        agrees(&bursar, &sandbox).await;
    }
}

/// The set may go when the run is over; the run and its price stay.
#[tokio::test]
async fn a_deleted_set_takes_no_price_away() {
    let sandbox = Sandbox::start().await;
    let (bursar, clock, mut evidence) = on_a_clock(&sandbox).await;
    let set = new_set(bursar.address, &[], 2).await;
    let (run, answer) = start(bursar.address, &[], &set).await;
    seen(&sandbox, &run, is_over).await;
    let path = format!("/v1/eval-sets/{set}");
    let deleted = ask(bursar.address, "DELETE", &path, &[], b"").await;
    assert!(deleted.status < 300, "{}", deleted.text());

    next_round(&mut evidence, &clock).await;

    let cost = cost_of(&sandbox, &run).await;
    assert_eq!(bursar.entry_of(&answer).state, reconciled(cost));
}

/// The price of a run that the service no longer knows stays unknown: it is not 0.
#[tokio::test]
async fn a_run_that_is_gone_stays_unreported_and_is_asked_for_once() {
    let sandbox = Sandbox::start().await;
    let (bursar, clock, mut evidence) = on_a_clock(&sandbox).await;
    let set = new_set(bursar.address, &[], 2).await;
    let (run, answer) = start(bursar.address, &[], &set).await;
    seen(&sandbox, &run, is_over).await;
    let cost = cost_of(&sandbox, &run).await;
    sandbox.control("/sandbox/reset", json!({})).await;
    let known = look(&bursar, &run, &[]).await;
    assert_eq!(known.status, 404, "{}", known.text());

    next_round(&mut evidence, &clock).await;

    assert_eq!(evidence.next(), None, "asked once");
    assert!(cost > 0);
    assert_eq!(bursar.entry_of(&answer).state, State::Unreported);
    let document = spend(&bursar.state_dir(), "operation").await;
    let row = &rows(&document, "operation")["eval_run"];
    assert_eq!(row["billed_micro_usd"], 0);
    assert_eq!(row["unreported"], 1);
    let counted = bursar.metric("bursar_unreported_requests", "operation=\"eval_run\"");
    assert!((counted - 1.0).abs() < 1e-9, "{counted}");
}

/// A temporary 404: after bursar has given the run up, an app's own request still brings the price.
#[tokio::test]
async fn a_run_that_was_gone_for_a_moment_is_charged_when_an_app_finds_it() {
    let sandbox = Sandbox::start().await;
    let (bursar, clock, mut evidence) = on_a_clock(&sandbox).await;
    let set = new_set(bursar.address, &[], 2).await;
    let (run, answer) = start(bursar.address, &[], &set).await;
    seen(&sandbox, &run, is_over).await;
    let gone = json!({
        "match": {"method": "GET", "path": format!("{RUNS}/{run}")},
        "fault": {"status": 404},
    });
    sandbox.control("/sandbox/faults", gone).await;
    next_round(&mut evidence, &clock).await;
    assert_eq!(bursar.entry_of(&answer).state, State::Unreported);

    assert_eq!(look(&bursar, &run, &[]).await.status, 200);

    let cost = cost_of(&sandbox, &run).await;
    assert_eq!(bursar.entry_of(&answer).state, reconciled(cost));
    agrees(&bursar, &sandbox).await;
}

/// The route is not keyed: a lost start may have run, so it is not sent again, with a key of the
/// app's own either. What the app starts then is another run.
#[tokio::test]
async fn a_start_whose_answer_was_lost_is_in_doubt_and_a_retry_is_a_run_of_its_own() {
    for key in [None, Some(("Idempotency-Key", "mine"))] {
        let sandbox = Sandbox::start().await;
        let bursar = Bursar::before(&sandbox.url()).await;
        let set = new_set(bursar.address, &[], 2).await;
        let body = run_of(&set).to_string();
        let headers: Vec<(&str, &str)> = key.into_iter().collect();
        next_start(&sandbox, json!({"cut_before_head": true})).await;
        let lost = ask(bursar.address, "POST", RUNS, &headers, body.as_bytes()).await;
        assert_eq!(lost.code(), Some("outcome_unknown"), "{}", lost.text());
        assert_eq!(lost.header("x-should-retry"), Some("false"));
        let doubt = State::InDoubt {
            reason: InDoubt::NoResponse,
        };
        assert_eq!(bursar.entry_of(&lost).state, doubt);

        let (run, answer) = start(bursar.address, &headers, &set).await;
        seen(&sandbox, &run, is_over).await;
        look(&bursar, &run, &[]).await;

        let cost = cost_of(&sandbox, &run).await;
        assert_eq!(bursar.entry_of(&answer).state, reconciled(cost), "{key:?}");
        assert_eq!(bursar.entry_of(&lost).state, doubt, "{key:?}");
        assert_eq!(bursar.billed(), cost, "the known part");
        // Both ran, and the same work costs the same.
        let both = eventually("the lost run to end", || async {
            let debited = sandbox.debited().await;
            (debited == 2 * cost).then_some(debited)
        });
        assert_eq!(both.await, 2 * cost, "{key:?}");
        let document = spend(&bursar.state_dir(), "operation").await;
        let row = &rows(&document, "operation")["eval_run"];
        assert_eq!((&row["requests"], &row["in_doubt"]), (&json!(2), &json!(1)));
    }
}

/// An app that hangs up and asks again gets the run that it had started.
#[tokio::test]
async fn an_app_that_asks_again_while_the_start_is_under_way_joins_it() {
    let sandbox = Sandbox::start().await;
    let bursar = Bursar::before(&sandbox.url()).await;
    let set = new_set(bursar.address, &[], 2).await;
    let body = run_of(&set).to_string();
    next_start(&sandbox, json!({"hold": "start"})).await;
    let first = send(bursar.address, "POST", RUNS, &[], body.as_bytes()).await;
    arrived(&sandbox, 1).await;
    drop(first);
    counted(&bursar, "bursar_client_disconnects_total").await;
    let mut second = send(bursar.address, "POST", RUNS, &[], body.as_bytes()).await;
    counted(&bursar, "bursar_joined_retries_total").await;
    release(&sandbox, "start").await;

    let answer = second.answer().await;

    assert_eq!(answer.status, 200, "{}", answer.text());
    assert!(answer.header("x-bursar-adopted").is_some());
    let run = answer.json()["run_id"].as_str().expect("an id").to_owned();
    seen(&sandbox, &run, is_over).await;
    look(&bursar, &run, &[]).await;
    let cost = cost_of(&sandbox, &run).await;
    assert_eq!(bursar.entries().len(), 1);
    assert_eq!(bursar.entry_of(&answer).state, reconciled(cost));
    assert_eq!(sandbox.debited().await, cost, "one run");
}

/// An app that is gone for good: its run is known by its id all the same.
#[tokio::test]
async fn a_run_whose_app_left_before_the_answer_is_charged() {
    let sandbox = Sandbox::start().await;
    let (bursar, clock, mut evidence) = on_a_clock(&sandbox).await;
    let set = new_set(bursar.address, &[], 2).await;
    let body = run_of(&set).to_string();
    next_start(&sandbox, json!({"hold": "start"})).await;
    let wire = send(bursar.address, "POST", RUNS, &[], body.as_bytes()).await;
    arrived(&sandbox, 1).await;
    drop(wire);
    counted(&bursar, "bursar_client_disconnects_total").await;
    release(&sandbox, "start").await;
    let entries = bursar.settled(1).await;
    let run = entries[0].run_id.clone().expect("the run is known");
    seen(&sandbox, &run, is_over).await;

    next_round(&mut evidence, &clock).await;

    let cost = cost_of(&sandbox, &run).await;
    assert_eq!(bursar.entries()[0].state, reconciled(cost));
    agrees(&bursar, &sandbox).await;
}

/// Refused before any work: retried where the table allows, and free where it is not.
#[tokio::test]
async fn a_refused_start_costs_nothing_and_a_retried_one_is_one_run() {
    for (status, sends) in [(429, 2), (503, 2), (409, 2), (402, 1), (422, 1), (500, 1)] {
        let sandbox = Sandbox::start().await;
        let bursar = Bursar::before(&sandbox.url()).await;
        let set = new_set(bursar.address, &[], 2).await;
        next_start(&sandbox, json!({"status": status})).await;
        let body = run_of(&set).to_string();
        let answer = ask(bursar.address, "POST", RUNS, &[], body.as_bytes()).await;
        assert_eq!(arrived(&sandbox, sends).await, sends, "{status}");
        if sends == 1 {
            assert_eq!(answer.status, status);
            assert_eq!(bursar.entry_of(&answer).state, State::Failed, "{status}");
            assert_eq!(sandbox.debited().await, 0, "{status}");
            continue;
        }
        assert_eq!(answer.status, 200, "{status}: {}", answer.text());
        let run = answer.json()["run_id"].as_str().expect("an id").to_owned();
        seen(&sandbox, &run, is_over).await;
        look(&bursar, &run, &[]).await;
        let cost = sandbox.debited().await;
        assert_eq!(bursar.entry_of(&answer).state, reconciled(cost), "{status}");
    }
}

/// How many starts of runs the service has received, once there are that many.
async fn arrived(sandbox: &Sandbox, count: u64) -> u64 {
    eventually("the service to receive", || async {
        let log = sandbox.get("/sandbox/requests").await;
        let starts = &log["by_route"][format!("POST {RUNS}")];
        starts.as_u64().filter(|starts| *starts >= count)
    })
    .await
}

async fn counted(bursar: &Bursar, family: &str) {
    eventually(family, || async {
        (bursar.metric(family, "") >= 1.0).then_some(())
    })
    .await;
}
