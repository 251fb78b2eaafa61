//! `bursar demo`, the real binary: the story runs, the books agree, and the printed commands work.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::process::Command;
use tokio::time::timeout;

use crate::support::daemon::{Signal, command, send};
use crate::support::wire::Wire;

/// Longest time for the whole story.
const STORY_MAX: Duration = Duration::from_secs(60);

/// What follows a label on its line.
fn fact<'a>(text: &'a str, label: &str) -> &'a str {
    let labelled = format!("  {label} ");
    text.lines()
        .find_map(|line| line.strip_prefix(&labelled))
        .unwrap_or_else(|| panic!("no line {label:?} in:\n{text}"))
        .trim()
}

/// The demo with temporary files below `tmp`.
fn demo(tmp: &Path, arguments: &[&str]) -> Command {
    let mut all = vec!["demo"];
    all.extend_from_slice(arguments);
    let mut command = command(&all);
    command.env("TMPDIR", tmp);
    command
}

fn fits_80_columns(text: &str) {
    for line in text.lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
}

fn left_behind(tmp: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(tmp)
        .expect("the directory is there")
        .map(|entry| entry.expect("an entry").path())
        .collect()
}

#[tokio::test]
async fn the_demo_plays_its_story_and_the_ledger_agrees_with_the_books() {
    let tmp = tempfile::tempdir().expect("a directory");

    let mut command = demo(tmp.path(), &["--once"]);
    let output = timeout(STORY_MAX, command.output())
        .await
        .expect("the story ends")
        .expect("the demo runs");

    let text = String::from_utf8(output.stdout).expect("UTF-8");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{stderr}\n{text}");
    assert_eq!(stderr, "");
    for step in 1..=7 {
        assert!(
            text.contains(&format!("step {step}/7: ")),
            "step {step}:\n{text}"
        );
    }
    assert!(!text.contains("WRONG"), "{text}");
    assert!(!text.contains('\x1b'), "a pipe gets no colours:\n{text}");
    fits_80_columns(&text);
    assert!(
        !text.contains("http://"),
        "an address that is gone:\n{text}"
    );
    // Wherever its lines are broken.
    let words: Vec<&str> = text.split_whitespace().collect();
    let words = words.join(" ");
    for part in [
        "3 attempts (503, 503, 200)",
        "served by frontier, escalated",
        // A clarification costs nothing.
        "billed $0.000000",
        "X-Bursar-Adopted: ",
    ] {
        assert!(words.contains(part), "{part:?} is not in:\n{text}");
    }
    assert_eq!(fact(&text, "difference"), "$0.000000");
    let total = text
        .lines()
        .find(|line| line.starts_with("all "))
        .expect("a sum");
    let cells: Vec<&str> = total.split_whitespace().collect();
    let ["all", calls, known, "0", "0", debits, debited, "$0.000000"] = cells.as_slice() else {
        panic!("{total}");
    };
    // Seven steps, one of them with two turns; the clarification is no debit.
    assert_eq!((*calls, *debits), ("8", "7"));
    assert_eq!(known, debited);
    assert_ne!(*known, "$0.000000");
    assert_eq!(left_behind(tmp.path()), Vec::<PathBuf>::new());
}

#[tokio::test]
async fn the_demo_stays_up_for_the_reader_until_ctrl_c() {
    let tmp = tempfile::tempdir().expect("a directory");
    let mut child = demo(tmp.path(), &["--seed", "7"])
        .stderr(Stdio::null())
        .spawn()
        .expect("the demo starts");
    let stdout = child.stdout.take().expect("a pipe");
    let mut lines = BufReader::new(stdout).lines();
    let mut text = String::new();
    // The snippet's last line: everything is printed then.
    while !text.contains("print(client.") {
        let line = timeout(STORY_MAX, lines.next_line())
            .await
            .expect("the story ends")
            .expect("a line")
            .unwrap_or_else(|| panic!("the demo ended:\n{text}"));
        text.push_str(&line);
        text.push('\n');
    }

    // Its own ledger can be asked while it is there.
    let spend: Vec<&str> = fact(&text, "spend").split(' ').collect();
    let ["bursar", arguments @ ..] = &*spend else {
        panic!("{text}");
    };
    let spent = command(arguments).output().await.expect("it runs");
    let spent = String::from_utf8_lossy(&spent.stdout).into_owned();
    assert!(spent.contains("default"), "{spent}");
    let curl = fact(&text, "curl");
    let words: Vec<&str> = curl.split(' ').collect();
    let url = words
        .iter()
        .find_map(|word| word.strip_prefix("http://"))
        .expect("a URL");
    let (address, path) = url.split_once('/').expect("a path");
    let (_, data) = curl.split_once("-d '").expect("a body");
    let data = data.strip_suffix('\'').expect("the body's end");
    let wire = Wire::tcp(address.parse().expect("an address")).await;
    let answer = wire.post(&format!("/{path}"), data).await;

    assert_eq!(answer.status, 200, "{}", answer.text());
    assert!(answer.text().contains("42"), "{}", answer.text());
    let entry = answer
        .header("x-bursar-entry")
        .expect("an entry")
        .to_owned();
    let landed = async {
        loop {
            let line = lines
                .next_line()
                .await
                .expect("a line")
                .expect("the demo is up");
            if line.contains(&entry) {
                return line;
            }
        }
    };
    let landed = timeout(STORY_MAX, landed)
        .await
        .expect("the receipt is shown");
    assert!(
        landed.contains("chat") && landed.contains("settled $0.0000"),
        "{landed}"
    );

    send(&child, Signal::INT);
    let mut rest = String::new();
    timeout(STORY_MAX, lines.into_inner().read_to_string(&mut rest))
        .await
        .expect("it ends")
        .expect("a text");
    let status = timeout(STORY_MAX, child.wait())
        .await
        .expect("it ends")
        .expect("a status");
    assert_eq!(status.code(), Some(0), "{rest}");
    assert_eq!(fact(&rest, "difference"), "$0.000000");
    assert_eq!(left_behind(tmp.path()), Vec::<PathBuf>::new());
}

/// The books of one side of the comparison.
async fn books(side: &Value) -> Value {
    let url = side["books"].as_str().expect("a URL");
    let answer = reqwest::get(url).await.expect("an answer");
    answer.json().await.expect("JSON")
}

fn sum(books: &Value) -> u64 {
    let debits = books["debits"].as_array().expect("debits");
    let amounts = debits.iter().map(|debit| &debit["amount_micro_usd"]);
    amounts
        .map(|amount| amount.as_u64().expect("an amount"))
        .sum()
}

#[tokio::test]
async fn the_comparison_shows_two_bills_that_are_the_two_services_books() {
    let tmp = tempfile::tempdir().expect("a directory");
    let mut child = demo(tmp.path(), &["--compare", "--json"])
        .spawn()
        .expect("the demo starts");
    let stdout = child.stdout.take().expect("a pipe");
    let mut lines = BufReader::new(stdout).lines();
    let line = timeout(STORY_MAX, lines.next_line())
        .await
        .expect("the day ends")
        .expect("a line")
        .expect("a document");
    let document: Value = serde_json::from_str(&line).expect("JSON");
    let (straight, through) = (&document["straight"], &document["through_bursar"]);
    let (bare, behind) = (books(straight).await, books(through).await);
    send(&child, Signal::INT);
    let status = timeout(STORY_MAX, child.wait())
        .await
        .expect("it ends")
        .expect("a status");
    assert_eq!(status.code(), Some(0), "{document:#}");

    for (side, books) in [(straight, &bare), (through, &behind)] {
        let debits = books["debits"].as_array().expect("debits");
        assert_eq!(side["debits"], debits.len(), "{document:#}");
        assert_eq!(side["billed_micro_usd"], sum(books), "{document:#}");
        let questions: BTreeSet<&str> = debits
            .iter()
            .map(|debit| debit["body_fingerprint"].as_str().expect("a fingerprint"))
            .collect();
        assert_eq!(questions.len(), 7, "every question was paid for: {books:#}");
        assert_eq!(side["double_bills"], debits.len() - 7, "{document:#}");
    }
    let of = |side: &Value, name: &str| {
        let cases = side["cases"].as_array().expect("cases");
        let case = cases
            .iter()
            .find(|case| case["case"] == name)
            .expect("a case");
        (case["debits"].as_u64(), case["answers"].as_u64())
    };
    let two = |debits, answers| (Some(debits), Some(answers));
    assert_eq!(of(straight, "impatient"), two(3, 1), "{document:#}");
    assert_eq!(of(through, "impatient"), two(1, 1), "{document:#}");
    assert_eq!(of(straight, "lost-reply"), two(2, 1), "{document:#}");
    assert_eq!(of(through, "lost-reply"), two(1, 1), "{document:#}");
    // Cases in which bursar saves nothing.
    for (case, debits, answers) in [
        ("quiet", 1, 1),
        ("dropped", 1, 1),
        ("busy", 1, 1),
        ("leaves", 1, 0),
        ("stream-cut", 2, 1),
    ] {
        assert_eq!(
            of(straight, case),
            two(debits, answers),
            "{case}: {document:#}"
        );
        assert_eq!(
            of(through, case),
            two(debits, answers),
            "{case}: {document:#}"
        );
    }
    assert_eq!(document["saved_micro_usd"], sum(&bare) - sum(&behind));
    let cost = |side: &Value, at: usize| side["cases"][at]["billed_micro_usd"].as_u64();
    for at in 0..7 {
        let (straight, through) = (cost(straight, at), cost(through, at));
        let times = [3, 1, 1, 1, 2, 1, 1][at];
        assert_eq!(
            straight,
            through.map(|one| one * times),
            "case {at}: {document:#}"
        );
    }

    // The ledger's known sum, and the amounts under the two keys that it lists as not known.
    assert_eq!(through["not_known"], 2, "{document:#}");
    let states: BTreeSet<&str> = through["not_known_entries"]
        .as_array()
        .expect("entries")
        .iter()
        .map(|entry| entry["state"].as_str().expect("a state"))
        .collect();
    let wanted = ["in_doubt(replay_lost_amount)", "in_doubt(stream_drop)"];
    assert_eq!(states, BTreeSet::from(wanted), "{document:#}");
    let known = through["known_micro_usd"].as_u64().expect("a sum");
    assert!(known > 0 && known < sum(&behind), "{document:#}");
    assert_eq!(left_behind(tmp.path()), Vec::<PathBuf>::new());
}

#[tokio::test]
async fn the_comparison_is_a_table_that_ends_by_itself() {
    let tmp = tempfile::tempdir().expect("a directory");
    let mut command = demo(tmp.path(), &["--compare", "--once"]);
    let output = timeout(STORY_MAX, command.output())
        .await
        .expect("it ends")
        .expect("the demo runs");

    let text = String::from_utf8(output.stdout).expect("UTF-8");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!((output.status.code(), &*stderr), (Some(0), ""), "{text}");
    let row = |name: &str| {
        let line = text.lines().find(|line| line.starts_with(name));
        let line = line.unwrap_or_else(|| panic!("no {name:?} in:\n{text}"));
        line[name.len()..]
            .split_whitespace()
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    assert_eq!(row("debits "), ["11", "8"], "{text}");
    assert_eq!(row("double bills "), ["4", "1"], "{text}");
    assert_eq!(row("answers received "), ["6", "6"], "{text}");
    assert_eq!(
        row("listed as not known "),
        ["not", "counted", "2"],
        "{text}"
    );
    assert_ne!(fact(&text, "saved"), "$0.000000");
    fits_80_columns(&text);
    assert!(!text.contains('\x1b'), "a pipe gets no colours:\n{text}");
}
