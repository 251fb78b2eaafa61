//! Wherever in an answer an app leaves and however it does, what the ledger, the counters and the
//! sums say of it: one table.

use bursar::ledger::entry::{InDoubt, State};
use bursar::money::MicroUsd;

use super::CHAT;
use crate::support::origin::{chunk, last_chunk, stream_head};
use crate::support::wire::request;
use crate::support::{Bursar, Origin, Step, Wire, chat_stream, eventually};

const AGENT: &str = "/agent/v1/chat/completions";
const EVENT: &str = "data: {\"choices\":[{\"delta\":{\"content\":\"x\"}}]}\n\n";
const RECEIPT: &str = ": service-billed-micro-usd 7\n\n";
const DONE: &str = "data: [DONE]\n\n";

const SETTLED: State = State::Settled {
    billed: MicroUsd::new(7),
};
const GONE: State = State::InDoubt {
    reason: InDoubt::ClientGone,
};

/// How an app is connected, and how it leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum App {
    Closes,
    Resets,
    Unix,
    /// Its answer ends with the connection, so one chunk is held back.
    Http10,
}

/// What the app has read when it leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Nothing,
    Content,
    Receipt,
    EndMark,
}

/// The expected statements about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Said {
    state: State,
    drained: bool,
    /// `bursar_drains_total{result}`; none: no drain is counted.
    drain: Option<&'static str>,
    /// `bursar_client_disconnects_total{phase}`.
    left: Option<&'static str>,
}

async fn begin(bursar: &Bursar, app: App, path: &str) -> Wire {
    let mut text = request("POST", path, &[], &chat_stream("hi"));
    let mut wire = match app {
        App::Closes => bursar.connect().await,
        App::Resets => Wire::tcp_that_resets(bursar.address).await,
        App::Unix => Wire::unix(&bursar.socket).await,
        App::Http10 => {
            text = text.replacen("HTTP/1.1", "HTTP/1.0", 1);
            bursar.connect().await
        }
    };
    wire.send(text).await;
    wire
}

/// Reads so far, and so far only: what is left unread would make a reset of every end.
async fn read_to(wire: &mut Wire, origin: &Origin, app: App, place: Place) {
    let read = match place {
        Place::Nothing => return,
        // The first one comes when the second is there.
        Place::Content if app == App::Http10 => vec![0, EVENT.len()],
        Place::Content => vec![2 * EVENT.len()],
        Place::Receipt => vec![2 * EVENT.len(), RECEIPT.len()],
        Place::EndMark => vec![2 * EVENT.len(), RECEIPT.len(), DONE.len()],
    };
    let mut answer = None;
    for length in read {
        origin.go();
        if answer.is_none() {
            answer = Some(wire.head().await);
        }
        let head = answer.as_mut().expect("a head");
        if app == App::Http10 {
            wire.bytes(length).await;
            continue;
        }
        let mut came = 0;
        while came < length {
            came += wire.chunk(head).await.expect("a chunk").len();
        }
        assert_eq!(came, length, "nothing more");
    }
}

async fn check(path: &str, on_disconnect: &str, app: App, place: Place, wanted: Said) {
    let name = format!("{path} {on_disconnect} {app:?} {place:?}");
    let receipt = if path == CHAT {
        RECEIPT
    } else {
        ": nothing for the ledger yet\n\n"
    };
    assert_eq!(RECEIPT.len(), receipt.len(), "the same bytes everywhere");
    let mut pieces = match app {
        // What comes together is held back together.
        App::Http10 => vec![[stream_head(), chunk(EVENT)].concat(), chunk(EVENT)],
        _ => vec![[stream_head(), chunk(EVENT), chunk(EVENT)].concat()],
    };
    pieces.extend([chunk(receipt), chunk(DONE), last_chunk()]);
    let origin = Origin::start([Step::Pieces(pieces)]).await;
    let lines = format!("[streams]\non_disconnect = \"{on_disconnect}\"\n");
    let bursar = Bursar::with(&origin.url(), &lines).await;
    let mut wire = begin(&bursar, app, path).await;
    super::received(&origin, 1).await;
    read_to(&mut wire, &origin, app, place).await;
    drop(wire);
    if let Some(phase) = wanted.left {
        let labels = format!("phase=\"{phase}\"");
        eventually(&name, || async {
            (bursar.metric("bursar_client_disconnects_total", &labels) > 0.5).then_some(())
        })
        .await;
    }
    let entry = eventually(&name, || async {
        origin.go();
        let entry = bursar.entries().pop()?;
        entry.ended_ms.map(|_| entry)
    })
    .await;
    bursar.gateway.idle().await;

    let one_of = |family: &str, label: &str, words: &[&'static str]| {
        let found = words
            .iter()
            .copied()
            .filter(|word| bursar.metric(family, &format!("{label}=\"{word}\"")) > 0.5)
            .collect::<Vec<_>>();
        assert!(found.len() < 2, "{name}: {found:?}");
        found.first().copied()
    };
    let results = ["completed", "cut", "cancelled", "refused"];
    let phases = ["waiting", "streaming", "answering"];
    let found = Said {
        state: entry.state,
        drained: entry.drained,
        drain: one_of("bursar_drains_total", "result", &results),
        left: one_of("bursar_client_disconnects_total", "phase", &phases),
    };
    assert_eq!(found, wanted, "{name}");
    let wanted_usd = match (entry.drained, entry.state) {
        (true, SETTLED) => 0.000_007,
        _ => 0.0,
    };
    let usd = bursar.metric("bursar_drained_usd_total", "");
    assert!((usd - wanted_usd).abs() < 1e-9, "{name}: {usd}");
}

/// The expected statements if the stream is read on to its end.
fn drained(path: &str, place: Place) -> Said {
    let known = if path == CHAT {
        SETTLED
    } else {
        State::Unreported
    };
    let left = match place {
        Place::Nothing => Some("waiting"),
        Place::Content | Place::Receipt => Some("streaming"),
        // "openai-python's habit of closing at `[DONE]` is success."
        Place::EndMark => None,
    };
    Said {
        state: known,
        drained: left.is_some(),
        drain: left.map(|_| "completed"),
        left,
    }
}

const APPS: [App; 3] = [App::Closes, App::Resets, App::Unix];
const PLACES: [Place; 4] = [
    Place::Nothing,
    Place::Content,
    Place::Receipt,
    Place::EndMark,
];

#[tokio::test]
async fn a_stream_is_drained_wherever_its_app_leaves() {
    for app in APPS {
        for place in PLACES {
            check(CHAT, "drain", app, place, drained(CHAT, place)).await;
        }
    }
    for place in [Place::Nothing, Place::Content] {
        check(CHAT, "drain", App::Http10, place, drained(CHAT, place)).await;
    }
}

#[tokio::test]
async fn an_agent_stream_is_drained_wherever_its_app_leaves() {
    for app in APPS {
        for place in PLACES {
            check(AGENT, "drain", app, place, drained(AGENT, place)).await;
        }
    }
}

/// "`on_disconnect = cancel`": it is given up as soon as it is certain that the app has gone, at the
/// latest with the first write that fails. Amounts reported by then are kept.
#[tokio::test]
async fn a_stream_is_given_up_wherever_its_app_leaves_if_the_config_says_so() {
    for path in [CHAT, AGENT] {
        for app in APPS {
            for place in PLACES {
                let all = drained(path, place);
                let wanted = match (place, app) {
                    (Place::EndMark, _) => all,
                    // The receipt is there, and the next bytes, if any, contain its end mark.
                    (Place::Receipt, App::Closes | App::Unix) => all,
                    // The first write that fails is that of the receipt, or of what follows it.
                    (Place::Receipt, _) | (Place::Content, App::Closes | App::Unix)
                        if path == CHAT =>
                    {
                        Said {
                            drain: Some("cancelled"),
                            ..all
                        }
                    }
                    _ => Said {
                        state: GONE,
                        drain: Some("cancelled"),
                        ..all
                    },
                };
                check(path, "cancel", app, place, wanted).await;
            }
        }
    }
    let wanted = Said {
        drain: Some("cancelled"),
        ..drained(CHAT, Place::Content)
    };
    check(CHAT, "cancel", App::Http10, Place::Content, wanted).await;
}
