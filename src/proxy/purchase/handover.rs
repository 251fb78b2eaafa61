//! What the ledger knows of deliveries, and what this process learns of them from it: the table of
//! undelivered requests outlives the process.
//!
//! Promise: the ledger is told only what it does not take for granted, so a clean request costs no
//! line; keys whose age is in doubt are not taken over from an earlier process (rule I6).

use super::claimant::is_apps_own;
use crate::proxy::purchase::live::Fate;

use super::age;
use super::live::Live;
use crate::clock::Clock;
use crate::ledger::entry::{EntryId, InDoubt, KeyOrigin, State};
use crate::ledger::undelivered::{Delivery, KeyUse, Undelivered};

/// What became of an answer whose outcome is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::proxy) enum News {
    /// Its app has what counts as delivered. As long as somebody follows, and where bursar's stop cut the
    /// giving, this is not the last word: it counts as [`Self::UnderWay`].
    Given,
    /// Its app does not have it, unless a follower took it since the leader looked.
    Missed,
    /// It is being given. Of a stream the first byte counts as delivered as long as bursar lives; if
    /// bursar dies now, the app has no end of it.
    UnderWay,
}

// === impl News ===

impl From<Fate> for News {
    fn from(fate: Fate) -> Self {
        match fate {
            Fate::Closed => Self::Given,
            Fate::Undelivered | Fate::Unsent { .. } => Self::Missed,
        }
    }
}

// === impl Live ===

impl Live {
    /// For the intent: `None` where there is no key to pass on.
    pub fn key_use(&self) -> Option<KeyUse> {
        self.key.as_ref().filter(|key| !is_apps_own(key))?;
        Some(KeyUse {
            first_sent: self.first,
            adoptions: self.adoptions,
        })
    }

    /// Rule I6, before the first attempt: the machine may have slept since an old key was taken over.
    pub fn may_begin(&self, clock: &dyn Clock) -> bool {
        self.adoptions == 0 || age::may_repeat(&self.first, clock)
    }

    /// For an outcome behind which the app gets nothing more.
    pub fn delivery_if_missed(&self) -> Delivery {
        if self.is_handed_out() && !self.is_cut_short() {
            Delivery::Given
        } else {
            Delivery::Missed
        }
    }

    /// What the outcome said; `state` is what it became, or `None` when it could not be written: then
    /// its entry is undelivered unless the app has it, now or when the next start finds it open.
    pub fn told_at_settling(&self, delivery: Delivery, state: Option<State>) {
        let undelivered = match state {
            Some(state) => delivery.leaves_undelivered(state, self.adoptions),
            None => delivery != Delivery::Given,
        };
        *self.told.lock() = Some(undelivered);
    }

    /// How the answer stands with the app before its outcome is written, for the case that bursar
    /// dies before it is given to its end. A stream that has begun is delivered as long as bursar lives; if
    /// it dies now, or its stop cuts the answer, the app has no end of it.
    pub fn delivery(&self, answered: bool, cut_by: Option<InDoubt>, has_reader: bool) -> Delivery {
        if cut_by == Some(InDoubt::Shutdown) {
            self.cuts_short();
        }
        if answered && cut_by.is_none() && has_reader {
            Delivery::Pending
        } else {
            self.delivery_if_missed()
        }
    }

    /// Nothing was billed for this purchase, by this request or by those whose key it adopted.
    pub fn is_known_zero(&self, state: Option<State>) -> bool {
        state == Some(State::Failed) && self.adoptions == 0
    }

    /// A request that cost nothing, or whose answer the app has, is closed. Anything else may have
    /// run and was not received: the app's next equal request belongs to it. Where an adopted key
    /// failed, the request that it was adopted from may still have run.
    pub fn fate(&self, state: Option<State>, delivered: bool) -> Fate {
        if self.is_known_zero(state) || delivered || self.is_handed_out() {
            Fate::Closed
        } else {
            Fate::Undelivered
        }
    }

    /// Of a request that was not sent. An adopted key stands for one that may have run: it is passed
    /// on. `in_ledger`: its intent was written.
    pub fn fate_unsent(&self, in_ledger: bool) -> Fate {
        if self.adoptions > 0 {
            Fate::Unsent { in_ledger }
        } else {
            Fate::Closed
        }
    }

    /// The entry that the next request takes the key over from, and how often the key was taken over
    /// and sent. What was not sent is no adoption, and without an intent no entry of the ledger.
    pub(super) fn stands_as(&self, fate: Fate) -> (EntryId, u32) {
        let Fate::Unsent { in_ledger } = fate else {
            return (self.entry, self.adoptions);
        };
        let before = self.key.as_ref().and_then(|key| match key.origin {
            KeyOrigin::Adopted { from } => Some(from),
            KeyOrigin::Minted | KeyOrigin::App => None,
        });
        let entry = before.filter(|_| !in_ledger).unwrap_or(self.entry);
        (entry, self.adoptions.saturating_sub(1))
    }

    /// What the ledger has to be told of the answer, if it takes it otherwise: the row, and whether
    /// the app has the answer. Told one after the other, so that the last word is the right one.
    pub(in crate::proxy) fn news(
        &self,
        news: News,
        at_ms: u64,
        tell: impl FnOnce(Undelivered, bool),
    ) {
        let mut told = self.told.lock();
        let has_no_end = self.is_cut_short() || self.is_handed_to_follower();
        let undelivered = match news {
            News::Given => has_no_end,
            News::Missed => has_no_end || !self.is_handed_out(),
            News::UnderWay => true,
        };
        if (*told).is_none_or(|told| told == undelivered) {
            return;
        }
        *told = Some(undelivered);
        if let Some(row) = self.row(at_ms) {
            tell(row, !undelivered);
        }
    }

    fn row(&self, at_ms: u64) -> Option<Undelivered> {
        Some(Undelivered {
            id: self.entry,
            at_ms,
            app: self.mark.app.clone(),
            fingerprint: self.mark.fingerprint,
            key: self.key.clone()?,
            key_use: self.key_use()?,
        })
    }
}

#[cfg(test)]
mod tests;
