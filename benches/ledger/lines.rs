//! A ledger of any length, written line by line: two lines of the writer are the pattern, and each entry gets
//! its own id, time, key, request id, app, lane, operation, model and state.
//!
//! Promise: memory does not grow with the length. Lines are sealed and segments begin as the writer does it, so
//! that the ledger opens, verifies and is rebuilt as any other.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use bursar::clock::SystemClock;
use bursar::ledger::SEGMENT_BYTES_MAX;
use serde_json::Value;

use crate::long::{self, Labels};

const DAY_MS: u64 = 24 * 60 * 60 * 1000;

/// All but the last day lie evenly over these days.
pub const DAYS: u64 = 200;

/// Entries of the last day, where there are as many.
pub const LAST_DAY: u64 = 50_000;

/// Of a hundred entries so many end otherwise than settled.
const STATES: [&str; 3] = [
    r#""failed""#,
    r#""unreported""#,
    r#"{"in_doubt":{"reason":"no_response"}}"#,
];

/// A line in parts: text, and what differs from entry to entry between two texts.
struct Pattern {
    texts: Vec<String>,
    slots: Vec<&'static str>,
}

/// The segments in the making.
struct Segments {
    journal: PathBuf,
    ledger: String,
    file: Option<BufWriter<File>>,
    number: u32,
    bytes: u64,
    next_seq: u64,
}

/// Writes the ledger, with at most so many entries in the last day.
pub async fn write(state: &Path, entries: u64, last_day: u64) {
    long::write(state, 1, 1).await;
    let journal = state.join("journal");
    let sample = std::fs::read_to_string(journal.join("00000001.jsonl")).expect("a segment");
    let mut lines = sample.lines();
    let header: Value = serde_json::from_str(lines.next().expect("a header")).expect("JSON");
    let find = |words: [&str; 2]| {
        let mut lines = lines.clone();
        let line = lines.find(|line| words.iter().all(|word| line.contains(word)));
        line.expect("a line of the writer")
    };
    let outcome = find([r#""kind":"outcome""#, r#""settled""#]);
    let outcome_of: Value = serde_json::from_str(outcome).expect("JSON");
    let id = outcome_of["id"].as_str().expect("an id");
    let intent = find([r#""kind":"intent""#, id]);
    // The mark stays: it says that the journal reached so far at least.
    let (intent, outcome) = (Pattern::of(intent), Pattern::of(outcome));
    for name in ["index", "usage", "stopped"] {
        let path = state.join(name);
        let _ = std::fs::remove_dir_all(&path);
        let _ = std::fs::remove_file(&path);
    }
    let mut segments = Segments {
        journal,
        ledger: header["ledger"].as_str().expect("a ledger").to_owned(),
        file: None,
        number: 0,
        bytes: 0,
        next_seq: 1,
    };

    let now_ms = SystemClock::shared().wall_ms();
    let last_day = entries.min(last_day);
    let earlier = entries - last_day;
    for number in 0..entries {
        let at_ms = if number < earlier {
            now_ms - DAYS * DAY_MS + number * ((DAYS - 1) * DAY_MS / earlier.max(1))
        } else {
            now_ms - DAY_MS + (number - earlier) * (DAY_MS / last_day)
        };
        let entry = Entry::of(number, at_ms);
        segments.write(&intent, &entry);
        segments.write(&outcome, &entry);
    }
    segments.finish();
}

/// What is put into the slots.
struct Entry {
    id: String,
    key: String,
    request_id: String,
    at_ms: u64,
    labels: Labels,
    state: String,
    adds: u64,
}

// === impl Entry ===

impl Entry {
    fn of(number: u64, at_ms: u64) -> Self {
        let random = blake3::hash(&number.to_le_bytes());
        let mut bits = [0; 10];
        bits.copy_from_slice(&random.as_bytes()[..10]);
        let hex = random.to_hex();
        let billed = 10 + number % 500;
        let (state, adds) = match STATES.get(usize::from(random.as_bytes()[31]) % 100) {
            Some(state) => ((*state).to_owned(), 0),
            None => (format!(r#"{{"settled":{{"billed":{billed}}}}}"#), billed),
        };
        Self {
            id: uuid::Builder::from_unix_timestamp_millis(at_ms, &bits)
                .into_uuid()
                .to_string(),
            key: format!("bursar-{}", &hex[..32]),
            request_id: format!("req-{}", &hex[32..]),
            at_ms,
            labels: Labels::of(random.as_bytes()),
            state,
            adds,
        }
    }
}

// === impl Pattern ===

impl Pattern {
    /// Cuts a line at what differs between entries. Its number and checksum are not part of it.
    fn of(line: &str) -> Self {
        let value: Value = serde_json::from_str(line).expect("JSON");
        let (_, rest) = line.split_once(r#","kind":"#).expect("a kind");
        let (rest, _) = rest.rsplit_once(r#","crc":"#).expect("a sum");
        let text = |name: &str| value[name].as_str().map(str::to_owned);
        let quoted = |text: Option<String>| text.map(|text| format!("\"{text}\""));
        let began = value["at_ms"].as_u64().expect("a time").to_string();
        let found = [
            ("id", text("id")),
            ("key", value["key"]["value"].as_str().map(str::to_owned)),
            ("request_id", text("request_id")),
            ("app", quoted(text("app"))),
            ("lane", quoted(text("lane"))),
            ("operation", quoted(text("operation"))),
            ("model", quoted(text("model"))),
            (
                "state",
                value.get("state").map(|state| {
                    let adds = &value["adds_micro_usd"];
                    format!(r#""state":{state},"adds_micro_usd":{adds}"#)
                }),
            ),
            ("at_ms", Some(began)),
        ];
        let mut cuts: Vec<(usize, usize, &'static str)> = Vec::new();
        for (name, text) in found {
            if let Some(text) = text {
                cuts.extend(
                    rest.match_indices(&text)
                        .map(|(at, _)| (at, text.len(), name)),
                );
            }
        }
        cuts.sort_unstable();
        let (mut texts, mut slots, mut from) = (Vec::new(), Vec::new(), 0);
        for (at, length, name) in cuts {
            texts.push(rest[from..at].to_owned());
            slots.push(name);
            from = at + length;
        }
        texts.push(rest[from..].to_owned());
        Self { texts, slots }
    }

    fn print(&self, seq: u64, entry: &Entry, to: &mut Vec<u8>) {
        let start = to.len();
        write!(to, r#"{{"seq":{seq},"kind":"#).expect("memory");
        for (text, slot) in self.texts.iter().zip(&self.slots) {
            to.extend_from_slice(text.as_bytes());
            let labels = &entry.labels;
            let written = match *slot {
                "id" => write!(to, "{}", entry.id),
                "key" => write!(to, "{}", entry.key),
                "request_id" => write!(to, "{}", entry.request_id),
                "app" => write!(to, "\"{}\"", labels.app),
                "lane" => write!(to, "\"{}\"", labels.lane),
                "operation" => write!(to, "\"{}\"", labels.operation),
                "model" => write!(to, "\"{}\"", labels.model),
                "state" => write!(
                    to,
                    r#""state":{},"adds_micro_usd":{}"#,
                    entry.state, entry.adds
                ),
                _ => write!(to, "{}", entry.at_ms),
            };
            written.expect("memory");
        }
        let last = self.texts.last().map_or("", String::as_str);
        to.extend_from_slice(last.as_bytes());
        seal(start, to);
    }
}

// === impl Segments ===

impl Segments {
    fn write(&mut self, pattern: &Pattern, entry: &Entry) {
        if self.file.is_none() || self.bytes >= SEGMENT_BYTES_MAX {
            self.begin(entry.at_ms);
        }
        let mut line = Vec::with_capacity(1024);
        pattern.print(self.next_seq, entry, &mut line);
        self.next_seq += 1;
        self.put(&line);
    }

    fn begin(&mut self, at_ms: u64) {
        self.finish();
        self.number += 1;
        self.bytes = 0;
        let path = self.journal.join(format!("{:08}.jsonl", self.number));
        let mut options = File::options();
        options.write(true).create(true).truncate(true);
        let file = std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600).open(path);
        self.file = Some(BufWriter::new(file.expect("a segment")));
        let mut line = Vec::new();
        write!(
            line,
            r#"{{"kind":"segment","format":1,"ledger":"{}","segment":{},"first_seq":{},"at_ms":{at_ms}"#,
            self.ledger, self.number, self.next_seq
        )
        .expect("memory");
        seal(0, &mut line);
        self.put(&line);
    }

    fn put(&mut self, line: &[u8]) {
        let file = self.file.as_mut().expect("a segment");
        file.write_all(line).expect("room on the disk");
        self.bytes += u64::try_from(line.len()).unwrap_or(0);
    }

    fn finish(&mut self) {
        if let Some(mut file) = self.file.take() {
            file.flush().expect("room on the disk");
        }
    }
}

/// Appends checksum and newline.
fn seal(start: usize, to: &mut Vec<u8>) {
    let crc = crc32c::crc32c(&to[start..]);
    writeln!(to, r#","crc":"{crc:08x}"}}"#).expect("memory");
}
