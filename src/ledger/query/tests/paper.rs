//! A journal written without a daemon: any history, as long as wanted, quickly.

use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;

use uuid::Uuid;

use crate::ledger::entry::{AttemptEnd, EntryId, InDoubt, State};
use crate::ledger::fixtures::{Bench, START_MS, attempt, billed, intent, outcome};
use crate::ledger::mark::Mark;
use crate::ledger::record::{Ended, Evidence, How, Labels, Record, SegmentHeader, Verdict};
use crate::ledger::state_dir::Directory;
use crate::money::MicroUsd;

/// Journal files in the making.
pub struct Paper {
    pub bench: Bench,
    pub now_ms: u64,
    pub last_seq: u64,
    segment_bytes_max: usize,
    segment: u32,
    text: Vec<u8>,
}

impl Paper {
    pub fn new(segment_bytes_max: usize) -> Self {
        let bench = Bench::new();
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(bench.state().join("journal"))
            .unwrap();
        Self {
            bench,
            now_ms: START_MS,
            last_seq: 0,
            segment_bytes_max,
            segment: 0,
            text: Vec::new(),
        }
    }

    pub fn state(&self) -> PathBuf {
        self.bench.state()
    }

    /// Writes a record; `false` in `is_sound` damages its line.
    pub fn write(&mut self, record: &Record, is_sound: bool) -> u64 {
        self.turn_page();
        self.last_seq += 1;
        let start = self.text.len();
        record.encode(self.last_seq, &mut self.text).unwrap();
        if !is_sound {
            self.text[start + 9] ^= 1;
        }
        self.last_seq
    }

    /// Writes a line that was encoded with number 1 anew, with the next number and another entry.
    pub fn copy(&mut self, line: &str, from: EntryId, to: EntryId) {
        self.turn_page();
        self.last_seq += 1;
        let start = self.text.len();
        let rest = line.strip_prefix(r#"{"seq":1,"#).unwrap();
        let (rest, _) = rest.rsplit_once(r#","crc":"#).unwrap();
        let rest = rest.replacen(&from.to_string(), &to.to_string(), 1);
        let text = format!(r#"{{"seq":{},{rest}"#, self.last_seq);
        self.text.extend_from_slice(text.as_bytes());
        let crc = crc32c::crc32c(&self.text[start..]);
        let seal = format!("{}{crc:08x}\"}}\n", r#","crc":""#);
        self.text.extend_from_slice(seal.as_bytes());
    }

    pub fn append(&mut self, bytes: &[u8]) {
        self.text.extend_from_slice(bytes);
    }

    /// Writes what is left.
    pub fn finish(&mut self) {
        if self.segment > 0 {
            fs::write(self.bench.segment(self.segment), &self.text).unwrap();
            let journal = Directory::open(&self.bench.state().join("journal")).unwrap();
            Mark::write(&journal, self.last_seq).unwrap();
        }
    }

    fn turn_page(&mut self) {
        if self.segment > 0 && self.text.len() < self.segment_bytes_max {
            return;
        }
        self.finish();
        self.segment += 1;
        self.text.clear();
        let first = self.last_seq + 1;
        SegmentHeader::new(Uuid::nil(), self.segment, first, self.now_ms)
            .encode(&mut self.text)
            .unwrap();
    }
}

pub fn id(number: u64) -> EntryId {
    EntryId(Uuid::from_u128(u128::from(number) + 1))
}

pub fn begins(id: EntryId, at_ms: u64, app: &str) -> Record {
    let mut intent = intent(id, at_ms, None);
    intent.app = app.into();
    Record::Intent(Box::new(intent))
}

pub fn ends(id: EntryId, labels: Labels, state: State) -> Record {
    let attempts = vec![attempt(AttemptEnd::Answered)];
    let verdict = Verdict {
        state,
        adds_micro_usd: state.adds(),
        anomalies: Vec::new(),
    };
    Record::Outcome(Box::new(outcome(id, attempts, billed(7))), labels, verdict)
}

pub fn crashes(id: EntryId, labels: Labels) -> Record {
    let reason = InDoubt::Crash;
    let state = State::InDoubt { reason };
    let at_ms = labels.started_ms + 5;
    Record::Crashed(Ended { id, at_ms, state }, labels)
}

pub fn evidence(id: EntryId, labels: Labels, was: State) -> Record {
    let how = How::Run {
        run_id: "run-1".to_owned(),
    };
    let evidence = Evidence {
        id,
        at_ms: labels.started_ms + 9,
        was,
        served_by: None,
        adds_micro_usd: MicroUsd::new(11),
        how,
    };
    Record::Reconciled(evidence, labels)
}
