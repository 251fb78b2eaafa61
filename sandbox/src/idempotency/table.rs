//! The table of keys: bindings, runs, and what each run may do with its key.
//!
//! Promise: for one key and 24 hours at most one run gets [`Claim::Bill`]; a run that ends in any way, a panic
//! included, frees those that wait for it; a run changes only the binding that it began with, whatever happened
//! to the key since.

use super::{kept::KeptBinding, stored::Stored};
use crate::{
    clock::Clock,
    error::ServiceError,
    fingerprint::Fingerprint,
    keep::{KEYS, Keep, Mutation},
    key_id::KeyId,
    money::MicroUsd,
    spec,
};
use parking_lot::Mutex;
use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::sync::watch;

pub(super) const BINDINGS_MAX: usize = 100_000;
/// Above this no request whose answer may be large is begun with a key.
const STORED_BYTES_IN_ALL_MAX: usize = 512 * 1024 * 1024;
/// The wait that a 409 asks for. Assumed (retry-after-409): the interface gives no number.
const STILL_RUNNING_RETRY_AFTER_S: u32 = 30;

#[derive(Debug)]
pub struct Keys {
    clock: Clock,
    bindings: Mutex<HashMap<KeyId, Binding>>,
    /// Bindings made so far; distinguishes one from a later one of the same key.
    made: AtomicU64,
    keep: Keep,
}

#[derive(Debug)]
struct Binding {
    n: u64,
    fingerprint: Fingerprint,
    since: Duration,
    running: usize,
    outcome: KeyState,
    billed: Option<MicroUsd>,
    /// The debit of `billed` is queued to be written; before it, this binding is not written either.
    kept: bool,
    /// Signals each end of a run; dropped with the binding, which also wakes.
    ended: watch::Sender<()>,
}

#[derive(Debug)]
enum KeyState {
    /// No run has succeeded yet.
    None,
    Stored(Arc<Stored>),
    /// Succeeded, and of a kind that is not stored.
    Bound,
}

/// What to do with a request.
#[derive(Debug)]
pub enum Begin {
    Run(RunPermit),
    Replay(Arc<Stored>),
}

/// The right to run once. Dropped unfinished it counts as failed.
#[derive(Debug)]
pub struct RunPermit {
    keyed: Option<Keyed>,
}

/// A run's hold on the binding of its key.
#[derive(Debug)]
struct Keyed {
    keys: Arc<Keys>,
    id: KeyId,
    /// The binding it runs for. After a reset the key may have another binding, which this run must
    /// not change.
    n: u64,
}

/// The binding that a debit was entered under: a later one of the same key is another.
#[derive(Debug)]
pub struct BilledKey {
    id: KeyId,
    n: u64,
}

/// Whether this run is the one that is billed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claim {
    Bill,
    /// The key was billed this amount before.
    Billed(MicroUsd),
}

/// Whether a repeat waits for a running first request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhileRunning {
    Wait,
    /// Interface: agent turns and streamed repeats do not wait.
    RunAlongside,
}

// === impl Keys ===

impl Keys {
    /// Keys that are kept in memory alone.
    #[cfg(test)]
    pub fn new(clock: Clock) -> Arc<Self> {
        Self::kept(clock, Keep::off(), Vec::new())
    }

    /// The keys of an earlier process, and what becomes of them written to the same place.
    pub fn kept(clock: Clock, keep: Keep, rows: Vec<KeptBinding>) -> Arc<Self> {
        let now = clock.elapsed();
        let mut bindings = HashMap::new();
        let made = u64::try_from(rows.len()).unwrap_or(u64::MAX);
        for (n, row) in (0..).zip(rows) {
            let outcome = match row.answer() {
                Some(stored) => KeyState::Stored(Arc::new(stored)),
                // An unreadable answer leaves the key bound, so that it is not billed again.
                None => KeyState::Bound,
            };
            let (id, fingerprint) = (row.id(), row.fingerprint());
            let binding = Binding {
                n,
                fingerprint,
                since: row.since,
                running: 0,
                outcome,
                billed: row.billed,
                kept: true,
                ended: watch::Sender::new(()),
            };
            if binding.expired(now) {
                keep.push([gone(&id)]);
            } else {
                bindings.insert(id, binding);
            }
        }
        Arc::new(Self {
            clock,
            bindings: Mutex::new(bindings),
            made: AtomicU64::new(made),
            keep,
        })
    }

    /// Wakes those that wait, as the end of a binding does.
    pub fn forget_all(&self) {
        self.bindings.lock().clear();
    }

    /// The key's debit was taken back: nothing has succeeded with it, on disk neither. A later binding of the key
    /// stays as it is.
    pub fn unbind(&self, BilledKey { id, n }: &BilledKey) {
        let mut bindings = self.bindings.lock();
        let Some(binding) = bindings.get_mut(id).filter(|binding| binding.n == *n) else {
            return;
        };
        binding.billed = None;
        binding.kept = false;
        binding.outcome = KeyState::None;
        binding.ended.send_replace(());
        if binding.running == 0 {
            bindings.remove(id);
        }
        self.keep.push([gone(id)]);
    }

    /// Decides by the table above; waits if the table says so.
    pub async fn begin(
        self: &Arc<Self>,
        id: Option<KeyId>,
        fingerprint: Fingerprint,
        while_running: WhileRunning,
    ) -> Result<Begin, ServiceError> {
        let Some(id) = id else {
            return Ok(Begin::Run(RunPermit { keyed: None }));
        };
        let deadline = self.clock.elapsed() + Duration::from_secs(spec::DUPLICATE_WAIT_S);
        loop {
            let mut ended = match self.look(&id, &fingerprint, while_running)? {
                Look::Begin(begin) => return Ok(begin),
                Look::Running(ended) => ended,
            };
            tokio::select! {
                // An error means that the binding is gone, which ends the wait as well.
                _ = ended.changed() => {}
                () = self.clock.sleep_until(deadline) => {
                    return Err(ServiceError::StillRunning { retry_after_s: STILL_RUNNING_RETRY_AFTER_S });
                }
            }
        }
    }

    /// The request that the key is bound to, when it was made to a deployed endpoint.
    pub fn of_an_endpoint(&self, id: &KeyId) -> Option<Fingerprint> {
        let bindings = self.bindings.lock();
        let bound = &bindings.get(id)?.fingerprint;
        bound.endpoint_uid().map(|_| bound.clone())
    }

    fn look(
        self: &Arc<Self>,
        id: &KeyId,
        fingerprint: &Fingerprint,
        while_running: WhileRunning,
    ) -> Result<Look, ServiceError> {
        let now = self.clock.elapsed();
        let mut bindings = self.bindings.lock();
        if bindings.get(id).is_some_and(|binding| binding.expired(now)) {
            bindings.remove(id);
            self.keep.push(self.keep.is_on().then(|| gone(id)));
        }
        let n = if let Some(binding) = bindings.get_mut(id) {
            if !binding.fingerprint.is_same_as(fingerprint) {
                return Err(ServiceError::KeyReused);
            }
            if let KeyState::Stored(stored) = &binding.outcome {
                return Ok(Look::Begin(Begin::Replay(Arc::clone(stored))));
            }
            if binding.running > 0 && while_running == WhileRunning::Wait {
                return Ok(Look::Running(binding.ended.subscribe()));
            }
            binding.running += 1;
            binding.n
        } else {
            if bindings.len() >= BINDINGS_MAX {
                self.sweep(&mut bindings, now);
            }
            if bindings.len() >= BINDINGS_MAX {
                // Interface, Errors 503: the Idempotency-Key check is briefly unavailable.
                return Err(ServiceError::KeyCheckUnavailable);
            }
            let n = self.made.fetch_add(1, Ordering::Relaxed);
            bindings.insert(
                id.clone(),
                Binding {
                    n,
                    fingerprint: fingerprint.clone(),
                    // Assumed (replay-window-start): the 24 hours begin with the first request.
                    since: now,
                    running: 1,
                    outcome: KeyState::None,
                    billed: None,
                    kept: false,
                    ended: watch::Sender::new(()),
                },
            );
            n
        };
        Ok(Look::Begin(Begin::Run(RunPermit {
            keyed: Some(Keyed {
                keys: Arc::clone(self),
                id: id.clone(),
                n,
            }),
        })))
    }

    /// Forgets what is over 24 hours old, on disk too.
    fn sweep(&self, bindings: &mut HashMap<KeyId, Binding>, now: Duration) {
        bindings.retain(|id, binding| {
            let expired = binding.expired(now);
            if expired && self.keep.is_on() {
                self.keep.push([gone(id)]);
            }
            !expired
        });
    }
}

enum Look {
    Begin(Begin),
    Running(watch::Receiver<()>),
}

// === impl Binding ===

impl Binding {
    fn expired(&self, now: Duration) -> bool {
        let age = now.saturating_sub(self.since);
        self.running == 0 && age >= Duration::from_secs(spec::REPLAY_WINDOW_S)
    }

    fn bytes(&self) -> usize {
        match &self.outcome {
            KeyState::Stored(stored) => stored.body.len(),
            KeyState::None | KeyState::Bound => 0,
        }
    }

    /// Whether it may be written: it has a result, and none of its debits is still to be queued.
    fn is_settled(&self) -> bool {
        !matches!(self.outcome, KeyState::None) && (self.billed.is_none() || self.kept)
    }
}

// === impl RunPermit ===

impl RunPermit {
    /// Asks to be the one that is billed. Without a key every run is.
    pub fn claim(&self, amount: MicroUsd) -> Claim {
        let claimed = self.keyed.as_ref().and_then(|keyed| {
            keyed.with(|binding| match binding.billed {
                Some(before) => Claim::Billed(before),
                None => {
                    binding.billed = Some(amount);
                    Claim::Bill
                }
            })
        });
        claimed.unwrap_or(Claim::Bill)
    }

    /// The debit that was claimed could not be made: another run may ask.
    pub fn unclaim(&self) {
        if let Some(keyed) = &self.keyed {
            keyed.with(|binding| binding.billed = None);
        }
    }

    /// The debit was made: it and the key it is bound to are written together. `None`: it has no key, or one
    /// that was forgotten.
    pub fn charged(&self, keep: &Keep, mut debit: Vec<Mutation>) -> Option<BilledKey> {
        let keyed = self.keyed.as_ref().filter(|_| keep.is_on());
        let billed = keyed.and_then(|keyed| {
            keyed.with(|binding| {
                binding.kept = true;
                debit.extend(change(&keyed.id, binding));
                keep.push(debit.drain(..));
                BilledKey {
                    id: keyed.id.clone(),
                    n: binding.n,
                }
            })
        });
        keep.push(debit);
        billed
    }

    /// Whether this run can cost nothing, because its key was billed before.
    pub fn is_free(&self) -> bool {
        let billed = |keyed: &Keyed| keyed.with(|binding| binding.billed.is_some());
        self.keyed.as_ref().and_then(billed).unwrap_or(false)
    }

    /// Succeeded, and the answer is of a kind that is stored up to `bytes_max`.
    pub fn store(mut self, stored: Stored, bytes_max: usize) {
        self.end(Some(match stored.body.len() > bytes_max {
            true => KeyState::Bound,
            false => KeyState::Stored(Arc::new(stored)),
        }));
    }

    /// Whether another large answer can be kept. Assumed (stored-images): 503 until one is 24 hours old.
    pub fn check_room(&self) -> Result<(), ServiceError> {
        let Some(Keyed { keys, .. }) = &self.keyed else {
            return Ok(());
        };
        let now = keys.clock.elapsed();
        let mut bindings = keys.bindings.lock();
        keys.sweep(&mut bindings, now);
        let kept: usize = bindings.values().map(Binding::bytes).sum();
        if kept > STORED_BYTES_IN_ALL_MAX {
            // Interface, Errors 503: the Idempotency-Key check is briefly unavailable.
            return Err(ServiceError::KeyCheckUnavailable);
        }
        Ok(())
    }

    /// Succeeded, and the answer is not stored: the key stays bound.
    pub fn bind(mut self) {
        self.end(Some(KeyState::Bound));
    }

    fn end(&mut self, outcome: Option<KeyState>) {
        if let Some(keyed) = self.keyed.take() {
            keyed.end(outcome);
        }
    }
}

impl Drop for RunPermit {
    fn drop(&mut self) {
        self.end(None);
    }
}

// === impl Keyed ===

impl Keyed {
    /// Does something to the binding, when it is still there.
    fn with<T>(&self, work: impl FnOnce(&mut Binding) -> T) -> Option<T> {
        let mut bindings = self.keys.bindings.lock();
        let binding = bindings.get_mut(&self.id);
        binding.filter(|binding| binding.n == self.n).map(work)
    }

    fn end(&self, outcome: Option<KeyState>) {
        let (id, keep) = (&self.id, &self.keys.keep);
        let mut bindings = self.keys.bindings.lock();
        let found = bindings.get_mut(id);
        let Some(binding) = found.filter(|binding| binding.n == self.n) else {
            return;
        };
        binding.running = binding.running.saturating_sub(1);
        match (outcome, &binding.outcome) {
            // What is stored stays: a repeat that ran beside it changes nothing.
            (Some(outcome), KeyState::None | KeyState::Bound) => binding.outcome = outcome,
            // A run that broke after its debit: a repeat must not be billed again.
            (None, KeyState::None) if binding.running == 0 && binding.billed.is_some() => {
                binding.outcome = KeyState::Bound;
            }
            // Assumed (key-after-failure): a key with which nothing succeeded is free for any body.
            (None, KeyState::None) if binding.running == 0 => {
                bindings.remove(id);
                return;
            }
            _ => {}
        }
        if keep.is_on() && binding.is_settled() {
            keep.push(change(id, binding));
        }
        binding.ended.send_replace(());
    }
}

/// The key is free again.
fn gone(id: &KeyId) -> Mutation {
    Mutation::Remove(KEYS, id.row_id())
}

fn change(id: &KeyId, binding: &Binding) -> Option<Mutation> {
    let stored = match &binding.outcome {
        KeyState::Stored(stored) => Some(&**stored),
        KeyState::None | KeyState::Bound => None,
    };
    let kept = KeptBinding::of(
        id,
        &binding.fingerprint,
        binding.since,
        binding.billed,
        stored,
    );
    Mutation::put(KEYS, id.row_id(), &kept)
}
