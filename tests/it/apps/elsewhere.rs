//! A command that finds another ledger than the daemon's, and what the first app changes for the others.

use std::path::Path;
use std::process::Output;

use super::commands::{Place, ask, said};
use crate::support::daemon::{Daemon, command};
use crate::support::origin::billed;
use crate::support::{Origin, Step};

/// A user's command beside the system service: its configuration has the daemon's port, and its state
/// directory is the user's own.
async fn of_a_user(home: &str, config: &str, arguments: &[&str]) -> Output {
    let whole = [arguments, &["--config", config]].concat();
    let mut command = command(&whole);
    command.env("XDG_STATE_HOME", home);
    command.output().await.expect("the command ends")
}

#[tokio::test]
async fn a_command_about_another_ledger_than_the_daemons_ends_with_1_and_names_both() {
    let place = Place::new();
    let (theirs, home) = (place.state(), place.path("home"));
    let daemon = Daemon::start("http://127.0.0.1:9", Path::new(&theirs), &[]).await;
    let config = place.path("config.toml");
    let lines = format!("[listen]\nadmin = [\"{}\"]\n", daemon.admin);
    std::fs::write(&config, lines).expect("a file");
    let ours = format!("{home}/bursar");
    let commands: [&[&str]; 12] = [
        &["app", "add", "nightly"],
        &["app", "list"],
        &["app", "remove", "nightly"],
        &["freeze"],
        &["thaw"],
        &["caps"],
        &["caps", "raise", "all", "day", "--to-usd", "1"],
        &["spend"],
        &["receipts"],
        &["receipts", "--json"],
        &["explain", "0190aaaa"],
        &["ledger", "verify"],
    ];
    for arguments in commands {
        let output = of_a_user(&home, &config, arguments).await;
        let words = said(&output);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {words}");
        assert!(
            words.contains(&theirs) && words.contains(&ours),
            "{arguments:?}: {words}"
        );
        assert!(output.stdout.is_empty(), "{arguments:?}");
    }
    assert!(!Path::new(&ours).exists(), "a ledger was begun");

    // Named, it is meant; and where no daemon answers, the files are all there is.
    place.done(&["add", "nightly"]).await;
    let named = ["app", "list", "--state-dir", &ours];
    let output = of_a_user(&home, &config, &named).await;
    assert!(output.status.success(), "{}", said(&output));
    daemon.terminate().await;
    let output = of_a_user(&home, &config, &["app", "add", "nightly"]).await;
    assert!(output.status.success(), "{}", said(&output));
}

/// A user's own daemon, and another one at the port of their configuration, as the system service's is.
#[tokio::test]
async fn an_order_beside_two_daemons_says_which_one_got_it_and_which_one_did_not() {
    let place = Place::new();
    let (home, theirs) = (place.path("home"), place.state());
    let ours = format!("{home}/bursar");
    let start = |state_dir| Daemon::start("http://127.0.0.1:9", Path::new(state_dir), &[]);
    let (own, other) = (start(&ours).await, start(&theirs).await);
    let configs = place.path("configs");
    std::fs::create_dir_all(format!("{configs}/bursar")).expect("a directory");
    let lines = format!("[listen]\nadmin = [\"{}\"]\n", other.admin);
    std::fs::write(format!("{configs}/bursar/config.toml"), lines).expect("a file");
    for arguments in [
        &["freeze"][..],
        &["app", "add", "nightly"],
        &["app", "list"],
    ] {
        let mut asked = command(arguments);
        asked.env("XDG_STATE_HOME", &home);
        asked.env("XDG_CONFIG_HOME", &configs);
        let output = asked.output().await.expect("the command ends");
        let words = said(&output);
        assert!(output.status.success(), "{arguments:?}: {words}");
        let second = other.admin.to_string();
        let first = format!("unix:{ours}/admin.sock");
        for part in [&*first, &second] {
            assert!(words.contains(part), "{arguments:?}: no {part} in {words}");
        }
        let is_order = arguments != ["app", "list"];
        assert_eq!(words.contains("NOT changed"), is_order, "{arguments:?}");
        let names_ledger = words.contains(&format!("--state-dir {theirs}"));
        assert_eq!(names_ledger, is_order, "{arguments:?}: {words}");
    }
    own.terminate().await;
    let mut asked = command(&["app", "list"]);
    asked.env("XDG_STATE_HOME", &home);
    asked.env("XDG_CONFIG_HOME", &configs);
    let words = said(&asked.output().await.expect("the command ends"));
    let named = format!("asked the daemon at {}", other.admin);
    assert!(words.contains(&named), "{words}");
    other.terminate().await;
}

#[tokio::test]
async fn adding_the_first_app_says_what_it_cuts_off_and_what_to_paste() {
    let place = Place::new();
    let origin = Origin::always(Step::Answer(billed(7))).await;
    let daemon = Daemon::start(&origin.url(), Path::new(&place.state()), &[]).await;
    assert_eq!(ask(&daemon, "unused").await.status, 200);

    let first = place.app(&["add", "nightly"]).await;

    let words = said(&first);
    assert_eq!(ask(&daemon, "unused").await.status, 401);
    for part in [
        "[listen]",
        "anonymous = true",
        "token_missing",
        "this is the first app",
        &format!("\nexport OPENAI_BASE_URL=http://{}/v1\n", daemon.proxy),
        "\nexport OPENAI_API_KEY=",
    ] {
        assert!(words.contains(part), "{part:?} is not in {words}");
    }
    let token = String::from_utf8(first.stdout).expect("UTF-8");
    assert!(!words.contains(token.trim_end()), "a token in two places");
    let second = place.app(&["add", "team"]).await;
    assert!(
        !said(&second).contains("first app"),
        "nothing was cut off: {}",
        said(&second)
    );
    daemon.terminate().await;

    // The setting that it names has the announced effect.
    let config = place.path("config.toml");
    std::fs::write(&config, "[listen]\nanonymous = true\n").expect("a file");
    let more = ["--config", config.as_str()];
    let daemon = Daemon::start(&origin.url(), Path::new(&place.state()), &more).await;
    assert_eq!(ask(&daemon, "unused").await.status, 200);
    daemon.terminate().await;

    // Where no daemon runs: the addresses are those of the configuration.
    let alone = Place::new();
    let output = alone.app(&["add", "nightly"]).await;
    let words = said(&output);
    assert!(
        words.contains("anonymous = true")
            && words.contains("OPENAI_BASE_URL=http://127.0.0.1:8327/v1"),
        "{words}"
    );
}
