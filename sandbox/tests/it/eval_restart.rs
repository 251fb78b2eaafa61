//! Runs over a stop and over a kill -9: nothing is answered twice, nothing is billed twice.

use crate::{eval_support::*, second_process::Process, support::*};
use bursar_sandbox::Options;
use serde_json::{Value, json};
use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

const ROWS: usize = 12;
const CANDIDATES: [&str; 2] = ["auto", "frontier-c"];

fn directory(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("sandbox-{name}-{}", std::process::id()))
}

fn options(directory: &Path, balance_micro_usd: u64) -> Options {
    Options {
        state_dir: Some(directory.to_path_buf()),
        balance_micro_usd,
        ..Options::default()
    }
}

const FUNDED: u64 = 100_000_000;

/// A run that stands still after five answers.
async fn half_a_run(sandbox: &Sandbox) -> (String, Value) {
    let set = set(sandbox, None, REPLY, &replies(ROWS)).await;
    let rule = json!({
        "match": {"method": "POST", "path": RUNS},
        "fault": {"hold_after_chunks": 5, "hold_chunks_name": "never"},
    });
    sandbox.control("faults", rule).await;
    let run = start(sandbox, &set, &CANDIDATES).await;
    within(async {
        while debits_of(sandbox, &run).await.len() < 5 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    let half = sandbox.get(&format!("{RUNS}/{run}")).await.json();
    assert_eq!(half["run"]["status"], "running");
    (run, half)
}

/// The run ended, with every answer billed once.
async fn assert_whole(sandbox: &Sandbox, run: &str) {
    let ended = terminal(sandbox, run).await;
    assert_eq!(ended["run"]["status"], "completed", "{ended}");
    for result in ended["results"].as_array().unwrap() {
        assert_eq!(result["n_succeeded"], ROWS, "{ended}");
    }
    let debits = debits_of(sandbox, run).await;
    let ids: BTreeSet<&str> = debits.iter().map(|(id, _)| id.as_str()).collect();
    assert_eq!((ids.len(), debits.len()), (2 * ROWS, 2 * ROWS));
    assert_eq!(ended["run"]["cost_micro_usd"], billed(sandbox, run).await);
}

#[tokio::test]
async fn a_run_goes_on_after_a_stop_and_bills_each_answer_once() {
    let directory = directory("run-stop");
    let sandbox = Sandbox::start_with(options(&directory, FUNDED)).await;
    let (run, _) = half_a_run(&sandbox).await;
    sandbox.stop().await;

    let sandbox = Sandbox::start_with(options(&directory, FUNDED)).await;

    assert_whole(&sandbox, &run).await;
    sandbox.stop().await;
    std::fs::remove_dir_all(directory).unwrap();
}

#[tokio::test]
async fn a_run_goes_on_where_it_was_and_does_not_answer_again() {
    let directory = directory("run-where");
    let sandbox = Sandbox::start_with(options(&directory, FUNDED)).await;
    let (run, half) = half_a_run(&sandbox).await;
    // Without money the next process cannot add an answer, so its report is about the first.
    sandbox.control("balance", json!({"micro_usd": 0})).await;
    sandbox.stop().await;

    let sandbox = Sandbox::start_with(options(&directory, 0)).await;
    let ended = terminal(&sandbox, &run).await;

    assert_eq!(
        ended["run"]["error_detail"],
        "the organization's balance is empty after 5 of 24 answers"
    );
    assert_eq!(
        ended["run"]["cost_micro_usd"],
        half["run"]["cost_micro_usd"]
    );
    assert_eq!(
        (
            &ended["results"][0]["n_succeeded"],
            &ended["results"][1]["n_succeeded"]
        ),
        (&json!(3), &json!(2))
    );
    sandbox.stop().await;
    std::fs::remove_dir_all(directory).unwrap();
}

#[tokio::test]
async fn sets_and_ended_runs_read_the_same_after_a_restart() {
    let directory = directory("run-same");
    let sandbox = Sandbox::start_with(options(&directory, FUNDED)).await;
    let set = set(&sandbox, None, REPLY, &replies(3)).await;
    let run = start(&sandbox, &set, &["auto"]).await;
    let before = (
        sandbox.get(SETS).await.json(),
        terminal(&sandbox, &run).await,
    );
    sandbox.stop().await;

    let sandbox = Sandbox::start_with(options(&directory, FUNDED)).await;

    let after = (
        sandbox.get(SETS).await.json(),
        terminal(&sandbox, &run).await,
    );
    assert_eq!(before, after);
    sandbox.stop().await;
    std::fs::remove_dir_all(directory).unwrap();
}

#[tokio::test]
async fn a_run_goes_on_after_a_kill() {
    let directory = directory("run-kill");
    let mut process = Process::start(&directory);
    let sandbox = process.sandbox();
    let (run, _) = half_a_run(&sandbox).await;
    process.kill();

    let mut process = Process::start(&directory);
    let sandbox = process.sandbox();

    assert_whole(&sandbox, &run).await;
    process.kill();
    std::fs::remove_dir_all(directory).unwrap();
}
