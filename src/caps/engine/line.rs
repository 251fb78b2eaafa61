//! Who waits for room below a cap. Each app has a line of its own, in the order of arrival, and so has
//! each run of it, whose limit holds up nobody else. The apps take turns: the one that was served longest
//! ago is first.
//!
//! Promise: nobody overtakes within a line; where a cap has no room for the one whose turn it is, nobody
//! else is admitted below that cap before it; bounded.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::oneshot;

use super::{Ask, Engine, Judged};
use crate::caps::refused::Refused;
use crate::caps::rules::Scope;
use crate::ledger::entry::EntryId;
use crate::money::MicroUsd;

/// Most requests that wait, of all apps.
const WAITERS_MAX: usize = 512;

/// What a waiter is told. It must not be dropped under the lock: what was admitted is let go then.
pub type Told = Result<MicroUsd, Refused>;

/// The way to a waiter.
pub type Way = oneshot::Sender<Told>;

/// An app's own line, or that of a run of it.
pub type LineOf = (Arc<str>, Option<Arc<str>>);

/// A request that waits.
#[derive(Debug)]
pub struct Waiter {
    ask: Ask,
    way: Way,
    number: u64,
}

/// Answers to be sent when the lock is let go of.
#[must_use]
#[derive(Debug, Default)]
pub struct Answers(Vec<(EntryId, Way, Told)>);

fn line_of(ask: &Ask) -> LineOf {
    (Arc::clone(&ask.app), ask.run.clone())
}

// === impl Answers ===

impl Answers {
    /// Sends them. What was admitted for somebody who has gone is let go.
    pub fn send(self, engine: &Mutex<Engine>, now_ms: u64) {
        let mut answers = self;
        loop {
            let mut gone = Vec::new();
            for (entry, way, told) in answers.0 {
                if let Err(Ok(_)) = way.send(told) {
                    gone.push(entry);
                }
            }
            if gone.is_empty() {
                return;
            }
            let mut engine = engine.lock();
            for entry in gone {
                engine.release(entry, super::End::Unsent);
            }
            answers = engine.serve(now_ms);
        }
    }
}

// === impl Engine ===

impl Engine {
    /// Admits or refuses at once, or puts the request in line.
    pub fn ask(&mut self, ask: Ask, way: Way, now_ms: u64) -> Answers {
        let entry = ask.entry;
        let waiting = self.waiting();
        // With others in line it is the line that decides; what is charged in every window of now passes.
        if waiting == 0 || ask.repeats.is_some() {
            match self.judge(&ask, now_ms) {
                Judged::Go(reserved, share) if waiting == 0 || !share.counts => {
                    self.admit(ask, reserved, share, now_ms);
                    return Answers(vec![(entry, way, Ok(reserved))]);
                }
                Judged::Never(refused) => {
                    self.count_refusal(&refused);
                    return Answers(vec![(entry, way, Err(refused))]);
                }
                Judged::Go(..) | Judged::Wait(_) => {}
            }
        }
        if waiting >= WAITERS_MAX {
            return Answers(vec![(entry, way, Err(Refused::crowded(waiting)))]);
        }
        let number = self.number();
        let line = self.lines.entry(line_of(&ask)).or_default();
        line.push_back(Waiter { ask, way, number });
        self.serve(now_ms)
    }

    /// Takes somebody out of the line who does not wait any longer.
    pub fn give_up(&mut self, entry: EntryId, now_ms: u64) -> Answers {
        for line in self.lines.values_mut() {
            line.retain(|waiter| waiter.ask.entry != entry);
        }
        self.lines.retain(|_, line| !line.is_empty());
        self.serve(now_ms)
    }

    pub fn waiting(&self) -> usize {
        self.lines.values().map(|line| line.len()).sum()
    }

    /// Gives turns, as long as there is room.
    pub fn serve(&mut self, now_ms: u64) -> Answers {
        let mut answers = Answers::default();
        while let Some(answer) = self.serve_one(now_ms) {
            answers.0.push(answer);
        }
        answers
    }

    fn serve_one(&mut self, now_ms: u64) -> Option<(EntryId, Way, Told)> {
        let heads = self.lines.iter().filter_map(|((app, _), line)| {
            let head = line.front()?;
            let turn = self.turns.get(app).copied().unwrap_or(0);
            Some((turn, head.number, head.ask.clone()))
        });
        let mut heads: Vec<_> = heads.collect();
        heads.sort_unstable_by_key(|(turn, number, _)| (*turn, *number));
        let mut closed: Vec<Scope> = Vec::new();
        for (_, _, ask) in heads {
            let judged = self.judge(&ask, now_ms);
            let is_closed = closed.iter().any(|scope| scope.holds(&ask.app));
            match judged {
                Judged::Never(refused) => {
                    self.count_refusal(&refused);
                    let waiter = self.take_first(&line_of(&ask))?;
                    return Some((ask.entry, waiter.way, Err(refused)));
                }
                Judged::Go(reserved, share) if !is_closed => {
                    let waiter = self.take_first(&line_of(&ask))?;
                    let turn = self.number();
                    self.turns.insert(Arc::clone(&ask.app), turn);
                    let entry = ask.entry;
                    self.admit(ask, reserved, share, now_ms);
                    return Some((entry, waiter.way, Ok(reserved)));
                }
                Judged::Go(..) => {}
                Judged::Wait(scopes) => closed.extend(scopes),
            }
        }
        None
    }

    fn take_first(&mut self, of: &LineOf) -> Option<Waiter> {
        let line = self.lines.get_mut(of)?;
        let first = line.pop_front();
        if line.is_empty() {
            self.lines.remove(of);
        }
        first
    }

    /// Why somebody in line had no turn for so long.
    pub fn late(&mut self, entry: EntryId, seconds: u64, now_ms: u64) -> Refused {
        let mut waiters = self.lines.values().flatten();
        let waiter = waiters.find(|waiter| waiter.ask.entry == entry);
        let ask = waiter.map(|waiter| waiter.ask.clone());
        if let Some(ask) = ask
            && let Judged::Wait(scopes) = self.judge(&ask, now_ms)
            && scopes.is_empty()
            && let Some((run, _)) = self.run_of(&ask)
        {
            return Refused::run_late(run, &ask.app, seconds);
        }
        Refused::late(seconds)
    }

    fn number(&mut self) -> u64 {
        self.next_number = self.next_number.saturating_add(1);
        self.next_number
    }

    /// One line in the log a window, not one a request.
    pub(super) fn count_refusal(&mut self, refused: &Refused) {
        let Refused::Reached(reached) = refused else {
            return;
        };
        let key = (reached.scope.clone(), reached.period);
        let refusals = self.refusals.entry(key.clone()).or_default();
        *refusals = refusals.saturating_add(1);
        let Some(purse) = self.purses.get_mut(&key) else {
            return;
        };
        if !std::mem::replace(&mut purse.told, true) {
            tracing::warn!(
                cap = reached.scope.as_str(),
                period = reached.period.as_str(),
                limit = %reached.limit,
                counted = %reached.counted,
                "a cap is reached; its requests are refused until its window ends"
            );
        }
    }
}
