//! What of the fleet lies in a machine's files: the orders that were heard last, and the database's URL. No database is
//! needed.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::time::Duration;

use bursar::fleet::Shipping;
use serde_json::Value;
use tempfile::TempDir;

use super::private_file;
use crate::support::daemon::{Daemon, command, run_arguments};
use crate::support::origin::billed;
use crate::support::wire::request;
use crate::support::{Origin, Step, chat, within};

/// Nothing listens there.
const URL: &str = "postgresql://node:a-password-of-the-fleet@127.0.0.1:9/fleet\n";

/// A machine in a fleet whose database is away.
struct Machine {
    folder: TempDir,
}

impl Machine {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a directory");
        let machine = Self { folder };
        private_file(&machine.path("url"), URL);
        machine.write(
            "config.toml",
            "[fleet]\nurl_file = \"url\"\nship_interval_s = 1\n",
        );
        machine
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        self.path(name).to_str().expect("UTF-8").to_owned()
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).expect("a file");
    }

    fn mode(&self, name: &str, mode: u32) {
        let mode = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(self.path(name), mode).expect("a mode");
    }

    async fn daemon(&self, upstream: &str) -> Daemon {
        let config = self.text("config.toml");
        Daemon::start(upstream, &self.path("state"), &["--config", &config]).await
    }

    /// A command about this machine's ledger, with its configuration or with an empty one.
    async fn gives(&self, arguments: &[&str], config: &str) -> Output {
        let (config, state) = (self.text(config), self.text("state"));
        let place = ["--config", &config, "--state-dir", &state];
        let whole = [arguments, &place].concat();
        command(&whole).output().await.expect("it ends")
    }

    async fn said(&self, arguments: &[&str], config: &str) -> String {
        let output = self.gives(arguments, config).await;
        let (out, err) = (text(&output.stdout), text(&output.stderr));
        assert!(output.status.success(), "{arguments:?}: {out}{err}");
        out
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The file `fleet-orders`: all apps are frozen.
fn froze_all(state: &Path) {
    let body = r#"{"kind":"fleet_orders","format":1,"freezes":[{"app":"","since_ms":1700000000000,"by":"alice"}]"#;
    let crc = crc32c::crc32c(body.as_bytes());
    let file = state.join("fleet-orders");
    private_file(&file, &format!("{body},\"crc\":\"{crc:08x}\"}}\n"));
}

#[tokio::test]
async fn without_a_daemon_the_commands_know_what_the_fleet_has_frozen() {
    let origin = Origin::always(Step::Answer(billed(7))).await;
    let machine = Machine::new();
    machine.write("alone.toml", "");
    machine.daemon(&origin.url()).await.terminate().await;
    froze_all(&machine.path("state"));

    let caps = machine.said(&["caps", "--json"], "config.toml").await;
    let caps: Value = serde_json::from_str(&caps).expect("a document");
    assert_eq!(caps["frozen"][0]["fleet"], true, "{caps}");
    let status = machine.gives(&["status"], "config.toml").await;
    let status = text(&status.stdout);
    assert!(
        status.contains("FROZEN") && status.contains("bursar fleet thaw"),
        "{status}"
    );
    for words in [&["freeze"][..], &["thaw"][..]] {
        let order = machine
            .said(&[words, &["--json"]].concat(), "config.toml")
            .await;
        let order: Value = serde_json::from_str(&order).expect("a document");
        let frozen = order["frozen"].as_array().expect("a list");
        assert!(
            frozen.iter().any(|freeze| freeze["fleet"] == true),
            "{order}"
        );
    }
    let thaw = machine.said(&["thaw"], "config.toml").await;
    assert!(
        thaw.contains("still frozen for the whole fleet: `bursar fleet thaw`"),
        "{thaw}"
    );
    // A ledger that is in no fleet obeys none.
    let alone = machine.said(&["thaw"], "alone.toml").await;
    assert!(!alone.contains("fleet"), "{alone}");

    // The next daemon sees it as they did.
    let daemon = machine.daemon(&origin.url()).await;
    let mut app = daemon.connect().await;
    app.send(request("POST", "/v1/chat/completions", &[], &chat("hi")))
        .await;
    let refused = app.answer().await;
    assert_eq!(refused.code(), Some("frozen"), "{}", refused.text());
    daemon.terminate().await;
}

/// The file holds a password. The start says it, as it does of the key's file.
#[tokio::test]
async fn a_url_that_every_user_may_read_is_used_by_no_start_no_visit_and_no_command() {
    let upstream = Origin::start([]).await.url();
    let machine = Machine::new();
    let url = machine.text("url");
    let daemon = machine.daemon(&upstream).await;
    is_reported(&daemon, "cannot be reached").await;
    machine.mode("url", 0o604);
    let remedy = format!("chmod o-rwx {url}");

    is_reported(&daemon, &remedy).await;
    daemon.terminate().await;
    let state = machine.text("state");
    let config = machine.text("config.toml");
    let mut start = run_arguments(&upstream, &state);
    start.extend(["--config", &config]);
    let check = ["check", "--upstream", &upstream, "--config", &config];
    let asked = ["fleet", "status", "--url-file", &url, "--config", &config];
    for (arguments, code) in [(&*start, 78), (&check, 78), (&asked, 1)] {
        let output = command(arguments).output().await.expect("it ends");
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {said}");
        assert!(said.contains(&remedy), "{said}");
        assert!(!said.contains("a-password-of-the-fleet"), "{said}");
    }
}

/// The machine's part is done, and the operator's is named.
#[tokio::test]
async fn a_leave_without_the_database_says_that_the_fleet_was_not_told() {
    let upstream = Origin::start([]).await.url();
    let machine = Machine::new();
    machine.daemon(&upstream).await.terminate().await;
    let shipping = Shipping::create(machine.path("state"), "host-1".to_owned(), false);
    let ledger = shipping.expect("a name").identity().ledger.to_string();

    let kept = machine.gives(&["fleet", "leave"], "config.toml").await;
    let why = text(&kept.stderr);
    assert_eq!(kept.status.code(), Some(1), "{why}");
    assert!(why.contains("is still in its fleet"), "{why}");
    let leave = ["fleet", "leave", "--unshipped"];
    let said = machine.said(&leave, "config.toml").await;
    let revoke = format!("`bursar fleet revoke {}`", &ledger[24..]);
    for wanted in ["the fleet was not told", &revoke] {
        assert!(said.contains(wanted), "{wanted}: {said}");
    }
    let config = std::fs::read_to_string(machine.path("config.toml")).expect("a file");
    assert!(!config.contains("url_file"), "{config}");
    let document = [&leave[..], &["--json"]].concat();
    let document = machine.said(&document, "config.toml").await;
    let document: Value = serde_json::from_str(&document).expect("a document");
    assert_eq!(
        (&document["ledger"], &document["left"]),
        (&ledger.into(), &false.into()),
        "{document}"
    );
}

/// Why the fleet is not reached.
async fn is_reported(daemon: &Daemon, why: &str) {
    within(Duration::from_secs(60), why, || async {
        let status = daemon.admin_page("/api/status").await;
        let status: Value = serde_json::from_str(&status.text()).ok()?;
        let trouble = status["fleet"]["trouble"].as_str().unwrap_or_default();
        trouble.contains(why).then_some(())
    })
    .await;
}
