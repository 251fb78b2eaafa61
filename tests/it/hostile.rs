//! A hostile service: what it may send, and which results are acceptable. The cases are data: a
//! name, the row of the threat model that it belongs to, the bytes, and what the app, the ledger and
//! the next request may see.
//!
//! Promise: for any bytes, the app gets a clear answer or a clear break, the ledger says what it
//! knows and no more, the organization's key appears nowhere, and the next request is served.
// Tables are spelled where they are read.
#![allow(clippy::type_complexity)]

mod bodies;
mod connections;
mod dialects;
mod exposition;
mod floods;
mod heads;
mod http2;
#[cfg(target_os = "linux")]
mod http2_memory;
mod key;
mod labels;
mod output;
mod quiet_path;
mod reading_on;
mod receipts;
mod trust;

use std::panic::AssertUnwindSafe;
use std::path::Path;

use bursar::ledger::entry::{Anomaly, InDoubt, State};
use bursar::money::MicroUsd;
use futures_util::FutureExt;

use crate::support::origin::{billed, chunk, json, last_chunk, stream_head};
use crate::support::wire::request;
use crate::support::{Answer, Bursar, KEY, Origin, Step, chat, chat_stream};

const CHAT: &str = "/v1/chat/completions";
const ONCE: &str = "[retry]\nattempts = 1\n";

/// What the app asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ask {
    Chat,
    Stream,
    /// A route that bills and honors no key.
    Speech,
    /// A route that costs nothing and makes no entry.
    Free,
    /// A translated route; whether for a stream.
    Spoken(&'static str, bool),
}

/// What the app may see.
#[derive(Clone, Debug, PartialEq, Eq)]
enum App {
    /// This status and this body, to its end.
    Whole(u16, Vec<u8>),
    /// This status and some body, to its end.
    Status(u16),
    /// An error of bursar's own.
    Refused(&'static str),
    /// A 200 whose body does not end.
    BrokenOff,
}

/// What the ledger may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Books {
    Settled(u64),
    Failed,
    Unreported,
    InDoubt(InDoubt),
    /// No entry.
    Nothing,
}

const LOST: Books = Books::InDoubt(InDoubt::NoResponse);
const DROPPED: Books = Books::InDoubt(InDoubt::StreamDrop);
/// An answer without a head that can be read: the request may have run.
const UNKNOWN: App = App::Refused("outcome_unknown");
const BROKEN: App = App::Refused("upstream_broken");

/// One thing that a service may do.
#[derive(Clone, Debug)]
struct Case {
    name: String,
    /// Of the threat model.
    row: u8,
    ask: Ask,
    sends: Vec<u8>,
    closes: bool,
    app: App,
    books: Books,
    odd: &'static [Anomaly],
}

fn case(
    row: u8,
    ask: Ask,
    name: impl Into<String>,
    sends: impl Into<Vec<u8>>,
    app: App,
    books: Books,
) -> Case {
    Case {
        name: name.into(),
        row,
        ask,
        sends: sends.into(),
        closes: false,
        app,
        books,
        odd: &[],
    }
}

// === impl Case ===

impl Case {
    /// The service closes its connection after the bytes.
    fn closing(mut self) -> Self {
        self.closes = true;
        self
    }

    fn odd(mut self, odd: &'static [Anomaly]) -> Self {
        self.odd = odd;
        self
    }

    fn step(&self) -> Step {
        if self.closes {
            Step::AnswerAndClose(self.sends.clone())
        } else {
            Step::Answer(self.sends.clone())
        }
    }

    fn asks(&self) -> String {
        match self.ask {
            Ask::Chat => request("POST", CHAT, &[], &chat(&self.name)),
            Ask::Stream => request("POST", CHAT, &[], &chat_stream(&self.name)),
            Ask::Speech => {
                let text = serde_json::json!({ "text": self.name }).to_string();
                request("POST", "/v1/audio/speech", &[], &text)
            }
            Ask::Spoken(path, stream) => {
                let ask = match path.ends_with("messages") {
                    true => serde_json::json!({"model": "auto", "max_tokens": 9, "stream": stream,
                        "messages": [{"role": "user", "content": self.name}]}),
                    false => {
                        serde_json::json!({"model": "auto", "stream": stream, "input": self.name})
                    }
                };
                request("POST", path, &[], &ask.to_string())
            }
            Ask::Free => "GET /v1/models HTTP/1.1\r\nHost: localhost\r\n\r\n".to_owned(),
        }
    }

    fn check_answer(&self, answer: &Answer) {
        let name = &self.name;
        let beginning = || {
            let end = answer.body.len().min(300);
            answer.body[..end].escape_ascii().to_string()
        };
        match &self.app {
            App::Whole(status, body) => {
                assert_eq!(answer.status, *status, "{name}: {}", beginning());
                assert_eq!(answer.code(), None, "{name}: {}", beginning());
                assert!(
                    answer.body == *body,
                    "{name}: {} bytes of {}: {}",
                    answer.body.len(),
                    body.len(),
                    beginning()
                );
                assert!(answer.complete, "{name}: it does not end");
            }
            App::Status(status) => {
                assert_eq!(answer.status, *status, "{name}: {}", beginning());
                assert_eq!(answer.code(), None, "{name}: {}", beginning());
                assert!(answer.complete, "{name}: it does not end");
            }
            App::Refused(code) => {
                assert_eq!(answer.code(), Some(*code), "{name}: {}", beginning());
                assert!(answer.complete, "{name}: it does not end");
            }
            App::BrokenOff => {
                assert_eq!(answer.status, 200, "{name}: {}", beginning());
                assert!(!answer.complete, "{name}: it ends as if it were whole");
            }
        }
    }

    fn check_books(&self, answer: &Answer, bursar: &Bursar) {
        let name = &self.name;
        if self.books == Books::Nothing {
            let id = answer.header("x-bursar-entry").expect("an entry id");
            let entries = bursar.entries();
            assert!(
                entries.iter().all(|entry| entry.id.to_string() != id),
                "{name}: a free request made an entry"
            );
            return;
        }
        let entry = bursar.entry_of(answer);
        let wanted = match self.books {
            Books::Settled(micro_usd) => State::Settled {
                billed: MicroUsd::new(micro_usd),
            },
            Books::Failed => State::Failed,
            Books::Unreported => State::Unreported,
            Books::InDoubt(reason) => State::InDoubt { reason },
            Books::Nothing => unreachable!("handled above"),
        };
        assert_eq!(entry.state, wanted, "{name}");
        assert_eq!(entry.anomalies, self.odd, "{name}");
    }
}

/// bursar before the hostile service.
struct Stage {
    origin: Origin,
    bursar: Bursar,
}

// === impl Stage ===

impl Stage {
    async fn with(lines: &str) -> Self {
        let origin = Origin::start([]).await;
        let bursar = Bursar::with(&origin.url(), lines).await;
        Self { origin, bursar }
    }

    /// Sends a request of the app's on a connection of its own.
    async fn ask(&self, bytes: &str) -> Answer {
        let mut wire = self.bursar.connect().await;
        wire.send(bytes).await;
        wire.answer().await
    }

    /// The next request of an app is served, with its own answer.
    async fn next_is_served(&self, name: &str) {
        // What a 401 or 402 says about the account is not the question here.
        self.bursar.forget_refusals();
        let body = format!("{{\"id\":{:?}}}", format!("next after {name}"));
        let answer = json(200, &[("X-Service-Billed", "1")], &body);
        self.origin.push(Step::Answer(answer));
        let asks = request("POST", CHAT, &[], &chat(&format!("next after {name}")));
        let answer = self.ask(&asks).await;
        assert_eq!((answer.status, answer.text()), (200, body), "{name}");
        let entry = self.bursar.entry_of(&answer);
        let one = State::Settled {
            billed: MicroUsd::new(1),
        };
        assert_eq!(entry.state, one, "{name}: the next request");
    }

    async fn plays(&self, case: &Case) -> Answer {
        self.origin.push(case.step());
        let answer = self.ask(&case.asks()).await;
        case.check_answer(&answer);
        case.check_books(&answer, &self.bursar);
        assert_no_key(&case.name, &answer);
        self.next_is_served(&case.name).await;
        answer
    }

    /// Nothing of the key is kept, words of the service are short and printable, and Prometheus can
    /// parse the metrics.
    fn check_what_is_kept(&self) {
        assert_no_key_in(&self.bursar.state_dir());
        for entry in self.bursar.entries() {
            let is_word = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
            let category = entry.specialist.unwrap_or_default();
            let is_category = category.bytes().all(|byte| is_word(byte) || byte == b'-');
            assert!(is_category && category.len() <= 32, "{category:?}");
            for text in [entry.route_version, entry.input_required, entry.request_id] {
                let text = text.unwrap_or_default();
                let is_printable = text.bytes().all(|byte| (b' '..0x7f).contains(&byte));
                assert!(is_printable && text.len() <= 128, "{text:?}");
            }
        }
        let metrics = self.bursar.metrics_text();
        assert!(!metrics.contains(KEY), "the key is in the metrics");
        exposition::samples(&metrics).unwrap_or_else(|error| panic!("{error}"));
    }
}

/// Plays cases one after the other before one bursar.
async fn play(cases: Vec<Case>) {
    let stage = Stage::with(ONCE).await;
    let mut failed = Vec::new();
    for case in &cases {
        let played = AssertUnwindSafe(stage.plays(case)).catch_unwind().await;
        if played.is_err() {
            failed.push(case.name.as_str());
        }
    }
    assert!(
        failed.is_empty(),
        "{} cases failed: {failed:#?}",
        failed.len()
    );
    stage.check_what_is_kept();
}

fn contains(haystack: &[u8], needle: &[u8]) -> bool {
    memchr::memmem::find(haystack, needle).is_some()
}

fn assert_no_key(name: &str, answer: &Answer) {
    let headers = format!("{:?}", answer.headers);
    assert!(
        !headers.to_lowercase().contains(KEY),
        "{name}: the key is in {headers}"
    );
    assert!(
        !contains(&answer.body, KEY.as_bytes()),
        "{name}: the key is in the body"
    );
}

/// No file of a state directory holds the key.
fn assert_no_key_in(directory: &Path) {
    for file in std::fs::read_dir(directory).expect("a directory") {
        let path = file.expect("an entry").path();
        if path.is_dir() {
            assert_no_key_in(&path);
        } else if path.is_file() {
            let bytes = std::fs::read(&path).expect("a file");
            assert!(!contains(&bytes, KEY.as_bytes()), "{}", path.display());
        }
    }
}

/// A 200 with these header lines and the body `{}`.
fn head_with(lines: &str) -> Vec<u8> {
    format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n{lines}Content-Length: 2\r\n\r\n{{}}"
    )
    .into_bytes()
}

/// An event stream of these bytes, in one chunk.
fn events(text: impl AsRef<[u8]>) -> Vec<u8> {
    let text = text.as_ref();
    let size = format!("{:x}\r\n", text.len()).into_bytes();
    [
        stream_head(),
        size,
        text.to_vec(),
        b"\r\n".to_vec(),
        last_chunk(),
    ]
    .concat()
}

/// The same in one chunk each.
fn events_in(pieces: &[&str]) -> Vec<u8> {
    let chunks: Vec<Vec<u8>> = pieces.iter().map(|piece| chunk(piece)).collect();
    [stream_head(), chunks.concat(), last_chunk()].concat()
}

fn whole(text: impl AsRef<[u8]>) -> App {
    App::Whole(200, text.as_ref().to_vec())
}

/// Every case of every table.
fn all() -> Vec<Case> {
    [
        heads::cases(),
        bodies::cases(),
        connections::cases(),
        dialects::cases(),
        key::cases(),
        labels::cases(),
        receipts::cases(),
    ]
    .concat()
}

/// Row and name of every case of the tables.
pub fn named() -> Vec<(u8, String)> {
    all()
        .into_iter()
        .map(|case| (case.row, case.name))
        .collect()
}

/// The rows of the threat model that a service can trigger, and how many of their cases are tests
/// of their own: those take more than one request, another protocol, or a process of their own.
const ELSEWHERE: [(u8, &[&str]); 8] = [
    (19, trust::NAMES),
    (20, &["a key on the border of two chunks, at each place"]),
    (21, floods::NAMES),
    (22, &["sums of the largest amounts"]),
    (23, &["a hundred categories"]),
    (24, connections::NAMES),
    (25, output::LOG_NAMES),
    (26, output::METRICS_NAMES),
];

#[test]
fn every_row_that_a_service_can_trigger_has_at_least_three_cases() {
    let cases = all();
    let mut names: Vec<&str> = cases.iter().map(|case| case.name.as_str()).collect();
    names.sort_unstable();
    let count = names.len();
    names.dedup();
    assert_eq!(names.len(), count, "two cases have one name");
    eprintln!("{count} cases in tables");
    for (row, elsewhere) in ELSEWHERE {
        let here = cases.iter().filter(|case| case.row == row).count();
        assert!(here + elsewhere.len() >= 3, "row {row}: {here} cases");
    }
    for case in &cases {
        assert!((19..=26).contains(&case.row), "{}: row", case.name);
    }
}

/// The scripted origin itself: without a case the next request is served.
#[tokio::test]
async fn a_service_that_does_nothing_odd_is_served_as_it_is() {
    let sends = billed(7);
    let body = r#"{"id":"c1","choices":[],"usage":{"prompt_tokens":3,"completion_tokens":4,"total_tokens":7}}"#;
    play(vec![case(
        21,
        Ask::Chat,
        "nothing odd",
        sends,
        whole(body),
        Books::Settled(7),
    )])
    .await;
}
