//! `bursar demo`, the real binary: the story is told, the books agree, and what it prints works.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

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

fn left_behind(tmp: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(tmp)
        .expect("the directory is there")
        .map(|entry| entry.expect("an entry").path())
        .collect()
}

#[tokio::test]
async fn the_demo_tells_its_story_and_the_ledger_agrees_with_the_books() {
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
    assert!(text.contains("3 attempts (503, 503, 200)"), "{text}");
    assert!(text.contains("served by frontier, escalated"), "{text}");
    assert!(
        text.contains("billed $0.000000"),
        "a clarification costs nothing:\n{text}"
    );
    assert!(text.contains("X-Bursar-Adopted: "), "{text}");
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
