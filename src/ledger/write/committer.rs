//! Writes batches, and gets through what fails: a failed journal, which is let go of, opened and read
//! again, and a full disk, where the reserve has room for the outcomes of requests in flight.
//!
//! Promise: a reply means durable. A failed write or sync is final for that file: the batch is answered
//! with the error, and the journal is opened and read again, at most once a second, before anything
//! else is served. What was refused although its line reached the file ends as never sent; what
//! has been confirmed as durable counts as known, whatever the file contains now. When the disk is full,
//! intents are refused before anything is sent.
//!
//! After a failed sync the kernel may hold lines that are not on the disk and call them clean. They
//! are read back like all others, so the re-opened file is synced once more before anything that was
//! read is acknowledged; while that sync fails, the ledger stays unavailable. A sync that succeeds
//! says what the kernel knows: lines it lost in the first failure are there until a power cut, and
//! missing behind it, where the next start finds and reports the gap. They are not appended again.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use crate::ledger::delivery::Remembered;
use crate::ledger::error::LedgerError;
use crate::ledger::id::EntryId;
use crate::ledger::journal::append::Draft;
use crate::ledger::journal::high_water::note_stop;
use crate::ledger::journal::segments::{Segment, segments};
use crate::ledger::journal::state_dir::{Directory, Identity, Lock};
use crate::ledger::options::{LedgerOptions, OnFailure};
use crate::ledger::record::Record;
use crate::ledger::write::hub::Hub;
use crate::ledger::write::left::Left;
use crate::ledger::write::load::{CarriedOver, Loaded, load};
use crate::ledger::write::prune_clock::PruneClock;
use crate::ledger::write::queue::{Acknowledged, Job, Reply};
use crate::ledger::write::rebuild::Rebuilt;
use crate::money::MicroUsd;

/// Least time between two tries to open a failed journal, or to get the reserve back.
const RETRY_PAUSE: Duration = Duration::from_secs(1);

/// The journal, while it can be written and while it cannot.
pub struct Committer {
    hub: Arc<Hub>,
    options: LedgerOptions,
    directory: Directory,
    identity: Identity,
    /// `None` after a failure, until the journal has been read again.
    loaded: Option<Loaded>,
    /// What is known of the ledger while the journal is not open.
    held: CarriedOver,
    /// Why nothing can be written now.
    failure: Option<LedgerError>,
    /// The disk is full and the reserve is used: no new intents.
    is_full: bool,
    /// Requests are sent also while nothing can be written.
    serves: bool,
    outage_logged: bool,
    tried_at: Duration,
    prune_clock: PruneClock,
    /// Intents that were refused although their line may have reached the file.
    refused: HashSet<EntryId>,
    /// Wall time of the last record that was found at the start.
    journal_ended_ms: u64,
    /// What the process before this one left, until it is written down.
    left: Left,
    /// Kept until everything is written.
    _lock: Lock,
}

// === impl Committer ===

impl Committer {
    /// Reads the ledger and ends what a dead process left open.
    pub fn open(
        hub: Arc<Hub>,
        options: LedgerOptions,
        directory: Directory,
        identity: Identity,
        lock: Lock,
    ) -> Result<Self, LedgerError> {
        let mut committer = Self {
            hub,
            directory,
            identity,
            loaded: None,
            held: CarriedOver::default(),
            failure: None,
            is_full: false,
            serves: options.on_failure == OnFailure::Serve,
            outage_logged: false,
            tried_at: Duration::ZERO,
            prune_clock: PruneClock::begin(&*options.clock, None),
            refused: HashSet::new(),
            journal_ended_ms: 0,
            left: Left::default(),
            options,
            _lock: lock,
        };
        committer.load()?;
        committer.options.rebuild = None;
        if let Some(loaded) = &mut committer.loaded {
            committer.journal_ended_ms = loaded.books.deliveries().last_ms();
            let ended_ms = committer.journal_ended_ms;
            committer.prune_clock = PruneClock::begin(
                &*committer.options.clock,
                Some(ended_ms).filter(|ended_ms| *ended_ms > 0),
            );
            let unclear = std::mem::take(&mut loaded.unclear);
            committer.left = Left::new(loaded.crashed(), unclear);
        }
        match committer.end_what_died() {
            // The reserve makes room for it; where that is used, it is written when there is room.
            Err(error) if error.is_full() => committer.open_reserve(),
            ended => ended?,
        }
        if let Some(failure) = committer.failure.take() {
            return Err(failure);
        }
        committer.make_reserve();
        if !committer.is_full {
            committer.end_what_died()?;
        }
        committer.write_mark();
        Ok(committer)
    }

    /// What was read and written; `None` while the journal is not open.
    pub fn loaded(&self) -> Option<&Loaded> {
        self.loaded.as_ref()
    }

    pub fn loaded_mut(&mut self) -> Option<&mut Loaded> {
        self.loaded.as_mut()
    }

    /// The same where it can be written.
    pub fn sound(&self) -> Option<&Loaded> {
        self.loaded.as_ref().filter(|_| self.failure.is_none())
    }

    pub fn options(&self) -> &LedgerOptions {
        &self.options
    }

    pub fn directory(&self) -> &Directory {
        &self.directory
    }

    /// The ledger's id.
    pub fn ledger(&self) -> String {
        self.identity.ledger.to_string()
    }

    /// Has room made for the next batches, beside them.
    pub fn keep_room(&mut self) {
        let loaded = self.loaded.as_mut().filter(|_| self.failure.is_none());
        match loaded.map(|loaded| loaded.journal.keep_room()) {
            Some(Err(error)) if error.is_full() => self.open_reserve(),
            Some(Err(error)) => self.fail(error),
            Some(Ok(())) | None => {}
        }
    }

    pub fn has_failed(&self) -> bool {
        self.failure.is_some()
    }

    pub fn is_full(&self) -> bool {
        self.is_full
    }

    /// Requests are sent also while nothing can be written.
    pub fn serves(&self) -> bool {
        self.serves
    }

    /// Why nothing, or nothing new, can be written now.
    pub fn unavailable(&self) -> Option<String> {
        match &self.failure {
            Some(error) => Some(error.to_string()),
            None if self.is_full => Some("the disk is full".to_owned()),
            None => None,
        }
    }

    /// An intent that was not written is not sent after all. Its line may have reached the file.
    pub fn refuse(&mut self, id: EntryId) {
        self.refused.insert(id);
    }

    /// A last try, whatever was tried a moment ago.
    pub fn try_at_last(&mut self) {
        if self.failure.is_some() {
            self.reload();
        }
    }

    /// Writes a batch, with the reserve where the disk is full. One reply for each job.
    pub fn commit(&mut self, jobs: &[&Job]) -> Vec<Reply> {
        let was_open = self.failure.is_none();
        let replies = self.write(jobs);
        if was_open && self.failure.as_ref().is_some_and(LedgerError::is_full) {
            // The reserve makes room for what was already sent; intents are refused.
            self.open_reserve();
            return self.write(jobs);
        }
        replies
    }

    /// Writes a batch and applies it. One reply for each job.
    fn write(&mut self, jobs: &[&Job]) -> Vec<Reply> {
        if let Some(failure) = &self.failure {
            // No new failure: requests in the meantime do not put off the next try to open the journal.
            let why = failure.to_string();
            return vec![Err(LedgerError::Unavailable { why }); jobs.len()];
        }
        match self.try_commit(jobs) {
            Ok(replies) => replies,
            Err(error) => {
                // Those of requests that are sent all the same stay open.
                let intents = jobs.iter().filter_map(|job| match job {
                    Job::Intend(intent) if !self.serves => Some(intent.id),
                    _ => None,
                });
                self.refused.extend(intents);
                self.fail(error.clone());
                jobs.iter().map(|_| Err(error.clone())).collect()
            }
        }
    }

    fn try_commit(&mut self, jobs: &[&Job]) -> Result<Vec<Reply>, LedgerError> {
        // A question needs no room on the disk.
        let mut batch = match jobs.iter().all(|job| job.is_question()) {
            true => Draft::default(),
            false => self.begin()?,
        };
        let mut replies = Vec::with_capacity(jobs.len());
        for job in jobs {
            replies.push(self.prepare(job, &mut batch));
        }
        self.finish(batch)?;
        Ok(replies)
    }

    fn begin(&mut self) -> Result<Draft, LedgerError> {
        let now_ms = self.options.clock.wall_ms();
        let prune_ms = self.prune_clock.now_ms(&*self.options.clock);
        let loaded = self.loaded.as_mut().ok_or(LedgerError::Closed)?;
        loaded.books.prune(prune_ms);
        loaded.journal.draft(now_ms)
    }

    /// Decides what a job writes. It is applied to the books at once, so that the next job
    /// of the batch sees it; when the write fails the books are read again from the journal.
    fn prepare(&mut self, job: &Job, batch: &mut Draft) -> Reply {
        let now_ms = self.options.clock.wall_ms();
        let Some(loaded) = self.loaded.as_mut() else {
            return Err(LedgerError::Closed);
        };
        let (records, answer) = match job {
            Job::Intend(_) if self.is_full && !self.serves => {
                return Err(LedgerError::Unavailable {
                    why: "the disk is full; make room, it resumes by itself".to_owned(),
                });
            }
            Job::IntendLate(intent) => {
                // Its line may have reached the file although the write was answered as an error.
                if loaded.ended(intent.id).is_some() || loaded.books.is_open(intent.id) {
                    return Ok(Acknowledged::Intended);
                }
                let record = Record::Intent(Arc::clone(intent));
                (vec![record], Acknowledged::Intended)
            }
            Job::Intend(intent) => {
                let id = intent.id;
                if self.serves && loaded.books.is_open(id) {
                    return Ok(Acknowledged::Intended);
                }
                if loaded.books.is_open(id) || loaded.books.recent(id).is_some() {
                    return Err(LedgerError::DuplicateEntry { id });
                }
                let record = Record::Intent(Arc::clone(intent));
                (vec![record], Acknowledged::Intended)
            }
            Job::Settle(outcome) => {
                let id = outcome.id;
                let Some((records, settlement)) = loaded.books.settle(outcome) else {
                    // Sent twice, as after an error that came behind the write: the first stands.
                    return loaded
                        .ended(id)
                        .map(Acknowledged::Settled)
                        .ok_or(LedgerError::UnknownEntry { id });
                };
                (records, Acknowledged::Settled(settlement))
            }
            Job::ReconcileRun { run_id, billed } => {
                match loaded.books.reconcile_run(run_id, *billed, now_ms) {
                    Some((record, id)) => (vec![record], Acknowledged::Reconciled(Some(id))),
                    None => {
                        loaded.coverage.keep_price(run_id, *billed);
                        return Ok(Acknowledged::Reconciled(None));
                    }
                }
            }
            Job::Deliver(row, handover) => (
                vec![Record::Delivery(row.clone(), *handover)],
                Acknowledged::Noted,
            ),
            Job::Remember => {
                return Ok(Acknowledged::Remembered(Remembered {
                    rows: self.left.rows(loaded.books.deliveries(), now_ms),
                    journal_ended_ms: self.journal_ended_ms,
                }));
            }
            Job::KeyStands(key, fingerprint) => {
                let standing = loaded.books.key_standing(key, *fingerprint, now_ms);
                return Ok(Acknowledged::KeyStands(standing));
            }
        };
        for record in records {
            loaded.books.add(batch, &record)?;
        }
        Ok(answer)
    }

    /// Makes a batch durable.
    fn finish(&mut self, batch: Draft) -> Result<(), LedgerError> {
        let Some(loaded) = self.loaded.as_mut().filter(|_| !batch.is_empty()) else {
            return Ok(());
        };
        let began = self.options.clock.monotonic();
        loaded.journal.append(batch)?;
        self.held.last_seq = Some(loaded.books.last_seq());
        let took = self.options.clock.monotonic().saturating_sub(began);
        self.hub.committed(self.options.clock.wall_ms());
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
                    loaded.books.add(&mut batch, &record)?;
                }
            }
        }
        self.finish(batch)
    }

    /// Takes over what was made anew beside the writer, and ends what it found in flight.
    /// `open`: what was in flight when that was begun. `prices`: of eval runs, by their ids.
    pub fn take_over(
        &mut self,
        rebuilt: Rebuilt,
        open: &HashSet<EntryId>,
        prices: &BTreeMap<String, MicroUsd>,
    ) -> Result<(), LedgerError> {
        let quarantined = rebuilt.set_aside(&self.directory)?;
        let loaded = self.loaded.take().ok_or(LedgerError::Closed)?;
        let (loaded, crashed) = loaded.with_rebuilt(rebuilt, quarantined, open);
        self.loaded = Some(loaded);
        // Kept until they are written: a full disk may not have the room now.
        self.left.add_crashed(crashed);
        match self.end_what_died() {
            Err(error) if error.is_full() => self.open_reserve(),
            Err(error) => self.fail(error),
            Ok(()) => {}
        }
        if self.failure.is_none() {
            let written = self.reconcile_runs(prices);
            written.inspect_err(|error| self.fail(error.clone()))?;
        }
        Ok(())
    }

    fn reconcile_runs(&mut self, prices: &BTreeMap<String, MicroUsd>) -> Result<(), LedgerError> {
        let now_ms = self.options.clock.wall_ms();
        let mut batch = self.begin()?;
        if let Some(loaded) = self.loaded.as_mut() {
            for (run_id, billed) in prices {
                if let Some((record, _)) = loaded.books.reconcile_run(run_id, *billed, now_ms) {
                    loaded.books.add(&mut batch, &record)?;
                }
            }
        }
        self.finish(batch)
    }

    /// Notes how far the journal reaches, for the day when its end is cut off.
    pub fn write_mark(&mut self) {
        if let Some(loaded) = &mut self.loaded
            && let Err(error) = loaded.journal.mark()
        {
            tracing::warn!(%error, "the journal's mark could not be written");
        }
    }

    /// Leaves the journal's files as they are when nothing is written any more: they end with their last lines.
    pub fn leave_no_room(&mut self) {
        if self.failure.is_none()
            && let Some(loaded) = &mut self.loaded
            && let Err(error) = loaded.journal.leave_no_room()
        {
            tracing::warn!(%error, "the journal's file keeps its room; the next start cuts it off");
        }
    }

    /// Begins a new segment when the current one holds records and was begun before `at_ms`: only
    /// whole segments can be compacted.
    pub fn leave_segment(&mut self, journal: &Directory, at_ms: u64) -> Result<(), LedgerError> {
        let now_ms = self.options.clock.wall_ms();
        let all = segments(journal, None)?;
        let last = all.last().and_then(|last: &Segment| last.header.as_ref());
        let Some(loaded) = self.loaded.as_mut() else {
            return Ok(());
        };
        let is_left = last
            .is_some_and(|last| last.at_ms < at_ms && last.first_seq <= loaded.books.last_seq());
        if !is_left {
            return Ok(());
        }
        loaded.journal.rotate(now_ms).inspect_err(|error| {
            // The journal's own rule: after a failed write it is opened again.
            self.fail(error.clone());
        })
    }

    /// Writes down what a killed process left. On a disk without room it is tried again.
    fn end_what_died(&mut self) -> Result<(), LedgerError> {
        if self.left.is_none() {
            return Ok(());
        }
        let mut batch = self.begin()?;
        if let Some(loaded) = self.loaded.as_mut() {
            for record in self.left.assumed() {
                loaded.books.add(&mut batch, &record)?;
            }
        }
        // First: the ends of the others are of now, and move the journal's last moments.
        self.finish(batch)?;
        self.left.assumed_are_written();
        let crashed = self.left.crashed().to_vec();
        self.end_entries(&crashed, true)?;
        self.left.crashed_are_written();
        Ok(())
    }

    /// Up to here all answers were given where nothing came for a while: one that was settled before that has
    /// gone out, or the proxy has noted that it goes out slowly. 0: that is not known.
    pub fn given_seq(&self) -> u64 {
        let last_seq = self.loaded.as_ref().map(|loaded| loaded.books.last_seq());
        last_seq.filter(|_| self.left.is_none()).unwrap_or(0)
    }

    /// Notes up to where the journal was written by a process that ended in order.
    pub fn note_stop(&self) {
        // The next start has to find what the process before this one left.
        if !self.hub.ends_in_order() || !self.left.is_none() {
            return;
        }
        let Some(loaded) = self.sound() else {
            return;
        };
        if let Err(error) = note_stop(&self.directory, loaded.books.last_seq()) {
            tracing::warn!(%error, "the end in order could not be noted");
        }
    }

    fn fail(&mut self, error: LedgerError) {
        if !self.outage_logged {
            let requests = if self.serves {
                "sent all the same, and written when it can write again"
            } else {
                "refused"
            };
            tracing::error!(%error, "the ledger cannot write; metered requests are {requests}");
        }
        self.outage_logged = true;
        self.failure = Some(error);
        self.unload();
        self.tried_at = self.options.clock.monotonic();
    }

    /// After a failure: opens and reads the journal again, at most once a second.
    pub fn recover(&mut self) -> bool {
        let is_due = self.failure.is_some() && self.may_try();
        if is_due {
            self.reload();
        }
        is_due
    }

    fn reload(&mut self) {
        self.tried_at = self.options.clock.monotonic();
        self.unload();
        self.failure = None;
        let mut reloaded = self.load().and_then(|()| {
            let loaded = self.loaded.as_ref();
            let withdrawn: Vec<EntryId> = self
                .refused
                .iter()
                .copied()
                .filter(|id| loaded.is_some_and(|loaded| loaded.books.is_open(*id)))
                .collect();
            self.end_entries(&withdrawn, false)?;
            self.end_what_died()
        });
        // Without room for what the process before this one left, the ledger can be read all the same. It
        // is opened once more, because a failed write is final.
        let waits = self.is_full && self.refused.is_empty() && !self.left.is_none();
        if waits && reloaded.as_ref().is_err_and(LedgerError::is_full) {
            self.unload();
            reloaded = self.load();
        }
        match reloaded {
            Ok(()) => {
                self.refused.clear();
                self.outage_logged = false;
                self.write_mark();
                tracing::info!("the journal is open again");
            }
            Err(error) => self.fail(error),
        }
    }

    /// Closes the journal, so that it can be opened again.
    fn unload(&mut self) {
        if let Some(mut loaded) = self.loaded.take() {
            // The index must be at rest. What a write that failed would have added is read again.
            if let Err(error) = loaded.indexing.finish() {
                tracing::warn!(%error, "the index could not be written");
            }
            self.held.index = loaded.index;
        }
    }

    fn load(&mut self) -> Result<(), LedgerError> {
        let held = CarriedOver {
            index: self.held.index.take(),
            last_seq: self.held.last_seq,
        };
        let loaded = load(&self.directory, &self.identity, &self.options, held)?;
        self.held.last_seq = self.held.last_seq.max(Some(loaded.books.last_seq()));
        self.hub.loaded(&loaded);
        self.loaded = Some(loaded);
        Ok(())
    }

    fn may_try(&self) -> bool {
        let now = self.options.clock.monotonic();
        now.saturating_sub(self.tried_at) >= RETRY_PAUSE
    }
    /// Gives the reserve's room to the outcomes of requests in flight.
    fn open_reserve(&mut self) {
        let new = match self.serves {
            true => "requests are sent all the same",
            false => "no new metered requests until there is room",
        };
        tracing::error!("the disk is full: {new}");
        self.is_full = true;
        if let Err(error) = self.directory.drop_reserve() {
            tracing::error!(%error, "the reserve cannot be used");
        }
        self.reload();
    }

    /// While the disk is full: sets the reserve aside again when there is room for it.
    pub fn make_room(&mut self) -> bool {
        let is_due = self.is_full && self.may_try();
        if is_due {
            self.make_reserve();
            if !self.is_full
                && self.failure.is_none()
                && let Err(error) = self.end_what_died()
            {
                self.fail(error);
            }
        }
        is_due
    }

    fn make_reserve(&mut self) {
        self.tried_at = self.options.clock.monotonic();
        match self.directory.make_reserve() {
            Ok(()) => self.is_full = false,
            Err(error) if error.is_full() => self.is_full = true,
            Err(error) => tracing::warn!(%error, "no room could be set aside for a full disk"),
        }
    }
}
