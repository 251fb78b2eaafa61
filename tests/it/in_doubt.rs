//! In doubt is a state and not a zero. Every reason, produced in a running daemon: the entry is
//! counted and listed, and resolved when a later attempt of the same key brings the amount, once.

use std::path::Path;

use bursar::ledger::entry::{AttemptEnd, InDoubt, State};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::support::daemon::{Daemon, Signal, command};
use crate::support::origin::{billed, chunk, json, stream_head};
use crate::support::wire::{Wire, request};
use crate::support::{Bursar, Origin, Step, chat, chat_stream, eventually};

const CHAT: &str = "/v1/chat/completions";
const SPEECH: &str = "/v1/audio/speech";
const KEY: &str = "the-apps-own-key";
const CONFIG: &str = "[retry]\nattempts = 1\n[listen]\nshutdown_timeout_s = 0\n\
    [streams]\non_disconnect = \"cancel\"\n";

/// A daemon, its service, and where its ledger is.
struct Place {
    origin: Origin,
    directory: tempfile::TempDir,
}

// === impl Place ===

impl Place {
    async fn new() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        std::fs::write(directory.path().join("config.toml"), CONFIG).expect("a file");
        Self {
            origin: Origin::start([]).await,
            directory,
        }
    }

    fn state(&self) -> std::path::PathBuf {
        self.directory.path().join("state")
    }

    async fn daemon(&self) -> Daemon {
        let config = self.directory.path().join("config.toml");
        let config = config.to_str().expect("a path");
        Daemon::start(&self.origin.url(), &self.state(), &["--config", config]).await
    }

    async fn arrived(&self) {
        eventually("the request to arrive", || async {
            (!self.origin.received().is_empty()).then_some(())
        })
        .await;
    }

    /// The states of all entries.
    fn states(&self) -> Vec<&'static str> {
        let entries = crate::support::bursar::entries(&self.state());
        entries
            .iter()
            .map(|entry| entry.state.word().as_str())
            .collect()
    }

    async fn ended(&self) {
        eventually("the entry to end", || async {
            self.origin.go();
            let states = self.states();
            (!states.is_empty() && !states.contains(&"open")).then_some(())
        })
        .await;
    }
}

/// One request under the app's own key.
async fn send(daemon: &Daemon, path: &str, body: &str) -> Wire {
    let mut wire = daemon.connect().await;
    wire.send(request("POST", path, &[("Idempotency-Key", KEY)], body))
        .await;
    wire
}

/// Brings one entry in doubt for `reason`; the daemon runs afterwards.
async fn doubt(reason: InDoubt, place: &Place) -> Daemon {
    let daemon = place.daemon().await;
    let piece = || chunk("data: {\"n\":1}\n\n");
    match reason {
        InDoubt::ClientGone => {
            let first = [stream_head(), piece()].concat();
            place
                .origin
                .push(Step::Pieces(vec![first, piece(), piece(), piece()]));
            let mut wire = send(&daemon, CHAT, &chat_stream("hi")).await;
            place.origin.go();
            let mut answer = wire.head().await;
            wire.chunk(&mut answer).await.expect("a piece");
            drop(wire);
        }
        InDoubt::StreamDrop => {
            let cut = [stream_head(), piece()].concat();
            place.origin.push(Step::AnswerAndClose(cut));
            let answer = send(&daemon, CHAT, &chat_stream("hi")).await.answer().await;
            assert!(!answer.complete);
        }
        InDoubt::NoResponse => {
            place.origin.push(Step::Close);
            let answer = send(&daemon, CHAT, &chat("hi")).await.answer().await;
            assert_eq!(answer.code(), Some("outcome_unknown"));
        }
        InDoubt::Gateway => {
            let page =
                b"HTTP/1.1 502 X\r\nContent-Type: text/html\r\nContent-Length: 6\r\n\r\n<html>";
            place.origin.push(Step::Answer(page.to_vec()));
            let answer = send(&daemon, SPEECH, r#"{"text":"hi"}"#)
                .await
                .answer()
                .await;
            assert_eq!(answer.status, 502);
        }
        InDoubt::ReplayLostAmount => {
            let headers = [("X-Service-Billed", "0"), ("Idempotent-Replayed", "true")];
            place.origin.push(Step::Answer(json(200, &headers, "{}")));
            let answer = send(&daemon, CHAT, &chat("hi")).await.answer().await;
            assert_eq!(answer.status, 200);
        }
        InDoubt::Crash => {
            place.origin.push(Step::Stall);
            let _wire = send(&daemon, CHAT, &chat("hi")).await;
            place.arrived().await;
            daemon.kill().await;
            return place.daemon().await;
        }
        InDoubt::Shutdown => {
            place.origin.push(Step::Stall);
            let _wire = send(&daemon, CHAT, &chat("hi")).await;
            place.arrived().await;
            daemon.signal(Signal::TERM);
            let mut daemon = daemon;
            assert_eq!(daemon.ended().await.code(), Some(0));
            return place.daemon().await;
        }
        InDoubt::Damaged => {
            place.origin.push(Step::Answer(billed(7)));
            let answer = send(&daemon, CHAT, &chat("hi")).await.answer().await;
            assert_eq!(answer.status, 200);
            daemon.terminate().await;
            damage_the_outcome(&place.state());
            return place.daemon().await;
        }
    }
    place.ended().await;
    daemon
}

/// Flips a bit in the line that ends the only entry. Without an index, the journal is read whole.
fn damage_the_outcome(state: &Path) {
    let segment = state.join("journal/00000001.jsonl");
    let mut text = std::fs::read(&segment).expect("a segment");
    let place = text
        .windows(16)
        .position(|window| window == b"\"kind\":\"outcome\"")
        .expect("an outcome");
    text[place + 40] ^= 1;
    std::fs::write(&segment, text).expect("the segment is written");
    std::fs::remove_dir_all(state.join("index")).expect("an index");
}

/// `bursar receipts --state in-doubt`.
async fn listed(state: &Path) -> Vec<Value> {
    let state = state.to_str().expect("a path");
    let arguments = [
        "receipts",
        "--json",
        "--state",
        "in-doubt",
        "--state-dir",
        state,
    ];
    let done = command(&arguments).output().await.expect("it runs");
    assert!(done.status.success(), "{done:?}");
    let text = String::from_utf8(done.stdout).expect("UTF-8");
    let parse = |line| serde_json::from_str(line).expect("JSON");
    text.lines().map(parse).collect()
}

/// The reasons with a gauge above 0, and the billed sum.
async fn counted(daemon: &Daemon) -> (Vec<(String, String)>, String) {
    let text = daemon.admin_page("/metrics").await.text();
    let gauges = text.lines().filter_map(|line| {
        let labels = line.strip_prefix("bursar_in_doubt_requests{")?;
        let (_, rest) = labels.split_once("reason=\"")?;
        let (reason, count) = rest.split_once("\"} ")?;
        (count != "0").then(|| (reason.to_owned(), count.to_owned()))
    });
    let billed = text
        .lines()
        .filter(|line| line.starts_with("bursar_billed_usd_total{"))
        .filter_map(|line| line.rsplit(' ').next())
        .filter(|usd| *usd != "0.000000")
        .collect::<Vec<_>>()
        .join(" + ");
    (gauges.collect(), billed)
}

async fn check(reason: InDoubt) {
    let place = Place::new().await;
    let daemon = doubt(reason, &place).await;

    // The line is in the file a moment before it is counted.
    let one = [(reason.to_string(), "1".to_owned())];
    let billed_usd = eventually("the doubt to be counted", || async {
        let (gauges, billed_usd) = counted(&daemon).await;
        (gauges == one).then_some(billed_usd)
    })
    .await;
    assert_eq!(billed_usd, "", "{reason}: nothing is guessed");
    let entries = listed(&place.state()).await;
    assert_eq!(entries.len(), 1, "{reason}: {entries:?}");
    assert_eq!(entries[0]["reason"], reason.as_str());
    assert_eq!(entries[0]["billed_micro_usd"], Value::Null, "{reason}");
    if reason == InDoubt::Gateway {
        // Only on routes without a key: no later attempt can resolve it.
        return;
    }

    // The same request under the same key, twice: the amount counts once.
    let body = match reason {
        InDoubt::ClientGone | InDoubt::StreamDrop => chat_stream("hi"),
        _ => chat("hi"),
    };
    for _ in 0..2 {
        place.origin.push(Step::Answer(billed(7)));
        let answer = send(&daemon, CHAT, &body).await.answer().await;
        assert_eq!(answer.status, 200, "{reason}: {}", answer.text());
        let (gauges, billed_usd) = counted(&daemon).await;
        assert_eq!(gauges, [], "{reason}: the doubt is over");
        assert_eq!(billed_usd, "0.000007", "{reason}: once");
    }
    assert_eq!(
        listed(&place.state()).await,
        Vec::<Value>::new(),
        "{reason}"
    );
    assert_eq!(place.states()[0], "reconciled", "{reason}");
    daemon.terminate().await;
    // And after a restart.
    let (gauges, billed_usd) = counted(&place.daemon().await).await;
    assert_eq!(
        (gauges, billed_usd.as_str()),
        (Vec::new(), "0.000007"),
        "{reason}"
    );
}

macro_rules! each_reason {
    ($($name:ident: $reason:ident),+ $(,)?) => {
        $(#[tokio::test]
        async fn $name() {
            check(InDoubt::$reason).await;
        })+

        #[test]
        fn no_reason_is_left_out() {
            assert_eq!([$(InDoubt::$reason),+], InDoubt::ALL);
        }
    };
}

each_reason! {
    an_app_that_left_a_cancelled_stream: ClientGone,
    a_stream_that_broke: StreamDrop,
    a_request_without_an_answer: NoResponse,
    a_gateways_page_on_a_route_without_a_key: Gateway,
    a_kill: Crash,
    a_shutdown_that_could_not_wait: Shutdown,
    a_damaged_end_of_an_entry: Damaged,
    a_replay_whose_first_answer_was_not_seen: ReplayLostAmount,
}

/// "Same Idempotency-Key still running", and then no connection: what the app reads is what the entry is.
#[tokio::test]
async fn a_conflict_and_a_failed_connect_are_reported_as_in_doubt() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let service = tokio::spawn(async move {
        let (mut connection, _) = listener.accept().await.expect("a connection");
        // New connections are refused.
        drop(listener);
        let mut asked = [0; 64 * 1024];
        let came = connection.read(&mut asked).await.expect("a request");
        assert!(came > 0);
        let conflict = json(409, &[("Connection", "close")], r#"{"detail":"running"}"#);
        connection.write_all(&conflict).await.expect("bursar reads");
        connection.shutdown().await.expect("bursar reads");
    });
    let bursar = Bursar::before(&format!("http://{address}")).await;
    let headers = [("Idempotency-Key", KEY)];
    let mut wire = bursar.connect().await;
    wire.send(request("POST", CHAT, &headers, &chat("hi")))
        .await;
    let answer = wire.answer().await;
    service.await.expect("the service");

    let entry = bursar.entry_of(&answer);
    let ends: Vec<_> = entry.attempts.iter().map(|attempt| attempt.end).collect();
    assert_eq!(ends[0], AttemptEnd::Refused);
    assert_eq!(ends[1], AttemptEnd::NotSent);
    let reason = InDoubt::NoResponse;
    assert_eq!(entry.state, State::InDoubt { reason });
    assert_eq!(answer.code(), Some("outcome_unknown"), "{}", answer.text());
    assert!(answer.text().contains("in doubt"), "{}", answer.text());
    assert!(
        !answer.text().contains("Nothing was sent"),
        "{}",
        answer.text()
    );
}
