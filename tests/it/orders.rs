//! Orders as an operator meets them when something is wrong: a daemon that hangs, an admin listener that
//! others fill, a name that was mistyped. Each command ends, says what it did, and what to do.

use std::path::Path;
use std::process::Output;
use std::time::Duration;

use serde_json::Value;

use crate::support::daemon::{Daemon, Signal, command};
use crate::support::origin::billed;
use crate::support::wire::request;
use crate::support::{Origin, Step, Wire, chat, within};

/// Connections of one kind at once (`CONNECTIONS_MAX` of the admin listener).
const CONNECTIONS: usize = 64;

struct Place {
    folder: tempfile::TempDir,
    daemon: Daemon,
}

impl Place {
    async fn new(origin: &Origin) -> Self {
        let folder = tempfile::tempdir().expect("a directory");
        let daemon = Daemon::start(&origin.url(), &folder.path().join("state"), &[]).await;
        Self { folder, daemon }
    }

    fn state(&self) -> String {
        let state = self.folder.path().join("state");
        state.to_str().expect("a UTF-8 path").to_owned()
    }

    async fn output_of(&self, arguments: &[&str]) -> Output {
        let state = self.state();
        let (before, after) = match arguments.iter().position(|word| *word == "--") {
            Some(at) => arguments.split_at(at),
            None => (arguments, &[][..]),
        };
        let whole = [before, &["--state-dir", &state], after].concat();
        command(&whole).output().await.expect("the command ends")
    }

    /// Its output, if it succeeded.
    async fn done(&self, arguments: &[&str]) -> String {
        let output = self.output_of(arguments).await;
        assert!(output.status.success(), "{arguments:?}: {}", said(&output));
        String::from_utf8(output.stdout).expect("UTF-8")
    }

    async fn json(&self, arguments: &[&str]) -> Value {
        serde_json::from_str(&self.done(arguments).await).expect("JSON")
    }

    async fn status(&self) -> u16 {
        let mut wire = self.daemon.connect().await;
        wire.send(request("POST", "/v1/chat/completions", &[], &chat("hi")))
            .await;
        wire.answer().await.status
    }
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[tokio::test]
async fn before_a_daemon_that_hangs_every_order_ends_and_a_freeze_holds_when_it_goes_on() {
    let origin = Origin::always(Step::Answer(billed(7))).await;
    let place = Place::new(&origin).await;
    assert_eq!(place.status().await, 200);
    place.daemon.signal(Signal::STOP);
    let raise = ["caps", "raise", "all", "day", "--to-usd", "5"];
    let exec = ["exec", "--app", "nightly", "--", "true"];
    let all = async {
        tokio::join!(
            place.output_of(&["freeze"]),
            place.output_of(&["freeze", "nobody"]),
            place.output_of(&["thaw"]),
            place.output_of(&["app", "add", "nightly"]),
            place.output_of(&raise),
            place.output_of(&exec),
            place.output_of(&["spend", "--json"]),
        )
    };
    let ended = tokio::time::timeout(Duration::from_secs(20), all).await;
    let (freeze, slip, thaw, add, raise, exec, spend) = ended.expect("each ends by itself");

    let pid = place.daemon.child.id().expect("it runs").to_string();
    for (output, part) in [
        (&freeze, "The order is on the disk"),
        (&slip, "there is no app \"nobody\""),
        (&thaw, "Nothing was changed"),
        (&add, "Nothing was changed"),
        (&raise, "Nothing was changed"),
        (&exec, "Nothing was changed"),
    ] {
        let said = said(output);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains(part), "{part}: {said}");
        let slipped = part.contains("nobody");
        assert_eq!(said.contains("does not answer"), !slipped, "{said}");
        assert_eq!(said.contains(&pid), !slipped, "who hangs: {said}");
    }
    // What is read is read from the files.
    assert_eq!(spend.status.code(), Some(0), "{}", said(&spend));
    assert!(
        said(&spend).contains("read from its files"),
        "{}",
        said(&spend)
    );
    let sums: Value = serde_json::from_slice(&spend.stdout).expect("JSON");
    assert_eq!(sums["billed_micro_usd"], 7, "{sums}");

    place.daemon.signal(Signal::CONT);
    within(
        Duration::from_secs(10),
        "the freeze to be in force",
        || async { (place.status().await == 403).then_some(()) },
    )
    .await;
    // It is an order like any other: it survives another order and a restart, and thaw ends it.
    place.done(&["freeze", "default"]).await;
    let caps = place.json(&["caps", "--json"]).await;
    assert_eq!(caps["frozen"].as_array().map(Vec::len), Some(2), "{caps}");
    place.done(&["thaw", "default"]).await;
    place.done(&["thaw"]).await;
    assert_eq!(place.status().await, 200);
    place.daemon.terminate().await;
}

/// A daemon that was killed while it hung obeys from its first request.
#[tokio::test]
async fn a_freeze_beside_a_daemon_that_hangs_holds_from_the_next_start() {
    let origin = Origin::always(Step::Answer(billed(7))).await;
    let place = Place::new(&origin).await;
    place.daemon.signal(Signal::STOP);
    let freeze = place.output_of(&["freeze"]).await;
    assert_eq!(freeze.status.code(), Some(1), "{}", said(&freeze));
    let (folder, daemon) = (place.folder, place.daemon);
    daemon.kill().await;
    let state = folder.path().join("state");
    let daemon = Daemon::start(&origin.url(), Path::new(&state), &[]).await;
    let place = Place { folder, daemon };
    assert_eq!(place.status().await, 403);
    assert!(origin.received().is_empty());
    place.daemon.terminate().await;
}

/// Threat row 26: a silent connection keeps no place that another one waits for.
#[tokio::test]
async fn silent_connections_keep_no_scrape_and_no_order_out() {
    let origin = Origin::always(Step::Answer(billed(7))).await;
    let place = Place::new(&origin).await;
    let mut silent = Vec::new();
    // Nothing, half a head, and an answered request: none of these connections closes.
    for number in 0..3 * CONNECTIONS {
        let mut wire = Wire::tcp(place.daemon.admin).await;
        if number % 3 > 0 {
            wire.try_send("GET /healthz HTTP/1.1\r\n").await;
        }
        if number % 3 > 1 {
            wire.try_send("Host: localhost\r\n\r\n").await;
        }
        silent.push(wire);
    }
    // The socket has places of its own.
    let freeze = place.done(&["freeze"]);
    let freeze = tokio::time::timeout(Duration::from_secs(5), freeze).await;
    freeze.expect("an order that waits for no daemon");
    let scrape = place.daemon.admin_page("/metrics");
    let scrape = tokio::time::timeout(Duration::from_secs(10), scrape).await;
    let scrape = scrape.expect("an answer while 192 others are there");
    assert_eq!(scrape.status, 200);
    assert!(
        scrape.text().contains("bursar_total_frozen 1"),
        "{}",
        scrape.text()
    );
    drop(silent);
    place.daemon.terminate().await;
}

#[tokio::test]
async fn an_order_says_what_it_changed() {
    let origin = Origin::always(Step::Answer(billed(7))).await;
    let place = Place::new(&origin).await;
    place.done(&["app", "add", "nightly"]).await;

    let none = place.done(&["thaw"]).await;
    assert_eq!(none, "there was no freeze of all apps\n");
    let first = place.json(&["freeze", "nightly", "--json"]).await;
    assert_eq!(first["order"], "freeze");
    assert_eq!(first["app"], "nightly");
    assert_eq!(first["in_force"], true);
    assert_eq!(first["frozen"][0]["app"], "nightly");
    let again = place.done(&["freeze", "nightly"]).await;
    assert!(
        again.starts_with("the app nightly is frozen already, since "),
        "{again}"
    );
    let all = place.done(&["freeze"]).await;
    assert_eq!(
        all,
        "all apps are frozen: nothing that costs money is sent until `bursar thaw`\n"
    );
    let one = place.done(&["thaw", "nightly"]).await;
    assert_eq!(
        one, "the app nightly is thawed; all apps are still frozen: `bursar thaw`\n",
        "it may not spend yet"
    );
    place.done(&["freeze", "nightly"]).await;
    let thawed = place.done(&["thaw"]).await;
    assert_eq!(
        thawed,
        "the freeze of all apps has ended; still frozen by name: nightly\n"
    );
    let thawed = place.json(&["thaw", "nightly", "--json"]).await;
    assert_eq!(thawed["frozen"], serde_json::json!([]));
    let not = place.done(&["thaw", "nightly"]).await;
    assert_eq!(not, "the app nightly was not frozen by its name\n");

    let slip = place.output_of(&["thaw", "nihgtly"]).await;
    assert_eq!(slip.status.code(), Some(1), "{}", said(&slip));
    assert!(
        said(&slip).contains("Nothing was thawed"),
        "{}",
        said(&slip)
    );
    let port = place.daemon.admin.to_string();
    for order in ["freeze", "thaw"] {
        let refused = command(&[order, "--admin", &port]).output().await;
        let refused = refused.expect("it ends");
        assert_eq!(refused.status.code(), Some(2), "{}", said(&refused));
        assert!(
            said(&refused).contains("need the daemon's socket"),
            "{}",
            said(&refused)
        );
    }

    let (folder, daemon) = (place.folder, place.daemon);
    daemon.terminate().await;
    let state = folder.path().join("state");
    let state = state.to_str().expect("a UTF-8 path");
    let alone = command(&["freeze", "--json", "--state-dir", state])
        .output()
        .await;
    let alone: Value = serde_json::from_slice(&alone.expect("it ends").stdout).expect("JSON");
    assert_eq!(alone["in_force"], false, "from the next start: {alone}");
    assert_eq!(alone["frozen"][0]["app"], Value::Null);
}
