//! Ledgers of which a part stands in sums: it is shipped once, as it is, and what cannot be compared is not guessed.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bursar::clock::{Clock, ManualClock, SystemClock};
use bursar::fleet::Trouble;
use bursar::ledger::{Durability, Ledger, LedgerOptions};
use bursar::money::MicroUsd;
use bursar::protocol::Reported;
use tempfile::TempDir;

use super::commands::Person;
use super::{DATABASE, connect, copied, fleet, joined, ship, summed};
use crate::ledger_care::{buy, buy_reported};
use crate::support::daemon::command;
use crate::support::postgres::Postgres;

const QUARTER: Duration = Duration::from_secs(15 * 60);
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

fn options(state_dir: &Path, clock: &ManualClock) -> LedgerOptions {
    LedgerOptions {
        durability: Durability::Process,
        segment_bytes_max: 20_000,
        ..LedgerOptions::new(state_dir, Arc::new(clock.clone()))
    }
}

/// A ledger of so many quarters of an hour that ended so long ago, each with one request of 3.
pub(super) async fn bought(state_dir: &Path, quarters: u32, ended: Duration) {
    let ago_ms = (ended + QUARTER * quarters).as_millis();
    let clock = ManualClock::at(now_ms() - u64::try_from(ago_ms).expect("some days"));
    let ledger = Ledger::open(options(state_dir, &clock)).expect("a ledger");
    for _ in 0..quarters {
        buy(&ledger, clock.wall_ms(), "notes", Some(3)).await;
        clock.advance(QUARTER);
    }
    ledger.close().await;
}

fn now_ms() -> u64 {
    SystemClock::shared().wall_ms()
}

/// As `bursar ledger compact` does it, or the daemon.
fn compact(state_dir: &Path, older_than: Duration) {
    let options = options(state_dir, &ManualClock::at(now_ms()));
    let report = bursar::ledger::compact(options, older_than).expect("it can be");
    assert!(report.segments > 0, "something was compacted");
}

/// A ledger whose first so many quarters of an hour stand in sums; behind them are 40 lines of it.
async fn with_sums(quarters: u32) -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().expect("a directory");
    let state_dir = directory.path().join("state");
    bought(&state_dir, quarters, 10 * DAY).await;
    bought(&state_dir, 1, 9 * DAY).await;
    compact(&state_dir, 5 * DAY);
    bought(&state_dir, 20, DAY).await;
    (directory, state_dir)
}

/// The database is one that was cut off after the first batch, within the sums.
fn cut_after_first_batch(postgres: &Postgres) -> u64 {
    let first = "SELECT max(last_seq) FROM bursar_fleet.lines WHERE received = (SELECT min(received) FROM bursar_fleet.lines)";
    let seq = postgres.sql(DATABASE, first);
    for order in [
        format!(
            "UPDATE bursar_fleet.ledgers SET mark_seq = {seq},
                mark_chain = (SELECT chain FROM bursar_fleet.lines WHERE last_seq = {seq})"
        ),
        format!("DELETE FROM bursar_fleet.lines WHERE last_seq > {seq}"),
    ] {
        postgres.sql(DATABASE, &order);
    }
    seq.parse().expect("a number")
}

#[tokio::test]
#[ignore = "needs PostgreSQL: make test-all"]
async fn a_ledger_that_was_compacted_before_it_joined_ships_all_its_sums_also_after_a_cut() {
    let postgres = fleet();
    let (_directory, state_dir) = with_sums(700).await;
    let database = connect(&postgres).await;
    let mut shipping = joined(&database, &state_dir, 1).await;
    let shipped = ship(&database, &mut shipping).await;
    assert_eq!(shipped.mark_seq, shipped.journal_seq);
    let whole = (721, 3 * 721);
    assert_eq!(summed(&postgres), whole);
    // What the sums stand for is not lost.
    let lost = "SELECT losses, (SELECT count(*) FROM bursar_fleet.losses) FROM bursar_fleet.fleet";
    assert_eq!(postgres.sql(DATABASE, lost), "0|0");
    // Cut off among the sums: gone on with by what knows its marks, and by what has lost them.
    for marks in ["", "fleet-marks"] {
        let cut_seq = cut_after_first_batch(&postgres);
        assert!(summed(&postgres).0 < 600 && cut_seq > 600, "{cut_seq}");
        if !marks.is_empty() {
            std::fs::remove_file(state_dir.join(marks)).expect("it was there");
        }
        let mut again = joined(&database, &state_dir, 1).await;
        let shipped = ship(&database, &mut again).await;
        assert_eq!(
            (shipped.mark_seq, shipped.forked),
            (shipped.journal_seq, false)
        );
        assert_eq!(summed(&postgres), whole);
    }
}

/// Sums have it under a word of its own, and its price is not known all the same.
#[tokio::test]
#[ignore = "needs PostgreSQL: make test-all"]
async fn a_malformed_receipt_in_compacted_sums_is_unreported_in_the_fleet_as_in_the_ledger() {
    let postgres = fleet();
    let directory = tempfile::tempdir().expect("a directory");
    let state_dir = directory.path().join("state");
    let ago_ms = u64::try_from((10 * DAY).as_millis()).expect("some days");
    let clock = ManualClock::at(now_ms() - ago_ms);
    let ledger = Ledger::open(options(&state_dir, &clock)).expect("a ledger");
    let price = Reported::Value(MicroUsd::new(3));
    for billed in [Reported::Malformed, Reported::Absent, price] {
        buy_reported(&ledger, clock.wall_ms(), "notes", billed).await;
        clock.advance(QUARTER);
    }
    ledger.close().await;
    bought(&state_dir, 60, 9 * DAY).await;
    compact(&state_dir, 5 * DAY);
    let state_text = state_dir.to_str().expect("UTF-8");
    let spend = ["spend", "--json", "--since", "30d"];
    let spend = [&spend[..], &["--state-dir", state_text]].concat();
    let done = command(&spend).output().await.expect("it runs");
    let own: serde_json::Value = serde_json::from_slice(&done.stdout).expect("a document");

    let database = connect(&postgres).await;
    let mut shipping = joined(&database, &state_dir, 1).await;
    ship(&database, &mut shipping).await;

    let malformed = "SELECT sum(requests) FROM bursar_fleet.changes WHERE state = 'malformed'";
    assert_eq!(
        postgres.sql(DATABASE, malformed),
        "1",
        "the test would show nothing"
    );
    let reader = Person::new(&postgres, "reader");
    let spend = ["spend", "--fleet", "--since", "30d"];
    let said = reader.document(&spend).await;
    assert_eq!(own["unreported"], 2, "{own}");
    for figure in ["requests", "billed_micro_usd", "in_doubt", "unreported"] {
        assert_eq!(said["total"][figure], own[figure], "{figure}: {said}");
    }
}

/// Of sums that are gone nothing is in the fleet, unlike of the lines that they stand for.
#[tokio::test]
#[ignore = "needs PostgreSQL: make test-all"]
async fn sums_that_were_gone_before_the_ledger_joined_are_a_loss() {
    for is_all in [false, true] {
        let postgres = fleet();
        let (_directory, state_dir) = with_sums(60).await;
        let path = state_dir.join("journal/00000000.jsonl");
        let text = std::fs::read_to_string(&path).expect("sums");
        let lines: Vec<&str> = text.split_inclusive('\n').collect();
        let gone = if is_all { lines.len() - 1 } else { 2 };
        let kept = [lines[..1].concat(), lines[1 + gone..].concat()];
        std::fs::write(&path, kept.concat()).expect("it is written");
        let header: serde_json::Value = serde_json::from_str(lines[0]).expect("a header");
        let first_seq = header["first_seq"].as_u64().expect("a number");
        let gone = u64::try_from(gone).expect("a count");

        let database = connect(&postgres).await;
        let mut shipping = joined(&database, &state_dir, 1).await;
        let shipped = ship(&database, &mut shipping).await;
        assert_eq!(shipped.mark_seq, shipped.journal_seq);
        let ranges =
            "SELECT seq, last_seq, why FROM bursar_fleet.lines WHERE kind = 'lost' ORDER BY seq";
        let (before, last) = (first_seq - 1, first_seq + gone - 1);
        assert_eq!(
            postgres.sql(DATABASE, ranges),
            format!("1|{before}|compacted\n{first_seq}|{last}|lost")
        );
        let losses =
            "SELECT losses, (SELECT count(*) FROM bursar_fleet.losses) FROM bursar_fleet.fleet";
        assert_eq!(postgres.sql(DATABASE, losses), "1|1");
        // Each quarter of an hour has a sum of its own.
        let left = 81 - gone;
        let requests = i64::try_from(left).expect("a count");
        assert_eq!(summed(&postgres), (requests, 3 * left));
        std::fs::remove_file(state_dir.join("fleet-marks")).expect("it was there");
        let mut again = joined(&database, &state_dir, 1).await;
        let shipped = ship(&database, &mut again).await;
        assert_eq!((shipped.lines, shipped.forked), (0, false));
    }
}

#[tokio::test]
#[ignore = "needs PostgreSQL: make test-all"]
async fn sums_are_not_shipped_behind_lines_that_they_stand_for() {
    let postgres = fleet();
    let directory = tempfile::tempdir().expect("a directory");
    let state_dir = directory.path().join("state");
    bought(&state_dir, 700, 10 * DAY).await;
    let database = connect(&postgres).await;
    let mut shipping = joined(&database, &state_dir, 1).await;
    ship(&database, &mut shipping).await;
    // The database has the lines up to one that the sums' numbers reach, too.
    let seq = "(SELECT max(last_seq) FROM bursar_fleet.lines WHERE last_seq <= 1000)";
    for order in [
        format!(
            "UPDATE bursar_fleet.ledgers SET mark_seq = {seq},
                mark_chain = (SELECT chain FROM bursar_fleet.lines WHERE last_seq = {seq})"
        ),
        "DELETE FROM bursar_fleet.lines WHERE last_seq > 1000".to_owned(),
    ] {
        postgres.sql(DATABASE, &order);
    }
    let before = summed(&postgres);
    compact(&state_dir, 5 * DAY);
    let mut again = joined(&database, &state_dir, 1).await;
    let trouble = again.visit(&database, 0).await.expect_err("it is a gap");
    assert!(
        matches!(trouble, Trouble::NeedsCompacted(1000)),
        "{trouble}"
    );
    assert_eq!(again.take_stated(), Some(1000));
    assert_eq!(summed(&postgres), before);
}

/// The fleet has the lines, the journal their sums, and what would show that they are the same is gone.
#[tokio::test]
#[ignore = "needs PostgreSQL: make test-all"]
async fn a_ledger_without_its_marks_behind_sums_stops_and_counts_nothing_twice() {
    let postgres = fleet();
    let directory = tempfile::tempdir().expect("a directory");
    let state_dir = directory.path().join("state");
    bought(&state_dir, 60, 10 * DAY).await;
    let database = connect(&postgres).await;
    let mut shipping = joined(&database, &state_dir, 1).await;
    ship(&database, &mut shipping).await;
    compact(&state_dir, 5 * DAY);
    bought(&state_dir, 2, DAY).await;
    ship(&database, &mut shipping).await;
    assert_eq!(summed(&postgres), (62, 3 * 62));
    std::fs::remove_file(state_dir.join("fleet-marks")).expect("it was there");
    let mut again = joined(&database, &state_dir, 1).await;
    let trouble = again.visit(&database, 0).await.expect_err("it is unknown");
    assert!(matches!(trouble, Trouble::NeedsCompacted(_)), "{trouble}");
    assert_eq!(summed(&postgres), (62, 3 * 62));
    let ledgers = "SELECT count(*) FROM bursar_fleet.ledgers";
    assert_eq!(postgres.sql(DATABASE, ledgers), "1");
}

#[tokio::test]
#[ignore = "needs PostgreSQL: make test-all"]
async fn a_copy_of_a_ledger_with_sums_takes_a_name_and_ships_what_it_bought_itself() {
    for is_base in [true, false] {
        let postgres = fleet();
        let directory = tempfile::tempdir().expect("a directory");
        let state_dir = directory.path().join("state");
        let database = connect(&postgres).await;
        // Of the base nothing is shipped yet when it is copied; of the other the fleet has every line.
        bought(&state_dir, 300, 10 * DAY).await;
        let mut shipping = joined(&database, &state_dir, 1).await;
        if !is_base {
            ship(&database, &mut shipping).await;
        }
        compact(&state_dir, 5 * DAY);
        bought(&state_dir, 5, 3 * DAY).await;
        if !is_base {
            ship(&database, &mut shipping).await;
        }
        let clone = copied(&state_dir);
        let cloned_dir = clone.path().join("state");
        bought(&state_dir, 7, DAY).await;
        bought(&cloned_dir, 11, DAY).await;
        ship(&database, &mut shipping).await;
        let mut cloned = joined(&database, &cloned_dir, 2).await;
        assert!(ship(&database, &mut cloned).await.forked, "{is_base}");
        assert_eq!(summed(&postgres), (323, 3 * 323), "{is_base}");
    }
}

/// A flipped digit in the file of marks.
#[tokio::test]
#[ignore = "needs PostgreSQL: make test-all"]
async fn a_damaged_mark_is_passed_over_and_makes_no_copy() {
    let postgres = fleet();
    let directory = tempfile::tempdir().expect("a directory");
    let state_dir = directory.path().join("state");
    bought(&state_dir, 10, 2 * DAY).await;
    let database = connect(&postgres).await;
    let mut shipping = joined(&database, &state_dir, 1).await;
    ship(&database, &mut shipping).await;
    let path = state_dir.join("fleet-marks");
    let marks = std::fs::read_to_string(&path).expect("marks");
    let digit = marks.rfind(' ').expect("a line") - 1;
    let mut damaged = marks.into_bytes();
    damaged[digit] = if damaged[digit] == b'0' { b'1' } else { b'0' };
    std::fs::write(&path, damaged).expect("it is written");
    let mut again = joined(&database, &state_dir, 1).await;
    let shipped = ship(&database, &mut again).await;
    assert_eq!((shipped.lines, shipped.forked), (0, false));
}

/// Only the daemon knows what the fleet has of the ledger.
#[tokio::test]
async fn the_command_that_compacts_refuses_a_ledger_of_a_fleet_and_says_who_does_it() {
    let directory = tempfile::tempdir().expect("a directory");
    let state_dir = directory.path().join("state");
    bought(&state_dir, 60, 10 * DAY).await;
    bought(&state_dir, 1, 9 * DAY).await;
    let config = directory.path().join("config.toml");
    let sums = state_dir.join("journal/00000000.jsonl");
    for (lines, is_compacted) in [
        ("[fleet]\nurl_file = \"/nowhere/url\"\n", false),
        ("", true),
    ] {
        std::fs::write(&config, lines).expect("a file");
        let arguments = [
            "ledger",
            "compact",
            "--older-than",
            "5d",
            "--config",
            config.to_str().expect("UTF-8"),
            "--state-dir",
            state_dir.to_str().expect("UTF-8"),
        ];
        let dry = [&arguments[..], &["--dry-run"]].concat();
        let dry = command(&dry).output().await.expect("it runs");
        let remark = String::from_utf8_lossy(&dry.stderr).into_owned();
        assert!(dry.status.success(), "{lines}: {remark}");
        assert_eq!(remark.contains("[fleet] resend_days"), !is_compacted);
        let done = command(&arguments).output().await.expect("it runs");
        let why = String::from_utf8_lossy(&done.stderr).into_owned();
        assert_eq!(done.status.success(), is_compacted, "{lines}: {why}");
        assert_eq!(sums.exists(), is_compacted, "{lines}");
        assert_ne!(
            why.contains("this ledger is in a fleet") && why.contains("retention_days"),
            is_compacted,
            "{lines}: {why}"
        );
    }
}
