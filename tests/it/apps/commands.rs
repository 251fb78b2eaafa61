//! `bursar app`, and what the start says of apps: a real daemon, real commands.

mod set;

use std::path::Path;
use std::process::Output;

use serde_json::Value;

use super::{CHAT, bearer};
use crate::support::bursar::entries;
use crate::support::daemon::{Daemon, Signal, command, run_arguments};
use crate::support::origin::billed;
use crate::support::wire::request;
use crate::support::{Answer, Origin, Step, Wire, chat, eventually};

/// A state directory with its name in UTF-8.
pub(super) struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    pub(super) fn new() -> Self {
        let folder = tempfile::tempdir().expect("a directory");
        Self { folder }
    }

    pub(super) fn state(&self) -> String {
        self.path("state")
    }

    pub(super) fn path(&self, name: &str) -> String {
        let path = self.folder.path().join(name);
        path.to_str().expect("a UTF-8 path").to_owned()
    }

    /// `bursar app …` on this state directory.
    pub(super) async fn app(&self, arguments: &[&str]) -> Output {
        let state = self.state();
        let whole = [&["app"], arguments, &["--state-dir", &state]].concat();
        command(&whole).output().await.expect("the command ends")
    }

    /// The same, which must go well: its standard output.
    pub(super) async fn done(&self, arguments: &[&str]) -> String {
        let output = self.app(arguments).await;
        assert!(output.status.success(), "{arguments:?}: {}", said(&output));
        String::from_utf8(output.stdout).expect("UTF-8")
    }
}

pub(super) fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

pub(super) async fn ask(daemon: &Daemon, token: &str) -> Answer {
    let mut wire = daemon.connect().await;
    let shown = bearer(token);
    wire.send(request(
        "POST",
        CHAT,
        &[("Authorization", &shown)],
        &chat("hi"),
    ))
    .await;
    wire.answer().await
}

#[tokio::test]
async fn apps_come_and_go_beside_a_running_daemon() {
    let origin = Origin::start([Step::Answer(billed(7)), Step::Pieces(vec![billed(8)])]).await;
    let place = Place::new();
    let daemon = Daemon::start(&origin.url(), Path::new(&place.state()), &[]).await;

    let printed = place
        .done(&["add", "nightly", "--cap-day-usd", "2.50"])
        .await;
    let token = printed.trim_end();
    assert!(
        token.starts_with("bursar_") && printed.lines().count() == 1,
        "the token alone"
    );
    assert_eq!(ask(&daemon, token).await.status, 200);
    assert_eq!(ask(&daemon, "unused").await.status, 401);

    let listed: Value = serde_json::from_str(&place.done(&["list", "--json"]).await).expect("JSON");
    assert_eq!(listed["anonymous"], false);
    assert_eq!(listed["apps"][0]["name"], "nightly");
    assert_eq!(listed["apps"][0]["cap_day_micro_usd"], 2_500_000);
    assert!(!listed.to_string().contains(&token[7..]), "{listed}");
    let table = place.done(&["list"]).await;
    assert!(
        table.contains("nightly") && table.contains("$2.500000"),
        "{table}"
    );

    // A request that runs is not concerned.
    let mut running = daemon.connect().await;
    let shown = bearer(token);
    running
        .send(request(
            "POST",
            CHAT,
            &[("Authorization", &shown)],
            &chat("long"),
        ))
        .await;
    eventually("the service to receive", || async {
        (origin.received().len() == 2).then_some(())
    })
    .await;
    let second = place.done(&["rotate", "nightly"]).await;
    assert_eq!(ask(&daemon, token).await.code(), Some("token_refused"));
    place.done(&["remove", "nightly"]).await;
    assert_eq!(
        ask(&daemon, second.trim_end()).await.code(),
        Some("token_refused")
    );
    origin.go();
    let answer = running.answer().await;
    assert_eq!(
        (answer.status, answer.header("x-service-billed")),
        (200, Some("8"))
    );

    daemon.terminate().await;
    let apps: Vec<String> = entries(Path::new(&place.state()))
        .iter()
        .map(|entry| entry.app.to_string())
        .collect();
    assert_eq!(apps, ["nightly", "nightly"]);
}

#[tokio::test]
async fn apps_are_kept_where_no_daemon_runs_and_known_to_the_next_one() {
    let origin = Origin::always(Step::Answer(billed(7))).await;
    let place = Place::new();
    let token = place.done(&["add", "nightly"]).await;
    let listed: Value = serde_json::from_str(&place.done(&["list", "--json"]).await).expect("JSON");
    assert_eq!(listed["apps"][0]["name"], "nightly");

    let daemon = Daemon::start(&origin.url(), Path::new(&place.state()), &[]).await;
    assert_eq!(ask(&daemon, token.trim_end()).await.status, 200);
    daemon.kill().await;
    // A lock that a killed daemon left behind does not block the file.
    let second = place.done(&["rotate", "nightly"]).await;
    let daemon = Daemon::start(&origin.url(), Path::new(&place.state()), &[]).await;
    assert_eq!(ask(&daemon, token.trim_end()).await.status, 401);
    assert_eq!(ask(&daemon, second.trim_end()).await.status, 200);
    daemon.terminate().await;
}

#[tokio::test]
async fn a_declared_app_is_changed_in_its_file() {
    let origin = Origin::always(Step::Answer(billed(7))).await;
    let place = Place::new();
    let (config, file) = (place.path("config.toml"), place.path("token"));
    let write_token = |token: &str| {
        use std::os::unix::fs::PermissionsExt;
        std::fs::write(&file, token).expect("a file");
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).expect("a mode");
    };
    let first = "first-token-0123456789abcdef0123456789";
    let second = "second-token-0123456789abcdef0123456789";
    write_token(first);
    std::fs::write(
        &config,
        "\n[[app]]\nname = \"team\"\ntoken_file = \"token\"\n",
    )
    .expect("a file");
    let with_config = ["--config", config.as_str()];
    let daemon = Daemon::start(&origin.url(), Path::new(&place.state()), &with_config).await;
    assert_eq!(ask(&daemon, first).await.status, 200);

    for arguments in [["remove", "team"], ["rotate", "team"], ["add", "team"]] {
        let output = place.app(&arguments).await;
        assert_eq!(output.status.code(), Some(1));
        assert!(said(&output).contains("config.toml:2"), "{}", said(&output));
    }
    // The file is read again with the configuration.
    write_token(second);
    daemon.signal(Signal::HUP);
    eventually("the new token to be known", || async {
        (ask(&daemon, second).await.status == 200).then_some(())
    })
    .await;
    assert_eq!(ask(&daemon, first).await.code(), Some("token_refused"));

    // An app of the same name cannot be declared beside one that was added.
    let added = place.done(&["add", "extra"]).await;
    std::fs::write(&config, "[[app]]\nname = \"extra\"\n").expect("a file");
    daemon.signal(Signal::HUP);
    eventually("the reload to be refused", || async {
        let page = daemon.admin_page("/metrics").await.text();
        page.contains("bursar_config_reloads_total{result=\"refused\"} 1")
            .then_some(())
    })
    .await;
    assert_eq!(ask(&daemon, added.trim_end()).await.status, 200);
    assert_eq!(ask(&daemon, second).await.status, 200, "nothing changed");
    daemon.terminate().await;
    // Nor does a daemon start; the command line is the way out.
    let state = place.state();
    let mut arguments = run_arguments("http://127.0.0.1:9", &state);
    arguments.extend(with_config);
    let output = command(&arguments).output().await.expect("it ends");
    assert!(
        said(&output).contains("`bursar app remove extra`"),
        "{}",
        said(&output)
    );
    place.done(&["remove", "extra", "--config", &config]).await;
    let daemon = Daemon::start(&origin.url(), Path::new(&state), &with_config).await;
    daemon.terminate().await;
}

/// Threat row 26: state is not changed over a port, nor by a GET.
#[tokio::test]
async fn nothing_is_changed_over_a_port() {
    let place = Place::new();
    let daemon = Daemon::start("http://127.0.0.1:9", Path::new(&place.state()), &[]).await;
    let added = r#"{"name":"evil"}"#;
    for path in [
        "/api/apps/add",
        "/api/apps/set",
        "/api/apps/remove",
        "/api/apps/rotate",
    ] {
        let mut wire = Wire::tcp(daemon.admin).await;
        wire.send(request("POST", path, &[], added)).await;
        let answer = wire.answer().await;
        assert_eq!(answer.status, 405, "{path}: {}", answer.text());
        assert!(answer.text().contains("socket"), "{}", answer.text());
    }
    let socket = Path::new(&place.state()).join("admin.sock");
    type Headers<'a> = &'a [(&'a str, &'a str)];
    let cases: [(&str, &str, Headers<'_>, u16); 7] = [
        ("GET", "/api/apps/add", &[], 404),
        ("POST", "/api/apps", &[], 405),
        ("PUT", "/api/apps/add", &[], 405),
        (
            "POST",
            "/api/apps/add",
            &[("Content-Type", "text/plain")],
            415,
        ),
        (
            "POST",
            "/api/apps/add",
            &[("Origin", "http://evil.example")],
            403,
        ),
        ("POST", "/api/apps/add", &[("Host", "evil.example")], 403),
        (
            "POST",
            "/api/apps/add",
            &[("Sec-Fetch-Site", "cross-site")],
            403,
        ),
    ];
    for (method, path, headers, status) in cases {
        let mut wire = Wire::unix(&socket).await;
        wire.send(request(method, path, headers, added)).await;
        let answer = wire.answer().await;
        assert_eq!(
            answer.status,
            status,
            "{method} {path} {headers:?}: {}",
            answer.text()
        );
    }
    for body in [
        "",
        "{",
        "[]",
        "{\"name\":5}",
        "{\"name\":\"a\",\"more\":1}",
        "{\"name\":\"../a\"}",
    ] {
        let mut wire = Wire::unix(&socket).await;
        let typed = [("Content-Type", "application/json")];
        wire.send(request("POST", "/api/apps/add", &typed, body))
            .await;
        let status = wire.answer().await.status;
        assert!((400..500).contains(&status), "{body}: {status}");
    }
    let long = format!("{{\"name\":\"a\",\"uids\":[{}1]}}", "1,".repeat(40_000));
    let mut wire = Wire::unix(&socket).await;
    wire.try_send(request("POST", "/api/apps/add", &[], &long))
        .await;
    assert_eq!(wire.answer().await.status, 400, "a body has a limit");

    let apps = daemon.admin_page("/api/apps").await.json();
    assert_eq!(apps["apps"].as_array().map(Vec::len), Some(0), "{apps}");
    let output = place
        .app(&["add", "x", "--admin", &daemon.admin.to_string()])
        .await;
    assert_eq!(output.status.code(), Some(2));
    daemon.terminate().await;
}

#[tokio::test]
async fn the_page_and_the_commands_say_which_processes_may_spend() {
    let place = Place::new();
    let daemon = Daemon::start("http://127.0.0.1:9", Path::new(&place.state()), &[]).await;
    let ready = || async { daemon.admin_page("/readyz").await.text() };
    assert!(
        ready()
            .await
            .contains("every process of this machine may spend")
    );
    assert!(
        daemon
            .admin_page("/")
            .await
            .text()
            .contains("every process of this machine")
    );
    assert_eq!(
        daemon.admin_page("/api/status").await.json()["anonymous"],
        true
    );

    let output = place.app(&["add", "nightly"]).await;
    assert!(
        !said(&output).contains("every process"),
        "{}",
        said(&output)
    );
    assert_eq!(ready().await, "ok\n");
    assert!(
        daemon
            .admin_page("/")
            .await
            .text()
            .contains("apps with a token or a user")
    );
    assert_eq!(
        daemon.admin_page("/api/status").await.json()["anonymous"],
        false
    );

    // Removing the last app opens the door again, and the command says so.
    let output = place.app(&["remove", "nightly"]).await;
    assert!(
        said(&output).contains("every process of this machine may spend"),
        "{}",
        said(&output)
    );
    daemon.terminate().await;
}

#[tokio::test]
async fn a_socket_is_opened_to_users_while_apps_are_known_by_them() {
    use std::os::unix::fs::PermissionsExt;
    let place = Place::new();
    let socket = place.path("app.sock");
    let address = format!("unix:{socket}");
    let more = ["--listen", address.as_str()];
    let daemon = Daemon::start("http://127.0.0.1:9", Path::new(&place.state()), &more).await;
    let mode = || {
        let metadata = std::fs::metadata(&socket).expect("a socket");
        metadata.permissions().mode() & 0o777
    };
    assert_eq!(
        mode(),
        0o600,
        "anybody may spend: this user's files keep others out"
    );

    place.done(&["add", "nightly"]).await;
    assert_eq!(mode(), 0o600, "no app is known by its user");
    place.done(&["add", "team", "--uid", "4000000"]).await;
    eventually("the socket to be open", || async {
        (mode() == 0o666).then_some(())
    })
    .await;
    place.done(&["remove", "team"]).await;
    eventually("the socket to be closed", || async {
        (mode() == 0o600).then_some(())
    })
    .await;
    daemon.terminate().await;
}

/// Threat row 18: other machines are let in with tokens only.
#[tokio::test]
async fn an_address_beyond_loopback_takes_an_app_with_a_token() {
    let origin = Origin::always(Step::Answer(billed(7))).await;
    let place = Place::new();
    let (config, state, url) = (place.path("config.toml"), place.state(), origin.url());
    std::fs::write(
        &config,
        "[listen]\nproxy = [\"0.0.0.0:0\"]\nallow_remote = true\n",
    )
    .expect("a file");
    let run = || {
        let run = [
            "run",
            "--upstream",
            &url,
            "--state-dir",
            &state,
            "--admin",
            "127.0.0.1:0",
        ];
        command(&[&run[..], &["--config", &config]].concat())
    };
    let output = run().output().await.expect("it ends");
    assert_eq!(output.status.code(), Some(78), "{}", said(&output));
    assert!(
        said(&output).contains("every request would be refused"),
        "{}",
        said(&output)
    );

    let token = place.done(&["add", "nightly"]).await;
    let daemon = Daemon::ready(run()).await;
    assert_eq!(ask(&daemon, token.trim_end()).await.status, 200);
    assert_eq!(ask(&daemon, "unused").await.status, 401);
    place.done(&["remove", "nightly"]).await;
    let mut wire = daemon.connect().await;
    wire.send(request("POST", CHAT, &[], &chat("hi"))).await;
    assert_eq!(
        wire.answer().await.code(),
        Some("token_missing"),
        "never open to every user"
    );
    daemon.terminate().await;
}

#[tokio::test]
async fn a_damaged_file_of_apps_stops_the_start() {
    let place = Place::new();
    place.done(&["add", "nightly"]).await;
    let file = Path::new(&place.state()).join("apps.json");
    let text = std::fs::read_to_string(&file).expect("a text");
    std::fs::write(&file, text.replacen("nightly", "nightlx", 1)).expect("a file");
    let state = place.state();

    let output = command(&run_arguments("http://127.0.0.1:9", &state))
        .output()
        .await;

    let output = output.expect("it ends");
    assert_eq!(output.status.code(), Some(78), "a restart does not mend it");
    assert!(
        said(&output).contains("apps.json is damaged"),
        "{}",
        said(&output)
    );
}

#[tokio::test]
async fn no_log_shows_a_token() {
    let origin = Origin::always(Step::Answer(billed(7))).await;
    let place = Place::new();
    let config = place.path("config.toml");
    std::fs::write(&config, "[log]\nlevel = \"trace\"\n").expect("a file");
    let (state, url) = (place.state(), origin.url());
    let run = run_arguments(&url, &state);
    let mut run = command(&[&run[..], &["--config", &config]].concat());
    let log = std::fs::File::create(place.path("log")).expect("a file");
    run.stderr(log);
    let daemon = Daemon::launched(run).await.expect("the daemon went on");
    let first = place.done(&["add", "nightly"]).await;
    assert_eq!(ask(&daemon, first.trim_end()).await.status, 200);
    let second = place.done(&["rotate", "nightly"]).await;
    assert_eq!(ask(&daemon, first.trim_end()).await.status, 401);
    let mistyped = format!("{}0", second.trim_end());
    assert_eq!(ask(&daemon, &mistyped).await.status, 401);
    assert_eq!(ask(&daemon, "sk-of-another-service").await.status, 401);
    daemon.terminate().await;

    let log = std::fs::read_to_string(place.path("log")).expect("a log");
    for secret in [first.trim_end(), second.trim_end(), "sk-of-another-service"] {
        for part in [secret, &secret[7..], &secret[secret.len() - 12..]] {
            assert!(!log.contains(part), "a token is in the log");
        }
    }
    for kind in ["unknown", "mistyped", "foreign"] {
        assert!(log.contains(&format!("token=\"{kind}\"")), "{kind}: {log}");
    }
    assert!(
        log.contains("app=\"nightly\"") || log.contains("app=nightly"),
        "{log}"
    );
}

/// A cap set by `app add` applies before the token does, beside a daemon and after a restart.
#[tokio::test]
async fn an_added_app_has_its_cap_at_once_and_after_a_restart() {
    let origin = Origin::always(Step::Answer(billed(700_000))).await;
    let place = Place::new();
    let daemon = Daemon::start(&origin.url(), Path::new(&place.state()), &[]).await;
    let capped = place
        .done(&["add", "capped", "--cap-month-usd", "0.50"])
        .await;
    let free = place.done(&["add", "free"]).await;

    assert_eq!(ask(&daemon, capped.trim_end()).await.status, 200);
    let refused = ask(&daemon, capped.trim_end()).await;
    assert_eq!(
        (refused.status, refused.code()),
        (402, Some("cap_reached")),
        "{}",
        refused.text()
    );
    assert!(refused.text().contains("capped"), "{}", refused.text());
    assert_eq!(ask(&daemon, free.trim_end()).await.status, 200);

    daemon.terminate().await;
    let daemon = Daemon::start(&origin.url(), Path::new(&place.state()), &[]).await;
    assert_eq!(
        ask(&daemon, capped.trim_end()).await.code(),
        Some("cap_reached")
    );
    assert_eq!(ask(&daemon, free.trim_end()).await.status, 200);
    daemon.terminate().await;
}
