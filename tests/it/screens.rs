//! What a person sees at a glance: `bursar` alone, `status`, `line` and `top`, beside a daemon and without one.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Output, Stdio};
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::Command;

use crate::support::daemon::{Daemon, Signal, command};
use crate::support::origin::{billed, json};
use crate::support::wire::request;
use crate::support::{Origin, Sandbox, Step, chat};

const CHAT: &str = "/v1/chat/completions";

async fn run(arguments: &[&str]) -> Output {
    command(arguments).output().await.expect("it runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("UTF-8")
}

#[tokio::test]
async fn the_program_alone_says_what_to_do_first() {
    let output = run(&[]).await;
    let words = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0));
    for command in [
        "bursar demo",
        "bursar sandbox",
        "bursar run",
        "bursar doctor",
        "bursar help",
    ] {
        assert!(words.contains(command), "{command}: {words}");
    }
    assert!(words.lines().count() < 15, "{words}");
}

#[tokio::test]
async fn who_spends_is_one_screen_or_document_behind_a_pipe() {
    let sandbox = Sandbox::start().await;
    let directory = tempfile::tempdir().expect("a directory");
    let state = directory.path().join("state");
    let daemon = Daemon::start(&sandbox.url(), &state, &[]).await;
    let answer = daemon.connect().await.post(CHAT, &chat("x")).await;
    let entry = answer
        .header("x-bursar-entry")
        .expect("an entry")
        .to_owned();
    let path = state.to_str().expect("UTF-8");
    let admin = daemon.admin.to_string();
    let paid = sandbox.debited().await;
    for named in [["--state-dir", path], ["--admin", &admin]] {
        let output = run(&[&["top"], &named[..]].concat()).await;
        let screen = text(&output.stdout);
        assert_eq!(output.status.code(), Some(0), "{screen}");
        assert!(!screen.contains('\x1b'), "no terminal is there: {screen:?}");
        for part in [
            "default",
            "settled",
            "in flight",
            &sandbox.url(),
            &entry[24..],
        ] {
            assert!(screen.contains(part), "{part:?} is not in:\n{screen}");
        }
        for line in screen.lines() {
            assert!(line.chars().count() <= 80, "{line}");
        }
        let output = run(&[&["top", "--json"], &named[..]].concat()).await;
        let document: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let app = &document["apps"][0];
        assert_eq!(app["app"], "default", "{document:#}");
        assert_eq!(app["today_micro_usd"], paid, "{document:#}");
        assert_eq!(app["last_minute_micro_usd"], paid, "{document:#}");
        assert_eq!(
            document["receipts"][0]["id"],
            entry.as_str(),
            "{document:#}"
        );
        assert_eq!(document["daemon"]["in_flight"], 0, "{document:#}");
    }
    daemon.terminate().await;

    // The files are there still; that no daemon answers is said.
    let output = run(&["top", "--once", "--state-dir", path]).await;
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stdout).contains("from the ledger's files"));
    assert!(text(&output.stderr).contains("no daemon answers"));
}

/// Types Ctrl-C once the second screen is drawn, and prints whether the terminal is as it was.
const INTERRUPTED: &str = r#"
import os, pty, sys, termios
child, keeper = pty.fork()
if child == 0:
    os.execvp(sys.argv[1], sys.argv[1:])
before, drawn, typed = termios.tcgetattr(keeper), b"", False
while True:
    try:
        piece = os.read(keeper, 4096)
    except OSError:
        break
    drawn += piece
    if drawn.count(b"\x1b[J") == 2 and not typed:
        typed = True
        during = termios.tcgetattr(keeper)
        os.write(keeper, b"\x03")
code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
# No other screen, no hidden cursor.
print("sane" if during == before and b"\x1b[?" not in drawn else "changed", code)
"#;

#[tokio::test]
async fn at_a_terminal_it_is_drawn_again_until_ctrl_c_which_leaves_the_terminal_as_it_was() {
    let sandbox = Sandbox::start().await;
    let directory = tempfile::tempdir().expect("a directory");
    let state = directory.path().join("state");
    let daemon = Daemon::start(&sandbox.url(), &state, &[]).await;
    let top = command(&["top", "--state-dir", state.to_str().expect("UTF-8")]);
    let mut terminal = Command::new("python3");
    terminal
        .args(["-c", INTERRUPTED])
        .arg(top.as_std().get_program())
        .args(top.as_std().get_args())
        .kill_on_drop(true);
    let ended = tokio::time::timeout(Duration::from_secs(20), terminal.output()).await;
    let output = ended.expect("it ends within 20 s").expect("python3 runs");
    assert_eq!(text(&output.stdout), "sane 0\n", "{}", text(&output.stderr));
    daemon.terminate().await;
}

/// Prints each of these words when the screen shows it, one after the other, and ends.
const WATCHED: &str = r#"
import fcntl, os, pty, struct, sys, termios
child, keeper = pty.fork()
if child == 0:
    fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    os.execvp(sys.argv[1], sys.argv[1:])
for word in ("in flight", "from the ledger's files", "in flight"):
    drawn = b""
    while word.encode() not in drawn:
        drawn += os.read(keeper, 4096)
    print(word, flush=True)
os.write(keeper, b"\x03")
"#;

#[tokio::test]
async fn the_live_screen_reads_the_files_while_its_daemon_is_away_and_asks_it_again_afterwards() {
    let sandbox = Sandbox::start().await;
    let directory = tempfile::tempdir().expect("a directory");
    let state = directory.path().join("state");
    let daemon = Daemon::start(&sandbox.url(), &state, &[]).await;
    let top = command(&["top", "--state-dir", state.to_str().expect("UTF-8")]);
    let mut terminal = Command::new("python3");
    let mut terminal = terminal
        .args(["-c", WATCHED])
        .arg(top.as_std().get_program())
        .args(top.as_std().get_args())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .expect("python3 runs");
    let mut lines = BufReader::new(terminal.stdout.take().expect("a pipe")).lines();
    let mut shows = async || {
        let next = tokio::time::timeout(Duration::from_secs(30), lines.next_line());
        let line = next.await.expect("it is shown within 30 s");
        line.expect("a line").unwrap_or_default()
    };
    assert_eq!(shows().await, "in flight");
    daemon.terminate().await;
    assert_eq!(shows().await, "from the ledger's files");
    let daemon = Daemon::start(&sandbox.url(), &state, &[]).await;
    assert_eq!(shows().await, "in flight");
    daemon.terminate().await;
}

/// Prints what is on the screen when it is drawn for the first time, and ends.
const LOOKED_AT: &str = r#"
import fcntl, os, pty, struct, sys, termios
child, keeper = pty.fork()
if child == 0:
    fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    os.execvp(sys.argv[1], sys.argv[1:])
drawn = b""
while b"\x1b[J" not in drawn:
    drawn += os.read(keeper, 4096)
os.write(keeper, b"\x03")
print(drawn.rpartition(b"\x1b[H")[2].decode())
"#;

/// A user's own daemon, and another one at the port of their configuration, as the system service's is.
#[tokio::test]
async fn the_live_screen_and_the_line_name_the_port_that_they_read_from_and_the_screen_a_second_daemon()
 {
    let folder = tempfile::tempdir().expect("a directory");
    let at = |name: &str| folder.path().join(name);
    let start = async |state: &Path| Daemon::start("http://127.0.0.1:9", state, &[]).await;
    let own = start(&at("home/bursar")).await;
    let other = start(&at("theirs")).await;
    std::fs::create_dir_all(at("configs/bursar")).expect("a directory");
    let lines = format!("[listen]\nadmin = [\"{}\"]\n", other.admin);
    std::fs::write(at("configs/bursar/config.toml"), lines).expect("a file");
    let of_the_user = |mut command: Command| {
        command.env("XDG_STATE_HOME", at("home"));
        command.env("XDG_CONFIG_HOME", at("configs"));
        command.kill_on_drop(true);
        command
    };
    let drawn = async || {
        let top = command(&["top"]);
        let mut terminal = Command::new("python3");
        terminal
            .args(["-c", LOOKED_AT])
            .arg(top.as_std().get_program())
            .args(top.as_std().get_args());
        let output = of_the_user(terminal).output();
        let output = tokio::time::timeout(Duration::from_secs(20), output).await;
        text(
            &output
                .expect("it ends within 20 s")
                .expect("python3 runs")
                .stdout,
        )
    };
    let line = async || {
        text(
            &of_the_user(command(&["line"]))
                .output()
                .await
                .expect("it runs")
                .stdout,
        )
    };
    let (first, second) = (at("home/bursar/admin.sock"), other.admin.to_string());

    let screen = drawn().await;
    for part in [
        "in flight",
        first.to_str().expect("UTF-8"),
        "another one answers at",
        &second,
    ] {
        assert!(screen.contains(part), "no {part} in {screen}");
    }
    assert_eq!(line().await, "$0.00 today\n");

    own.terminate().await;
    let screen = drawn().await;
    let named = format!("asked the daemon at {second}");
    assert!(
        screen.contains(&named) && screen.contains("in flight"),
        "{screen}"
    );
    assert_eq!(line().await, format!("$0.00 today · {second}\n"));
    other.terminate().await;
}

#[tokio::test]
async fn without_a_daemon_the_configured_caps_stand_on_the_screen_and_the_line_says_so() {
    let sandbox = Sandbox::start().await;
    let directory = tempfile::tempdir().expect("a directory");
    let at = |name: &str| {
        let path = directory.path().join(name);
        path.to_str().expect("UTF-8").to_owned()
    };
    let (config, state) = (at("config.toml"), at("state"));
    let lines = "[caps]\nday_micro_usd = 5000000\n";
    std::fs::write(&config, lines).expect("a file");
    let named = ["--config", config.as_str(), "--state-dir", &state];
    let daemon = Daemon::start(&sandbox.url(), Path::new(&state), &named[..2]).await;
    let answer = daemon.connect().await.post(CHAT, &chat("x")).await;
    assert_eq!(answer.status, 200);
    daemon.terminate().await;

    let status = run(&[&["status"], &named[..]].concat()).await;
    let line = run(&[&["line"], &named[..]].concat()).await;
    let screen = text(&status.stdout);
    assert!(
        screen.contains("all day:") && screen.contains("$5.000000"),
        "{screen}"
    );
    // A status line that ends otherwise is left empty by what shows it.
    assert_eq!(text(&line.stdout), "bursar: not running\n");
    assert_eq!(text(&line.stderr), "");
    assert_eq!(line.status.code(), Some(0));
}

const SESSION: &str = "0190a6c1-7b3e-7c2f-9d41-5f0be2d73f0a";

/// One that costs 3.10 dollars, one that costs a little, and one whose price is not known.
#[tokio::test]
async fn the_line_is_the_day_of_all_apps_or_of_one_and_nothing_waits_for_it() {
    let steps = [
        Step::Answer(billed(3_100_000)),
        Step::Answer(billed(4_000)),
        Step::Close,
    ];
    let origin = Origin::start(steps).await;
    let directory = tempfile::tempdir().expect("a directory");
    let state = directory.path().join("state");
    let config = directory.path().join("config.toml");
    let token = directory.path().join("token");
    let secret = "0123456789abcdef0123456789abcdef";
    std::fs::write(&token, secret).expect("a file");
    std::fs::set_permissions(&token, std::fs::Permissions::from_mode(0o600)).expect("a mode");
    let lines = format!(
        "[listen]\nanonymous = true\n[caps]\nday_micro_usd = 5000000\n[retry]\nattempts = 1\n\
         [[app]]\nname = \"nightly\"\ntoken_file = {:?}\n",
        token.display().to_string()
    );
    std::fs::write(&config, lines).expect("a file");
    let config = config.to_str().expect("UTF-8");
    let daemon = Daemon::start(&origin.url(), &state, &["--config", config]).await;
    let mut wire = daemon.connect().await;
    let headers = [("X-Claude-Code-Session-Id", SESSION)];
    wire.send(request("POST", CHAT, &headers, &chat("x"))).await;
    assert_eq!(wire.answer().await.status, 200);
    let bearer = format!("Bearer {secret}");
    for status in [200, 502] {
        let headers = [("Authorization", bearer.as_str())];
        let mut wire = daemon.connect().await;
        wire.send(request("POST", CHAT, &headers, &chat("y"))).await;
        assert_eq!(wire.answer().await.status, status);
    }
    let named = ["--state-dir", state.to_str().expect("UTF-8")];
    for (more, wanted) in [
        (&[][..], "$3.10 of $5.00 today · 1 in doubt\n"),
        (&["--app", "default"], "$3.10 today\n"),
        (&["--app", "nightly"], "<$0.01 today · 1 in doubt\n"),
        (&["--app", "x"], "bursar: there is no app of that name\n"),
        (
            &["--session", SESSION],
            "$3.10 session · $3.10 of $5.00 today · 1 in doubt\n",
        ),
        (
            &["--session", SESSION, "--app", "default"],
            "$3.10 session · $3.10 today\n",
        ),
        // Equal ids of two apps are two sessions, and what is not known is left out.
        (
            &["--session", SESSION, "--app", "nightly"],
            "<$0.01 today · 1 in doubt\n",
        ),
        (
            &["--session", "another"],
            "$3.10 of $5.00 today · 1 in doubt\n",
        ),
    ] {
        let line = run(&[&["line"], more, &named[..]].concat()).await;
        assert_eq!(text(&line.stdout), wanted, "{}", text(&line.stderr));
        assert_eq!(text(&line.stderr), "");
        assert_eq!(line.status.code(), Some(0));
    }
    // As a program runs it that writes its state into its status line's command.
    let mut told = command(&[&["line"], &named[..]].concat());
    let mut told = told.stdin(Stdio::piped()).spawn().expect("it runs");
    let mut input = told.stdin.take().expect("a pipe");
    let object = format!(r#"{{"hook_event_name":"Status","session_id":"{SESSION}"}}"#);
    input.write_all(object.as_bytes()).await.expect("it reads");
    // The pipe stays open.
    let told = told.wait_with_output().await.expect("it ends");
    assert_eq!(
        text(&told.stdout),
        "$3.10 session · $3.10 of $5.00 today · 1 in doubt\n"
    );
    drop(input);

    // Doubts survive, and so do the sums.
    daemon.kill().await;
    let daemon = Daemon::start(&origin.url(), &state, &["--config", config]).await;
    let line = run(&[&["line", "--session", SESSION], &named[..]].concat()).await;
    assert_eq!(
        text(&line.stdout),
        "$3.10 session · $3.10 of $5.00 today · 1 in doubt\n"
    );

    daemon.signal(Signal::STOP);
    let asked = [&["line"], &named[..]].concat();
    let hangs = tokio::time::timeout(Duration::from_secs(5), run(&asked)).await;
    let hangs = hangs.expect("it does not wait");
    assert_eq!(text(&hangs.stdout), "bursar: no answer\n");
    assert_eq!(hangs.status.code(), Some(0));
    daemon.signal(Signal::CONT);
    daemon.terminate().await;
}

#[tokio::test]
async fn the_screen_names_the_newest_request_that_failed_or_is_in_doubt_and_the_daemons_configuration()
 {
    let steps = [
        Step::Close,
        Step::Answer(json(422, &[], r#"{"detail":"no"}"#)),
        Step::Answer(billed(7)),
    ];
    let origin = Origin::start(steps).await;
    let directory = tempfile::tempdir().expect("a directory");
    let (state, config) = (
        directory.path().join("state"),
        directory.path().join("config.toml"),
    );
    std::fs::write(&config, "[retry]\nattempts = 1\n").expect("a file");
    let (state, config) = (
        state.to_str().expect("UTF-8"),
        config.to_str().expect("UTF-8"),
    );
    let daemon = Daemon::start(&origin.url(), Path::new(state), &["--config", config]).await;
    let status = async |form: &[&str]| {
        text(
            &run(&[&["status", "--state-dir", state], form].concat())
                .await
                .stdout,
        )
    };
    assert!(
        status(&[]).await.contains("last error  none"),
        "{}",
        status(&[]).await
    );

    let mut last = String::new();
    for (prompt, code, wanted) in [
        ("a", 502, "in_doubt"),
        ("b", 422, "failed"),
        ("c", 200, "failed"),
    ] {
        let answer = daemon.connect().await.post(CHAT, &chat(prompt)).await;
        assert_eq!(answer.status, code);
        if code != 200 {
            last = answer
                .header("x-bursar-entry")
                .expect("an entry")
                .to_owned();
        }
        let whole: Value = serde_json::from_str(&status(&["--json"]).await).expect("a document");
        let problem = &whole["last_problem"];
        assert_eq!(
            (&problem["id"], &problem["state"]),
            (&last.as_str().into(), &wanted.into()),
            "{whole}"
        );
        assert_eq!(whole["daemon"]["config"], config, "{whole}");
        let screen = status(&[]).await;
        let words = screen.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            words.contains(&format!("bursar explain {}", &last[last.len() - 12..])),
            "{screen}"
        );
        assert!(words.contains(&format!("config {config}")), "{screen}");
    }
    daemon.terminate().await;
}

#[tokio::test]
async fn a_change_over_a_named_port_is_refused_by_the_name_that_named_it() {
    for (variable, wanted) in [(false, "--admin: "), (true, "BURSAR_ADMIN: ")] {
        let mut command = command(&["freeze"]);
        match variable {
            true => command.env("BURSAR_ADMIN", "127.0.0.1:8328"),
            false => command.args(["--admin", "127.0.0.1:8328"]),
        };
        let output = command.output().await.expect("it runs");
        let words = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{words}");
        assert!(
            words.contains(wanted) && words.contains("--state-dir"),
            "{words}"
        );
    }
}
