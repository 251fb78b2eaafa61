//! The Idempotency-Key table of the interface, whole.
//!
//! | situation | here |
//! |---|---|
//! | first request with a key | [`Begin::Run`]; a 2xx of a stored kind is kept 24 hours |
//! | same key, endpoint and body within 24 h | [`Begin::Replay`] |
//! | same key, different body or endpoint within 24 h | 422 |
//! | same key while the first runs | waits up to 9 minutes, then replays, or runs if the first failed, or 409 |
//! | first failed | nothing stored, the next one runs |
//! | more than 24 h later | the key is free |
//! | not stored (agent turns, embeddings, over 1 MB, streams) | stays bound; a repeat runs and is billed once |
//! | agent turns and streams while the first runs | run alongside, billed once |
//!
//! Promise: for one key and 24 hours at most one run gets [`Claim::Bill`]; a run that ends in any way, a
//! panic included, frees those that wait for it.

mod fingerprint;
mod kept;
mod keyed;
mod stored;

pub use fingerprint::{Fingerprint, FormPart, hex};
pub use kept::KeptBinding;
pub use stored::Stored;

use crate::{
    clock::Clock,
    error::ServiceError,
    keep::{Change, Keep},
    money::MicroUsd,
    spec,
};
use http::{HeaderMap, HeaderValue};
use keyed::Keyed;
use parking_lot::Mutex;
use sha2::{Digest, Sha256};
use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::sync::watch;

const BINDINGS_MAX: usize = 100_000;
/// Above this no request whose answer may be large is begun with a key.
const STORED_BYTES_IN_ALL_MAX: usize = 512 * 1024 * 1024;
/// What a 409 asks for. Assumed (retry-after-409): the interface gives no number.
const STILL_RUNNING_RETRY_AFTER_S: u32 = 30;

/// One organization's key, as the table holds it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct KeyId {
    org: String,
    key: String,
}

#[derive(Debug)]
pub struct Keys {
    clock: Clock,
    bindings: Mutex<HashMap<KeyId, Binding>>,
    /// Bindings made; tells one from a later one of the same key.
    made: AtomicU64,
    keep: Keep,
}

#[derive(Debug)]
struct Binding {
    n: u64,
    fingerprint: Fingerprint,
    since: Duration,
    running: usize,
    outcome: Outcome,
    billed: Option<MicroUsd>,
    /// The debit of `billed` is queued to be written; before it, this binding is not written either.
    kept: bool,
    /// Signals each end of a run; dropped with the binding, which also wakes.
    ended: watch::Sender<()>,
}

#[derive(Debug)]
enum Outcome {
    /// No run has succeeded yet.
    None,
    Stored(Arc<Stored>),
    /// Succeeded, and of a kind that is not stored.
    Bound,
}

/// What to do with a request.
#[derive(Debug)]
pub enum Begin {
    Run(Run),
    Replay(Arc<Stored>),
}

/// The right to run once. Dropped unfinished it counts as failed.
#[derive(Debug)]
pub struct Run {
    keyed: Option<Keyed>,
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

// === impl KeyId ===

impl KeyId {
    /// The key of a request. Assumed (key-form): two headers are 400, for which one counts is nowhere said.
    pub fn of(org: &str, headers: &HeaderMap) -> Result<Option<Self>, ServiceError> {
        let mut all = headers.get_all(spec::IDEMPOTENCY_KEY).iter();
        let first = all.next();
        if all.next().is_some() {
            return Err(ServiceError::BadRequest(
                "Idempotency-Key must stand once".to_owned(),
            ));
        }
        Self::read(org, first)
    }

    /// Reads the header. Empty counts as none; what is not printable is 400. Assumed (key-form).
    pub fn read(org: &str, header: Option<&HeaderValue>) -> Result<Option<Self>, ServiceError> {
        let Some(header) = header else {
            return Ok(None);
        };
        let key = header
            .to_str()
            .ok()
            // `to_str` lets a tab through.
            .filter(|key| !key.contains('\t'))
            .ok_or_else(|| {
                ServiceError::BadRequest("Idempotency-Key must be printable".to_owned())
            })?;
        if key.is_empty() {
            return Ok(None);
        }
        // Interface: a string of up to 256 characters; longer keys are hashed.
        let key = if key.chars().count() > spec::KEY_CHARS_MAX {
            // The tab stands in no key that was given, so no short key is taken for a hashed one.
            format!("sha256\t{}", hex(&Sha256::digest(key.as_bytes())))
        } else {
            key.to_owned()
        };
        Ok(Some(Self {
            org: org.to_owned(),
            key,
        }))
    }
}

// === impl Keys ===

impl Keys {
    /// Keys that are kept in memory alone.
    #[cfg(test)]
    pub fn new(clock: Clock) -> Arc<Self> {
        Self::kept(clock, Keep::off(), Vec::new())
    }

    /// Wakes those that wait, as the end of a binding does.
    pub fn forget_all(&self) {
        self.bindings.lock().clear();
    }

    /// What the key was billed was taken back: nothing has succeeded with it, on disk neither.
    pub fn unbind(&self, id: &KeyId) {
        let mut bindings = self.bindings.lock();
        if let Some(binding) = bindings.get_mut(id) {
            binding.billed = None;
            binding.kept = false;
            binding.outcome = Outcome::None;
            binding.ended.send_replace(());
            if binding.running == 0 {
                bindings.remove(id);
            }
        }
        self.keep.push([kept::gone(id)]);
    }

    /// Decides by the table above; waits when the table says so.
    pub async fn begin(
        self: &Arc<Self>,
        id: Option<KeyId>,
        fingerprint: Fingerprint,
        while_running: WhileRunning,
    ) -> Result<Begin, ServiceError> {
        let Some(id) = id else {
            return Ok(Begin::Run(Run { keyed: None }));
        };
        let deadline = self.clock.elapsed() + Duration::from_secs(spec::DUPLICATE_WAIT_S);
        loop {
            let mut ended = match self.look(&id, &fingerprint, while_running)? {
                Look::Begin(begin) => return Ok(begin),
                Look::Running(ended) => ended,
            };
            tokio::select! {
                // An error means that the binding is gone, which is news too.
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
            self.keep.push(self.keep.is_on().then(|| kept::gone(id)));
        }
        let n = if let Some(binding) = bindings.get_mut(id) {
            if !binding.fingerprint.is_same_as(fingerprint) {
                return Err(ServiceError::KeyReused);
            }
            if let Outcome::Stored(stored) = &binding.outcome {
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
                    outcome: Outcome::None,
                    billed: None,
                    kept: false,
                    ended: watch::Sender::new(()),
                },
            );
            n
        };
        Ok(Look::Begin(Begin::Run(Run {
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
                self.keep.push([kept::gone(id)]);
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
            Outcome::Stored(stored) => stored.body.len(),
            Outcome::None | Outcome::Bound => 0,
        }
    }

    /// Whether it may be written: something came of it, and no debit of it is still to be queued.
    fn is_told(&self) -> bool {
        !matches!(self.outcome, Outcome::None) && (self.billed.is_none() || self.kept)
    }
}

// === impl Run ===

impl Run {
    /// The right itself, out of what holds it; what is left ends nothing.
    pub fn take(&mut self) -> Self {
        Self {
            keyed: self.keyed.take(),
        }
    }

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

    /// The debit was made: it and the key it is bound to are written together.
    pub fn charged(&self, keep: &Keep, mut debit: Option<Change>) {
        let Some(keyed) = self.keyed.as_ref().filter(|_| keep.is_on()) else {
            return keep.push(debit);
        };
        let queued = keyed.with(|binding| {
            binding.kept = true;
            if let Some(Change::Debit { key, .. }) = &mut debit {
                *key = Some(keyed.id.clone());
            }
            let row = kept::change(&keyed.id, binding);
            keep.push(debit.take().into_iter().chain(row));
        });
        if queued.is_none() {
            // The key is forgotten; the debit is not.
            keep.push(debit);
        }
    }

    /// Whether this run can cost nothing, because its key was billed before.
    pub fn is_free(&self) -> bool {
        let billed = |keyed: &Keyed| keyed.with(|binding| binding.billed.is_some());
        self.keyed.as_ref().and_then(billed).unwrap_or(false)
    }

    /// Succeeded, and the answer is of a stored kind.
    pub fn store(mut self, stored: Stored) {
        let outcome = if stored.body.len() > spec::STORED_BYTES_MAX {
            Outcome::Bound
        } else {
            Outcome::Stored(Arc::new(stored))
        };
        self.end(Some(outcome));
    }

    /// Succeeded with pictures. Interface: 16 MB on image routes.
    pub fn store_image(mut self, stored: Stored) {
        let outcome = if stored.body.len() > spec::IMAGE_STORED_BYTES_MAX {
            Outcome::Bound
        } else {
            Outcome::Stored(Arc::new(stored))
        };
        self.end(Some(outcome));
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
        self.end(Some(Outcome::Bound));
    }

    fn end(&mut self, outcome: Option<Outcome>) {
        if let Some(keyed) = self.keyed.take() {
            keyed.end(outcome);
        }
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        self.end(None);
    }
}

#[cfg(test)]
mod tests;
