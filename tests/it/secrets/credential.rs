//! systemd's credential: the daemon reads a copy that systemd made when the service started, so that a
//! reload cannot bring a new key. The log says so; otherwise a revoked key would seem to be replaced.

use std::path::Path;
use std::process::Stdio;

use crate::support::daemon::{Daemon, Signal, command, run_arguments};
use crate::support::eventually;

const KEY_STAYS: &str = "the key stays: systemd copied it when the service started";
const FIRST: &str = "sk-credential-5d41402abc4b2a76";
const SECOND: &str = "sk-credential-7d793037a0760186";

async fn reload(daemon: &Daemon, reloads: u32) {
    daemon.signal(Signal::HUP);
    let line = format!("bursar_config_reloads_total{{result=\"ok\"}} {reloads}");
    eventually("the reload", || async {
        let page = daemon.admin_page("/metrics").await.text();
        page.lines().any(|known| known == line).then_some(())
    })
    .await;
}

/// How often the log said so, over two reloads: before and after a change of the key's file.
async fn notices(directory: &Path, is_credential: bool) -> [usize; 2] {
    use std::os::unix::fs::PermissionsExt;
    let key = directory.join("api-key");
    let put = |text: &str| {
        std::fs::write(&key, text).expect("a key");
        std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600)).expect("a mode");
    };
    put(FIRST);
    let state = directory.join("state");
    let mut arguments = run_arguments("http://127.0.0.1:9", state.to_str().expect("a path"));
    if !is_credential {
        arguments.extend(["--api-key-file", key.to_str().expect("a path")]);
    }
    let log = directory.join("log");
    let mut command = command(&arguments);
    command
        .env_remove("BURSAR_API_KEY")
        .stderr(Stdio::from(std::fs::File::create(&log).expect("a file")));
    if is_credential {
        command.env("CREDENTIALS_DIRECTORY", directory);
    }
    let daemon = Daemon::launched(command).await.expect("it went on");
    let count = || {
        let text = std::fs::read_to_string(&log).expect("a log");
        assert!(!text.contains("sk-credential"), "{text}");
        text.matches(KEY_STAYS).count()
    };
    reload(&daemon, 1).await;
    let before = count();
    // As a systemd does that refreshes credentials with a reload.
    put(SECOND);
    reload(&daemon, 2).await;
    let behind = count();
    daemon.terminate().await;
    [before, behind]
}

#[tokio::test]
async fn a_reload_reports_that_the_credential_is_the_one_of_the_start() {
    for (is_credential, expected) in [(true, [1, 1]), (false, [0, 0])] {
        let directory = tempfile::tempdir().expect("a directory");
        let notices = notices(directory.path(), is_credential).await;
        assert_eq!(notices, expected, "credential: {is_credential}");
    }
}
