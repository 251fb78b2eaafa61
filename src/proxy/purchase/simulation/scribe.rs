//! The ledger's writer without its files: commands become records, records become lines, and a start
//! reads the lines back. Books, records, fold, keys and sums are the real ones.
//!
//! Promise: what was acknowledged stays in the journal; of a commit that failed, or that a crash
//! interrupted, any number of its lines may be there.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use super::chance::Chance;
use crate::ledger::books::Books;
use crate::ledger::entry::{EntryId, InDoubt, Intent, Outcome, Settlement, State};
use crate::ledger::keys::Unresolved;
use crate::ledger::record::{Line, Position, Record};
use crate::ledger::totals::{Effect, Totals};
use crate::ledger::undelivered::{Handover, Remembered, Undelivered};
use crate::money::MicroUsd;

/// What waits for the next commit.
#[derive(Debug)]
pub enum Command {
    Intend(Arc<Intent>),
    Settle(Arc<Outcome>),
    Deliver(Box<Undelivered>, bool),
    Run { run_id: String, billed: u64 },
}

/// What a commit answers to the request of an entry.
#[derive(Debug)]
pub enum Reply {
    Intended(EntryId, bool),
    /// `None`: it could not be written.
    Settled(EntryId, Option<Settlement>),
}

/// What the disk does with a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disk {
    Writes,
    /// The write or the sync fails.
    Fails,
    /// The process dies in it.
    Dies,
}

/// What lies on the disk: all that a start finds.
#[derive(Debug, Default)]
pub struct Shelf {
    pub lines: Vec<Vec<u8>>,
    index: Kept,
    /// The number of the last record of a process that ended in order.
    pub stopped: Option<u64>,
}

/// The index: sums up to a record, and eval runs that wait.
#[derive(Clone, Debug, Default)]
struct Kept {
    seq: u64,
    totals: Totals,
    runs: BTreeMap<String, Unresolved>,
    /// The money in the sums by quarter hour.
    rolled_up: u128,
}

/// What the journal says, added up by another way than the books do.
#[derive(Debug, Default)]
pub struct Reading {
    pub states: HashMap<EntryId, State>,
    pub billed: u128,
    pub open: usize,
}

/// The writer of one process.
#[derive(Debug)]
pub struct Scribe {
    pub books: Books,
    pub queue: Vec<Command>,
    pub later: Vec<Outcome>,
    /// What was to be noted of deliveries while nothing could be written.
    unnoted: Vec<Command>,
    failed: bool,
    refused: HashSet<EntryId>,
    journal_ended_ms: u64,
}

// === impl Shelf ===

impl Shelf {
    /// Reads every line. A line that does not decode is a bug: the model tears none.
    pub fn records(&self) -> Result<Vec<(u64, Record)>, String> {
        let decode = |line: &Vec<u8>| {
            let text = line.strip_suffix(b"\n").unwrap_or(line);
            match Line::decode(text) {
                Some(Line::Record { seq, record }) => Ok((seq, record)),
                _ => Err(format!("no record: {}", String::from_utf8_lossy(line))),
            }
        };
        self.lines.iter().map(decode).collect()
    }

    fn load(&self) -> Result<Books, String> {
        let runs = self.index.runs.clone().into_iter().collect();
        let mut books = Books::from_index(self.index.totals.clone(), runs);
        for (seq, record) in self.records()? {
            books.apply(seq, position(seq), &record, seq > self.index.seq);
        }
        Ok(books)
    }
}

// === impl Reading ===

impl Reading {
    pub fn add(&mut self, record: &Record) {
        let (id, state) = match record {
            Record::Intent(intent) => (intent.id, State::Open),
            Record::Outcome(outcome, _, verdict) => (outcome.id, verdict.state),
            Record::Crashed(ended, _) | Record::Withdrawn(ended, _) => (ended.id, ended.state),
            Record::Reconciled(evidence, _) => {
                let billed = evidence.adds_micro_usd;
                (evidence.id, State::Reconciled { billed })
            }
            Record::Delivery(..) | Record::Rollup(_) | Record::Unknown => return,
        };
        let is_open = |state: State| usize::from(state == State::Open);
        let was = self.states.insert(id, state);
        let before = was.map_or(MicroUsd::ZERO, State::adds);
        self.billed = self.billed + u128::from(state.adds().get()) - u128::from(before.get());
        self.open = self.open + is_open(state) - was.map_or(0, is_open);
    }
}

// === impl Scribe ===

impl Scribe {
    /// A process starts. Ends what the one before it left, as the real writer does.
    pub fn start(shelf: &mut Shelf, now_ms: u64) -> Result<Self, String> {
        let mut scribe = Self {
            books: shelf.load()?,
            queue: Vec::new(),
            later: Vec::new(),
            unnoted: Vec::new(),
            failed: false,
            refused: HashSet::new(),
            journal_ended_ms: 0,
        };
        scribe.journal_ended_ms = scribe.books.deliveries().last_ms();
        let crashed = scribe.books.open_ids();
        let in_order = shelf.stopped == Some(scribe.books.last_seq());
        let unclear = if in_order {
            Vec::new()
        } else {
            scribe.books.deliveries().unclear(shelf.index.seq)
        };
        let mut lines = Vec::new();
        for row in unclear {
            let handover = Handover {
                delivered: false,
                assumed: true,
            };
            scribe.write(&Record::Delivery(Box::new(row), handover), &mut lines);
        }
        for id in crashed {
            if let Some(record) = scribe.books.end(id, now_ms, Some(InDoubt::Crash)) {
                scribe.write(&record, &mut lines);
            }
        }
        shelf.lines.append(&mut lines);
        Ok(scribe)
    }

    pub fn has_failed(&self) -> bool {
        self.failed
    }

    pub fn remembered(&self, now_ms: u64) -> Remembered {
        Remembered {
            rows: self.books.deliveries().rows(now_ms),
            journal_ended_ms: self.journal_ended_ms,
        }
    }

    /// Commits what waits.
    pub fn commit(
        &mut self,
        shelf: &mut Shelf,
        now_ms: u64,
        disk: Disk,
        chance: &mut Chance,
    ) -> Vec<Reply> {
        let queue = std::mem::take(&mut self.queue);
        if self.failed {
            return self.refuse_all(queue);
        }
        self.books.prune(now_ms);
        let mut lines = Vec::new();
        let mut replies = Vec::new();
        let mut intents = Vec::new();
        for command in &queue {
            if let Command::Intend(intent) = command {
                intents.push(intent.id);
            }
            replies.extend(self.prepare(command, now_ms, &mut lines));
        }
        if disk == Disk::Writes {
            shelf.lines.append(&mut lines);
            return replies;
        }
        let kept = chance.below(lines.len() + 1);
        shelf.lines.extend(lines.into_iter().take(kept));
        self.failed = true;
        self.refused.extend(intents);
        self.refuse_all(queue)
    }

    /// Nothing of it was written. What became of an answer is noted when it can be: it is not reported again.
    fn refuse_all(&mut self, queue: Vec<Command>) -> Vec<Reply> {
        let replies = queue.iter().filter_map(refuse).collect();
        let notes = queue.into_iter();
        let notes = notes.filter(|command| matches!(command, Command::Deliver(..)));
        self.unnoted.extend(notes);
        replies
    }

    fn prepare(
        &mut self,
        command: &Command,
        now_ms: u64,
        lines: &mut Vec<Vec<u8>>,
    ) -> Option<Reply> {
        match command {
            Command::Intend(intent) => {
                self.write(&Record::Intent(intent.clone()), lines);
                Some(Reply::Intended(intent.id, true))
            }
            Command::Settle(outcome) => {
                let id = outcome.id;
                let Some((records, settlement)) = self.books.settle(outcome) else {
                    return Some(Reply::Settled(id, self.books.recent(id).cloned()));
                };
                for record in &records {
                    self.write(record, lines);
                }
                Some(Reply::Settled(id, Some(settlement)))
            }
            Command::Deliver(row, delivered) => {
                let handover = Handover {
                    delivered: *delivered,
                    assumed: false,
                };
                self.write(&Record::Delivery(row.clone(), handover), lines);
                None
            }
            Command::Run { run_id, billed } => {
                let billed = MicroUsd::new(*billed);
                if let Some((record, _)) = self.books.reconcile_run(run_id, billed, now_ms) {
                    self.write(&record, lines);
                }
                None
            }
        }
    }

    fn write(&mut self, record: &Record, lines: &mut Vec<Vec<u8>>) {
        let seq = self.books.last_seq() + 1;
        let mut line = Vec::new();
        record.encode(seq, &mut line).unwrap();
        lines.push(line);
        self.books.apply(seq, position(seq), record, true);
    }

    /// The journal is opened again after a failure: intents that were refused and reached the file
    /// are withdrawn, and what waited is written: notes of deliveries first.
    pub fn recover(&mut self, shelf: &mut Shelf, now_ms: u64) -> Result<(), String> {
        self.books = shelf.load()?;
        self.failed = false;
        let mut lines = Vec::new();
        let mut refused: Vec<_> = self.refused.drain().collect();
        refused.sort_unstable();
        for id in refused {
            if let Some(record) = self.books.end(id, now_ms, None) {
                self.write(&record, &mut lines);
            }
        }
        for note in std::mem::take(&mut self.unnoted) {
            self.prepare(&note, now_ms, &mut lines);
        }
        for outcome in std::mem::take(&mut self.later) {
            self.prepare(&Command::Settle(Arc::new(outcome)), now_ms, &mut lines);
        }
        shelf.lines.append(&mut lines);
        Ok(())
    }

    /// Brings the index up to date, as the writer does when nothing else is to do.
    pub fn update_index(&mut self, shelf: &mut Shelf) {
        let mut pending = self.books.take_pending();
        for evidenced in pending.sums.take_evidence() {
            if evidenced.model.is_none() {
                pending.sums.resolve(&evidenced, None);
            }
        }
        let kept = &mut shelf.index;
        for (_, row, is_added) in pending.sums.sums() {
            match is_added {
                true => kept.rolled_up += row.billed.get(),
                false => kept.rolled_up -= row.billed.get(),
            }
        }
        for (run_id, change) in pending.runs {
            match change {
                Some(waiting) => kept.runs.insert(run_id, waiting),
                None => kept.runs.remove(&run_id),
            };
        }
        kept.seq = self.books.last_seq();
        kept.totals = self.books.totals().clone();
    }

    /// Rule I10: the sums by every path are equal.
    pub fn sums_agree(&self, shelf: &Shelf, reading: &Reading) -> Result<(), String> {
        let totals = self.books.totals();
        let billed = totals.billed().get();
        if billed != reading.billed {
            return Err(format!(
                "the books sum {billed}, the lines {}",
                reading.billed
            ));
        }
        if totals.open != u64::try_from(reading.open).unwrap() {
            return Err(format!("the books have {} open", totals.open));
        }
        if self.books.pending_records() == 0 && shelf.index.seq == self.books.last_seq() {
            let sum = shelf.index.rolled_up;
            if sum != billed {
                return Err(format!("the rollups sum {sum}, the books {billed}"));
            }
        }
        Ok(())
    }

    /// The same over the whole journal, added up anew.
    pub fn whole_sums_agree(&self, shelf: &Shelf) -> Result<(), String> {
        let mut anew = Totals::default();
        for (_, record) in shelf.records()? {
            if let Some(effect) = Effect::of(&record) {
                anew += &effect;
            }
        }
        anew.open = self.books.totals().open;
        if anew == *self.books.totals() {
            return Ok(());
        }
        Err("the books differ from the journal added up anew".to_owned())
    }
}

fn refuse(command: &Command) -> Option<Reply> {
    match command {
        Command::Intend(intent) => Some(Reply::Intended(intent.id, false)),
        Command::Settle(outcome) => Some(Reply::Settled(outcome.id, None)),
        Command::Deliver(..) | Command::Run { .. } => None,
    }
}

fn position(seq: u64) -> Position {
    Position {
        segment: 1,
        offset: seq,
        bytes: 1,
    }
}
