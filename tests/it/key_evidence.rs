//! What an operator is shown of the organization's key: whether the service took it, and when last.

use serde_json::{Value, json};

use crate::support::daemon::{Daemon, Signal, command};
use crate::support::origin::{billed, json as answer};
use crate::support::{Origin, Step, chat, eventually};

const CHAT: &str = "/v1/chat/completions";

async fn status(daemon: &Daemon) -> Value {
    let page = daemon.admin_page("/api/status").await.text();
    serde_json::from_str(&page).expect("JSON")
}

/// What a command prints of this daemon.
async fn printed(name: &str, daemon: &Daemon) -> String {
    let admin = daemon.admin.to_string();
    let done = command(&[name, "--admin", &admin]).output().await;
    String::from_utf8(done.expect("it runs").stdout).expect("text")
}

/// Which members of the key's are known.
async fn known(daemon: &Daemon) -> [bool; 4] {
    let key = status(daemon).await["key"].clone();
    ["answered", "accepted", "refused", "balance_empty"].map(|name| key[name].is_string())
}

/// A start knows nothing of its key, each answer shows what it can, and another key begins anew.
#[tokio::test]
async fn status_says_whether_the_key_was_accepted_and_never_what_no_answer_showed() {
    let origin = Origin::start([]).await;
    let directory = tempfile::tempdir().expect("a directory");
    let key = directory.path().join("key");
    let write_key = |text: &str| {
        std::fs::write(&key, text).expect("a key");
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        std::fs::set_permissions(&key, mode).expect("a mode");
    };
    write_key("sk-first-0123456789");
    let flags = ["--api-key-file", key.to_str().expect("a path")];
    let daemon = Daemon::start(&origin.url(), &directory.path().join("state"), &flags).await;

    assert_eq!(known(&daemon).await, [false; 4]);
    let screen = printed("status", &daemon).await;
    assert!(screen.contains("the key was not used yet"), "{screen}");
    assert!(!screen.contains("accepted"), "{screen}");

    origin.push(Step::Answer(answer(200, &[], "{\"data\":[]}")));
    daemon.connect().await.get("/v1/models").await;
    assert_eq!(known(&daemon).await, [true, true, false, false]);
    let screen = printed("status", &daemon).await;
    assert!(
        screen.contains("accepted by the service, last at 20"),
        "{screen}"
    );
    assert!(screen.contains("held back   nothing"), "{screen}");

    origin.push(Step::Answer(answer(402, &[], "{}")));
    daemon.connect().await.post(CHAT, &chat("hi")).await;
    assert_eq!(known(&daemon).await, [true, true, false, true]);
    let screen = printed("status", &daemon).await;
    assert!(
        screen.contains("held back   the balance is empty (402)"),
        "{screen}"
    );
    let checks = printed("doctor", &daemon).await;
    assert!(
        checks.contains("FAIL  balance ") && checks.contains("pay in at the service"),
        "{checks}"
    );

    // A reload forgets the breaker, and not what is known of the same key.
    daemon.signal(Signal::HUP);
    reloads(&daemon, 1).await;
    assert_eq!(known(&daemon).await, [true, true, false, true]);
    origin.push(Step::Answer(billed(7)));
    daemon.connect().await.post(CHAT, &chat("again")).await;
    assert_eq!(known(&daemon).await, [true, true, false, false]);
    let checks = printed("doctor", &daemon).await;
    assert!(checks.contains("pass  balance "), "{checks}");

    origin.push(Step::Answer(answer(401, &[], "{}")));
    daemon.connect().await.get("/v1/models").await;
    assert_eq!(known(&daemon).await, [true, true, true, false]);

    write_key("sk-second-0123456789");
    daemon.signal(Signal::HUP);
    reloads(&daemon, 2).await;
    assert_eq!(known(&daemon).await, [false; 4]);
    daemon.terminate().await;
}

async fn reloads(daemon: &Daemon, count: u32) {
    let line = format!("bursar_config_reloads_total{{result=\"ok\"}} {count}");
    eventually("the reload", || async {
        let page = daemon.admin_page("/metrics").await.text();
        page.lines().any(|known| known == line).then_some(())
    })
    .await;
}

/// A limit that is none is no 0: a script that divides by it would.
#[tokio::test]
async fn a_limit_that_is_none_is_null() {
    let origin = Origin::start([]).await;
    let directory = tempfile::tempdir().expect("a directory");
    let config = directory.path().join("config.toml");
    std::fs::write(&config, "[shaping]\nin_flight = 0\nper_minute = 0\n").expect("a file");
    let flags = ["--config", config.to_str().expect("a path")];
    let daemon = Daemon::start(&origin.url(), &directory.path().join("state"), &flags).await;
    let traffic = status(&daemon).await["traffic"].clone();
    assert_eq!(traffic["in_flight_limit"], Value::Null, "{traffic}");
    assert_eq!(traffic["per_minute_limit"], Value::Null, "{traffic}");
    assert_eq!(traffic["waiting"], json!(0));
    let metrics = daemon.admin_page("/metrics").await.text();
    for family in ["bursar_concurrency_limit", "bursar_rate_limit_per_minute"] {
        let has_sample = metrics.lines().any(|line| line.starts_with(family));
        assert!(!has_sample, "{family}");
    }
    daemon.terminate().await;
}
