//! Eval runs and the death of bursar: a run that began before a kill -9 is charged once after it,
//! whichever request brings the price.

use std::path::{Path, PathBuf};
use std::time::Duration;

use bursar::ledger::entry::State;
use bursar::money::MicroUsd;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::stage::{
    RUNS, cost_of, is_over, new_set, next_start, prices_in_journal, release, rows, seen, spend,
    start,
};
use crate::support::bursar::{NO_LIMITS, entries};
use crate::support::daemon::Daemon;
use crate::support::wire::Wire;
use crate::support::{Sandbox, eventually};

struct Place {
    sandbox: Sandbox,
    folder: tempfile::TempDir,
}

// === impl Place ===

impl Place {
    async fn new(config: &str) -> Self {
        let folder = tempfile::tempdir().expect("a directory");
        let text = format!("{NO_LIMITS}{config}");
        std::fs::write(folder.path().join("config.toml"), text).expect("a file");
        Self {
            sandbox: Sandbox::start().await,
            folder,
        }
    }

    fn state(&self) -> PathBuf {
        self.folder.path().join("state")
    }

    async fn daemon(&self) -> Daemon {
        let file = self.folder.path().join("config.toml");
        let file = file.to_str().expect("a path");
        Daemon::start(&self.sandbox.url(), &self.state(), &["--config", file]).await
    }

    /// The one entry has the price, in the ledger, at `bursar spend` and in the metrics, once.
    async fn charged_once(&self, daemon: &Daemon, run: &str) {
        let cost = cost_of(&self.sandbox, run).await;
        assert!(cost > 0);
        assert_eq!(self.sandbox.debited().await, cost);
        let usd = format!("0.{cost:06}");
        let price = eventually("the price of the run", || async {
            let metrics = daemon.admin_page("/metrics").await.text();
            let line = metrics.lines().find(|line| {
                line.starts_with("bursar_billed_usd_total{") && line.contains("eval_run")
            });
            let value = line.and_then(|line| line.rsplit(' ').next());
            value
                .filter(|value| *value != "0.000000")
                .map(str::to_owned)
        });
        assert_eq!(price.await, usd);
        let state = State::Reconciled {
            billed: MicroUsd::new(cost),
        };
        let entries = entries(&self.state());
        assert_eq!(entries.len(), 1);
        assert_eq!(entries[0].state, state);
        assert_eq!(prices_in_journal(&self.state(), run), 1);
        let document = spend(&self.state(), "operation").await;
        let row = &rows(&document, "operation")["eval_run"];
        assert_eq!(row["billed_micro_usd"], cost, "{document}");
        assert_eq!(row["unreported"], 0, "{document}");
    }
}

async fn look(daemon: &Daemon, run: &str) -> Value {
    let answer = daemon.connect().await.get(&format!("{RUNS}/{run}")).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.json()["run"].clone()
}

/// It began, bursar was killed, it ended, bursar started: only bursar asks. And once more after that.
#[tokio::test]
async fn a_run_that_ends_while_bursar_is_killed_is_charged_after_the_next_start() {
    ends_meanwhile(Daemon::kill).await;
}

#[tokio::test]
async fn a_run_that_ends_while_bursar_is_stopped_is_charged_after_the_next_start() {
    ends_meanwhile(Daemon::terminate).await;
}

async fn ends_meanwhile<F: Future<Output = ()>>(ends: impl Fn(Daemon) -> F) {
    let place = Place::new("").await;
    let daemon = place.daemon().await;
    let set = new_set(daemon.proxy, &[], 3).await;
    let held = json!({"hold_after_chunks": 2, "hold_chunks_name": "half"});
    next_start(&place.sandbox, held).await;
    let (run, _) = start(daemon.proxy, &[], &set).await;
    ends(daemon).await;
    release(&place.sandbox, "half").await;
    seen(&place.sandbox, &run, is_over).await;

    let daemon = place.daemon().await;
    place.charged_once(&daemon, &run).await;

    ends(daemon).await;
    let daemon = place.daemon().await;
    look(&daemon, &run).await;
    place.charged_once(&daemon, &run).await;
    daemon.terminate().await;
}

/// The same without bursar's own polls: the price comes with the app's, even if the index is lost.
#[tokio::test]
async fn an_apps_own_look_after_a_kill_brings_the_price_also_without_the_index() {
    let place = Place::new("[reconcile]\npoll_eval_runs = false\n").await;
    let daemon = place.daemon().await;
    let set = new_set(daemon.proxy, &[], 2).await;
    let (run, _) = start(daemon.proxy, &[], &set).await;
    daemon.kill().await;
    std::fs::remove_dir_all(place.state().join("index")).expect("an index");
    seen(&place.sandbox, &run, is_over).await;
    let daemon = place.daemon().await;

    look(&daemon, &run).await;

    place.charged_once(&daemon, &run).await;
    daemon.terminate().await;
    let daemon = place.daemon().await;
    place.charged_once(&daemon, &run).await;
}

/// Killed while the price is being written: it is there once, or comes with the next poll.
#[tokio::test]
async fn a_kill_while_many_read_the_price_charges_it_once() {
    let place = Place::new("[reconcile]\npoll_eval_runs = false\n").await;
    for (round, patience_us) in [0, 300, 1_000, 3_000].into_iter().enumerate() {
        let daemon = place.daemon().await;
        let set = new_set(daemon.proxy, &[], 1).await;
        let name = format!("end-{round}");
        next_start(&place.sandbox, json!({"hold_chunks_name": name})).await;
        let (run, _) = start(daemon.proxy, &[], &set).await;
        seen(&place.sandbox, &run, |run| run["status"] == "evaluating").await;
        let mut lookers = JoinSet::new();
        for _ in 0..8 {
            lookers.spawn(look_until_cut(daemon.proxy, run.clone()));
        }
        release(&place.sandbox, &name).await;
        seen(&place.sandbox, &run, is_over).await;
        tokio::time::sleep(Duration::from_micros(patience_us)).await;
        daemon.kill().await;
        lookers.join_all().await;
        assert!(prices_in_journal(&place.state(), &run) <= 1, "{round}");

        let daemon = place.daemon().await;
        look(&daemon, &run).await;
        assert_eq!(prices_in_journal(&place.state(), &run), 1, "{round}");
        daemon.terminate().await;
        let billed: u64 = billed(&place.state());
        assert_eq!(billed, place.sandbox.debited().await, "{round}");
    }
}

fn billed(state: &Path) -> u64 {
    let amounts = entries(state).into_iter();
    amounts
        .filter_map(|entry| entry.billed_micro_usd)
        .map(MicroUsd::get)
        .sum()
}

/// Polls until the other side is gone.
async fn look_until_cut(to: std::net::SocketAddr, run: String) {
    while let Ok(stream) = tokio::net::TcpStream::connect(to).await {
        let mut wire = Wire::over(stream);
        let request = format!("GET {RUNS}/{run} HTTP/1.1\r\nHost: localhost\r\n\r\n");
        if !wire.try_send(request).await || wire.answer().await.status == 0 {
            return;
        }
    }
}
