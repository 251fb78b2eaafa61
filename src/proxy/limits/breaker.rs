//! The breaker: what the service has just refused to all is not asked for again by each.
//!
//! Two causes, kept apart. **Account**: the service answered 401 or 402. New metered requests are
//! answered here for [`ACCOUNT_PAUSE`]; then one goes, and its answer holds for all.
//! **Reach**: [`FAILURES_MAX`] attempts in a row did not even connect. New requests fail at once for a
//! time that grows from 1 s to 15 s; then one goes. An attempt that may have been sent counts for
//! nothing here.
//!
//! Promise: nothing is held back longer than its pause without a request that asks the service; one asks
//! at a time; a request under a key that the service may know still passes the first ("succeeds even
//! with zero balance"); a reload forgets everything.

mod gate;

use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use parking_lot::Mutex;

use self::gate::{Gate, Probe};
use crate::calendar;
use crate::clock::SharedClock;
use crate::proxy::refuse::{Code, Refusal};
use crate::telemetry::metrics::{Breaking, Metrics};

/// "pauses new metered requests for at most 5 s".
pub const ACCOUNT_PAUSE: Duration = Duration::from_secs(5);

/// Attempts in a row that did not connect before requests fail at once.
pub const FAILURES_MAX: u32 = 5;

/// The first pause of a service that cannot be reached, and the longest.
pub const REACH_PAUSE_MIN: Duration = Duration::from_secs(1);
pub const REACH_PAUSE_MAX: Duration = Duration::from_secs(15);

pub struct Breaker {
    clock: SharedClock,
    metrics: Arc<Metrics>,
    inner: Mutex<Gates>,
}

#[derive(Debug, Default)]
struct Gates {
    account: Gate,
    /// The status that closed the account's gate, and when on the wall.
    refused: Option<(StatusCode, u64)>,
    reach: Gate,
    /// Attempts in a row that did not connect, and the refusal that the last one led to.
    failures: u32,
    unreached: Option<Refusal>,
    /// Pauses in a row, for the next one's length.
    pauses: u32,
    /// Goes up with each reload: the answer to an older request says nothing about the new key.
    age: u64,
}

/// A request that may go, until it has ended. It asks for others where it is a probe.
pub struct Pass {
    breaker: Arc<Breaker>,
    account: Option<Probe>,
    reach: Option<Probe>,
    age: u64,
}

/// What a request is to the account's gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asks {
    /// It is billed.
    Anew,
    /// It is billed, but its key may be known to the service.
    Again,
    /// It costs nothing.
    Free,
}

// === impl Breaker ===

impl Breaker {
    pub fn new(clock: SharedClock, metrics: Arc<Metrics>) -> Arc<Self> {
        Arc::new(Self {
            clock,
            metrics,
            inner: Mutex::default(),
        })
    }

    /// The configuration is new, and perhaps the key.
    pub fn reset(&self) {
        let mut inner = self.inner.lock();
        *inner = Gates {
            age: inner.age + 1,
            ..Gates::default()
        };
        self.show(&inner);
    }

    /// Whether the account's gate is closed for a new request: worth asking the ledger about a key.
    pub fn is_refusing(&self) -> bool {
        self.inner.lock().account.is_closed()
    }

    /// Why a request would not go now, without asking for it.
    pub fn look(&self, asks: Asks) -> Result<(), Refusal> {
        let now = self.clock.monotonic();
        let inner = self.inner.lock();
        if let Some(left) = inner.reach.closed_for(now) {
            return Err(unreached(&inner, left));
        }
        match inner.account.closed_for(now) {
            Some(left) if asks == Asks::Anew => Err(refused(&inner, left)),
            _ => Ok(()),
        }
    }

    /// Lets a request go, or says why it does not.
    pub fn pass(self: &Arc<Self>, asks: Asks) -> Result<Pass, Refusal> {
        let now = self.clock.monotonic();
        let mut inner = self.inner.lock();
        let reach = inner.reach.pass(now, None);
        let reach = reach.map_err(|left| unreached(&inner, left))?;
        let account = match asks {
            Asks::Anew => inner.account.pass(now, Some(ACCOUNT_PAUSE)),
            Asks::Again | Asks::Free => Ok(None),
        };
        let account = match account {
            Ok(account) => account,
            Err(left) => {
                if let Some(probe) = reach {
                    inner.reach.unused(probe, now);
                }
                return Err(refused(&inner, left));
            }
        };
        self.show(&inner);
        Ok(Pass {
            breaker: Arc::clone(self),
            account,
            reach,
            age: inner.age,
        })
    }

    fn show(&self, inner: &Gates) {
        let traffic = &self.metrics.traffic;
        let status = inner.refused.map(|(status, _)| status);
        let is_closed = inner.account.is_closed();
        let payment = status == Some(StatusCode::PAYMENT_REQUIRED);
        traffic.breaker(Breaking::Key, is_closed && !payment);
        traffic.breaker(Breaking::Balance, is_closed && payment);
        traffic.breaker(Breaking::Upstream, inner.reach.is_closed());
    }
}

// === impl Pass ===

impl Pass {
    /// A metered attempt was answered with this status.
    pub fn answered(&mut self, status: StatusCode) {
        let now = self.breaker.clock.monotonic();
        let wall_ms = self.breaker.clock.wall_ms();
        let mut inner = self.breaker.inner.lock();
        if self.age != inner.age {
            return;
        }
        let refuses = matches!(
            status,
            StatusCode::UNAUTHORIZED | StatusCode::PAYMENT_REQUIRED
        );
        if refuses {
            let until = now.saturating_add(ACCOUNT_PAUSE);
            if inner.account.close(self.account.take(), until) {
                inner.refused = Some((status, wall_ms));
                tracing::warn!(
                    status = status.as_u16(),
                    "the service refuses paid requests; new ones wait for it"
                );
            }
        } else if status.is_success()
            && let Some(probe) = self.account.take()
        {
            inner.account.open(probe);
            tracing::info!("the service takes paid requests again");
        }
        self.breaker.show(&inner);
    }

    /// An attempt got a connection.
    pub fn reached(&mut self) {
        let mut inner = self.breaker.inner.lock();
        self.reach = None;
        if self.age != inner.age || (inner.failures == 0 && !inner.reach.is_closed()) {
            return;
        }
        inner.failures = 0;
        inner.pauses = 0;
        if inner.reach.is_closed() {
            tracing::info!("the service is reached again");
        }
        inner.reach.reset();
        self.breaker.show(&inner);
    }

    /// An attempt did not even connect; `refusal` is what its app is given.
    pub fn unreached(&mut self, refusal: impl Into<Refusal>) {
        let refusal: Refusal = refusal.into();
        let code = refusal.code;
        let now = self.breaker.clock.monotonic();
        let mut inner = self.breaker.inner.lock();
        if self.age != inner.age {
            return;
        }
        inner.unreached = Some(refusal);
        inner.failures = inner.failures.saturating_add(1);
        let probe = self.reach.take();
        let is_probe = probe
            .as_ref()
            .is_some_and(|probe| inner.reach.awaits(probe));
        if !is_probe && inner.failures < FAILURES_MAX {
            return;
        }
        let doubled = REACH_PAUSE_MIN.saturating_mul(1 << inner.pauses.min(8));
        let pause = doubled.min(REACH_PAUSE_MAX);
        if inner.reach.close(probe, now.saturating_add(pause)) {
            inner.pauses = inner.pauses.saturating_add(1);
            tracing::warn!(
                code = code.as_str(),
                pause_ms = crate::clock::millis(pause),
                "the service cannot be reached; requests fail at once"
            );
        }
        self.breaker.show(&inner);
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        if self.account.is_none() && self.reach.is_none() {
            return;
        }
        let now = self.breaker.clock.monotonic();
        let mut inner = self.breaker.inner.lock();
        if self.age != inner.age {
            return;
        }
        // It ended without an answer to what it was to find out: the next one asks.
        if let Some(probe) = self.account.take() {
            inner.account.unused(probe, now);
        }
        if let Some(probe) = self.reach.take() {
            inner.reach.unused(probe, now);
        }
    }
}

fn refused(inner: &Gates, left: Duration) -> Refusal {
    let (status, at_ms) = inner.refused.unwrap_or((StatusCode::PAYMENT_REQUIRED, 0));
    let code = if status == StatusCode::UNAUTHORIZED {
        Code::UpstreamRefusedKey
    } else {
        Code::BalanceEmpty
    };
    let at = calendar::rfc3339(at_ms).unwrap_or_default();
    let what = format!("The service answered {} at {at}.", status.as_u16());
    Refusal::because(code, what).after(left)
}

fn unreached(inner: &Gates, left: Duration) -> Refusal {
    let refusal = inner.unreached.clone();
    let refusal = refusal.unwrap_or_else(|| Code::UpstreamUnreachable.into());
    let failures = inner.failures;
    let what = format!(
        "The last {failures} attempts did not connect, so none was made for this. {}",
        refusal.detail
    );
    Refusal::saying(refusal.code, what).after(left)
}

#[cfg(test)]
mod tests;
