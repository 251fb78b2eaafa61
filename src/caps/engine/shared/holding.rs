//! One shared cap, as this bursar knows it: what the fleet ordered of it, the slices that are held, and what was asked.
//!
//! Promise: no I/O, no clock, no randomness. One wish a cap is under way, under one name until it is answered, and one
//! part of a lease is on its way back, under one number.

use uuid::Uuid;

use super::super::room::sum;
use super::errand::Round;
use super::slice::Slice;
use crate::caps::leases::{GiveBack, GiveBackAnswer, LeaseAnswer, LeaseAsk, SharedCap};
use crate::caps::refused::SharedWhy;
use crate::caps::window::Window;
use crate::ledger::entry::LeaseId;
use crate::ledger::usage::Charge;
use crate::money::MicroUsd;

/// Between two wishes that are made ahead of need.
const TOP_UP_PAUSE_MS: u64 = 5_000;

/// How long the word holds that nothing is left.
const NOTHING_MS: u64 = 5_000;

/// A cap of which nothing was under way for so long gives back what is open.
const IDLE_MS: u64 = 60_000;

/// In the last moments of a window nothing is given back: nobody could make much of it.
const LAST_MS: u64 = 60_000;

/// What the ledger has of each lease.
pub type ChargedOf<'a> = &'a dyn Fn(LeaseId) -> Charge;

/// What a request would need of a cap, above what is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lack {
    /// To go beside what is under way.
    pub want: u128,
    /// To go at all.
    pub least: u128,
}

/// Why more is not to be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nothing {
    Empty {
        may_return: bool,
    },
    /// This ledger has all that it may have.
    Share,
    /// The fleet has no such cap.
    NoCap,
}

/// One of them.
#[derive(Clone, Debug, Default)]
pub struct Holding {
    order: Option<SharedCap>,
    /// The cap's window of now, by what was ordered or granted last.
    window: Option<Window>,
    slices: Vec<Slice>,
    asked: Option<LeaseAsk>,
    lack: Option<Lack>,
    /// And how long that holds, milliseconds since the machine's start.
    nothing: Option<(Nothing, u64)>,
    is_low: bool,
    asked_up_ms: Option<u64>,
    /// When something of it was last admitted, ended or granted.
    used_up_ms: u64,
    /// What was granted last.
    last_grant: MicroUsd,
    /// The database did not take back what seemed open: until then it is kept, milliseconds since the machine's start.
    kept_until_up_ms: u64,
    /// The window of which, and how far, allowances were asked for.
    ahead: (u64, u32),
    /// The window in which a refusal was logged, and why it was.
    logged: Option<(u64, SharedWhy)>,
}

/// What of a cap is under way and open, for what is asked and given back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    /// What may be spent of the lease.
    pub limit: MicroUsd,
    /// Billed, held, and reserved for what is under way.
    pub taken: u128,
    /// Nothing is under way on it.
    pub is_idle: bool,
}

// === impl Holding ===

impl Holding {
    /// As the fleet stated it last.
    pub fn order(&self) -> Option<&SharedCap> {
        self.order.as_ref()
    }

    pub fn set_order(&mut self, order: Option<SharedCap>) {
        self.window = order.as_ref().map(|order| order.window).or(self.window);
        self.order = order;
    }

    pub fn slices(&self) -> &[Slice] {
        &self.slices
    }

    /// In the order of their windows.
    pub fn set_slices(&mut self, slices: Vec<Slice>) {
        self.slices = slices;
    }

    /// The slice that is spent now: that of the cap's window of now. Where none was granted of it, or the window was not
    /// heard since the start, the latest that is open: it is of the next window, which has begun since, or of the cap before
    /// its period or its zone was changed. `charged`: what the ledger has of a lease.
    pub fn current(&self, up_ms: u64, charged: ChargedOf<'_>) -> Option<&Slice> {
        let last = |is_it: &dyn Fn(&Slice) -> bool| {
            let mut slices = self.slices.iter().rev();
            slices.find(|slice| slice.is_current(up_ms) && is_it(slice))
        };
        let is_open = |slice: &Slice| {
            u128::from(slice.limit().get()) > sum(slice.counted(charged(slice.lease)))
        };
        last(&|slice| Some(slice.window) == self.window)
            .or_else(|| last(&is_open))
            .or_else(|| last(&|_| true))
    }

    pub fn nothing(&self, up_ms: u64) -> Option<Nothing> {
        let (nothing, until_up_ms) = self.nothing?;
        (up_ms < until_up_ms).then_some(nothing)
    }

    /// Whether a refusal is the first for this reason, of this window.
    pub fn is_news(&mut self, why: SharedWhy) -> bool {
        let since_ms = self.order.as_ref().map_or(0, |order| order.window.since_ms);
        self.logged.replace((since_ms, why)) != Some((since_ms, why))
    }

    pub fn lacks(&mut self, lack: Lack) {
        let most = self.lack.get_or_insert(lack);
        most.want = most.want.max(lack.want);
        most.least = most.least.max(lack.least);
    }

    pub fn is_lacking(&self) -> bool {
        self.lack.is_some() || self.is_low || self.asked.is_some()
    }

    pub fn used(&mut self, up_ms: u64) {
        self.used_up_ms = up_ms;
    }

    /// Notes whether three quarters of what was granted last are used, so that more is asked for ahead of need.
    pub fn is_running_low(&mut self, up_ms: u64, standing: Standing) -> bool {
        let open = u128::from(standing.limit.get()).saturating_sub(standing.taken);
        let is_due = |asked_ms: u64| up_ms.saturating_sub(asked_ms) >= TOP_UP_PAUSE_MS;
        self.is_low =
            open < u128::from(self.last_grant.get() / 4) && self.asked_up_ms.is_none_or(is_due);
        self.is_low
    }

    /// What is to be asked for. `slice`: what is taken at once of a cap that is not nearly used up. `standing`: of the slice
    /// that is spent now.
    pub fn ask(
        &mut self,
        cap: &str,
        request: Uuid,
        (slice, is_ephemeral): (u128, bool),
        standing: Standing,
        up_ms: u64,
    ) -> Option<LeaseAsk> {
        if let Some(asked) = &self.asked {
            return Some(asked.clone());
        }
        // A wish: what there is bounds it.
        let amount = |wanted: u128| MicroUsd::new(u64::try_from(wanted).unwrap_or(u64::MAX));
        let is_low = std::mem::take(&mut self.is_low) && !is_ephemeral;
        let lack = self.lack.take();
        if (lack.is_some() || is_low) && self.nothing(up_ms).is_none() {
            let lack = lack.unwrap_or(Lack { want: 1, least: 1 });
            let whole = standing.taken.saturating_add(slice);
            let top_up = match is_ephemeral {
                true => 0,
                false => whole.saturating_sub(standing.limit.get().into()),
            };
            self.asked_up_ms = Some(up_ms);
            let (want, least) = (lack.want.max(top_up).max(1), lack.least.max(1));
            self.asked = Some(LeaseAsk {
                cap: cap.to_owned(),
                request,
                want: amount(want),
                least: amount(least),
                ahead: 0,
            });
            return self.asked.clone();
        }
        let order = self.order.as_ref().filter(|_| !is_ephemeral)?;
        let (of, far) = self.ahead;
        let far = if of == order.window.since_ms { far } else { 0 };
        if far >= order.ahead_windows || order.ahead.is_zero() {
            return None;
        }
        self.ahead = (order.window.since_ms, far + 1);
        self.asked = Some(LeaseAsk {
            cap: cap.to_owned(),
            request,
            want: order.ahead,
            least: MicroUsd::new(1),
            ahead: far + 1,
        });
        self.asked.clone()
    }

    /// What became of the wish.
    pub fn answered(&mut self, answer: &LeaseAnswer, up_ms: u64) {
        let is_of_now = self.asked.as_ref().is_some_and(|asked| asked.ahead == 0);
        let nothing = match answer {
            LeaseAnswer::Granted(grant) => {
                if is_of_now {
                    self.window = Some(grant.lease.lease.window);
                    self.used_up_ms = up_ms;
                    self.kept_until_up_ms = 0;
                    self.last_grant = grant.amount;
                    self.nothing = None;
                }
                None
            }
            LeaseAnswer::Empty { may_return, .. } => Some(Nothing::Empty {
                may_return: *may_return,
            }),
            LeaseAnswer::Share { .. } => Some(Nothing::Share),
            LeaseAnswer::NoCap => Some(Nothing::NoCap),
            LeaseAnswer::Paused => None,
            // The same is asked again.
            LeaseAnswer::Elsewhere => return,
        };
        self.asked = None;
        if let Some(nothing) = nothing.filter(|_| is_of_now) {
            self.nothing = Some((nothing, up_ms.saturating_add(NOTHING_MS)));
        }
    }

    /// A part that was to be given back and may not have arrived.
    pub fn on_its_way(&self, up_ms: u64) -> Option<GiveBack> {
        let mut slices = self.slices.iter();
        slices.find_map(|slice| give_back(slice).filter(|_| !slice.is_over(up_ms)))
    }

    /// What nobody needs goes back: all that is open, less an allowance for the time away, which a machine that is gone
    /// soon has none of. From now on it is not spent. `current`: the lease that is spent now; `standings`: of each slice.
    pub fn give_back(
        &mut self,
        (round, is_ephemeral): (Round, bool),
        current: Option<LeaseId>,
        standings: &[Standing],
        up_ms: u64,
    ) {
        if up_ms < self.kept_until_up_ms {
            return;
        }
        let is_idle = round.is_last() || up_ms.saturating_sub(self.used_up_ms) >= IDLE_MS;
        let order = self.order.as_ref();
        let order = order.filter(|order| order.ahead_windows > 0 && !is_ephemeral);
        let allowance = order.filter(|_| round != Round::Leave);
        let allowance = allowance.map_or(0, |order| order.ahead.get());
        for (slice, standing) in self.slices.iter_mut().zip(standings) {
            let allowance = match Some(slice.lease) == current {
                true if is_idle => allowance,
                // Of a window that the cap has no more: nothing new is spent of it.
                false if slice.is_current(up_ms) => 0,
                _ => continue,
            };
            let kept = standing.taken.saturating_add(u128::from(allowance));
            let open = u128::from(standing.limit.get()).saturating_sub(kept);
            let is_late = slice.ends_up_ms.saturating_sub(up_ms) <= LAST_MS;
            if let Ok(open) = u64::try_from(open)
                && open > 0
                && standing.is_idle
                && !is_late
                && slice.giving.is_none()
            {
                slice.giving = Some(MicroUsd::new(open));
            }
        }
    }

    pub fn gave_back(&mut self, lease: LeaseId, answer: &GiveBackAnswer, up_ms: u64) {
        let is_ours = self.slices.iter().any(|slice| slice.lease == lease);
        if is_ours && matches!(answer, GiveBackAnswer::TooMuch(_)) {
            self.kept_until_up_ms = up_ms.saturating_add(IDLE_MS);
        }
    }
}

fn give_back(slice: &Slice) -> Option<GiveBack> {
    Some(GiveBack {
        lease: slice.lease.0,
        number: slice.totals.give_back_number.saturating_add(1),
        amount: slice.giving?,
        up_to_seq: 0,
    })
}
