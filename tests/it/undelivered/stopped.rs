//! bursar stands still for longer than its apps' timeouts: when it continues, the try that an app gave
//! up lies unread beside its retry, and chance decides which of the two is read first.
//!
//! Promise: the two are one purchase, answered on the connection that is still there; an app that has
//! only closed its sending half is served.

use std::collections::HashSet;
use std::time::Duration;

use bursar_sandbox::Options;

use super::CHAT;
use crate::support::bursar::{NO_LIMITS, entries};
use crate::support::daemon::{Daemon, Signal};
use crate::support::origin::{billed, chunk, last_chunk, stream_head};
use crate::support::wire::request;
use crate::support::{Bursar, Origin, Sandbox, Step, Wire, chat, chat_stream, eventually};

/// Apps at once.
const APPS: usize = 30;

/// As `/proc/net/tcp` writes it.
const ESTABLISHED: &str = "01";

const MARKED: &[(&str, &str)] = &[("x-stainless-retry-count", "1")];

/// How the apps ask, give up and ask again.
#[derive(Clone, Copy, Debug)]
struct Row {
    stream: bool,
    /// Retries are marked as retries.
    marked: bool,
    /// An app that gives up resets its connection.
    resets: bool,
    /// The first try uses a connection that has carried a request before.
    kept: bool,
    /// Tries before the one that waits.
    given_up: usize,
}

const ROWS: [Row; 8] = {
    let row = Row {
        stream: false,
        marked: false,
        resets: false,
        kept: false,
        given_up: 1,
    };
    let stream = Row {
        stream: true,
        ..row
    };
    [
        row,
        stream,
        Row {
            marked: true,
            ..row
        },
        Row {
            marked: true,
            ..stream
        },
        Row {
            resets: true,
            ..row
        },
        Row {
            resets: true,
            marked: true,
            ..stream
        },
        Row { kept: true, ..row },
        Row {
            given_up: 3,
            kept: true,
            ..stream
        },
    ]
};

impl Row {
    fn body(self, app: usize) -> String {
        let prompt = format!("the wish of app {app}");
        if self.stream {
            chat_stream(&prompt)
        } else {
            chat(&prompt)
        }
    }

    async fn connect(self, daemon: &Daemon) -> Wire {
        if self.resets {
            Wire::tcp_that_resets(daemon.proxy).await
        } else {
            daemon.connect().await
        }
    }
}

async fn generous_sandbox() -> Sandbox {
    Sandbox::with(Options {
        in_flight_max: 1000,
        per_minute_max: 1_000_000,
        balance_micro_usd: u64::MAX / 4,
        ..Options::default()
    })
    .await
}

/// A daemon without ceilings, on a new ledger.
async fn start(sandbox: &Sandbox, directory: &tempfile::TempDir) -> Daemon {
    let config = directory.path().join("config.toml");
    std::fs::write(&config, NO_LIMITS).expect("the config is written");
    let config = ["--config", config.to_str().expect("a UTF-8 path")];
    Daemon::start(&sandbox.url(), &directory.path().join("state"), &config).await
}

/// Stops the process; returns when the kernel reports it as stopped.
async fn stand_still(daemon: &Daemon) {
    daemon.signal(Signal::STOP);
    let pid = daemon.child.id().expect("a running child");
    eventually("the daemon to stand still", || async move {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let (_, state) = stat.rsplit_once(") ")?;
        state.starts_with('T').then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_try_that_was_given_up_while_bursar_stood_still_is_not_bought_beside_its_retry() {
    for row in ROWS {
        let sandbox = generous_sandbox().await;
        let directory = tempfile::tempdir().expect("a directory");
        let daemon = start(&sandbox, &directory).await;
        let mut firsts = Vec::new();
        for _ in 0..if row.kept { APPS } else { 0 } {
            let mut first = row.connect(&daemon).await;
            first
                .send("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
                .await;
            assert_eq!(first.answer().await.status, 200);
            firsts.push(first);
        }

        stand_still(&daemon).await;
        let mut waiting = Vec::new();
        for app in 0..APPS {
            let body = row.body(app);
            for tried in 0..row.given_up {
                let mut given_up = match firsts.pop() {
                    Some(first) => first,
                    None => row.connect(&daemon).await,
                };
                let marks = if row.marked && tried > 0 { MARKED } else { &[] };
                given_up.send(request("POST", CHAT, marks, &body)).await;
                drop(given_up);
            }
            let mut retry = daemon.connect().await;
            let marks = if row.marked { MARKED } else { &[] };
            retry.send(request("POST", CHAT, marks, &body)).await;
            waiting.push(retry);
        }
        daemon.signal(Signal::CONT);

        for mut retry in waiting {
            let answer = retry.answer().await;
            assert_eq!(answer.status, 200, "{row:?}: {}", answer.text());
            assert!(answer.complete, "{row:?}");
        }
        // The daemon sends its pending requests before it ends.
        daemon.terminate().await;
        assert_eq!(
            sandbox.debits().await.len(),
            APPS,
            "{row:?}: one debit each"
        );
    }
}

/// bursar is there, and the app's patience ends while it asks: before, while and after bursar reads it.
/// The service answers when the kernel has taken the end to bursar's side. Before that nothing shows it
/// (docs/what-bursar-cannot-know.md), and on a busy machine that takes longer than the pauses here.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_retry_within_3_ms_of_a_hang_up_is_the_same_purchase() {
    const ROUNDS: u64 = 60;
    let whole_stream = [
        stream_head(),
        chunk("data: {}\n\n: service-billed-micro-usd 7\n\ndata: [DONE]\n\n"),
        last_chunk(),
    ]
    .concat();
    for stream in [false, true] {
        for resets in [false, true] {
            let row = Row {
                stream,
                resets,
                ..ROWS[0]
            };
            let answer = if stream {
                whole_stream.clone()
            } else {
                billed(7)
            };
            let origin = Origin::always(Step::Pieces(vec![answer])).await;
            let bursar = Bursar::before(&origin.url()).await;
            for round in 0..ROUNDS {
                let body = row.body(usize::try_from(round).expect("a small number"));
                let ask = request("POST", CHAT, &[], &body);
                let mut given_up = if resets {
                    Wire::tcp_that_resets(bursar.address).await
                } else {
                    bursar.connect().await
                };
                let mut retry = bursar.connect().await;
                given_up.send(&ask).await;
                // Patience and pause are what this is about.
                pause(round % 7 * 300).await;
                let port = given_up.hang_up();
                pause(round / 7 * 350).await;
                retry.send(&ask).await;
                hang_up_arrives(bursar.address.port(), port).await;
                origin.go();
                let answer = retry.answer().await;
                assert_eq!(answer.status, 200, "{row:?}: {}", answer.text());
                assert!(answer.complete, "{row:?}");
                let purchases: HashSet<_> = origin
                    .received()
                    .iter()
                    .filter_map(|received| received.header("idempotency-key").map(str::to_owned))
                    .collect();
                let bought = u64::try_from(purchases.len()).expect("a small number");
                assert_eq!(bought, round + 1, "{row:?}, round {round}");
            }
        }
    }
}

/// Returns when bursar's side of a connection shows that its app has closed it.
async fn hang_up_arrives(bursar: u16, app: u16) {
    let (bursar, app) = (format!(":{bursar:04X}"), format!(":{app:04X}"));
    eventually("the kernel to deliver a hang-up", || async {
        let table = std::fs::read_to_string("/proc/net/tcp").expect("the kernel's connections");
        let is_open = table.lines().any(|line| {
            let mut fields = line.split_whitespace().skip(1);
            let (local, remote, state) = (fields.next(), fields.next(), fields.next());
            local.is_some_and(|local| local.ends_with(&bursar))
                && remote.is_some_and(|remote| remote.ends_with(&app))
                && state == Some(ESTABLISHED)
        });
        (!is_open).then_some(())
    })
    .await;
}

async fn pause(micros: u64) {
    if micros > 0 {
        tokio::time::sleep(Duration::from_micros(micros)).await;
    }
}

/// An end of input is only suspicion. Without an equal request beside it, it is sent, once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_closed_its_sending_half_is_served_once() {
    for stands_still in [false, true] {
        for stream in [false, true] {
            let row = Row { stream, ..ROWS[0] };
            let sandbox = generous_sandbox().await;
            let directory = tempfile::tempdir().expect("a directory");
            let daemon = start(&sandbox, &directory).await;
            // The same again and again: each is a purchase of its own, as sampling is.
            for count in 1..=5 {
                let mut app = daemon.connect().await;
                if stands_still {
                    stand_still(&daemon).await;
                }
                app.send(request("POST", CHAT, &[], &row.body(0))).await;
                app.half_close().await;
                if stands_still {
                    daemon.signal(Signal::CONT);
                }
                let answer = app.answer().await;
                assert_eq!(answer.status, 200, "{row:?}: {}", answer.text());
                assert!(answer.complete, "{row:?}");
                assert_eq!(sandbox.debits().await.len(), count, "{row:?}");
            }
            daemon.terminate().await;
            assert_eq!(sandbox.debits().await.len(), 5, "{row:?}");
        }
    }
}

/// An app that gave up and does not return: a reset is certain, and nothing is sent; an end of input
/// alone may be a half that was closed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_whose_connection_was_reset_is_never_sent() {
    for (resets, debits) in [(true, 0), (false, 1)] {
        for stream in [false, true] {
            let row = Row {
                stream,
                resets,
                ..ROWS[0]
            };
            let sandbox = generous_sandbox().await;
            let directory = tempfile::tempdir().expect("a directory");
            let daemon = start(&sandbox, &directory).await;
            stand_still(&daemon).await;
            let mut given_up = row.connect(&daemon).await;
            given_up
                .send(request("POST", CHAT, &[], &row.body(0)))
                .await;
            drop(given_up);
            daemon.signal(Signal::CONT);
            eventually("the request to end", || async {
                let metrics = daemon.admin_page("/metrics").await.text();
                let gone = "bursar_client_disconnects_total{phase=\"";
                let mut lines = metrics.lines().filter(|line| line.starts_with(gone));
                lines.any(|line| !line.ends_with(" 0")).then_some(())
            })
            .await;
            daemon.terminate().await;
            assert_eq!(sandbox.debits().await.len(), debits, "{row:?}");
            let entries = entries(&directory.path().join("state"));
            assert_eq!(
                entries.len(),
                debits,
                "{row:?}: what is not sent has no entry"
            );
        }
    }
}
