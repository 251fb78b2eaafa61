//! What writes: everything that waits is appended in one write and one sync, all are answered, and the index is
//! updated afterwards. Whose thread that runs on is for [`shared`](crate::ledger::write::shared).
//!
//! Promise: an answer means durable (see `committer`). What waits in the backlog for an outage to end is
//! dropped only when it is durable or can never be written.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use crate::ledger::delivery::{Handover, Undelivered};
use crate::ledger::error::LedgerError;
use crate::ledger::fold::state::{KeyView, fold};
use crate::ledger::index::db::IndexError;
use crate::ledger::index::tree::IndexedUpTo;
use crate::ledger::index::usage_file::UsageFile;
use crate::ledger::journal::segments::{JournalFiles, segments};
use crate::ledger::journal::state_dir::{Directory, Identity, Lock};
use crate::ledger::options::LedgerOptions;
use crate::ledger::upkeep::compact::{
    Built, CompactReport, PASS_BYTES, RETENTION_MS_MIN, Wanted, build, clear, commit, plan,
};
use crate::ledger::upkeep::lookups::LookupUpkeep;
use crate::ledger::upkeep::retention::{Retention, RetentionStep};
use crate::ledger::write::backlog::OUTCOMES_MAX;
use crate::ledger::write::committer::Committer;
use crate::ledger::write::hub::Hub;
use crate::ledger::write::load::Coverage;
use crate::ledger::write::queue::{Acknowledged, Job, Queued, Reply};

/// Time between two writings of the file of usage, which take place when nothing else is to do.
const USAGE_PAUSE: Duration = Duration::from_secs(10 * 60);

/// The same where something always is. A start reads the last 24 h of the journal anyway.
const USAGE_PAUSE_MAX: Duration = Duration::from_secs(6 * 60 * 60);

/// Time between two writings of the index while the writer is busy.
const INDEX_PAUSE: Duration = Duration::from_secs(1);

/// Most records that the index is behind: while it is written, and while questions are answered from it. Then the
/// writer waits.
const INDEX_BEHIND_MAX: u64 = 16_384;

const DAY_MS: u64 = 24 * 60 * 60 * 1000;

/// The writer's side of a ledger.
pub struct Writer {
    hub: Arc<Hub>,
    committer: Committer,
    /// What was to be noted of deliveries while nothing could be written, oldest first.
    unnoted: Vec<(Box<Undelivered>, Handover)>,
    retention: Retention,
    /// `None` in a rebuild, which makes them itself.
    lookups: Option<LookupUpkeep>,
    /// When usage was last written to its file, on the monotonic clock, and the record it reached.
    usage_kept: (Duration, u64),
    /// Something was asked since upkeep was last looked after.
    was_asked: bool,
}

// === impl Writer ===

impl Writer {
    /// Reads the ledger and ends what a dead process left open. Not yet a thread.
    pub fn open(
        hub: Arc<Hub>,
        options: LedgerOptions,
        directory: Directory,
        identity: Identity,
        lock: Lock,
    ) -> Result<Self, LedgerError> {
        let is_rebuild = options.rebuild.is_some();
        let state_dir = options.state_dir.clone();
        let committer = Committer::open(Arc::clone(&hub), options, directory, identity, lock)?;
        let mut writer = Self {
            hub,
            committer,
            unnoted: Vec::new(),
            retention: Retention::default(),
            lookups: (!is_rebuild).then(|| LookupUpkeep::new(state_dir)),
            usage_kept: (Duration::ZERO, 0),
            was_asked: false,
        };
        writer.hub.beat(writer.now());
        writer.publish();
        writer.write_index();
        writer.note_files();
        Ok(writer)
    }

    /// Nothing has failed and nothing is to be made up for: what is asked takes one write to the disk.
    pub fn is_at_ease(&self) -> bool {
        let loaded = self.committer.sound();
        let is_quick = loaded.is_some_and(|loaded| {
            loaded.journal.has_room() && loaded.books.pending_records() < INDEX_BEHIND_MAX
        });
        is_quick
            && !self.committer.is_full()
            && self.unnoted.is_empty()
            && self.hub.backlog().len() == 0
    }

    /// Looks after what is due beside the commits.
    pub fn keep_up(&mut self) {
        self.hub.beat(self.now());
        let is_idle = !std::mem::take(&mut self.was_asked);
        self.end_rebuild();
        self.step_retention();
        self.keep_lookups();
        self.keep_index(is_idle);
        if is_idle {
            self.keep_usage(USAGE_PAUSE);
        } else {
            self.committer.keep_room();
            if self.committer.has_failed() {
                self.publish();
            }
            self.keep_usage(USAGE_PAUSE_MAX);
        }
    }

    /// Writes what is left, after the last request.
    pub fn end(&mut self) {
        self.retention.stop();
        if let Some(lookups) = &mut self.lookups {
            lookups.stop();
        }
        // A last try, whatever was tried a moment ago: after this the receipts are lost.
        if self.hub.backlog().len() > 0 || !self.unnoted.is_empty() {
            self.committer.try_at_last();
        }
        if self.settle_waiting() {
            self.publish();
        }
        self.write_index();
        self.keep_usage(Duration::ZERO);
        self.committer.leave_no_room();
        self.committer.note_stop();
        self.committer.write_mark();
        self.note_files();
        if let Some(index) = self
            .committer
            .loaded()
            .and_then(|loaded| loaded.index.as_ref())
            && let Err(error) = index.flush()
        {
            tracing::warn!(%error, "the index could not be flushed; the next start completes it from the journal");
        }
    }

    /// Answers what was asked. False: a test wants the process to die now.
    pub fn serve(&mut self, requests: Vec<Queued>) -> bool {
        let changed = self.committer.recover() | self.committer.make_room() | self.settle_waiting();
        if requests.is_empty() {
            if changed {
                self.publish();
            }
            return true;
        }
        self.was_asked = true;
        #[cfg(test)]
        let is_killed = self.hub.is_killed();
        let jobs: Vec<&Job> = requests.iter().map(|request| &request.job).collect();
        let mut replies = self.committer.commit(&jobs);
        self.keep_notes(&jobs, &replies);
        if self.committer.serves() {
            self.keep_for_later(&jobs, &mut replies);
        }
        self.publish();
        for (request, reply) in requests.into_iter().zip(replies) {
            request.answer(reply);
        }
        #[cfg(test)]
        return !is_killed;
        #[cfg(not(test))]
        true
    }

    /// Writes what outlasted its request, before anything newer.
    fn settle_waiting(&mut self) -> bool {
        if self.committer.has_failed() {
            return false;
        }
        let waiting = self.hub.backlog().waiting();
        if waiting.is_empty() && self.unnoted.is_empty() {
            return false;
        }
        let mut jobs = Vec::with_capacity(waiting.len());
        // Before the intents: one that takes a key over comes behind what was noted of it.
        let unnoted = self.unnoted.iter().cloned();
        jobs.extend(unnoted.map(|(row, handover)| Job::Deliver(row, handover)));
        for entry in &waiting {
            jobs.extend(entry.intent.clone().map(Job::IntendLate));
            jobs.extend(entry.outcome.clone().map(Job::Settle));
        }
        let replies = self.committer.commit(&jobs.iter().collect::<Vec<_>>());
        if self.committer.has_failed() {
            return true;
        }
        for (job, reply) in jobs.iter().zip(&replies) {
            if let (Job::Settle(outcome), Err(error)) = (job, reply) {
                tracing::error!(entry = %outcome.id, %error, "an outcome could not be written");
            }
        }
        self.unnoted.clear();
        self.hub.backlog().forget(&waiting);
        tracing::info!(entries = waiting.len(), "wrote the entries that waited");
        true
    }

    /// A delivery that cannot be recorded now is recorded later: it is not sent a second time.
    fn keep_notes(&mut self, jobs: &[&Job], replies: &[Reply]) {
        for (job, reply) in jobs.iter().zip(replies) {
            if let Job::Deliver(row, handover) = job
                && reply.as_ref().is_err_and(LedgerError::is_passing)
            {
                if self.unnoted.len() >= OUTCOMES_MAX {
                    tracing::warn!(entry = %row.id, "a delivery could not be noted");
                    continue;
                }
                self.unnoted.push((row.clone(), *handover));
            }
        }
    }

    /// `on_failure = "serve"`: what could not be written now waits in memory, and counts as written
    /// for its sender.
    fn keep_for_later(&mut self, jobs: &[&Job], replies: &mut [Reply]) {
        for (job, reply) in jobs.iter().zip(replies) {
            if !reply.as_ref().is_err_and(LedgerError::is_passing) {
                continue;
            }
            let backlog = self.hub.backlog();
            match job {
                Job::Intend(intent) => match backlog.push_intent(Arc::clone(intent)) {
                    Ok(()) => *reply = Ok(Acknowledged::Intended),
                    Err(error) => {
                        self.committer.refuse(intent.id);
                        *reply = Err(error);
                    }
                },
                Job::Settle(outcome) => {
                    // What other entries of its key amount to is not known now.
                    let settlement = fold(outcome, Some(&KeyView::default()));
                    *reply = backlog
                        .push(Arc::clone(outcome))
                        .map(|()| Acknowledged::Settled(settlement));
                }
                Job::Deliver(row, handover) => {
                    backlog.note_delivery(row.id, handover.delivered);
                }
                Job::IntendLate(_)
                | Job::ReconcileRun { .. }
                | Job::Remember
                | Job::KeyStands(..) => {}
            }
        }
    }

    /// Takes over the totals and the index that were made anew, when they are whole.
    fn end_rebuild(&mut self) {
        let loaded = self.committer.loaded_mut();
        let Some(adding) = loaded.and_then(|loaded| loaded.coverage.take_finished()) else {
            return;
        };
        let rebuilt = adding.rebuild.finish();
        let (open, prices) = (adding.open, adding.prices);
        match rebuilt.and_then(|rebuilt| self.committer.take_over(rebuilt, &open, &prices)) {
            Ok(()) => {
                self.write_index();
                self.note_files();
                if let Some(loaded) = self.committer.loaded() {
                    self.hub.added_up(loaded);
                }
                self.publish();
                tracing::info!("the totals and the index are whole again");
            }
            Err(error) => {
                tracing::error!(%error, "the totals could not be made anew; the next start tries again");
            }
        }
    }

    /// Goes on with retention by one step, when one is due.
    fn step_retention(&mut self) {
        let Some(retention) = self.committer.options().retention else {
            return;
        };
        let loaded = self.committer.loaded();
        if loaded.is_some_and(|loaded| !loaded.is_whole()) {
            // What adds them up reads the segments as they are, and which runs wait is not known before.
            return;
        }
        match self.retention.step(self.now()) {
            RetentionStep::Nothing => {}
            RetentionStep::Due => {
                if self.committer.loaded().is_some() && !self.committer.is_full() {
                    self.begin_compaction(retention);
                }
            }
            RetentionStep::Built(built) => self.end_compaction(built),
        }
    }

    /// Has lookup files made for what was sealed. On a full disk the journal needs its room.
    fn keep_lookups(&mut self) {
        let now = self.now();
        let Some(lookups) = &mut self.lookups else {
            return;
        };
        if let Some(loaded) = self.committer.sound().filter(|_| !self.committer.is_full()) {
            lookups.step(now, loaded.journal.end());
        }
    }

    /// Compacts all that is older than `older_than`, in this thread.
    pub fn compact_now(&mut self, older_than: Duration) -> Result<CompactReport, LedgerError> {
        let before_ms = self.before_ms(older_than);
        let journal = self.committer.directory().child("journal")?;
        self.committer.leave_segment(&journal, before_ms)?;
        let mut report = CompactReport::default();
        loop {
            let wanted = self.wanted(before_ms);
            let next = plan(&journal, &wanted, false, PASS_BYTES)?;
            report.stopped_by.clone_from(&next.stopped_by);
            let cancel = AtomicBool::new(false);
            let Some(built) = build(&journal, &next, &wanted, &cancel)? else {
                self.write_index();
                self.committer.leave_no_room();
                self.note_files();
                return Ok(report);
            };
            self.write_index();
            self.keep_usage(Duration::ZERO);
            commit(&journal)?;
            clear(&journal)?;
            // What the pass before this one wrote is no gain of this one.
            let carried = report.bytes_after.unwrap_or(0);
            let planned = next.report();
            report.segments += planned.segments;
            report.bytes_before += built.bytes_before - carried.min(built.bytes_before);
            report.bytes_after = Some(built.bytes_after);
            report.entries = Some(report.entries.unwrap_or(0) + built.entries);
            report.until_ms = Some(built.stands_for.until_ms);
        }
    }

    fn begin_compaction(&mut self, retention: Duration) {
        let before_ms = self.before_ms(retention);
        let day_ago_ms = self.wall_ms().saturating_sub(DAY_MS);
        let began = self
            .committer
            .directory()
            .child("journal")
            .and_then(|journal| {
                self.committer.leave_segment(&journal, day_ago_ms)?;
                let wanted = self.wanted(before_ms);
                self.retention.begin(journal, wanted)
            });
        if let Err(error) = began {
            tracing::error!(%error, "the journal cannot be compacted now");
            self.retention.retry(self.now());
        }
    }

    /// Makes a compacted segment count.
    fn end_compaction(&mut self, built: Built) {
        let now = self.now();
        if self.committer.loaded().is_none() {
            return self.retention.retry(now);
        }
        // The index must know all that it will not be able to read any more.
        self.write_index();
        self.keep_usage(Duration::ZERO);
        let journal = self.committer.directory().child("journal");
        let committed = journal.and_then(|journal| commit(&journal).map(|()| journal));
        let journal = match committed {
            Ok(journal) => journal,
            Err(error) => {
                tracing::error!(%error, "the journal could not be compacted");
                return self.retention.retry(now);
            }
        };
        tracing::info!(
            entries = built.entries,
            still_listed = built.kept,
            up_to_seq = built.stands_for.seq,
            bytes_before = built.bytes_before,
            bytes_after = built.bytes_after,
            "old entries were compacted: their sums stay"
        );
        if let Some(loaded) = self.committer.loaded_mut() {
            loaded
                .journal
                .compacted(built.bytes_before, built.bytes_after);
        }
        self.retention.clear(journal, now);
        self.note_files();
        if let Some(lookups) = &mut self.lookups {
            lookups.look_again();
        }
        self.publish();
    }

    /// Notes in the index which files it stands for, so that a change of theirs by another hand is seen.
    fn note_files(&mut self) {
        let Some(loaded) = self.committer.sound() else {
            return;
        };
        let Some(index) = &loaded.index else {
            return;
        };
        let journal = self.committer.directory().child("journal");
        let listed = journal.and_then(|journal| segments(&journal, None));
        let listed = match listed {
            Ok(listed) => listed,
            Err(error) => return tracing::warn!(%error, "the journal's files could not be listed"),
        };
        // What another hand has changed since is for the next start to see.
        let noted = match index.known_files() {
            Ok(Some(known)) if !known.still_hold(&listed) => Ok(()),
            Ok(_) => index.know_files(&JournalFiles::of(&listed)),
            Err(error) => Err(error),
        };
        if let Err(error) = noted {
            tracing::warn!(%error, "the journal's files could not be noted in the index");
        }
    }

    fn wanted(&self, before_ms: u64) -> Wanted {
        let books = self.committer.loaded().map(|loaded| &loaded.books);
        let open = books.and_then(|books| books.oldest_open_seq());
        let copied = self.committer.options().copied.as_ref();
        let uncopied = copied.map_or(u64::MAX, |copied| copied.seq().saturating_add(1));
        Wanted {
            before_ms,
            before_seq: open.unwrap_or(u64::MAX).min(uncopied),
            awaited: books.map_or_else(Default::default, |books| books.awaited(before_ms)),
        }
    }

    fn before_ms(&self, retention: Duration) -> u64 {
        let copied = self.committer.options().copied.as_ref();
        let stays = copied.map_or(retention, |copied| copied.stays.max(retention));
        let retention_ms = u64::try_from(stays.as_millis()).unwrap_or(u64::MAX);
        let retention_ms = retention_ms.max(RETENTION_MS_MIN);
        self.wall_ms().saturating_sub(retention_ms)
    }

    /// Writes usage to its file, when the last time was so long ago: the next start need not read a month of the
    /// journal.
    fn keep_usage(&mut self, pause: Duration) {
        let now = self.now();
        let (kept_at, kept_seq) = self.usage_kept;
        let Some(loaded) = self.committer.sound() else {
            return;
        };
        let last_seq = loaded.books.last_seq();
        let is_due = now.saturating_sub(kept_at) >= pause;
        if !is_due || last_seq == kept_seq {
            return;
        }
        let usage = loaded.books.usage();
        self.usage_kept = (now, last_seq);
        if let Err(error) = UsageFile::write(
            self.committer.directory(),
            &self.committer.ledger(),
            last_seq,
            usage,
        ) {
            tracing::warn!(%error, "what caps were charged is not kept; a start reads more of the journal");
        }
    }

    fn publish(&mut self) {
        let why = self.committer.unavailable();
        let Some(loaded) = self.committer.loaded_mut() else {
            return self.hub.set_unavailable(why);
        };
        // First: a sender that is answered after this finds caps charged.
        if let Some(update) = loaded.books.take_usage_update() {
            self.hub.update_usage(&update);
        }
        self.hub.set_unavailable(why);
        self.hub.publish(loaded);
    }

    /// Has what was committed written to the index, beside the commits: when nothing came for a while, and now
    /// and then.
    fn keep_index(&mut self, is_idle: bool) {
        let now = self.now();
        let given_seq = if is_idle {
            self.committer.given_seq()
        } else {
            0
        };
        let Some(loaded) = self.committer.loaded_mut() else {
            return;
        };
        if loaded.indexing.has_ended() {
            let records = loaded.indexing.records();
            let written = loaded.indexing.finish();
            return written.unwrap_or_else(|error| self.lose_index(records, &error));
        }
        let records = loaded.books.pending_records();
        let is_behind = records >= INDEX_BEHIND_MAX;
        let is_due = is_idle || is_behind || loaded.indexing.pause(now) >= INDEX_PAUSE;
        let is_news = records > 0 || given_seq > loaded.given_seq;
        if is_due && is_news && (is_behind || !loaded.indexing.is_busy()) {
            loaded.given_seq = loaded.given_seq.max(given_seq);
            self.add_to_index(true, given_seq);
        }
    }

    /// The same, which is at its end when this returns.
    fn write_index(&mut self) {
        self.add_to_index(false, 0);
    }

    fn add_to_index(&mut self, is_beside: bool, given_seq: u64) {
        let (now, ledger) = (self.now(), self.committer.ledger());
        let Some(loaded) = self.committer.loaded_mut() else {
            return;
        };
        if matches!(loaded.coverage, Coverage::BeingAdded(_)) {
            return;
        }
        let pending = loaded.books.take_pending();
        let records = pending.records + loaded.indexing.records();
        let Some(index) = &loaded.index else {
            // Without an index nothing may pile up. The next start replays the journal.
            return self.hub.lagging(records);
        };
        let reached = IndexedUpTo {
            given_seq,
            ..IndexedUpTo::of(&loaded.books, &ledger)
        };
        let indexing = &mut loaded.indexing;
        let written = match is_beside {
            true => indexing.begin(now, index.clone(), reached, pending),
            false if pending.records == 0 => indexing.finish(),
            false => indexing
                .finish()
                .and_then(|()| index.write(&reached, pending)),
        };
        written.unwrap_or_else(|error| self.lose_index(records, &error));
    }

    fn lose_index(&mut self, records: u64, error: &IndexError) {
        tracing::error!(%error, "the index failed; going on without it until the next start");
        if let Some(loaded) = self.committer.loaded_mut() {
            loaded.index = None;
        }
        self.hub.lagging(records);
        self.hub.set_index(None);
    }

    /// On the monotonic clock.
    pub fn now(&self) -> Duration {
        self.committer.options().clock.monotonic()
    }

    fn wall_ms(&self) -> u64 {
        self.committer.options().clock.wall_ms()
    }
}

impl Drop for Writer {
    /// Also reached by a panic: every waiting sender is answered, and readiness reports it.
    fn drop(&mut self) {
        self.hub.queue().abandon();
        let lost = self.hub.backlog().close();
        if lost > 0 {
            tracing::error!(
                entries = lost,
                "entries were not written; those whose intent was are in doubt"
            );
        }
        self.hub.stopped();
    }
}
