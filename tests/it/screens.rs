//! What a person sees at a glance: `bursar` alone, `status`, `line` and `top`, beside a daemon and without one.

use std::path::Path;
use std::process::Output;
use std::time::Duration;

use serde_json::Value;
use tokio::process::Command;

use crate::support::daemon::{Daemon, command};
use crate::support::{Sandbox, chat};

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

#[tokio::test]
async fn without_a_daemon_the_configured_caps_stand_on_the_screen_and_in_the_line() {
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
    let beside = run(&[&["line"], &named[..]].concat()).await;
    daemon.terminate().await;

    let status = run(&[&["status"], &named[..]].concat()).await;
    let line = run(&[&["line"], &named[..]].concat()).await;
    let (screen, line) = (text(&status.stdout), text(&line.stdout));
    assert!(
        screen.contains("all day:") && screen.contains("$5.000000"),
        "{screen}"
    );
    assert!(line.contains(" of $5.000000, no daemon answers"), "{line}");
    let of = |line: &str| line.split(',').next().map(|part| part.trim().to_owned());
    assert_eq!(of(&text(&beside.stdout)), of(&line));
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
