//! Under systemd each line has its priority and no second time, so that `journalctl -p warning -u bursar` shows what
//! went wrong; and what a start prints.

use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Command;

use super::{CHAT, Logged};
use crate::support::daemon::{command, run_arguments};
use crate::support::{Origin, chat, eventually};

/// systemd's variable, for a log that is this file.
fn of_the_journal(command: &mut Command, log: &Path) {
    let file = std::fs::metadata(log).expect("a log");
    command.env("JOURNAL_STREAM", format!("{}:{}", file.dev(), file.ino()));
}

#[tokio::test]
async fn in_the_journal_each_line_has_its_priority_and_no_time() {
    let text = "[retry]\nattempts = 1\n";
    let json = "[retry]\nattempts = 1\n[log]\nformat = \"json\"\n";
    for lines in [text, json] {
        let origin = Origin::start([]).await;
        let bursar = Logged::start_by(&origin.url(), lines, of_the_journal).await;
        bursar.daemon.connect().await.post(CHAT, &chat("hi")).await;
        let log = eventually("its line", || async {
            let log = bursar.log();
            log.contains("bursar::access").then_some(log)
        })
        .await;
        for line in log.lines() {
            let (priority, rest) = line.split_at_checked(3).expect("a priority");
            let level = match priority {
                "<3>" => "ERROR",
                "<4>" => "WARN",
                "<6>" => "INFO",
                other => panic!("{other} in {line}"),
            };
            assert!(rest.contains(level), "{line}");
            assert!(
                !rest.contains("timestamp") && !rest.starts_with("20"),
                "{line}"
            );
            if lines == json {
                let object: serde_json::Value = serde_json::from_str(rest).expect("JSON");
                assert_eq!(object["level"], level, "{line}");
            }
        }
        let access = log.lines().find(|line| line.contains("bursar::access"));
        assert!(access.expect("a line").starts_with("<4>"), "{log}");
        bursar.daemon.terminate().await;
    }
}

#[tokio::test]
async fn a_stream_that_is_not_the_journals_keeps_its_times() {
    let origin = Origin::start([]).await;
    let bursar = Logged::start_by(&origin.url(), "", |command, _| {
        command.env("JOURNAL_STREAM", "1:1");
    })
    .await;
    for line in bursar.log().lines() {
        assert!(line.starts_with("20"), "{line}");
    }
    bursar.daemon.terminate().await;
}

#[tokio::test]
async fn what_ends_a_start_has_its_priority_and_its_remedy() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("an address").to_string();
    let directory = tempfile::tempdir().expect("a directory");
    let state = directory.path().join("state");
    let mut arguments = run_arguments("https://api.example", state.to_str().expect("a path"));
    arguments.extend(["--listen", &address]);
    let log = directory.path().join("log");
    let mut daemon = command(&arguments);
    daemon.stderr(File::create(&log).expect("a log"));
    of_the_journal(&mut daemon, &log);
    let done = daemon.status().await.expect("it ends");
    assert_eq!(done.code(), Some(1));
    let log = std::fs::read_to_string(&log).expect("a log");
    let last = log.lines().last().expect("a line");
    assert!(
        last.starts_with(&format!(
            "<3>bursar: cannot listen on {address}: address in use: "
        )),
        "{log}"
    );
    assert!(last.contains("--listen"), "{last}");
}

#[tokio::test]
async fn a_start_prints_the_base_url_to_paste() {
    let origin = Origin::start([]).await;
    let directory = tempfile::tempdir().expect("a directory");
    let state = directory.path().join("state");
    let url = origin.url();
    let mut daemon = command(&run_arguments(&url, state.to_str().expect("a path")));
    daemon.stderr(std::process::Stdio::null());
    let mut child = daemon.spawn().expect("it starts");
    let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    let (mut proxy, mut base_url) = (None, None);
    while base_url.is_none() {
        let line = lines.next_line().await.expect("text").expect("a line");
        proxy = proxy.or(line.strip_prefix("proxy listening on ").map(str::to_owned));
        base_url = line.strip_prefix("base URL of apps: ").map(str::to_owned);
    }
    let proxy = proxy.expect("a proxy");
    let wanted = format!("{proxy}/v1 (of agents: {proxy}/agent/v1)");
    assert_eq!(base_url.expect("a base URL"), wanted);
}
