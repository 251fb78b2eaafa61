//! Orders and edits by an operator: on the command line, with and without a daemon, and by a reload.

use std::path::Path;
use std::process::Output;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::Value;

use crate::support::daemon::{Daemon, Signal, command};
use crate::support::origin::billed;
use crate::support::wire::request;
use crate::support::{Answer, Origin, Step, chat, eventually};

struct Place {
    directory: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        Self { directory }
    }

    fn state_dir(&self) -> std::path::PathBuf {
        self.directory.path().join("state")
    }

    fn config(&self, day_micro_usd: u64) -> String {
        let path = self.directory.path().join("config.toml");
        let text = format!(
            "[ledger]\nstate_dir = {:?}\n[caps]\ntime_zone = \"UTC\"\nday_micro_usd = {day_micro_usd}\n\
             request_floor_micro_usd = 0\n[listen]\nanonymous = true\n\
             [[app]]\nname = \"nightly\"\nuids = [4242]\n",
            self.state_dir()
        );
        std::fs::write(&path, text).expect("a config");
        text_of(&path)
    }

    async fn daemon(&self, origin: &Origin, config: &str) -> Daemon {
        Daemon::start(&origin.url(), &self.state_dir(), &["--config", config]).await
    }

    async fn output_of(&self, arguments: &[&str], config: &str) -> Output {
        let mut arguments = arguments.to_vec();
        arguments.extend(["--config", config]);
        command(&arguments)
            .output()
            .await
            .expect("the command ends")
    }

    async fn does(&self, arguments: &[&str], config: &str) -> String {
        let output = self.output_of(arguments, config).await;
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {said}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    async fn cap(&self, config: &str) -> Value {
        let text = self.does(&["caps", "--json"], config).await;
        let view: Value = serde_json::from_str(&text).expect("JSON");
        view["caps"][0].clone()
    }
}

fn text_of(path: &Path) -> String {
    path.to_str().expect("a path").to_owned()
}

/// Something new each time: a repeat of what a killed daemon did not deliver would be charged already.
async fn buy(daemon: &Daemon) -> Answer {
    static NUMBER: AtomicU64 = AtomicU64::new(100);
    let prompt = NUMBER.fetch_add(1, Ordering::Relaxed).to_string();
    let mut wire = daemon.connect().await;
    wire.send(request("POST", "/v1/chat/completions", &[], &chat(&prompt)))
        .await;
    wire.answer().await
}

#[tokio::test]
async fn a_cap_is_edited_by_a_reload_and_raised_by_an_order_and_nothing_spent_is_forgotten() {
    let (place, origin) = (Place::new(), Origin::always(Step::Answer(billed(60))).await);
    let config = place.config(50);
    let daemon = place.daemon(&origin, &config).await;
    assert_eq!(buy(&daemon).await.status, 200);
    assert_eq!(buy(&daemon).await.status, 402);

    place.config(100);
    daemon.signal(Signal::HUP);
    eventually("the reload", || async {
        (place.cap(&config).await["limit_micro_usd"] == 100).then_some(())
    })
    .await;
    assert_eq!(place.cap(&config).await["spent_micro_usd"], 60);
    assert_eq!(buy(&daemon).await.status, 200);
    assert_eq!(buy(&daemon).await.status, 402);

    let lower = place
        .output_of(
            &["caps", "raise", "all", "day", "--to-usd", "0.00009"],
            &config,
        )
        .await;
    assert_eq!(
        lower.status.code(),
        Some(1),
        "an order does not lower a cap"
    );
    let none = place
        .output_of(&["caps", "raise", "all", "hour", "--to-usd", "1"], &config)
        .await;
    assert_eq!(none.status.code(), Some(1), "there is no such cap");
    place
        .does(
            &["caps", "raise", "all", "day", "--to-usd", "0.00015"],
            &config,
        )
        .await;
    assert_eq!(buy(&daemon).await.status, 200);
    assert_eq!(buy(&daemon).await.status, 402);

    daemon.kill().await;
    let offline = place.cap(&config).await;
    let daemon = place.daemon(&origin, &config).await;
    let online = place.cap(&config).await;
    for cap in [&offline, &online] {
        assert_eq!(cap["limit_micro_usd"], 150, "{cap}");
        assert_eq!(cap["configured_micro_usd"], 100, "{cap}");
        assert_eq!(cap["spent_micro_usd"], 180, "{cap}");
        assert_eq!(cap["worst_case_micro_usd"], 180 + 60, "{cap}");
    }
    assert_eq!(buy(&daemon).await.status, 402);
    let text = place.does(&["caps"], &config).await;
    assert!(
        text.contains("raised: the ")
            && text.contains("to $0.000150")
            && text.contains("worst case"),
        "{text}"
    );
    daemon.terminate().await;
}

#[tokio::test]
async fn freeze_and_thaw_work_with_and_without_a_daemon_and_through_the_socket_alone() {
    let (place, origin) = (Place::new(), Origin::always(Step::Answer(billed(60))).await);
    let config = place.config(1_000_000);
    let daemon = place.daemon(&origin, &config).await;
    assert_eq!(buy(&daemon).await.status, 200);
    place.does(&["freeze"], &config).await;
    let refused = buy(&daemon).await;
    assert_eq!(refused.status, 403, "{}", refused.text());
    let ready = daemon.admin_page("/readyz").await;
    assert_eq!(ready.status, 200);
    assert!(ready.text().contains("frozen"), "{}", ready.text());
    let page = daemon.admin_page("/").await.text();
    assert!(page.contains("frozen") && page.contains("Caps"), "{page}");

    // Over TCP nothing is ordered.
    let mut wire = crate::support::Wire::tcp(daemon.admin).await;
    wire.send("POST /api/thaw HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n")
        .await;
    assert_eq!(wire.answer().await.status, 405);
    daemon.kill().await;

    let daemon = place.daemon(&origin, &config).await;
    assert_eq!(buy(&daemon).await.status, 403, "it survives a kill");
    daemon.terminate().await;
    place.does(&["thaw"], &config).await;
    place.does(&["freeze", "nightly"], &config).await;
    let daemon = place.daemon(&origin, &config).await;
    assert_eq!(buy(&daemon).await.status, 200);
    place.does(&["freeze", "default"], &config).await;
    assert_eq!(buy(&daemon).await.status, 403);
    place.does(&["thaw", "default"], &config).await;
    assert_eq!(buy(&daemon).await.status, 200);
    let text = place.does(&["caps"], &config).await;
    assert!(
        text.contains("FROZEN") && text.contains("nightly"),
        "{text}"
    );
    daemon.terminate().await;
}

#[tokio::test]
async fn an_order_that_would_have_no_effect_is_an_error() {
    let place = Place::new();
    let config = place.config(50);
    let freeze: &[&str] = &["freeze"];
    let nowhere = place.output_of(freeze, &config).await;
    let said = String::from_utf8_lossy(&nowhere.stderr).into_owned();
    assert_eq!(nowhere.status.code(), Some(1), "{said}");
    assert!(said.contains("there is no ledger in"), "{said}");
    assert!(!place.state_dir().exists(), "nothing was made there");

    let origin = Origin::always(Step::Answer(billed(1))).await;
    let daemon = place.daemon(&origin, &config).await;
    for running in [true, false] {
        if !running {
            daemon.signal(Signal::TERM);
            eventually("the end of the daemon", || async {
                let socket = place.state_dir().join("admin.sock");
                (!socket.exists()).then_some(())
            })
            .await;
        }
        let slip = place.output_of(&["freeze", "nobody"], &config).await;
        let said = String::from_utf8_lossy(&slip.stderr).into_owned();
        assert_eq!(slip.status.code(), Some(1), "{said}");
        assert!(said.contains("there is no app \"nobody\""), "{said}");
        let done = place.does(&["freeze", "nightly"], &config).await;
        assert!(done.contains("bursar thaw nightly"), "{done}");
        assert_eq!(done.contains("no daemon runs on"), !running, "{done}");
    }
}

#[tokio::test]
async fn a_raise_is_taken_back_by_an_order_or_an_edit_and_says_what_else_holds() {
    let (place, origin) = (Place::new(), Origin::always(Step::Answer(billed(60))).await);
    let config = place.config(50);
    let limit = |wanted: u64| {
        let (place, config) = (&place, &config);
        async move {
            eventually("the limit", || async {
                (place.cap(config).await["limit_micro_usd"] == wanted).then_some(())
            })
            .await;
        }
    };
    let daemon = place.daemon(&origin, &config).await;
    assert_eq!(buy(&daemon).await.status, 200);
    let raise = ["caps", "raise", "all", "day", "--to-usd", "0.0002"];
    let undo = ["caps", "raise", "all", "day", "--undo"];
    place.does(&raise, &config).await;
    limit(200).await;
    assert_eq!(buy(&daemon).await.status, 200);
    let printed = place.does(&undo, &config).await;
    assert!(
        printed.contains("$0.000050") && printed.contains("as configured"),
        "{printed}"
    );
    assert_eq!(buy(&daemon).await.status, 402);
    assert_eq!(place.cap(&config).await["spent_micro_usd"], 120);

    // The configuration is edited: that is the younger word, above the raise and below it.
    for edited in [190, 130, 500] {
        place.does(&raise, &config).await;
        place.config(edited);
        daemon.signal(Signal::HUP);
        limit(edited).await;
        place.config(50);
        daemon.signal(Signal::HUP);
        limit(200).await;
    }
    daemon.kill().await;
    place.does(&undo, &config).await;
    limit(50).await;
    let json = place
        .does(&[&raise[..], &["--json"]].concat(), &config)
        .await;
    let raised: Value = serde_json::from_str(&json).expect("one object");
    assert_eq!(raised["order"], "raise", "{raised}");
    assert_eq!(raised["app"], Value::Null);
    assert_eq!(
        (&raised["period"], &raised["limit_micro_usd"]),
        (&"day".into(), &200.into())
    );
    assert_eq!(
        (&raised["in_force"], &raised["caps"][0]["limit_micro_usd"]),
        (&false.into(), &200.into())
    );
    place.does(&undo, &config).await;
    let none = place
        .output_of(&["caps", "raise", "all", "hour", "--undo"], &config)
        .await;
    assert_eq!(none.status.code(), Some(1));
    let said = String::from_utf8_lossy(&none.stderr).into_owned();
    for part in [
        "no cap of the hour for all apps together",
        "in the configuration",
    ] {
        assert!(said.contains(part), "{said}");
    }
    let both = place
        .output_of(
            &["caps", "raise", "all", "day", "--undo", "--to-usd", "1"],
            &config,
        )
        .await;
    assert_eq!(both.status.code(), Some(2));
    let negative = place
        .output_of(&["caps", "raise", "all", "day", "--to-usd", "-1"], &config)
        .await;
    let said = String::from_utf8_lossy(&negative.stderr).into_owned();
    assert!(said.contains("dollars, 0 or more"), "{said}");

    // With and without a daemon, a raise that a tighter cap makes useless says so.
    let mut text = std::fs::read_to_string(&config).expect("a config");
    text.push_str("cap_hour_micro_usd = 10\ncap_day_micro_usd = 40\n");
    std::fs::write(&config, text).expect("a config");
    let mut running = None;
    for to in ["0.00003", "0.000045", "0.0001"] {
        let done = place
            .output_of(
                &["caps", "raise", "nightly", "hour", "--to-usd", to],
                &config,
            )
            .await;
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        assert!(done.status.success(), "{said}");
        let own = said.contains("the cap of nightly is $0.000040 for the day");
        let all = said.contains("the cap of all apps together is $0.000050 for the day");
        let wanted = match to {
            "0.00003" => (false, false),
            "0.000045" => (true, false),
            _ => (true, true),
        };
        assert_eq!((own, all), wanted, "{to}: {said}");
        if running.is_none() {
            running = Some(place.daemon(&origin, &config).await);
        }
    }
    running.expect("a daemon").terminate().await;
}
