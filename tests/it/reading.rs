//! Reading the ledger from outside: `bursar receipts`, once and following, beside a daemon and
//! without one; and that no other user of the machine can read it.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};
use tokio::time::timeout;

use crate::support::daemon::{Daemon, command, run_arguments};
use crate::support::origin::json;
use crate::support::{Origin, Sandbox, Step, chat, chat_stream, eventually};

/// `bursar receipts`, still running.
struct Follower {
    _child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Follower {
    fn start(arguments: &[&str]) -> Self {
        let mut child = command(&[&["receipts", "--follow", "--json"], arguments].concat())
            .spawn()
            .expect("it starts");
        let stdout = child.stdout.take().expect("a pipe");
        Self {
            _child: child,
            lines: BufReader::new(stdout).lines(),
        }
    }

    /// The entry that is printed next.
    async fn next(&mut self) -> Value {
        let line = timeout(Duration::from_secs(20), self.lines.next_line())
            .await
            .expect("a receipt within 20 s")
            .expect("a line")
            .expect("it goes on");
        serde_json::from_str(&line).expect("JSON")
    }
}

/// Buys a chat answer; returns its entry's id.
async fn buy(daemon: &Daemon, prompt: &str) -> String {
    let app = daemon.connect().await;
    let answer = app.post("/v1/chat/completions", &chat(prompt)).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer
        .header("x-bursar-entry")
        .expect("an entry id")
        .to_owned()
}

async fn printed(arguments: &[&str]) -> Vec<Value> {
    let done = command(&[&["receipts", "--json"], arguments].concat())
        .output()
        .await
        .expect("it runs");
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(done.status.success(), "{said}");
    let text = String::from_utf8(done.stdout).expect("UTF-8");
    let parse = |line| serde_json::from_str(line).expect("JSON");
    text.lines().map(parse).collect()
}

#[tokio::test]
async fn following_prints_each_receipt_once_beside_a_daemon_and_across_its_restart() {
    let sandbox = Sandbox::start().await;
    let directory = tempfile::tempdir().expect("a directory");
    let state = directory.path().join("state");
    let daemon = Daemon::start(&sandbox.url(), &state, &[]).await;
    let first = buy(&daemon, "before").await;
    let admin = daemon.admin.to_string();
    let path = state.to_str().expect("a path");

    let mut files = Follower::start(&["--state-dir", path]);
    let mut asking = Follower::start(&["--admin", &admin]);
    assert_eq!(files.next().await["id"], first);
    assert_eq!(asking.next().await["id"], first);
    for n in 0..3 {
        let id = buy(&daemon, &format!("number {n}")).await;
        assert_eq!(files.next().await["id"], id);
        assert_eq!(asking.next().await["id"], id);
    }
    daemon.terminate().await;

    // The files are there without a daemon, and continue with the next one.
    let mut offline = Follower::start(&["--state-dir", path, "--limit", "2"]);
    offline.next().await;
    offline.next().await;
    let daemon = Daemon::start(&sandbox.url(), &state, &[]).await;
    let id = buy(&daemon, "after").await;
    assert_eq!(files.next().await["id"], id);
    assert_eq!(offline.next().await["id"], id);
    daemon.terminate().await;
}

#[tokio::test]
async fn all_receipts_are_printed_with_or_without_a_daemon_and_the_newest_on_demand() {
    let sandbox = Sandbox::start().await;
    let directory = tempfile::tempdir().expect("a directory");
    let state = directory.path().join("state");
    let daemon = Daemon::start(&sandbox.url(), &state, &[]).await;
    let mut ids = Vec::new();
    for n in 0..5 {
        ids.push(buy(&daemon, &format!("number {n}")).await);
    }
    let admin = daemon.admin.to_string();
    let path = state.to_str().expect("a path");
    let of = |receipts: &[Value]| -> Vec<String> {
        let id = |receipt: &Value| receipt["id"].as_str().expect("an id").to_owned();
        receipts.iter().map(id).collect()
    };

    let asked = printed(&["--admin", &admin]).await;
    let newest = printed(&["--admin", &admin, "--limit", "2"]).await;
    let many = printed(&["--admin", &admin, "--limit", "2000"]).await;
    daemon.terminate().await;
    let read = printed(&["--state-dir", path]).await;

    assert_eq!(of(&read), ids);
    // A port shows no Idempotency-Key.
    let mut shown = read;
    for receipt in &mut shown {
        let members = receipt.as_object_mut().expect("an object");
        assert!(members.remove("key").is_some(), "{members:?}");
    }
    assert_eq!(asked, shown);
    assert_eq!(many, shown);
    assert_eq!(newest, shown[3..]);
}

#[tokio::test]
async fn an_empty_listing_says_whether_there_is_anything_at_all() {
    let sandbox = Sandbox::start().await;
    let directory = tempfile::tempdir().expect("a directory");
    let state = directory.path().join("state");
    let path = state.to_str().expect("a path");
    let listed = |more: &'static [&'static str]| async move {
        let arguments = [&["receipts", "--state-dir", path], more].concat();
        let done = command(&arguments).output().await.expect("it runs");
        String::from_utf8(done.stdout).expect("UTF-8")
    };
    let daemon = Daemon::start(&sandbox.url(), &state, &[]).await;

    assert_eq!(listed(&["--state", "in-doubt"]).await, "No receipts yet.\n");
    buy(&daemon, "x").await;
    assert_eq!(
        listed(&["--state", "in-doubt"]).await,
        "No receipt matches.\n"
    );
    assert!(listed(&[]).await.contains("settled"));
    daemon.terminate().await;
}

#[tokio::test]
async fn a_time_zone_that_is_not_understood_counts_as_utc_and_is_reported() {
    let sandbox = Sandbox::start().await;
    let directory = tempfile::tempdir().expect("a directory");
    let state = directory.path().join("state");
    let path = state.to_str().expect("a path");
    let daemon = Daemon::start(&sandbox.url(), &state, &[]).await;
    buy(&daemon, "x").await;
    // Beside a daemon the days are those of its caps.
    daemon.terminate().await;

    let mut spend = command(&["spend", "--state-dir", path]);
    let done = spend.env("TZ", ":foo").output().await.expect("it runs");

    let sums = String::from_utf8(done.stdout).expect("UTF-8");
    let remark = String::from_utf8(done.stderr).expect("UTF-8");
    assert_eq!(done.status.code(), Some(0), "{remark}");
    assert!(sums.contains("(UTC)") && sums.contains('$'), "{sums}");
    assert_eq!(remark.lines().count(), 1, "{remark}");
    assert!(remark.contains("time zone"), "{remark}");
}

#[tokio::test]
async fn the_error_of_a_reader_without_a_ledger_names_the_ways_to_one() {
    let directory = tempfile::tempdir().expect("a directory");
    let state = directory.path().join("none");
    let path = state.to_str().expect("a path");

    let mut spend = command(&["spend", "--state-dir", path]);
    let done = spend.output().await.expect("it runs");

    let said = String::from_utf8(done.stderr).expect("UTF-8");
    assert_eq!(done.status.code(), Some(1), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    for word in [
        path,
        "systemctl start bursar",
        "--admin ADDR",
        "--state-dir DIR",
    ] {
        assert!(said.contains(word), "{word}: {said}");
    }
}

#[tokio::test]
async fn a_question_that_can_have_no_answer_is_a_mistake_and_not_an_empty_list() {
    let place = tempfile::tempdir().expect("a directory");
    let state_dir = place.path().to_str().expect("a path");
    let asked = ["receipts", "--state", "settled", "--reason", "crash"];
    let done = command(&[&asked[..], &["--state-dir", state_dir]].concat())
        .output()
        .await
        .expect("it runs");
    let said = String::from_utf8_lossy(&done.stderr);
    assert_eq!(done.status.code(), Some(2), "{said}");
    assert!(said.contains("leave --state out"), "{said}");
}

#[tokio::test]
async fn no_other_user_can_read_a_file_of_the_state_directory_whatever_the_mask_was() {
    let sandbox = Sandbox::start().await;
    let directory = tempfile::tempdir().expect("a directory");
    let state = directory.path().join("state");
    let url = sandbox.url();
    let path = state.to_str().expect("a path");
    let daemon = command(&run_arguments(&url, path));
    let mut masked = Command::new("/bin/sh");
    masked
        .args(["-c", "umask 000; exec \"$0\" \"$@\""])
        .arg(daemon.as_std().get_program())
        .args(daemon.as_std().get_args())
        .env_clear()
        .env("BURSAR_API_KEY", crate::support::KEY)
        .stdout(std::process::Stdio::piped())
        .kill_on_drop(true);

    let daemon = Daemon::ready(masked).await;
    buy(&daemon, "x").await;
    let app = daemon.connect().await;
    app.post("/v1/chat/completions", &chat_stream("y")).await;
    assert_private(&state);
    daemon.terminate().await;

    let files = assert_private(&state);
    for part in ["journal/00000001.jsonl", "index/db", "identity.json"] {
        assert!(files.iter().any(|file| file.ends_with(part)), "{files:?}");
    }
}

/// Checks a directory and everything below it; returns the files' paths. A running daemon may
/// replace a file between the listing and the look at it: a name that is gone is passed over.
fn assert_private(directory: &Path) -> Vec<String> {
    let metadata = std::fs::symlink_metadata(directory).expect("metadata");
    let mode = metadata.permissions().mode() & 0o7777;
    assert_eq!(mode, 0o700, "{}", directory.display());
    let mut files = Vec::new();
    for entry in std::fs::read_dir(directory).expect("a directory") {
        let path = entry.expect("an entry").path();
        let metadata = match std::fs::symlink_metadata(&path) {
            Ok(metadata) => metadata,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            Err(error) => panic!("{}: {error}", path.display()),
        };
        if metadata.is_dir() {
            files.extend(assert_private(&path));
        } else {
            let mode = metadata.permissions().mode() & 0o7777;
            assert_eq!(mode, 0o600, "{}", path.display());
            files.push(path.display().to_string());
        }
    }
    files
}

#[tokio::test]
async fn systemd_is_asked_for_time_before_it_is_notified_that_all_is_ready() {
    let sandbox = Sandbox::start().await;
    let directory = tempfile::tempdir().expect("a directory");
    let socket = directory.path().join("notify.sock");
    let notify = UnixDatagram::bind(&socket).expect("a socket");
    notify.set_nonblocking(true).expect("nonblocking");
    let state = directory.path().join("state");
    let url = sandbox.url();
    let mut command = command(&run_arguments(&url, state.to_str().expect("a path")));
    command.env("NOTIFY_SOCKET", &socket);

    let daemon = Daemon::ready(command).await;

    let mut notices = Vec::new();
    eventually("READY=1", || {
        let mut buffer = [0; 4096];
        while let Ok(read) = notify.recv(&mut buffer) {
            let text = String::from_utf8_lossy(&buffer[..read]).into_owned();
            notices.extend(text.lines().map(str::to_owned));
        }
        let is_ready = notices.iter().any(|line| line == "READY=1");
        async move { is_ready.then_some(()) }
    })
    .await;
    assert_eq!(notices[0], "EXTEND_TIMEOUT_USEC=60000000", "{notices:?}");
    daemon.terminate().await;
}

/// An image carries its price and no estimate of a frontier model's. If the sum compared all prices with all
/// estimates, the chat's estimate alone would show no saving.
#[tokio::test]
async fn savings_are_summed_over_the_answers_that_carry_both_prices() {
    let both = [
        ("X-Service-Billed", "40"),
        ("X-Service-Frontier-Would-Have-Cost", "100"),
    ];
    let steps = [
        Step::Answer(json(200, &both, "{\"choices\":[]}")),
        Step::Answer(json(200, &[("X-Service-Billed", "5000")], "{\"data\":[]}")),
    ];
    let origin = Origin::start(steps).await;
    let folder = tempfile::tempdir().expect("a directory");
    let state = folder.path().join("state");
    let daemon = Daemon::start(&origin.url(), &state, &[]).await;
    buy(&daemon, "hi").await;
    let image = r#"{"model":"auto","prompt":"a square"}"#;
    let answer = daemon
        .connect()
        .await
        .post("/v1/images/generations", image)
        .await;
    assert_eq!(answer.status, 200, "{}", answer.text());

    let page = daemon.admin_page("/").await.text();
    let row = "$0.000060<small>over 1 answer</small>";
    assert_eq!(
        page.matches(row).count(),
        5,
        "four windows and an app: {page}"
    );
    let state = state.to_str().expect("a path");
    let spend = |more: &'static str| async move {
        let whole = ["spend", "--wide", "--since", "2000-01-01"];
        let arguments = [&whole[..], &[more, "--state-dir", state]].concat();
        let done = command(&arguments).output().await.expect("it runs");
        assert!(done.status.success());
        String::from_utf8(done.stdout).expect("UTF-8")
    };
    let of_daemon = spend("--json").await;
    let table = spend("--by=operation").await;
    daemon.terminate().await;
    let of_files = spend("--json").await;
    for text in [of_daemon, of_files] {
        let document: Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(document["billed_micro_usd"], 5_040);
        assert_eq!(document["compared"], 1);
        assert_eq!(document["compared_billed_micro_usd"], 40);
        assert_eq!(document["compared_would_have_cost_micro_usd"], 100);
        assert_eq!(document["saved_micro_usd"], 60);
    }
    assert!(table.contains("not known"), "the image's row: {table}");
    assert!(
        table.contains(
            "of 2 requests 1, billed $0.000040, where a frontier model would have cost $0.000100"
        ),
        "{table}"
    );
}
