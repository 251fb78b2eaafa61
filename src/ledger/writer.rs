//! The one thread that writes. It takes everything that waits, appends it in one write and one
//! sync, answers all, and tells the index afterwards.
//!
//! Promise: an answer means durable. A failed write or sync is final for that file: the batch is
//! answered with the error, and the journal is opened and read again before anything else is
//! served. When the disk is full, intents are refused before anything is sent, and outcomes of
//! requests in flight still find room in the reserve.
//!
//! After a failed sync the kernel may hold lines that are not on the disk and call them clean. They
//! are read back like all others, so the re-opened file is synced once more before anything that was
//! read is acknowledged; while that sync fails, the ledger stays unavailable. A sync that succeeds
//! says what the kernel knows: lines it lost in the first failure are there until a power cut, and
//! missing behind it, where the next start finds and reports the gap. They are not appended again.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use crate::ledger::entry::{EntryId, Settlement};
use crate::ledger::error::LedgerError;
use crate::ledger::journal::Draft;
use crate::ledger::load::{Held, Loaded};
use crate::ledger::queue::{Answer, Command, Reply, Request};
use crate::ledger::record::Record;
use crate::ledger::shared::Shared;
use crate::ledger::state_dir::{Directory, Identity, Lock};
use crate::ledger::undelivered::{Handover, Remembered, Undelivered};
use crate::ledger::{LedgerOptions, OnFailure};

mod care;
mod ends;
mod outage;
mod reopen;

use care::Care;
use ends::Left;

/// How long the writer waits for work before it shows that it lives.
const PATIENCE: Duration = Duration::from_millis(500);

/// Least time between two tries to open a failed journal, or to get the reserve back.
const RETRY_PAUSE: Duration = Duration::from_secs(1);

/// Time between two writings of the file of usage. A start reads the last 24 h of the journal anyway.
const USAGE_PAUSE: Duration = Duration::from_secs(10 * 60);

/// Most records that the index is behind while the writer is busy.
const INDEX_SLICE_RECORDS: u64 = 256;

/// The writer's side of a ledger.
pub struct Writer {
    shared: Arc<Shared>,
    options: LedgerOptions,
    directory: Directory,
    identity: Identity,
    ledger: String,
    /// `None` after a failure, until the journal has been read again.
    loaded: Option<Loaded>,
    /// What is known of the ledger while the journal is not open.
    held: Held,
    /// Why nothing can be written now.
    failure: Option<LedgerError>,
    /// The disk is full and the reserve is used: no new intents.
    is_full: bool,
    /// Requests are sent also while nothing can be written.
    serves: bool,
    /// The outage was logged.
    is_told: bool,
    tried_at: Duration,
    /// Intents that were refused although their line may have reached the file.
    refused: HashSet<EntryId>,
    /// What was to be noted of deliveries while nothing could be written, oldest first.
    unnoted: Vec<(Box<Undelivered>, Handover)>,
    /// Wall time of the last record that was found at the start.
    journal_ended_ms: u64,
    /// What the process before this one left, until it is written down.
    left: Left,
    care: Care,
    /// When usage was last written to its file, on the monotonic clock, and the record it reached.
    usage_kept: (Duration, u64),
    /// Kept until everything is written.
    _lock: Lock,
}

// === impl Writer ===

impl Writer {
    /// Reads the ledger and ends what a dead process left open. Not yet a thread.
    pub fn open(
        shared: Arc<Shared>,
        options: LedgerOptions,
        directory: Directory,
        identity: Identity,
        lock: Lock,
    ) -> Result<Self, LedgerError> {
        let mut writer = Self {
            ledger: identity.ledger.to_string(),
            shared,
            directory,
            identity,
            loaded: None,
            held: Held::default(),
            failure: None,
            is_full: false,
            serves: options.on_failure == OnFailure::Serve,
            is_told: false,
            tried_at: Duration::ZERO,
            refused: HashSet::new(),
            unnoted: Vec::new(),
            care: Care::default(),
            usage_kept: (Duration::ZERO, 0),
            journal_ended_ms: 0,
            left: Left::default(),
            options,
            _lock: lock,
        };
        writer.load()?;
        writer.options.rebuild = None;
        if let Some(loaded) = &mut writer.loaded {
            writer.journal_ended_ms = loaded.books.deliveries().last_ms();
            writer.left = Left {
                crashed: loaded.crashed(),
                unclear: std::mem::take(&mut loaded.unclear),
            };
        }
        match writer.end_what_died() {
            // The reserve makes room for it; where that is used, it is written when there is room.
            Err(error) if error.is_full() => writer.open_reserve(),
            ended => ended?,
        }
        if let Some(failure) = writer.failure.take() {
            return Err(failure);
        }
        writer.make_reserve();
        if !writer.is_full {
            writer.end_what_died()?;
        }
        writer.write_mark();
        writer.shared.beat(writer.options.clock.monotonic());
        writer.publish();
        writer.write_index();
        Ok(writer)
    }

    /// Serves until the queue is closed and empty.
    pub fn run(mut self) {
        while let Some(requests) = self.shared.queue.take(PATIENCE) {
            self.shared.beat(self.options.clock.monotonic());
            let is_idle = requests.is_empty();
            #[cfg(test)]
            let is_killed = self.shared.is_killed();
            self.serve(requests);
            #[cfg(test)]
            if is_killed && !is_idle {
                return;
            }
            self.take_care();
            // sled wakes all its threads for each batch, so the index hears of many commits at
            // once: when nothing else is to do, or when a slice has come together. A slice is
            // small, because the next commit waits for it.
            if is_idle || self.pending_records() >= INDEX_SLICE_RECORDS {
                self.write_index();
            }
            if is_idle {
                self.note_given();
            }
            self.keep_usage(false);
        }
        self.stop_care();
        // A last try, whatever was tried a moment ago: after this the receipts are lost.
        if self.failure.is_some() && (self.shared.later.len() > 0 || !self.unnoted.is_empty()) {
            self.reload();
        }
        if self.settle_waiting() {
            self.publish();
        }
        self.write_index();
        self.keep_usage(true);
        self.note_stop();
        self.write_mark();
        if let Some(index) = self
            .loaded
            .as_ref()
            .and_then(|loaded| loaded.index.as_ref())
            && let Err(error) = index.flush()
        {
            tracing::warn!(%error, "the index could not be flushed; the journal will tell it");
        }
    }

    fn serve(&mut self, requests: Vec<Request>) {
        let changed = self.recover() | self.make_room() | self.settle_waiting();
        if requests.is_empty() {
            if changed {
                self.publish();
            }
            return;
        }
        let commands: Vec<&Command> = requests.iter().map(|request| &request.command).collect();
        let mut replies = self.commit_or_open_reserve(&commands);
        self.keep_notes(&commands, &replies);
        if self.serves {
            self.keep_for_later(&commands, &mut replies);
        }
        self.publish();
        for (request, reply) in requests.into_iter().zip(replies) {
            request.answer(reply);
        }
    }

    /// Writes a batch and applies it. One reply for each command.
    fn commit(&mut self, commands: &[&Command]) -> Vec<Reply> {
        if let Some(failure) = &self.failure {
            // No new failure: the next try to open the journal is not put off by who asks meanwhile.
            let error = unavailable(failure);
            return commands.iter().map(|_| Err(error.clone())).collect();
        }
        match self.try_commit(commands) {
            Ok(replies) => replies,
            Err(error) => {
                // Those of requests that are sent all the same stay open.
                let intents = commands.iter().filter_map(|command| match command {
                    Command::Intend(intent) if !self.serves => Some(intent.id),
                    _ => None,
                });
                self.refused.extend(intents);
                self.fail(error.clone());
                commands.iter().map(|_| Err(error.clone())).collect()
            }
        }
    }

    fn try_commit(&mut self, commands: &[&Command]) -> Result<Vec<Reply>, LedgerError> {
        // A question needs no room on the disk.
        let mut batch = match commands.iter().all(|command| command.is_question()) {
            true => Draft::default(),
            false => self.begin()?,
        };
        let mut replies = Vec::with_capacity(commands.len());
        for command in commands {
            replies.push(self.prepare(command, &mut batch));
        }
        self.finish(&batch)?;
        Ok(replies)
    }

    fn begin(&mut self) -> Result<Draft, LedgerError> {
        let now_ms = self.options.clock.wall_ms();
        let loaded = self.loaded.as_mut().ok_or(LedgerError::Closed)?;
        loaded.books.prune(now_ms);
        loaded.journal.draft(now_ms)
    }

    /// Decides what a command writes. It is applied to the books at once, so that the next command
    /// of the batch sees it; when the write fails the books are read anew from the journal.
    fn prepare(&mut self, command: &Command, batch: &mut Draft) -> Reply {
        let now_ms = self.options.clock.wall_ms();
        let Some(loaded) = self.loaded.as_mut() else {
            return Err(LedgerError::Closed);
        };
        let (records, answer) = match command {
            Command::Intend(_) if self.is_full && !self.serves => {
                return Err(LedgerError::Unavailable {
                    why: "the disk is full; make room, it resumes by itself".to_owned(),
                });
            }
            Command::IntendLate(intent) => {
                // Its line may have reached the file although the write was answered as an error.
                if loaded.ended(intent.id).is_some() || loaded.books.is_open(intent.id) {
                    return Ok(Answer::Intended);
                }
                (vec![Record::Intent(intent.clone())], Answer::Intended)
            }
            Command::Intend(intent) => {
                let id = intent.id;
                if self.serves && loaded.books.is_open(id) {
                    return Ok(Answer::Intended);
                }
                if loaded.books.is_open(id) || loaded.books.recent(id).is_some() {
                    return Err(LedgerError::DuplicateEntry { id });
                }
                (vec![Record::Intent(intent.clone())], Answer::Intended)
            }
            Command::Settle(outcome) => {
                let id = outcome.id;
                let Some((records, settlement)) = loaded.books.settle((**outcome).clone()) else {
                    // Told twice, as after an error that came behind the write: the first stands.
                    return loaded
                        .ended(id)
                        .map(Answer::Settled)
                        .ok_or(LedgerError::UnknownEntry { id });
                };
                (records, Answer::Settled(settlement))
            }
            Command::ReconcileRun { run_id, billed } => {
                match loaded.books.reconcile_run(run_id, *billed, now_ms) {
                    Some((record, id)) => (vec![record], Answer::Reconciled(Some(id))),
                    None => return Ok(Answer::Reconciled(None)),
                }
            }
            Command::Deliver(row, handover) => (
                vec![Record::Delivery(row.clone(), *handover)],
                Answer::Noted,
            ),
            Command::Remember => {
                return Ok(Answer::Remembered(Remembered {
                    rows: self.left.rows(loaded.books.deliveries(), now_ms),
                    journal_ended_ms: self.journal_ended_ms,
                }));
            }
            Command::KeyCharged(key, fingerprint) => {
                let charge = loaded.books.key_charge(key, *fingerprint, now_ms);
                return Ok(Answer::KeyCharged(charge));
            }
        };
        for record in records {
            loaded.add(batch, &record)?;
        }
        Ok(answer)
    }

    /// Makes a batch durable.
    fn finish(&mut self, batch: &Draft) -> Result<(), LedgerError> {
        let Some(loaded) = self.loaded.as_mut().filter(|_| !batch.is_empty()) else {
            return Ok(());
        };
        let began = self.options.clock.monotonic();
        loaded.journal.append(batch)?;
        self.held.last_seq = Some(loaded.books.last_seq());
        let took = self.options.clock.monotonic().saturating_sub(began);
        self.shared.committed(self.options.clock.wall_ms());
        if let Some(on_commit) = &self.options.on_commit {
            on_commit(took);
        }
        Ok(())
    }

    /// Writes the end of entries that will never have an outcome.
    fn end_entries(&mut self, ids: &[EntryId], is_crash: bool) -> Result<(), LedgerError> {
        if ids.is_empty() {
            return Ok(());
        }
        let now_ms = self.options.clock.wall_ms();
        let mut batch = self.begin()?;
        if let Some(loaded) = self.loaded.as_mut() {
            for id in ids {
                let why = is_crash.then(|| loaded.why_open(*id));
                if let Some(record) = loaded.books.end(*id, now_ms, why) {
                    loaded.add(&mut batch, &record)?;
                }
            }
        }
        self.finish(&batch)
    }

    /// Tells how far the journal reaches, for the day when its end is cut off.
    fn write_mark(&mut self) {
        if let Some(loaded) = &mut self.loaded
            && let Err(error) = loaded.journal.mark()
        {
            tracing::warn!(%error, "the journal's mark could not be written");
        }
    }

    fn publish(&mut self) {
        // First: who is answered behind this finds caps charged.
        if let Some(news) = self
            .loaded
            .as_mut()
            .and_then(|loaded| loaded.books.take_news())
        {
            self.shared.tell_usage(&news);
        }
        let why = match &self.failure {
            Some(error) => Some(error.to_string()),
            None if self.is_full => Some("the disk is full".to_owned()),
            None => None,
        };
        self.shared.publish(self.loaded.as_ref(), why);
    }

    fn pending_records(&self) -> u64 {
        self.loaded
            .as_ref()
            .map_or(0, |loaded| loaded.books.pending_records())
    }

    /// Tells the index what was committed. Nobody waits for it.
    fn write_index(&mut self) {
        let Some(loaded) = self.loaded.as_mut() else {
            return;
        };
        if loaded.books.pending_records() == 0 {
            return;
        }
        let Some(index) = &loaded.index else {
            // Without an index nothing may pile up. The next start replays the journal.
            let lost = loaded.books.take_pending();
            self.shared.lagging(lost.records);
            return;
        };
        let pending = loaded.books.take_pending();
        let records = pending.records;
        let books = &loaded.books;
        let (last_seq, oldest) = (books.last_seq(), books.oldest_open_seq());
        if let Err(error) = index.write(&self.ledger, &pending, last_seq, oldest, books.totals()) {
            tracing::error!(%error, "the index failed; going on without it until the next start");
            loaded.index = None;
            self.shared.lagging(records);
            self.shared.set_index(None);
        }
    }
}

impl Drop for Writer {
    /// Also reached by a panic: whoever waits is answered, and readiness tells.
    fn drop(&mut self) {
        self.shared.queue.abandon();
        let lost = self.shared.later.close();
        if lost > 0 {
            tracing::error!(
                entries = lost,
                "entries were not written; those whose intent was are in doubt"
            );
        }
        self.shared.stopped();
    }
}

// === impl Loaded ===

impl Loaded {
    fn add(&mut self, batch: &mut Draft, record: &Record) -> Result<(), LedgerError> {
        let placed = batch.push(record);
        let (seq, position) = placed.map_err(|error| LedgerError::Unavailable {
            why: format!("a record cannot be encoded: {error}"),
        })?;
        self.books.apply(seq, position, record, true);
        Ok(())
    }

    /// How an entry ended, from memory or from the index.
    fn ended(&self, id: EntryId) -> Option<Settlement> {
        if let Some(settlement) = self.books.recent(id) {
            return Some(settlement.clone());
        }
        let stored = self.index.as_ref()?.entry(id).ok()??;
        Some(Settlement {
            state: stored.state,
            anomalies: Vec::new(),
        })
    }
}

/// The error for a request that came after the failure, not with it.
fn unavailable(failure: &LedgerError) -> LedgerError {
    LedgerError::Unavailable {
        why: failure.to_string(),
    }
}
