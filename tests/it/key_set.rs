//! `bursar key set`: another key of the organization, tried at the service before it is written.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::{Output, Stdio};
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::process::Command;

use crate::support::daemon::{Daemon, Signal, command, run_arguments};
use crate::support::origin::{billed, json};
use crate::support::{Origin, Step, chat, eventually};

const OLD: &str = "sk-old-0123456789";
const NEW: &str = "sk-new-9876543210";

struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a directory");
        Self { folder }
    }

    fn path(&self, name: &str) -> String {
        let path = self.folder.path().join(name);
        path.to_str().expect("a UTF-8 path").to_owned()
    }

    /// A configuration before this service, and the old key in its file.
    fn before(upstream: &str) -> Self {
        let place = Self::new();
        let key = place.path("api-key");
        std::fs::write(&key, format!("{OLD}\n")).expect("a file");
        mode(&key, 0o600);
        let lines = format!("[upstream]\nbase_url = \"{upstream}\"\napi_key_file = \"api-key\"\n");
        std::fs::write(place.path("config.toml"), lines).expect("a file");
        place
    }

    fn key(&self) -> String {
        std::fs::read_to_string(self.path("api-key")).expect("a key")
    }

    /// `bursar key set` with the configuration, its input a pipe.
    async fn set(&self, more: &[&str], typed: &str) -> Output {
        let config = self.path("config.toml");
        let whole = [&["key", "set", "--config", &config], more].concat();
        given(set_command(&whole), typed).await
    }

    /// Nothing but the former content.
    fn files(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.folder.path()).expect("a directory");
        let mut names: Vec<String> = entries
            .map(|entry| {
                entry
                    .expect("an entry")
                    .file_name()
                    .to_string_lossy()
                    .into_owned()
            })
            .collect();
        names.sort();
        names
    }
}

fn mode(path: &str, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("a mode");
}

/// With no key in the environment.
fn set_command(arguments: &[&str]) -> Command {
    let mut command = command(arguments);
    command
        .env_remove("BURSAR_API_KEY")
        .env("HOME", "/nonexistent")
        .stdin(Stdio::piped());
    command
}

async fn given(mut command: Command, typed: &str) -> Output {
    let mut child = command.spawn().expect("it starts");
    let mut stdin = child.stdin.take().expect("a pipe");
    // A command that wants no key has ended perhaps.
    stdin.write_all(typed.as_bytes()).await.ok();
    drop(stdin);
    child.wait_with_output().await.expect("it ends")
}

fn said(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    format!("{}{}", text(&output.stdout), text(&output.stderr))
}

fn models(status: u16) -> Step {
    Step::Answer(json(status, &[], "{\"data\":[]}"))
}

#[tokio::test]
async fn no_key_is_asked_for_before_the_service_is_known_that_it_is_checked_with() {
    let place = Place::new();
    let lines = "[upstream]\napi_key_file = \"api-key\"\n";
    std::fs::write(place.path("config.toml"), lines).expect("a file");
    let config = place.path("config.toml");
    let named = ["key", "set", "--config", config.as_str()];
    let mut child = set_command(&named).spawn().expect("it starts");
    // Nobody types.
    let stdin = child.stdin.take();
    let ended = tokio::time::timeout(Duration::from_secs(20), child.wait_with_output());
    let output = ended.await.expect("it does not wait").expect("it ends");
    drop(stdin);
    let words = said(&output);
    assert_eq!(output.status.code(), Some(78), "{words}");
    assert!(words.contains("no upstream"), "{words}");
    // One that is not checked needs none.
    let output = place.set(&["--no-check"], &format!("{NEW}\n")).await;
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!(place.key(), format!("{NEW}\n"));
}

#[tokio::test]
async fn a_key_that_the_service_takes_is_written_whole_and_a_reload_takes_it() {
    let origin = Origin::start([models(200), Step::Answer(billed(7))]).await;
    let place = Place::before(&origin.url());
    mode(&place.path("api-key"), 0o640);
    let before = std::fs::metadata(place.path("api-key")).expect("a file");
    let (state, key_file) = (place.path("state"), place.path("api-key"));
    let url = origin.url();
    let mut run = run_arguments(&url, &state);
    run.extend(["--api-key-file", &key_file]);
    let daemon = Daemon::ready(command(&run)).await;

    let output = place.set(&[], &format!("{NEW}\n")).await;

    let words = said(&output);
    assert!(output.status.success(), "{words}");
    assert_eq!(place.key(), format!("{NEW}\n"));
    let now = std::fs::metadata(&key_file).expect("a file");
    assert_eq!(now.mode() & 0o777, 0o600);
    assert_eq!((now.uid(), now.gid()), (before.uid(), before.gid()));
    assert_eq!(place.files(), ["api-key", "config.toml", "state"]);
    for part in [
        &*key_file,
        "systemctl reload bursar",
        "systemctl restart bursar",
        "(0600)",
    ] {
        assert!(words.contains(part), "{part}: {words}");
    }
    assert!(!words.contains(NEW) && !words.contains(OLD), "{words}");
    let asked = origin.received().remove(0);
    assert!(
        asked.head.starts_with("GET /v1/models HTTP/1.1\r\n"),
        "{}",
        asked.head
    );
    assert!(
        asked.head.contains(&format!("Bearer {NEW}\r\n")),
        "{}",
        asked.head
    );

    let document = place
        .set(&["--no-check", "--json"], &format!("{NEW}\n"))
        .await;
    let document: serde_json::Value = serde_json::from_slice(&document.stdout).expect("one object");
    assert_eq!(document["key_file"], *key_file);
    assert_eq!(
        (&document["checked"], &document["takes"]),
        (&false.into(), &"reload".into())
    );

    // Its statement about the reload is true.
    daemon.signal(Signal::HUP);
    eventually("the reload", || async {
        let page = daemon.admin_page("/metrics").await.text();
        page.contains("bursar_config_reloads_total{result=\"ok\"} 1")
            .then_some(())
    })
    .await;
    let app = daemon.connect().await;
    assert_eq!(
        app.post("/v1/chat/completions", &chat("hi")).await.status,
        200
    );
    let paid = origin.received().remove(1);
    assert!(
        paid.head.contains(&format!("Bearer {NEW}\r\n")),
        "{}",
        paid.head
    );
    daemon.terminate().await;
}

#[tokio::test]
async fn a_key_that_is_refused_or_not_proven_is_not_written() {
    let cases = [
        (401, "refuses this key (401): nothing was written"),
        (403, "refuses this key (403): nothing was written"),
        (503, "is not known: it answered 503"),
        (302, "is not known: it answered 302"),
    ];
    for (status, words) in cases {
        let origin = Origin::start([models(status)]).await;
        let place = Place::before(&origin.url());
        let output = place.set(&[], NEW).await;
        assert_eq!(output.status.code(), Some(1), "{status}: {}", said(&output));
        assert!(said(&output).contains(words), "{status}: {}", said(&output));
        assert_eq!(place.key(), format!("{OLD}\n"), "{status}");
        assert_eq!(place.files(), ["api-key", "config.toml"], "{status}");
    }
    // No service there; and the way past the check.
    let place = Place::before("http://127.0.0.1:9");
    let output = place.set(&[], NEW).await;
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert!(said(&output).contains("--no-check"), "{}", said(&output));
    assert_eq!(place.key(), format!("{OLD}\n"));
    let output = place.set(&["--no-check"], NEW).await;
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!(place.key(), format!("{NEW}\n"));
}

#[tokio::test]
async fn what_is_no_key_or_has_no_place_is_said_and_nothing_is_written() {
    let origin = Origin::always(models(200)).await;
    let place = Place::before(&origin.url());
    for (typed, words) in [
        ("", "the key is empty"),
        ("\n", "the key is empty"),
        ("Bearer sk-1", "not visible ASCII"),
        ("two\nlines", "not visible ASCII"),
        (&"k".repeat(600), "longer than 512"),
    ] {
        let output = place.set(&[], typed).await;
        assert_eq!(
            output.status.code(),
            Some(1),
            "{typed:?}: {}",
            said(&output)
        );
        assert!(
            said(&output).contains(words),
            "{typed:?}: {}",
            said(&output)
        );
        assert_eq!(place.key(), format!("{OLD}\n"));
    }
    assert!(origin.received().is_empty(), "nothing was asked");

    let mut variable = set_command(&["key", "set", "--config", &place.path("config.toml")]);
    variable.env("BURSAR_API_KEY", OLD);
    let output = given(variable, NEW).await;
    assert!(said(&output).contains("unset it"), "{}", said(&output));
    let nowhere = set_command(&["key", "set", "--upstream", &origin.url()]);
    let output = given(nowhere, NEW).await;
    let words = said(&output);
    assert!(
        words.contains("api_key_file") && words.contains("/etc/bursar/api-key"),
        "{words}"
    );
    assert_eq!(output.status.code(), Some(1), "{words}");
    let folder = place.path("folder");
    std::fs::create_dir(&folder).expect("a directory");
    let output = place.set(&["--api-key-file", &folder], NEW).await;
    assert!(said(&output).contains("is no file"), "{}", said(&output));

    // A file that is not there yet is made, and a link stays a link.
    let fresh = place.path("fresh");
    let output = place.set(&["--api-key-file", &fresh], NEW).await;
    assert!(output.status.success(), "{}", said(&output));
    let link = place.path("link");
    std::os::unix::fs::symlink(&fresh, &link).expect("a link");
    let output = place.set(&["--api-key-file", &link], OLD).await;
    assert!(output.status.success(), "{}", said(&output));
    assert!(Path::new(&link).is_symlink());
    let text = std::fs::read_to_string(&fresh).expect("a key");
    assert_eq!(text, format!("{OLD}\n"));
}

/// The file that `systemd/user/bursar.service` waits for; a link to its folder is another name of it.
#[tokio::test]
async fn the_key_of_a_users_own_service_ends_with_the_commands_of_that_service() {
    let origin = Origin::always(models(200)).await;
    let place = Place::before(&origin.url());
    std::fs::create_dir_all(place.path("home/.config")).expect("a directory");
    std::os::unix::fs::symlink(place.folder.path(), place.path("home/.config/bursar"))
        .expect("a link");
    let mut set = set_command(&["key", "set"]);
    set.env("HOME", place.path("home"));
    set.env_remove("XDG_CONFIG_HOME");
    let output = given(set, NEW).await;
    let words = said(&output);
    assert!(output.status.success(), "{words}");
    assert_eq!(place.key(), format!("{NEW}\n"));
    for part in [
        "systemctl --user enable --now bursar.socket bursar",
        "systemctl --user reload bursar",
    ] {
        assert!(words.contains(part), "{part}: {words}");
    }
}

/// Types a key at the prompt, and prints what the terminal showed.
const TERMINAL: &str = r#"
import os, pty, sys, termios
typed, command = eval(sys.argv[1]), sys.argv[2:]
child, keeper = pty.fork()
if child == 0:
    os.execvp(command[0], command)
shown = b""
while True:
    try:
        piece = os.read(keeper, 4096)
    except OSError:
        break
    if not piece:
        break
    shown += piece
    if typed and b"not shown" in shown:
        while termios.tcgetattr(keeper)[3] & termios.ECHO:
            pass
        os.write(keeper, typed)
        typed = b""
os.write(1, shown)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"#;

#[tokio::test]
async fn a_key_typed_at_a_terminal_is_not_shown() {
    let origin = Origin::always(models(200)).await;
    for (typed, code, kept) in [
        (format!("{NEW}x\x7f\r"), 0, NEW),
        (format!("{NEW}\x03"), 1, OLD),
    ] {
        let place = Place::before(&origin.url());
        let config = place.path("config.toml");
        let set = set_command(&["key", "set", "--config", &config]);
        let mut terminal = Command::new("python3");
        terminal
            .args(["-c", TERMINAL, &format!("bytes({:?})", typed.as_bytes())])
            .arg(set.as_std().get_program())
            .args(set.as_std().get_args())
            .env_remove("BURSAR_API_KEY")
            .kill_on_drop(true);
        let ended = tokio::time::timeout(Duration::from_secs(20), terminal.output()).await;
        let output = ended.expect("it ends within 20 s").expect("python3 runs");
        let shown = said(&output);
        assert_eq!(output.status.code(), Some(code), "{shown}");
        assert!(shown.contains("(it is not shown)"), "{shown}");
        assert!(!shown.contains("sk-new"), "{shown}");
        assert_eq!(place.key(), format!("{kept}\n"), "{shown}");
    }
}

/// Sends itself's child a signal while it asks, and prints whether the terminal echoes then.
const SIGNALLED: &str = r#"
import os, subprocess, sys, termios
number, command = int(sys.argv[1]), sys.argv[2:]
keeper, terminal = os.openpty()
echoes = lambda: bool(termios.tcgetattr(keeper)[3] & termios.ECHO)
child = subprocess.Popen(command, stdin=terminal, stdout=terminal, stderr=terminal, start_new_session=True)
shown = b""
while b"not shown" not in shown:
    shown += os.read(keeper, 4096)
while echoes():
    assert child.poll() is None
os.kill(child.pid, number)
child.wait()
print("echoes" if echoes() else "silent")
"#;

#[tokio::test]
async fn a_signal_while_the_key_is_typed_leaves_the_terminals_echo() {
    let place = Place::before("http://127.0.0.1:9");
    let config = place.path("config.toml");
    let set = set_command(&["key", "set", "--config", &config]);
    for number in ["2", "15"] {
        let mut terminal = Command::new("python3");
        terminal
            .args(["-c", SIGNALLED, number])
            .arg(set.as_std().get_program())
            .args(set.as_std().get_args())
            .env_remove("BURSAR_API_KEY")
            .kill_on_drop(true);
        let ended = tokio::time::timeout(Duration::from_secs(20), terminal.output()).await;
        let output = ended.expect("it ends within 20 s").expect("python3 runs");
        assert_eq!(said(&output), "echoes\n", "signal {number}");
    }
    assert_eq!(place.key(), format!("{OLD}\n"));
    assert_eq!(place.files(), ["api-key", "config.toml"]);
}

#[tokio::test]
async fn what_a_killed_run_left_of_a_key_is_gone_after_the_next() {
    let place = Place::before("http://127.0.0.1:9");
    std::fs::write(place.path("api-key.bursar-next"), "sk-half").expect("a file");
    let output = place.set(&["--no-check"], NEW).await;
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!(place.files(), ["api-key", "config.toml"]);
    assert_eq!(place.key(), format!("{NEW}\n"));
}
