//! What a start, and `ledger verify`, know of the life before: signals while the ledger is opened, and what
//! is lost of a journal.

use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{CWD, FileType, Mode, mknodat};
use tokio::process::Child;
use tokio::time::{Instant, timeout};

use crate::support::daemon::{Daemon, Signal, command, run_arguments, send};
use crate::support::{Sandbox, chat, eventually};

/// `bursar ledger verify`: exit code, standard output, standard error.
async fn verify(state: &Path) -> (Option<i32>, String, String) {
    let path = state.to_str().expect("a path");
    let words = ["ledger", "verify", "--state-dir", path];
    let done = command(&words).output().await.expect("it runs");
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    (done.status.code(), text(done.stdout), text(done.stderr))
}

/// A daemon that has bought so much, one after the other.
async fn bought(sandbox: &Sandbox, state: &Path, count: usize) -> Daemon {
    let daemon = Daemon::start(&sandbox.url(), state, &[]).await;
    for n in 0..count {
        let wire = daemon.connect().await;
        let body = chat(&format!("n {n}"));
        let answer = wire.post("/v1/chat/completions", &body).await;
        assert_eq!(answer.status, 200);
    }
    daemon
}

/// Puts a pipe without a writer in the place of a file that a start reads: the start waits.
fn stall(state: &Path) -> PathBuf {
    let pipe = state.join("usage");
    std::fs::remove_file(&pipe).expect("the file goes");
    mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("a pipe");
    pipe
}

/// Starts a daemon whose start waits, and returns when it has the ledger's lock.
async fn stalled(state: &Path, more: &[&str]) -> Child {
    std::fs::write(state.join("lock"), "").expect("the lock is empty");
    let text = state.to_str().expect("a path");
    let mut arguments = run_arguments("http://127.0.0.1:9", text);
    arguments.extend_from_slice(more);
    let child = command(&arguments).spawn().expect("it starts");
    let pid = child.id().expect("a pid").to_string();
    eventually("the ledger to be locked", || async {
        let holder = std::fs::read_to_string(state.join("lock")).unwrap_or_default();
        (holder.trim() == pid).then_some(())
    })
    .await;
    child
}

#[tokio::test]
async fn sigterm_before_the_ledger_is_open_ends_the_start_within_a_second() {
    let sandbox = Sandbox::start().await;
    let directory = tempfile::tempdir().expect("a directory");
    let state = directory.path().join("state");
    bought(&sandbox, &state, 1).await.terminate().await;
    stall(&state);
    for signal in [Signal::TERM, Signal::INT] {
        let mut child = stalled(&state, &[]).await;
        let sent = Instant::now();
        send(&child, signal);
        let status = timeout(Duration::from_secs(10), child.wait()).await;
        let status = status.expect("it ends").expect("a status");
        assert_eq!(status.code(), Some(0), "{signal:?}");
        assert!(sent.elapsed() < Duration::from_secs(1), "{signal:?}");
    }
}

#[tokio::test]
async fn sighup_before_the_ledger_is_open_is_done_when_it_is() {
    let sandbox = Sandbox::start().await;
    let directory = tempfile::tempdir().expect("a directory");
    let state = directory.path().join("state");
    bought(&sandbox, &state, 1).await.terminate().await;
    let pipe = stall(&state);
    let mut child = stalled(&state, &[]).await;
    send(&child, Signal::HUP);
    let stderr = child.stderr.take().expect("a pipe");
    // The start continues: the pipe ends.
    drop(
        std::fs::OpenOptions::new()
            .write(true)
            .open(&pipe)
            .expect("a writer"),
    );
    let mut lines = tokio::io::AsyncBufReadExt::lines(tokio::io::BufReader::new(stderr));
    let mut said = Vec::new();
    while let Ok(Ok(Some(line))) = timeout(Duration::from_secs(10), lines.next_line()).await {
        let is_done = line.contains("the configuration was reloaded");
        said.push(line);
        if is_done {
            break;
        }
    }
    let last = said.last().map(String::as_str).unwrap_or_default();
    assert!(last.contains("the configuration was reloaded"), "{said:?}");
    assert!(said.iter().any(|line| line.contains("started")), "{said:?}");
    send(&child, Signal::TERM);
    let status = timeout(Duration::from_secs(10), child.wait()).await;
    assert_eq!(status.expect("it ends").expect("a status").code(), Some(0));
}

#[tokio::test]
async fn acknowledged_records_that_are_cut_off_after_a_kill_are_seen_without_the_index() {
    let sandbox = Sandbox::start().await;
    let directory = tempfile::tempdir().expect("a directory");
    let state = directory.path().join("state");
    bought(&sandbox, &state, 5).await.kill().await;
    std::fs::remove_dir_all(state.join("index")).expect("the index goes");
    let (code, said, _) = verify(&state).await;
    assert_eq!(code, Some(0), "{said}");
    let segment = state.join("journal/00000001.jsonl");
    let bytes = std::fs::read(&segment).expect("a segment");
    // Behind the last line the daemon had made room: newlines.
    let last = bytes
        .iter()
        .rposition(|byte| *byte != b'\n')
        .expect("lines");
    let ends: Vec<usize> = memchr::memchr_iter(b'\n', &bytes[..=last]).collect();
    let [.., kept] = ends[..] else {
        panic!("{} lines", ends.len());
    };
    std::fs::write(&segment, &bytes[..=kept]).expect("it is cut");
    let (code, said, _) = verify(&state).await;
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("record 10 is lost"), "{said}");
}

#[tokio::test]
async fn a_journal_that_is_gone_is_missed_by_every_file_that_remembers_it() {
    let sandbox = Sandbox::start().await;
    for left in [&["stopped", "usage"][..], &["stopped"], &["usage"]] {
        let directory = tempfile::tempdir().expect("a directory");
        let state = directory.path().join("state");
        bought(&sandbox, &state, 4).await.terminate().await;
        for gone in ["journal", "index"] {
            std::fs::remove_dir_all(state.join(gone)).expect("it goes");
        }
        let mut journal = std::fs::DirBuilder::new();
        journal
            .mode(0o700)
            .create(state.join("journal"))
            .expect("an empty one");
        for file in ["stopped", "usage"] {
            if !left.contains(&file) {
                std::fs::remove_file(state.join(file)).expect("it goes");
            }
        }
        let (code, said, _) = verify(&state).await;
        assert_eq!(code, Some(1), "{left:?}: {said}");
        assert!(said.contains("records 1 to 8 are lost"), "{left:?}: {said}");
        // The next numbers are not those of other records.
        bought(&sandbox, &state, 1).await.terminate().await;
        let (code, said, _) = verify(&state).await;
        assert_eq!(code, Some(1), "{left:?}: {said}");
        assert!(said.contains("records 1 to 8 are lost"), "{left:?}: {said}");
        let segment = std::fs::read_to_string(state.join("journal/00000001.jsonl"));
        assert!(
            segment.expect("a segment").contains(r#""seq":9"#),
            "{left:?}"
        );
    }
}

#[tokio::test]
async fn verify_says_in_plain_words_that_the_index_cannot_be_read() {
    let sandbox = Sandbox::start().await;
    let directory = tempfile::tempdir().expect("a directory");
    let state = directory.path().join("state");
    bought(&sandbox, &state, 20).await.terminate().await;
    // The second start leaves a snapshot, which sled holds the file against.
    bought(&sandbox, &state, 1).await.terminate().await;
    let db = state.join("index/db");
    let sound = std::fs::read(&db).expect("the index");
    let written: Vec<usize> = (0..sound.len()).filter(|at| sound[*at] != 0).collect();
    let mut unreadable = 0;
    for n in 0..24 {
        let at = written[written.len() * n / 24];
        let mut bytes = sound.clone();
        bytes[at] ^= 1 << (n % 8);
        std::fs::write(&db, bytes).expect("it is damaged");
        let (code, said, error) = verify(&state).await;
        assert_eq!(error, "", "byte {at}");
        assert!(!said.contains("backtrace"), "byte {at}: {said}");
        assert!(matches!(code, Some(0 | 1)), "byte {at}: {said}");
        unreadable += usize::from(said.contains("differs: it cannot be read"));
    }
    assert!(unreadable > 0, "no damage kept the index from being read");
}
