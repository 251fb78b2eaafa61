//! The ledger in memory: entries in flight, keys, eval runs and sums. Records are applied here one
//! by one, the same way when they are written and when they are read back.
//!
//! Promise: pure of files and clocks. Books built from the journal equal the books that wrote it.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::sync::Arc;

use crate::ledger::entry::{InDoubt, Intent, Labels, Outcome, Settlement, State, Unresolved};
use crate::ledger::error::LedgerError;
use crate::ledger::fingerprint::Fingerprint;
use crate::ledger::fold::effect::Effect;
use crate::ledger::fold::keys::{KeyStanding, Keys};
use crate::ledger::fold::models::Model;
use crate::ledger::fold::quarters::{Begun, Changes};
use crate::ledger::fold::state::fold;
use crate::ledger::fold::totals::Totals;
use crate::ledger::fold::undelivered::Deliveries;
use crate::ledger::fold::usage::{CapUsage, Charged, UsageUpdate};
use crate::ledger::id::EntryId;
use crate::ledger::journal::append::Draft;
use crate::ledger::kept_key::KeptKey;
use crate::ledger::record::{COMPACTED, EndedEntry, Evidence, How, Position, Record, Verdict};
use crate::money::MicroUsd;
use crate::protocol::ServedBy;

/// Most eval runs that wait for their terminal poll; the oldest is forgotten first and stays
/// unreported.
pub const RUNS_MAX: usize = 10_000;

/// Most entries of the past whose end is still remembered, so that an outcome that is sent twice is
/// answered and not counted twice. Four times the outcomes that may wait to be sent again.
pub const RECENT_MAX: usize = 16_384;

/// An entry in flight.
#[derive(Clone, Debug)]
pub struct OpenEntry {
    pub labels: Labels,
    pub seq: u64,
    pub request_bytes: u64,
    pub model: Model,
}

/// An eval run whose price is not known yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitingRun {
    pub run_id: Arc<str>,
    /// The entry of the request that started it.
    pub entry: EntryId,
    /// When that began, Unix milliseconds.
    pub started_ms: u64,
}

/// What the index does not have yet.
#[derive(Debug, Default)]
pub struct Pending {
    pub sums: Changes,
    /// Eval runs that began to wait for their price, and with `None` those that do not wait any more.
    pub runs: BTreeMap<String, Option<Unresolved>>,
    pub records: u64,
}

/// Everything the writer knows.
#[derive(Debug, Default)]
pub struct Books {
    open: HashMap<EntryId, OpenEntry>,
    keys: Keys,
    runs: HashMap<String, Unresolved>,
    runs_order: VecDeque<String>,
    /// Counts changes of `runs`.
    runs_revision: u64,
    recent: HashMap<EntryId, Settlement>,
    recent_order: VecDeque<EntryId>,
    totals: Totals,
    pending: Pending,
    deliveries: Deliveries,
    usage: CapUsage,
    /// The record that `usage` reached before the first was applied.
    usage_seq: u64,
    /// The latest time that keys were forgotten by, Unix milliseconds.
    pruned_ms: u64,
    /// What readers of usage do not have yet; `None`: they know nothing of these books.
    updates: Option<Vec<Charged>>,
    /// The same of readers of the totals.
    effects: Option<Vec<Effect>>,
    last_seq: u64,
}

// === impl Books ===

impl Books {
    /// Books that go on from sums the index kept.
    pub fn from_index(totals: Totals, runs: Vec<(String, Unresolved)>) -> Self {
        let mut books = Self {
            totals,
            ..Self::default()
        };
        for (run_id, waiting) in runs {
            books.begin_run(run_id, waiting);
        }
        books
    }

    /// Before the first record: the secret that keys are hashed with.
    pub fn with_secret(mut self, secret: [u8; 32]) -> Self {
        self.keys = Keys::new(secret);
        self
    }

    /// Goes on from what was charged up to a record.
    pub fn with_usage(mut self, usage: CapUsage, last_seq: u64) -> Self {
        self.usage = usage;
        self.usage_seq = last_seq;
        self
    }

    pub fn usage(&self) -> &CapUsage {
        &self.usage
    }

    /// The next update for readers of usage; `None` when there is nothing.
    pub fn take_usage_update(&mut self) -> Option<UsageUpdate> {
        match self.updates.replace(Vec::new()) {
            None => Some(UsageUpdate::All {
                usage: self.usage.clone(),
                ended: self.recent_order.iter().copied().collect(),
            }),
            Some(records) if records.is_empty() => None,
            Some(records) => Some(UsageUpdate::Records(records)),
        }
    }

    /// Brings a reader's totals up to these. It costs what came since the last time, and not what is there.
    pub fn update_totals(&mut self, known: &mut Arc<Totals>) {
        match self.effects.as_mut() {
            None => {
                *known = Arc::new(self.totals.clone());
                self.effects = Some(Vec::new());
            }
            Some(effects) => {
                let known = Arc::make_mut(known);
                effects.drain(..).for_each(|effect| *known += &effect);
                known.open = self.totals.open;
            }
        }
    }

    /// What a key is to a request.
    pub fn key_standing(
        &self,
        key: &KeptKey,
        fingerprint: Fingerprint,
        now_ms: u64,
    ) -> KeyStanding {
        self.keys.standing(key, fingerprint, now_ms)
    }

    /// Before the entry leaves `open`, which knows the size of its request.
    fn charge(&mut self, seq: u64, record: &Record) {
        if seq <= self.usage_seq {
            return;
        }
        let open = record.entry().and_then(|id| self.open.get(&id));
        let bytes = open.map_or(0, |open| open.request_bytes);
        if let Some(charged) = Charged::of(record, bytes) {
            self.usage.add(&charged);
            if let Some(updates) = &mut self.updates {
                updates.push(charged);
            }
        }
    }
    pub fn totals(&self) -> &Totals {
        &self.totals
    }

    pub fn last_seq(&self) -> u64 {
        self.last_seq
    }

    pub fn is_open(&self, id: EntryId) -> bool {
        self.open.contains_key(&id)
    }

    /// How an entry ended, when that is not long ago.
    pub fn recent(&self, id: EntryId) -> Option<&Settlement> {
        self.recent.get(&id)
    }

    pub fn open_ids(&self) -> Vec<EntryId> {
        let mut ids: Vec<_> = self.open.iter().map(|(id, open)| (open.seq, *id)).collect();
        ids.sort_unstable();
        ids.into_iter().map(|(_, id)| id).collect()
    }

    /// Sequence number of the intent of an entry in flight.
    pub fn open_seq(&self, id: EntryId) -> Option<u64> {
        self.open.get(&id).map(|open| open.seq)
    }

    /// Sequence number of the oldest intent without an end: from here on the journal is needed.
    pub fn oldest_open_seq(&self) -> Option<u64> {
        self.open.values().map(|open| open.seq).min()
    }

    /// Requests whose answer their app never received.
    pub fn deliveries(&self) -> &Deliveries {
        &self.deliveries
    }

    /// Entries begun before `before_ms` whose amount may still come.
    pub fn awaited(&self, before_ms: u64) -> HashSet<EntryId> {
        let runs = self.runs.values();
        let waiting = runs.chain(self.keys.unresolved());
        let old = waiting.filter(|waiting| waiting.labels.started_ms < before_ms);
        old.map(|waiting| waiting.id).collect()
    }

    pub fn keys_dropped(&self) -> u64 {
        self.keys.dropped()
    }

    /// The eval runs that wait for their price, oldest first.
    pub fn waiting_runs(&self) -> Vec<WaitingRun> {
        let waiting = |run_id: &String| {
            let waiting = self.runs.get(run_id)?;
            Some(WaitingRun {
                run_id: run_id.as_str().into(),
                entry: waiting.id,
                started_ms: waiting.labels.started_ms,
            })
        };
        self.runs_order.iter().filter_map(waiting).collect()
    }

    /// Another number than before when [`Self::waiting_runs`] is another list.
    pub fn runs_revision(&self) -> u64 {
        self.runs_revision
    }

    /// Takes over books that were made of the records before these: their sums, the runs that wait, and what
    /// they have in flight of which nothing is known here. Answers the entries of the last. `known`: what these
    /// books had in flight behind the last of those records. How an entry ended is not remembered for ever.
    pub fn take_over(&mut self, before: Self, known: &HashSet<EntryId>) -> Vec<EntryId> {
        self.effects = None;
        let since = std::mem::replace(&mut self.totals, before.totals);
        self.totals.extend(&since.lines);
        self.totals.globals += &since.globals;
        let runs = std::mem::take(&mut self.runs_order);
        let mut waiting = std::mem::take(&mut self.runs);
        let mut earlier = before.runs;
        for run_id in before.runs_order {
            if let Some(run) = earlier.remove(&run_id) {
                self.begin_run(run_id, run);
            }
        }
        for run_id in runs {
            if let Some(run) = waiting.remove(&run_id) {
                self.begin_run(run_id, run);
            }
        }
        let mut left = Vec::new();
        for (id, open) in before.open {
            if !known.contains(&id) {
                left.push((open.seq, id));
                self.open.insert(id, open);
            }
        }
        self.totals.open = u64::try_from(self.open.len()).unwrap_or(u64::MAX);
        left.sort_unstable();
        left.into_iter().map(|(_, id)| id).collect()
    }

    pub fn take_pending(&mut self) -> Pending {
        std::mem::take(&mut self.pending)
    }

    /// What was just taken could not be written now.
    pub fn give_back(&mut self, pending: Pending) {
        let later = std::mem::replace(&mut self.pending, pending);
        self.pending.sums.extend(later.sums);
        self.pending.runs.extend(later.runs);
        self.pending.records += later.records;
    }

    /// The latest time that keys were forgotten by, Unix milliseconds.
    pub fn pruned_ms(&self) -> u64 {
        self.pruned_ms
    }

    pub fn pending_records(&self) -> u64 {
        self.pending.records
    }

    /// For books that are made for their sums: keys are needed to settle what is asked of others.
    pub fn forget_keys(&mut self) {
        self.keys = Keys::default();
    }

    pub fn prune(&mut self, now_ms: u64) {
        self.pruned_ms = self.pruned_ms.max(now_ms);
        self.keys.prune(now_ms);
        self.usage.prune();
    }

    /// The records that end an entry with an outcome: its own, and one for each entry of the same
    /// key that the amount resolves. `None`: the entry is not in flight.
    pub fn settle(&self, outcome: &Arc<Outcome>) -> Option<(Vec<Record>, Settlement)> {
        let open = self.open.get(&outcome.id)?;
        let labels = &open.labels;
        let id = outcome.id;
        let key = labels.key.as_ref();
        let view = key.map(|key| self.keys.view(key, id, labels.started_ms));
        let settlement = fold(outcome, view.as_ref());

        let adds = settlement.state.adds();
        let mut resolved = Vec::new();
        if !adds.is_zero()
            && let Some(key) = key
        {
            resolved = self.keys.resolved_by(key, id, labels.started_ms);
        }
        let at_ms = outcome.at_ms;
        let verdict = Verdict {
            state: settlement.state,
            adds_micro_usd: adds,
            anomalies: settlement.anomalies.clone(),
        };
        let mut labels = labels.clone();
        if verdict.state.is_unresolved() {
            labels.reserved = self.usage.raised(&labels, open.request_bytes);
        }
        let mut records = vec![Record::Outcome(Arc::clone(outcome), labels, verdict)];
        records.extend(resolved.into_iter().map(|waiting| {
            let how = How::Key { entry: id };
            reconciled(waiting, at_ms, MicroUsd::ZERO, how)
        }));
        Some((records, settlement))
    }

    /// The record that ends an entry without an outcome. `why` is `None` for one that was never
    /// sent.
    pub fn end(&self, id: EntryId, at_ms: u64, why: Option<InDoubt>) -> Option<Record> {
        let open = self.open.get(&id)?;
        let mut labels = open.labels.clone();
        let Some(reason) = why else {
            let state = State::Failed;
            return Some(Record::Withdrawn(EndedEntry { id, at_ms, state }, labels));
        };
        let amount_stands_elsewhere = labels
            .key
            .as_ref()
            .map(|key| self.keys.view(key, id, labels.started_ms))
            .is_some_and(|view| view.amount.is_some());
        let state = if amount_stands_elsewhere {
            State::Replayed
        } else {
            labels.reserved = self.usage.raised(&labels, open.request_bytes);
            State::InDoubt { reason }
        };
        Some(Record::Crashed(EndedEntry { id, at_ms, state }, labels))
    }

    /// The record that gives an eval run's entry its amount; `None` when no entry waits for it.
    pub fn reconcile_run(
        &self,
        run_id: &str,
        billed: MicroUsd,
        at_ms: u64,
    ) -> Option<(Record, EntryId)> {
        let waiting = self.runs.get(run_id)?.clone();
        let id = waiting.id;
        let run_id = run_id.to_owned();
        Some((reconciled(waiting, at_ms, billed, How::Run { run_id }), id))
    }

    /// Adds a record to a batch that is being drafted, and applies it.
    pub fn add(&mut self, batch: &mut Draft, record: &Record) -> Result<(), LedgerError> {
        let placed = batch.push(record);
        let (seq, position) = placed.map_err(|error| LedgerError::Unavailable {
            why: format!("a record cannot be encoded: {error}"),
        })?;
        self.apply(seq, position, record, true);
        Ok(())
    }

    /// Applies a record. `counts` is false for one that the index has counted already.
    pub fn apply(&mut self, seq: u64, position: Position, record: &Record, counts: bool) {
        self.last_seq = self.last_seq.max(seq);
        self.deliveries.apply(seq, record);
        self.charge(seq, record);
        let mut begun = None;
        match record {
            Record::Intent(intent) => self.begin(seq, intent),
            Record::Outcome(outcome, labels, verdict) => {
                let ended = Unresolved {
                    id: outcome.id,
                    was: verdict.state,
                    served_by: outcome.receipt.served_by,
                    labels: labels.clone(),
                };
                if counts
                    && let Some(run_id) = &outcome.run_id
                    && verdict.state.is_unresolved()
                {
                    let begun = Some(ended.clone());
                    self.pending.runs.insert(run_id.clone(), begun);
                    self.begin_run(run_id.clone(), ended.clone());
                }
                let settlement = Settlement {
                    state: verdict.state,
                    price: verdict.state.billed(),
                    anomalies: verdict.anomalies.clone(),
                };
                begun = self.finish(ended, settlement);
            }
            Record::Crashed(ended, labels) | Record::Withdrawn(ended, labels) => {
                let settlement = Settlement {
                    state: ended.state,
                    price: None,
                    anomalies: Vec::new(),
                };
                let ended = Unresolved {
                    id: ended.id,
                    was: ended.state,
                    served_by: None,
                    labels: labels.clone(),
                };
                begun = self.finish(ended, settlement);
            }
            Record::Reconciled(evidence, labels) => {
                self.resolve(evidence, labels, counts);
            }
            Record::Delivery(..) | Record::Rollup(_) | Record::Unknown => {}
        }
        self.totals.open = u64::try_from(self.open.len()).unwrap_or(u64::MAX);
        if counts {
            self.pending.records += 1;
            if position.segment == COMPACTED {
                self.pending.sums.note_compacted(seq);
            }
            if let Some(effect) = Effect::at(record, position.segment) {
                self.totals += &effect;
                self.pending.sums.apply(seq, record, &effect, begun);
                if let Some(effects) = &mut self.effects {
                    effects.push(effect);
                }
            }
        }
    }

    fn begin(&mut self, seq: u64, intent: &Intent) {
        if let Some(key) = &intent.key {
            self.keys
                .begin(key, intent.fingerprint, intent.id, intent.at_ms);
        }
        let open = OpenEntry {
            labels: Labels::of_intent(intent),
            seq,
            request_bytes: intent.request_bytes,
            model: Model::of(intent.model.as_deref()),
        };
        self.open.insert(intent.id, open);
    }

    fn finish(&mut self, ended: Unresolved, settlement: Settlement) -> Option<Begun> {
        let id = ended.id;
        let begun = self.open.remove(&id).map(|open| Begun {
            seq: open.seq,
            model: open.model,
        });
        let key = ended.labels.key.clone();
        if let Some(key) = key {
            self.keys.end(&key, ended);
        }
        if self.recent.insert(id, settlement).is_none() {
            self.recent_order.push_back(id);
        }
        if self.recent_order.len() > RECENT_MAX
            && let Some(oldest) = self.recent_order.pop_front()
        {
            self.recent.remove(&oldest);
        }
        begun
    }

    fn resolve(&mut self, evidence: &Evidence, labels: &Labels, counts: bool) {
        let state = State::Reconciled {
            billed: evidence.adds_micro_usd,
        };
        if let Some(settlement) = self.recent.get_mut(&evidence.id) {
            settlement.state = state;
        }
        // The line that ended it may be lost.
        self.open.remove(&evidence.id);
        if let Some(key) = &labels.key {
            self.keys.resolve(key, evidence.id);
        }
        let run_id = match &evidence.how {
            How::Run { run_id } => Some(run_id.clone()),
            How::Key { .. } => None,
        };
        if let Some(run_id) = run_id {
            self.runs.remove(&run_id);
            self.runs_revision += 1;
            self.runs_order.retain(|waiting| *waiting != run_id);
            if counts {
                self.pending.runs.insert(run_id, None);
            }
        }
    }

    fn begin_run(&mut self, run_id: String, waiting: Unresolved) {
        self.runs_revision += 1;
        if self.runs.insert(run_id.clone(), waiting).is_none() {
            self.runs_order.push_back(run_id);
        }
        if self.runs_order.len() > RUNS_MAX
            && let Some(oldest) = self.runs_order.pop_front()
        {
            self.runs.remove(&oldest);
            self.pending.runs.insert(oldest, None);
        }
    }
}

fn reconciled(waiting: Unresolved, at_ms: u64, adds: MicroUsd, how: How) -> Record {
    let served_by: Option<ServedBy> = waiting.served_by;
    let evidence = Evidence {
        id: waiting.id,
        at_ms,
        was: waiting.was,
        served_by,
        adds_micro_usd: adds,
        how,
    };
    Record::Reconciled(evidence, waiting.labels)
}
