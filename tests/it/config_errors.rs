//! A wrong start says in one clear line what is wrong and what to do, leaves with the code that
//! scripts rely on (78 configuration, 1 anything else), and starts nothing half.

use std::path::Path;
use std::process::Output;

use tempfile::TempDir;

use crate::support::Sandbox;
use crate::support::daemon::{Daemon, command, run_arguments};

/// Runs `bursar` to its end with more environment.
async fn run(arguments: &[&str], environment: &[(&str, &str)], without_key: bool) -> Output {
    let mut command = command(arguments);
    if without_key {
        command.env_remove("BURSAR_API_KEY");
    }
    command.envs(environment.iter().copied());
    let output = tokio::time::timeout(std::time::Duration::from_secs(20), command.output());
    output
        .await
        .expect("bursar ends by itself")
        .expect("an output")
}

fn stderr_lines(output: &Output) -> Vec<String> {
    let text = String::from_utf8_lossy(&output.stderr);
    text.lines().map(str::to_owned).collect()
}

struct Place {
    directory: TempDir,
}

impl Place {
    fn new() -> Self {
        Self {
            directory: tempfile::tempdir().expect("a directory"),
        }
    }

    fn path(&self, name: &str) -> String {
        self.directory.path().join(name).display().to_string()
    }

    fn write(&self, name: &str, text: &str) -> String {
        std::fs::write(self.directory.path().join(name), text).expect("a file");
        self.path(name)
    }
}

#[tokio::test]
async fn each_configuration_mistake_is_one_clear_line_and_exit_code_78() {
    let cases: &[(&str, &str, &[&str])] = &[
        (
            "unknown key",
            "[upstream]\nbase_url = \"http://127.0.0.1:1\"\nbase_ulr = \"x\"\n",
            &["base_ulr", "base_url"],
        ),
        (
            "unknown table",
            "[upstream]\nbase_url = \"http://127.0.0.1:1\"\n[strems]\nx = 1\n",
            &["strems", "streams"],
        ),
        (
            "wrong type",
            "[upstream]\nbase_url = \"http://127.0.0.1:1\"\nread_timeout_s = \"long\"\n",
            &["read_timeout_s"],
        ),
        (
            "missing key file",
            "[upstream]\nbase_url = \"http://127.0.0.1:1\"\napi_key_file = \"/nowhere/key\"\n",
            &["/nowhere/key"],
        ),
        (
            "https without a host",
            "[upstream]\nbase_url = \"https://\"\n",
            &["https://", "host"],
        ),
        (
            "plain http beyond this machine",
            "[upstream]\nbase_url = \"http://service.example\"\n",
            &["https"],
        ),
        ("no upstream", "", &["base_url"]),
        (
            "an address that others can reach",
            "[upstream]\nbase_url = \"http://127.0.0.1:1\"\n[listen]\nproxy = [\"0.0.0.0:8327\"]\n",
            &["0.0.0.0:8327", "loopback"],
        ),
        ("not TOML", "[upstream\n", &["config.toml"]),
    ];
    for (name, text, words) in cases {
        let place = Place::new();
        let config = place.write("config.toml", text);
        let state = place.path("state");
        let needs_no_key = *name != "missing key file";
        let arguments = ["run", "--config", &config, "--state-dir", &state];
        let output = run(&arguments, &[], !needs_no_key).await;
        let lines = stderr_lines(&output);
        assert_eq!(output.status.code(), Some(78), "{name}: {lines:?}");
        assert_eq!(lines.len(), 1, "{name}: {lines:?}");
        for word in *words {
            assert!(lines[0].contains(word), "{name}: {word:?} not in {lines:?}");
        }
        assert!(output.stdout.is_empty(), "{name}: something was announced");
        assert!(!Path::new(&state).exists(), "{name}: a ledger was begun");
    }
}

/// What is no authority: with each of these no service could be trusted.
fn bad_authorities() -> [(&'static str, Option<&'static str>); 5] {
    let garbage = "-----BEGIN CERTIFICATE-----\nAAECAwQFBgcICQ==\n-----END CERTIFICATE-----\n";
    [
        ("missing", None),
        ("empty", Some("")),
        ("text", Some("no certificate\n")),
        (
            "broken PEM",
            Some("-----BEGIN CERTIFICATE-----\n!!\n-----END CERTIFICATE-----\n"),
        ),
        ("garbage in good PEM", Some(garbage)),
    ]
}

#[tokio::test]
async fn a_ca_file_that_is_none_is_one_clear_line_and_exit_code_78() {
    for (name, text) in bad_authorities() {
        let place = Place::new();
        let ca_file = place.path("ca.pem");
        if let Some(text) = text {
            place.write("ca.pem", text);
        }
        let config = place.write("config.toml", "[upstream]\nca_file = \"ca.pem\"\n");
        let state = place.path("state");
        for command in ["run", "check"] {
            let mut arguments = run_arguments("https://127.0.0.1:1", &state);
            arguments[0] = command;
            arguments.extend(["--config", &config]);
            let output = run(&arguments, &[], false).await;
            let lines = stderr_lines(&output);
            assert_eq!(output.status.code(), Some(78), "{name}: {lines:?}");
            assert_eq!(lines.len(), 1, "{name}: {lines:?}");
            let named = lines[0].contains(&ca_file) && lines[0].contains("[upstream] ca_file");
            assert!(named, "{name}: {lines:?}");
            assert!(!Path::new(&state).exists(), "{name}: a ledger was begun");
        }
    }
}

#[tokio::test]
async fn a_scenario_that_is_none_is_one_clear_line_and_exit_code_78() {
    let place = Place::new();
    let cases = [
        ("missing.toml", None, "cannot be read"),
        ("word.toml", Some("seeed = 1\n"), "seeed"),
        ("toml.toml", Some("[limits\n"), "line 1"),
        (
            "fault.toml",
            Some("[[fault]]\nfault = { statsu = 1 }\n"),
            "statsu",
        ),
    ];
    for (name, text, word) in cases {
        let path = place.path(name);
        if let Some(text) = text {
            place.write(name, text);
        }
        let arguments = ["sandbox", "--listen", "127.0.0.1:0", "--scenario", &path];
        let output = run(&arguments, &[], false).await;
        let lines = stderr_lines(&output);
        assert_eq!(output.status.code(), Some(78), "{name}: {lines:?}");
        assert_eq!(lines.len(), 1, "{name}: {lines:?}");
        let named = lines[0].contains(&path) && lines[0].contains(word);
        assert!(named, "{name}: {lines:?}");
        assert!(output.stdout.is_empty(), "{name}: something was announced");
    }
}

#[tokio::test]
async fn a_missing_key_is_exit_code_78_and_says_where_to_put_it() {
    let place = Place::new();
    let state = place.path("state");
    let arguments = run_arguments("http://127.0.0.1:1", &state);
    let output = run(&arguments, &[], true).await;
    let lines = stderr_lines(&output);
    assert_eq!(output.status.code(), Some(78), "{lines:?}");
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(lines[0].contains("api_key_file"), "{lines:?}");
}

/// A start that opened it would wait for a writer.
#[tokio::test]
async fn a_named_pipe_in_place_of_a_file_is_exit_code_78_and_not_waited_for() {
    use rustix::fs::{CWD, Mode, mkfifoat};
    let place = Place::new();
    let state = place.path("state");
    let fifo = place.path("fifo");
    mkfifoat(CWD, &fifo, Mode::RUSR | Mode::WUSR).expect("a named pipe");
    let run_with = run_arguments("http://127.0.0.1:1", &state);
    for (name, option) in [("the key", "--api-key-file"), ("the file", "--config")] {
        let mut arguments = run_with.clone();
        arguments.extend([option, &fifo]);
        let output = run(&arguments, &[], true).await;
        let lines = stderr_lines(&output);
        assert_eq!(output.status.code(), Some(78), "{name}: {lines:?}");
        let is_named = lines
            .iter()
            .any(|line| line.contains("a named pipe (FIFO)"));
        assert!(is_named, "{name}: {lines:?}");
        assert!(!Path::new(&state).exists(), "{name}: a ledger was begun");
    }
}

#[tokio::test]
async fn all_mistakes_are_reported_at_once() {
    let place = Place::new();
    let text = "[upstream]\nbase_url = \"https://\"\nread_timeout_s = \"x\"\n[retry]\nbase = 1\n";
    let config = place.write("config.toml", text);
    let state = place.path("state");
    let environment = [("BURSAR_STATE_DIR", state.as_str())];
    let output = run(&["check", "--config", &config], &environment, false).await;
    assert_eq!(output.status.code(), Some(78));
    assert_eq!(
        stderr_lines(&output).len(),
        3,
        "{:?}",
        stderr_lines(&output)
    );
}

#[tokio::test]
async fn a_port_in_use_is_named_and_exit_code_1() {
    let place = Place::new();
    let state = place.path("state");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("an address").to_string();
    let arguments = [
        "run",
        "--upstream",
        "http://127.0.0.1:1",
        "--listen",
        &address,
        "--admin",
        "127.0.0.1:0",
        "--state-dir",
        &state,
    ];
    let output = run(&arguments, &[], false).await;
    let lines = stderr_lines(&output);
    assert_eq!(output.status.code(), Some(1), "{lines:?}");
    assert!(
        lines.iter().any(|line| line.contains(&address)),
        "{lines:?}"
    );
    assert!(output.stdout.is_empty(), "something was announced");
    assert!(!Path::new(&state).exists(), "a ledger was begun");
}

#[tokio::test]
async fn a_second_daemon_on_the_same_ledger_names_the_first_and_leaves_with_1() {
    let sandbox = Sandbox::start().await;
    let place = Place::new();
    let state = place.path("state");
    let first = Daemon::start(&sandbox.url(), Path::new(&state), &[]).await;
    let pid = first.child.id().expect("a pid").to_string();
    let url = sandbox.url();
    let output = run(&run_arguments(&url, &state), &[], false).await;
    let lines = stderr_lines(&output);
    assert_eq!(output.status.code(), Some(1), "{lines:?}");
    assert!(lines.iter().any(|line| line.contains(&pid)), "{lines:?}");
    first.kill().await;
    // A killed daemon's lock is gone with it.
    Daemon::start(&url, Path::new(&state), &[])
        .await
        .terminate()
        .await;
}

#[tokio::test]
async fn a_state_directory_that_others_may_enter_is_refused() {
    use std::os::unix::fs::PermissionsExt;
    let place = Place::new();
    let state = place.path("state");
    std::fs::create_dir(&state).expect("a directory");
    let open = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(&state, open).expect("permissions");
    let output = run(&run_arguments("http://127.0.0.1:1", &state), &[], false).await;
    let lines = stderr_lines(&output);
    assert!(matches!(output.status.code(), Some(1 | 78)), "{lines:?}");
    assert!(lines.iter().any(|line| line.contains(&state)), "{lines:?}");
}

/// `bursar check` may have no right to read that place; damage there is an error all the same.
#[tokio::test]
async fn a_check_says_what_it_could_not_look_at_and_finds_what_a_start_would_refuse() {
    use std::os::unix::fs::PermissionsExt;
    let place = Place::new();
    let state = place.path("state");
    let check = [
        "check",
        "--upstream",
        "http://127.0.0.1:1",
        "--state-dir",
        &state,
    ];
    std::fs::write(&state, "no directory").expect("a file");
    let unread = run(&check, &[], false).await;
    let lines = stderr_lines(&unread);
    assert_eq!(unread.status.code(), Some(0), "{lines:?}");
    let is_said = lines.iter().any(|line| line.contains("were not checked"));
    assert!(is_said, "{lines:?}");
    let text = String::from_utf8_lossy(&unread.stdout).into_owned();
    assert!(text.contains("[shaping]\nin_flight = 8\n"), "{text}");

    std::fs::remove_file(&state).expect("it was there");
    std::fs::create_dir(&state).expect("a directory");
    let private = |mode| std::fs::Permissions::from_mode(mode);
    std::fs::set_permissions(&state, private(0o700)).expect("permissions");
    let apps = place.write("state/apps.json", "{");
    std::fs::set_permissions(&apps, private(0o600)).expect("permissions");
    let damaged = run(&check, &[], false).await;
    let lines = stderr_lines(&damaged);
    assert_eq!(damaged.status.code(), Some(78), "{lines:?}");
    assert!(
        lines.iter().any(|line| line.contains("is damaged")),
        "{lines:?}"
    );
}

#[tokio::test]
async fn usage_mistakes_are_exit_code_2() {
    for arguments in [&["run", "--no-such-flag"][..], &["no-such-command"]] {
        let output = run(arguments, &[], false).await;
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
    }
}
