//! The ledger of the model: the real books and the real lines, over a journal in memory whose disk
//! can refuse, and which keeps any beginning of a batch that failed.
//!
//! Promise: what the audit hears is durable; after each commit and each restart the sums of the
//! totals, of the records and of the rollups are the same, and none went back (I10).

use std::collections::{BTreeMap, HashMap};

use super::audit::Audit;
use crate::ledger::entry::{EntryId, InDoubt, Intent, Outcome, State};
use crate::ledger::model_parts::{Books, Effect, Line, Position, Record, RollupKey};
use crate::ledger::totals::{Row, Totals};
use crate::ledger::undelivered::{Handover, Remembered, Undelivered};
use crate::money::MicroUsd;

#[derive(Clone)]
pub enum Command {
    Intend(Box<Intent>),
    Settle(Box<Outcome>),
    Run { run_id: String, billed: MicroUsd },
    Deliver(Box<Undelivered>, Handover),
}

/// What a command came to.
pub enum Done {
    Intended(EntryId),
    Refused(EntryId),
    Settled(EntryId, State, Twice),
    Reconciled,
}

/// The outcome was written by an earlier commit already.
pub type Twice = bool;

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Disk {
    Works,
    /// Keeps this many hundredths of the batch and fails.
    Fails(usize),
}

#[derive(Default)]
pub struct Paper {
    books: Books,
    lines: Vec<Vec<u8>>,
    pub pending: Vec<Command>,
    pub audit: Audit,
    rollups: BTreeMap<RollupKey, Row>,
    before: u128,
    /// Up to here a process ended in order.
    stopped_seq: u64,
}

impl Paper {
    /// One group commit. After a failure the books are read again, as the writer does, outcomes stay
    /// pending, and intents that were refused are withdrawn.
    pub fn commit(&mut self, disk: Disk, now_ms: u64) -> Vec<Done> {
        let commands = std::mem::take(&mut self.pending);
        self.books.prune(now_ms);
        let mut batch: Vec<(Record, Vec<u8>)> = Vec::new();
        let mut done = Vec::new();
        for command in &commands {
            let records = match command {
                Command::Intend(intent) => {
                    done.push(Done::Intended(intent.id));
                    vec![Record::Intent(intent.clone())]
                }
                Command::Settle(outcome) => match self.books.settle((**outcome).clone()) {
                    Some((records, settlement)) => {
                        done.push(Done::Settled(outcome.id, settlement.state, false));
                        records
                    }
                    None => {
                        let first = self.books.recent(outcome.id).expect("an end that was told");
                        done.push(Done::Settled(outcome.id, first.state, true));
                        Vec::new()
                    }
                },
                Command::Run { run_id, billed } => {
                    match self.books.reconcile_run(run_id, *billed, now_ms) {
                        Some((record, _)) => {
                            done.push(Done::Reconciled);
                            vec![record]
                        }
                        None => Vec::new(),
                    }
                }
                Command::Deliver(row, handover) => vec![Record::Delivery(row.clone(), *handover)],
            };
            for record in records {
                let at = self.lines.len() + batch.len();
                let line = self.place(at, &record);
                batch.push((record, line));
            }
        }
        if let Disk::Fails(hundredths) = disk {
            let kept = batch.len() * hundredths / 100;
            batch.truncate(kept);
            self.keep(batch);
            self.read_again();
            let mut refused = Vec::new();
            for command in commands {
                match command {
                    Command::Intend(intent) => {
                        refused.push(Done::Refused(intent.id));
                        if self.books.is_open(intent.id) {
                            self.end(intent.id, now_ms, None);
                        }
                    }
                    // Nobody waits for it.
                    Command::Deliver(row, handover) => self.forget(&row, handover),
                    other => self.pending.push(other),
                }
            }
            return refused;
        }
        self.keep(batch);
        self.agree();
        done
    }

    fn forget(&mut self, row: &Undelivered, handover: Handover) {
        if handover.delivered {
            self.audit.may_be_asked_again(row.id);
        }
    }

    /// Everything is written, and the process ends.
    pub fn stop(&mut self) {
        self.stopped_seq = self.books.last_seq();
    }

    /// The process died and starts again: what was not durable is gone. Answers how many entries were
    /// open, and what is left undelivered.
    pub fn restart(&mut self, now_ms: u64) -> (usize, Remembered) {
        for command in std::mem::take(&mut self.pending) {
            if let Command::Deliver(row, handover) = command {
                self.forget(&row, handover);
            }
        }
        let before = self.books.totals().clone();
        self.read_again();
        assert_eq!(
            &before,
            self.books.totals(),
            "I10: the sums after a restart"
        );
        let journal_ended_ms = self.books.deliveries().last_ms();
        for row in self.books.deliveries().unclear(self.stopped_seq) {
            let handover = Handover {
                delivered: false,
                assumed: true,
            };
            self.write(Record::Delivery(Box::new(row), handover));
        }
        let open = self.books.open_ids();
        for id in &open {
            self.end(*id, now_ms, Some(InDoubt::Crash));
        }
        self.agree();
        let remembered = Remembered {
            rows: self.books.deliveries().rows(now_ms),
            journal_ended_ms,
        };
        (open.len(), remembered)
    }

    fn end(&mut self, id: EntryId, now_ms: u64, why: Option<InDoubt>) {
        if let Some(record) = self.books.end(id, now_ms, why) {
            self.write(record);
        }
    }

    fn write(&mut self, record: Record) {
        let line = self.place(self.lines.len(), &record);
        self.keep(vec![(record, line)]);
    }

    /// Encodes a record as the line at `at`, and applies it.
    fn place(&mut self, at: usize, record: &Record) -> Vec<u8> {
        let seq = at as u64 + 1;
        let mut line = Vec::new();
        record
            .encode(seq, &mut line)
            .expect("a record that can be encoded");
        line.pop();
        self.books.apply(seq, position(seq), record, true);
        line
    }

    fn keep(&mut self, batch: Vec<(Record, Vec<u8>)>) {
        for (record, line) in batch {
            self.audit.durable(&record);
            self.lines.push(line);
        }
    }

    /// Reads all lines into new books.
    fn read_again(&mut self) {
        let mut books = Books::default();
        let mut sums = Totals::default();
        let mut billed: HashMap<EntryId, u64> = HashMap::new();
        for (at, line) in self.lines.iter().enumerate() {
            let Some(Line::Record { seq, record }) = Line::decode(line) else {
                panic!("a line that was written cannot be read");
            };
            assert_eq!(seq, at as u64 + 1);
            books.apply(seq, position(seq), &record, true);
            if let Some(effect) = Effect::of(&record) {
                sums.add(&effect);
            }
            match &record {
                Record::Outcome(outcome, _, verdict) => {
                    billed.insert(outcome.id, verdict.state.adds().get());
                }
                Record::Reconciled(evidence, _) => {
                    billed.insert(evidence.id, evidence.adds_micro_usd.get());
                }
                _ => {}
            }
        }
        let by_entry: u128 = billed.values().map(|amount| u128::from(*amount)).sum();
        assert_eq!(
            books.totals().billed().get(),
            by_entry,
            "I10: entries and totals"
        );
        assert_eq!(
            books.totals().billed(),
            sums.billed(),
            "I10: records and totals"
        );
        self.rollups.clear();
        self.books = books;
    }

    fn agree(&mut self) {
        for (key, row) in self.books.take_pending().rollups {
            self.rollups.entry(key).or_default().merge(&row);
        }
        let billed = self.books.totals().billed().get();
        let rolled: u128 = self.rollups.values().map(|row| row.billed.get()).sum();
        assert_eq!(billed, rolled, "I10: rollups");
        assert_eq!(billed, self.audit.billed, "I10: what the audit heard");
        assert!(billed >= self.before, "I10: the sum went back");
        self.before = billed;
    }
}

fn position(seq: u64) -> Position {
    Position {
        segment: 1,
        offset: seq,
        bytes: 1,
    }
}
