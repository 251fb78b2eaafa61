//! How much may go to the service at once and in a minute: the configured ceilings, lowered when the
//! service says 429 and raised again when it serves.
//!
//! Others use the same organization's ceilings, and how much of them is not known. So the limits are
//! halved (the rate: to three quarters) at a 429 and grow by one at a time with what is served, which
//! settles at what is left by others and finds more when they go. Each 429 costs all apps a pause, so
//! a number in flight that was refused is tried again more and more seldom. Where the other machines of a fleet say
//! what they use, the limits are held below what is left, too.
//!
//! Promise: a limit is at least 1 and never above its ceiling; the answers of one overload lower it
//! once; the longest `Retry-After` is a pause for all, of at most [`PAUSE_MAX`].

use std::time::Duration;

use crate::ceilings::Ceilings;
use crate::config::Shaping;

/// A longer `Retry-After` is not believed: the next request asks.
pub const PAUSE_MAX: Duration = Duration::from_secs(60);

/// `Retry-After` of the rate ceiling. "rate ceiling exceeded (`Retry-After: 15`)".
const RATE_RETRY_AFTER: Duration = Duration::from_secs(15);

/// Served requests for which the rate grows by one a minute.
const SERVED_PER_RATE_STEP: u32 = 10;

/// Rounds that are served below a number in flight that was refused, before it is tried again: at first,
/// and at most. Each try that is refused doubles them.
const ROUNDS_BEFORE_TRY: u32 = 4;
const ROUNDS_BEFORE_TRY_MAX: u32 = 32;

/// Without a 429 for so long what others do is not known any more.
const MEMORY: Duration = Duration::from_secs(600);

/// The same of a 429 below a share, once the share is over.
const MEMORY_OF_SHARE: Duration = Duration::from_secs(60);

/// A 429 of the service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Busy {
    pub asked: Option<Duration>,
    /// The answer's words say that it is the rate.
    pub names_rate: bool,
}

/// A limit now, below its ceiling.
#[derive(Clone, Copy, Debug)]
struct Limit {
    /// `None`: bursar sets no limit.
    ceiling: Option<usize>,
    now: usize,
    /// Served since the limit changed last.
    served: u32,
    refused: Option<Overload>,
}

/// What was too much the last time.
#[derive(Clone, Copy, Debug)]
struct Overload {
    /// One less than was refused.
    below: usize,
    rounds_before_try: u32,
}

/// The last time that the limits were lowered.
#[derive(Clone, Copy, Debug)]
struct Lowered {
    at: Duration,
    /// Below a share: that says nothing of a time without one.
    below_share: bool,
}

/// Both limits, and the pause.
#[derive(Debug)]
pub struct AdaptiveLimits {
    in_flight: Limit,
    per_minute: Limit,
    paused_until: Duration,
    lowered: Option<Lowered>,
    /// What other machines leave of the ceilings, and until when that holds.
    share: Option<(Ceilings, Duration)>,
}

// === impl Limit ===

impl Limit {
    fn new(ceiling: Option<usize>) -> Self {
        Self {
            ceiling,
            now: ceiling.unwrap_or(usize::MAX),
            served: 0,
            refused: None,
        }
    }

    fn current(&self) -> Option<usize> {
        self.ceiling.map(|_| self.now)
    }

    /// `used` is what was too much.
    fn lower(&mut self, used: usize, numerator: usize, denominator: usize) {
        if self.ceiling.is_some() {
            self.now = (self.now.min(used) * numerator / denominator).max(1);
            self.served = 0;
        }
    }

    /// As `lower` to the half, where what was too much is known to be this limit. A try of one more than
    /// held before goes back to that.
    fn refused(&mut self, used: usize) {
        let tried = self.refused.filter(|last| {
            let try_of = last.below.saturating_add(1);
            self.now == try_of && used >= try_of
        });
        let below = self.now.min(used).saturating_sub(1);
        self.lower(used, 1, 2);
        let rounds = match tried {
            Some(last) => {
                self.now = last.below.max(1);
                last.rounds_before_try.saturating_mul(2)
            }
            None => ROUNDS_BEFORE_TRY,
        };
        self.refused = self.ceiling.map(|_| Overload {
            below,
            rounds_before_try: rounds.min(ROUNDS_BEFORE_TRY_MAX),
        });
    }

    fn served(&mut self, per_step: u32) {
        let Some(ceiling) = self.ceiling.filter(|ceiling| self.now < *ceiling) else {
            return;
        };
        let per_step = match self.refused {
            Some(last) if self.now == last.below => per_step.saturating_mul(last.rounds_before_try),
            _ => per_step,
        };
        self.served += 1;
        if self.served >= per_step {
            self.served = 0;
            // A whole round of more than was refused: there is room again.
            self.refused = self.refused.filter(|last| self.now <= last.below);
            self.now = (self.now + 1).min(ceiling);
        }
    }

    fn recover(&mut self) {
        *self = Self::new(self.ceiling);
    }

    /// A lowered limit stays as it is when its ceiling moves, unless it is above.
    fn reconfigure(&mut self, ceiling: Option<usize>) {
        let was_lowered = self.ceiling.is_some_and(|before| self.now < before);
        let now = self.now;
        *self = Self::new(ceiling);
        if was_lowered {
            self.now = self.now.min(now);
        }
    }
}

// === impl AdaptiveLimits ===

impl AdaptiveLimits {
    pub fn new(config: &Shaping) -> Self {
        Self {
            in_flight: Limit::new(config.in_flight),
            per_minute: Limit::new(config.per_minute),
            paused_until: Duration::ZERO,
            lowered: None,
            share: None,
        }
    }

    pub fn reconfigure(&mut self, config: &Shaping) {
        self.in_flight.reconfigure(config.in_flight);
        self.per_minute.reconfigure(config.per_minute);
    }

    /// Most requests in flight now; `None`: no limit.
    pub fn in_flight(&self) -> Option<usize> {
        self.held(self.in_flight, |share| share.in_flight)
    }

    /// The same without what other machines leave.
    pub fn own_in_flight(&self) -> Option<usize> {
        self.in_flight.current()
    }

    /// Most requests a minute now; `None`: no limit.
    pub fn per_minute(&self) -> Option<usize> {
        self.held(self.per_minute, |share| share.per_minute)
    }

    /// Both of them.
    pub fn now(&self) -> Ceilings {
        Ceilings {
            in_flight: self.in_flight(),
            per_minute: self.per_minute(),
        }
    }

    /// Fewer requests may be in flight because of what other machines leave.
    fn is_in_flight_shared(&self) -> bool {
        self.in_flight() < self.own_in_flight()
    }

    fn is_per_minute_shared(&self) -> bool {
        self.per_minute() < self.per_minute.current()
    }

    fn is_share_below_ceilings(&self) -> bool {
        let is_below = |part: Option<usize>, ceiling: Option<usize>| {
            part.zip(ceiling)
                .is_some_and(|(part, ceiling)| part < ceiling)
        };
        self.share.is_some_and(|(share, _)| {
            is_below(share.in_flight, self.in_flight.ceiling)
                || is_below(share.per_minute, self.per_minute.ceiling)
        })
    }

    /// The most that the limits can become again.
    pub fn configured(&self) -> Ceilings {
        Ceilings {
            in_flight: self.in_flight.ceiling,
            per_minute: self.per_minute.ceiling,
        }
    }

    /// What other machines leave of the ceilings, until a time.
    pub fn share(&mut self, share: Ceilings, until: Duration) {
        self.share = Some((share, until));
    }

    fn held(&self, limit: Limit, of: impl Fn(&Ceilings) -> Option<usize>) -> Option<usize> {
        let share = self.share.as_ref().and_then(|(share, _)| of(share));
        let now = limit.current()?;
        Some(share.map_or(now, |share| now.min(share.max(1))))
    }

    /// The end of the pause, while it lasts.
    pub fn pause(&self, now: Duration) -> Option<Duration> {
        (self.paused_until > now).then_some(self.paused_until)
    }

    /// A request that was let go at `let_go` was answered 429, when `held` were in flight and
    /// `sent` were counted in the minute.
    pub fn busy(&mut self, now: Duration, let_go: Duration, held: usize, sent: usize, busy: Busy) {
        let asked = busy.asked.unwrap_or(Duration::ZERO).min(PAUSE_MAX);
        self.paused_until = self.paused_until.max(now.saturating_add(asked));
        // What was let go before the limits fell belongs to the same overload.
        if self.lowered.is_some_and(|last| let_go < last.at) {
            return;
        }
        let below_share = self.is_in_flight_shared() || self.is_per_minute_shared();
        self.lowered = Some(Lowered {
            at: now,
            below_share,
        });
        if busy.names_rate || asked >= RATE_RETRY_AFTER {
            self.in_flight.lower(held, 1, 2);
            self.per_minute.lower(sent, 3, 4);
        } else {
            self.in_flight.refused(held);
        }
    }

    /// A request was served.
    pub fn served(&mut self, now: Duration) {
        // What is served below a share says nothing of more.
        if !self.is_in_flight_shared() {
            let per_round = u32::try_from(self.in_flight.now).unwrap_or(u32::MAX);
            self.in_flight.served(per_round);
        }
        if !self.is_per_minute_shared() {
            self.per_minute.served(SERVED_PER_RATE_STEP);
        }
        self.forget_old(now);
    }

    /// Lifts limits that nothing has confirmed for long.
    pub fn forget_old(&mut self, now: Duration) {
        self.share = self.share.filter(|(_, until)| now < *until);
        let is_shared = self.is_share_below_ceilings();
        let is_old = |last: Lowered| {
            let memory = match last.below_share && !is_shared {
                true => MEMORY_OF_SHARE,
                false => MEMORY,
            };
            now.saturating_sub(last.at) >= memory
        };
        if self.lowered.is_some_and(is_old) {
            self.lowered = None;
            self.in_flight.recover();
            self.per_minute.recover();
        }
    }
}
