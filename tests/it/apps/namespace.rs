//! A daemon in a user namespace that hides its peers' users: no caller is identified by the stand-in that
//! the kernel shows for all of them.

use std::path::Path;
use std::process::{Command as Plain, Stdio};

use tokio::process::Command;

use super::CHAT;
use crate::support::daemon::{Daemon, command, run_arguments};
use crate::support::origin::billed;
use crate::support::wire::{Wire, request};
use crate::support::{Origin, Step, chat};

/// `bursar run` on a Unix socket, in a namespace of its own that maps no user at all.
fn hidden(upstream: &str, directory: &Path) -> Command {
    let config = directory.join("config.toml");
    std::fs::write(&config, "[[app]]\nname = \"anybody\"\nuids = [65534]\n").expect("a file");
    let state = directory.join("state");
    let listen = format!("unix:{}", directory.join("app.sock").display());
    let mut arguments = run_arguments(upstream, state.to_str().expect("a path"));
    let config = config.to_str().expect("a path");
    arguments.extend(["--listen", &listen, "--config", config]);
    let own = command(&arguments);
    let own = own.as_std();
    let log = std::fs::File::create(directory.join("log")).expect("a file");
    let mut unshared = Command::new("unshare");
    unshared
        .arg("--user")
        .arg(own.get_program())
        .args(own.get_args())
        .env_clear()
        .env("BURSAR_API_KEY", crate::support::KEY)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(log)
        .kill_on_drop(true);
    unshared
}

#[tokio::test]
async fn a_user_that_the_namespace_hides_is_no_app_and_no_owner() {
    let can = Plain::new("unshare").args(["--user", "true"]).output();
    if !can.is_ok_and(|done| done.status.success()) {
        eprintln!("no user namespace can be made here; the rule is held by its unit tests");
        return;
    }
    let directory = tempfile::tempdir().expect("a directory");
    let origin = Origin::always(Step::Answer(billed(7))).await;
    let daemon = Daemon::launched(hidden(&origin.url(), directory.path())).await;
    let daemon = daemon.expect("the daemon went on");

    let app = Wire::unix(&directory.path().join("app.sock")).await;
    let answer = app.post(CHAT, &chat("hi")).await;
    assert_eq!(answer.code(), Some("token_missing"), "{}", answer.text());
    assert!(origin.received().is_empty(), "nothing is spent");

    let mut owner = Wire::unix(&directory.path().join("state/admin.sock")).await;
    let typed = [("Content-Type", "application/json")];
    let body = "{\"name\":\"more\"}";
    owner
        .send(request("POST", "/api/apps/add", &typed, body))
        .await;
    let answer = owner.answer().await;
    assert!(answer.status >= 400, "{}", answer.text());
    assert_eq!(
        owner_sees_apps(directory.path()).await,
        200,
        "reading stays"
    );

    let log = std::fs::read_to_string(directory.path().join("log")).expect("a log");
    assert!(
        log.contains("this user cannot be identified on a Unix socket")
            && log.contains("uid=65534"),
        "{log}"
    );
    daemon.terminate().await;
}

async fn owner_sees_apps(directory: &Path) -> u16 {
    let reader = Wire::unix(&directory.join("state/admin.sock")).await;
    reader.get("/api/apps").await.status
}
