//! The watchdog: systemd hears from bursar only as long as the ledger's writer lives. A real daemon on a
//! disk whose sync does not return, and one whose systemd does not listen.

use std::os::unix::net::UnixDatagram;
use std::time::Duration;

use tokio::time::Instant;

use crate::support::daemon::{Daemon, Signal, command, run_arguments};
use crate::support::rig::Rig;
use crate::support::wire::request;
use crate::support::{Sandbox, chat, eventually, within};

/// Twice in this time the watchdog is fed.
const WATCHDOG: Duration = Duration::from_millis(400);

/// No word for so long: three meals were left out.
const SILENCE: Duration = Duration::from_millis(900);

/// Messages received since the last call.
fn heard(socket: &UnixDatagram) -> Vec<String> {
    let mut buffer = [0; 4096];
    let mut words = Vec::new();
    while let Ok(read) = socket.recv(&mut buffer) {
        let text = String::from_utf8_lossy(&buffer[..read]);
        words.extend(text.lines().map(str::to_owned));
    }
    words
}

fn is_fed(socket: &UnixDatagram) -> bool {
    heard(socket).iter().any(|word| word == "WATCHDOG=1")
}

#[tokio::test]
async fn a_writer_that_hangs_is_not_covered_up_by_a_fed_watchdog() {
    let sandbox = Sandbox::start().await;
    let rig = Rig::new();
    let path = rig.outside("notify");
    let socket = UnixDatagram::bind(&path).expect("a socket");
    socket.set_nonblocking(true).expect("nonblocking");
    let mut command = rig.command(&sandbox.url(), &[]);
    command
        .env("NOTIFY_SOCKET", &path)
        .env("WATCHDOG_USEC", WATCHDOG.as_micros().to_string());
    let daemon = Daemon::launched(command).await.expect("a daemon");
    eventually("the watchdog to be fed", || async {
        is_fed(&socket).then_some(())
    })
    .await;

    rig.hang(true);
    let mut app = daemon.connect().await;
    let body = chat("its intent is never durable");
    app.send(request("POST", "/v1/chat/completions", &[], &body))
        .await;
    let mut last_fed = Instant::now();
    within(Duration::from_secs(20), "the watchdog to starve", || {
        if is_fed(&socket) {
            last_fed = Instant::now();
        }
        let starves = last_fed.elapsed() > SILENCE;
        async move { starves.then_some(()) }
    })
    .await;
    // The rest of the process is well: only the writer's state shows it.
    let page = daemon.admin_page("/healthz").await;
    assert_eq!(page.status, 503, "{}", page.text());
    assert!(
        rig.logged().contains("the watchdog is not fed"),
        "{}",
        rig.logged()
    );

    rig.hang(false);
    eventually("the watchdog to be fed again", || async {
        is_fed(&socket).then_some(())
    })
    .await;
    assert_eq!(app.answer().await.status, 200);
    daemon.terminate().await;
}

/// A supervisor that is frozen, or that never reads: a write into the full socket blocks in the kernel.
#[tokio::test]
async fn a_systemd_that_does_not_listen_holds_nothing_up() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("notify");
    let socket = UnixDatagram::bind(&path).expect("a socket");
    let state = directory.path().join("state");
    let arguments = run_arguments("http://127.0.0.1:9", state.to_str().expect("a path"));
    let mut command = command(&arguments);
    command
        .env("NOTIFY_SOCKET", &path)
        .env("WATCHDOG_USEC", "20000");
    let mut daemon = Daemon::ready(command).await;
    let full = UnixDatagram::unbound().expect("a socket");
    full.set_nonblocking(true).expect("nonblocking");
    while full.send_to(b"x", &path).is_ok() {}

    daemon.signal(Signal::HUP);
    let line = "bursar_config_reloads_total{result=\"ok\"} 1";
    eventually("the reload", || async {
        let page = daemon.admin_page("/metrics").await.text();
        page.lines().any(|known| known == line).then_some(())
    })
    .await;
    daemon.signal(Signal::TERM);
    assert_eq!(daemon.ended().await.code(), Some(0));
    drop(socket);
}
