//! An eval run has its price later, and reports it on request.

use bursar::ledger::entry::State;

use super::{check_metric, reconciled};
use crate::support::origin::json;
use crate::support::{Bursar, Origin, Step};

pub const START: &str = r#"{"eval_set_id":"e1","candidate_model_ids":["auto"]}"#;

pub fn run(id: &str, status: &str, cost: &str) -> Step {
    let body = format!(
        r#"{{"run":{{"id":"{id}","status":"{status}","cost_micro_usd":{cost}}},"results":[]}}"#
    );
    Step::Answer(json(200, &[], &body))
}

pub fn started(id: &str) -> Step {
    Step::Answer(json(
        200,
        &[],
        &format!(r#"{{"run_id":"{id}","status":"queued"}}"#),
    ))
}

pub async fn poll(bursar: &Bursar, id: &str) {
    let answer = bursar
        .connect()
        .await
        .get(&format!("/v1/eval-runs/{id}"))
        .await;
    assert_eq!(answer.status, 200);
}

#[tokio::test]
async fn a_run_is_reconciled_once_however_often_it_is_asked_for() {
    for (status, cost) in [("completed", 1234), ("failed", 17)] {
        let cost_text = cost.to_string();
        let mut steps = vec![
            started("r1"),
            run("r1", "running", "5"),
            run("r1", "evaluating", "9"),
        ];
        steps.extend((0..5).map(|_| run("r1", status, &cost_text)));
        let origin = Origin::start(steps).await;
        let bursar = Bursar::before(&origin.url()).await;
        let answer = bursar.post("/v1/eval-runs", START).await;
        assert_eq!(answer.status, 200);
        let entry = bursar.entry_of(&answer);
        assert_eq!(entry.state, State::Unreported, "{status}: not reported yet");
        assert_eq!(entry.run_id.as_deref(), Some("r1"), "{status}");
        for _ in 0..2 {
            poll(&bursar, "r1").await;
            assert_eq!(
                bursar.entry_of(&answer).state,
                State::Unreported,
                "{status}: not terminal"
            );
        }
        for _ in 0..5 {
            poll(&bursar, "r1").await;
            assert_eq!(bursar.entry_of(&answer).state, reconciled(cost), "{status}");
        }
        assert_eq!(bursar.entries().len(), 1, "{status}: asking makes no entry");
        assert_eq!(bursar.billed(), cost, "{status}: once");
        let usd = bursar.metric("bursar_billed_usd_total", "eval_run");
        assert!((usd - cost as f64 / 1e6).abs() < 1e-9, "{status}: {usd}");
        check_metric(status, &bursar, "bursar_unreported_requests", "", 0.0);
    }
}

#[tokio::test]
async fn a_run_without_a_readable_cost_stays_unreported() {
    for cost in ["null", "1.5", "\"7\"", "-1"] {
        let origin = Origin::start([started("r1"), run("r1", "completed", cost)]).await;
        let bursar = Bursar::before(&origin.url()).await;
        let answer = bursar.post("/v1/eval-runs", START).await;
        poll(&bursar, "r1").await;
        assert_eq!(bursar.entry_of(&answer).state, State::Unreported, "{cost}");
    }
}

#[tokio::test]
async fn only_the_run_that_was_started_here_counts() {
    let origin = Origin::start([
        started("r1"),
        started("r2"),
        run("r9", "completed", "999"),
        run("r2", "completed", "20"),
        run("r1", "completed", "10"),
    ])
    .await;
    let bursar = Bursar::before(&origin.url()).await;
    let first = bursar.post("/v1/eval-runs", START).await;
    let second = bursar.post("/v1/eval-runs", START).await;
    for id in ["r9", "r2", "r1"] {
        poll(&bursar, id).await;
    }
    assert_eq!(bursar.entry_of(&first).state, reconciled(10));
    assert_eq!(bursar.entry_of(&second).state, reconciled(20));
    assert_eq!(bursar.billed(), 30);
}
