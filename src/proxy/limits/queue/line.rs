//! The waiting requests: one line an app, served in turn.
//!
//! Promise: within an app first come, first served, and a retry before those that were never tried;
//! each app with a waiting request has one turn in a round, so that an app waits for at most
//! one request of each other app between two of its own. When the line is full, the app with the
//! most in it makes room.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

/// The number of a waiting request.
pub type TicketNo = u64;

/// Which of its app's requests goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Priority {
    /// Never tried.
    First,
    /// Tried, and allowed another attempt.
    Again,
}

/// A waiting request.
#[derive(Clone, Copy, Debug)]
pub struct Ticket {
    pub no: TicketNo,
    /// Monotonic time after which it is not worth waiting.
    pub deadline: Duration,
}

/// What one app has in the line.
#[derive(Debug, Default)]
struct AppLine {
    again: VecDeque<Ticket>,
    first: VecDeque<Ticket>,
}

/// All waiting requests.
#[derive(Debug, Default)]
pub struct RoundRobin {
    apps: HashMap<Arc<str>, AppLine>,
    /// Apps with a waiting request, in the order of their turns.
    round: VecDeque<Arc<str>>,
    count: usize,
}

// === impl AppLine ===

impl AppLine {
    fn len(&self) -> usize {
        self.again.len() + self.first.len()
    }

    fn both(&mut self) -> [&mut VecDeque<Ticket>; 2] {
        [&mut self.again, &mut self.first]
    }
}

// === impl RoundRobin ===

impl RoundRobin {
    pub fn len(&self) -> usize {
        self.count
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub fn push(&mut self, app: &Arc<str>, turn: Priority, ticket: Ticket) {
        let line = self.apps.entry(Arc::clone(app)).or_default();
        if line.len() == 0 {
            self.round.push_back(Arc::clone(app));
        }
        match turn {
            Priority::Again => line.again.push_back(ticket),
            Priority::First => line.first.push_back(ticket),
        }
        self.count += 1;
    }

    /// The request that is next.
    pub fn pop(&mut self) -> Option<Ticket> {
        let app = self.round.pop_front()?;
        let line = self.apps.get_mut(&app)?;
        let ticket = line.again.pop_front().or_else(|| line.first.pop_front());
        if line.len() == 0 {
            self.apps.remove(&app);
        } else {
            self.round.push_back(app);
        }
        self.count -= usize::from(ticket.is_some());
        ticket
    }

    /// Takes out the tickets that `gone` names, and returns how many they were.
    pub fn remove(&mut self, mut gone: impl FnMut(&Ticket) -> bool) -> usize {
        let before = self.count;
        for line in self.apps.values_mut() {
            for tickets in line.both() {
                let len = tickets.len();
                tickets.retain(|ticket| !gone(ticket));
                self.count -= len - tickets.len();
            }
        }
        if self.count < before {
            self.apps.retain(|_, line| line.len() > 0);
            self.round.retain(|app| self.apps.contains_key(app));
        }
        before - self.count
    }

    /// Makes room for a request of `app`: the newest of the app with the most waiting goes, if that
    /// app has more than `app` would have with it.
    pub fn make_room(&mut self, app: &Arc<str>) -> Option<TicketNo> {
        let own = self.apps.get(app).map_or(0, AppLine::len);
        let longest = self
            .round
            .iter()
            .filter_map(|name| Some((name, self.apps.get(name)?.first.len())))
            .max_by_key(|(_, waiting)| *waiting)
            .filter(|(_, waiting)| *waiting > own + 1)
            .map(|(name, _)| Arc::clone(name))?;
        let no = self.apps.get(&longest)?.first.back()?.no;
        self.remove(|ticket| ticket.no == no);
        Some(no)
    }

    /// How many of those for which `counts` holds would have a turn before a request of `app` that came now.
    pub fn ahead(&self, app: &Arc<str>, turn: Priority, counts: impl Fn(&Ticket) -> bool) -> usize {
        let count = |tickets: &VecDeque<Ticket>| tickets.iter().filter(|one| counts(one)).count();
        let own = self.apps.get(app).map_or(0, |line| match turn {
            Priority::Again => count(&line.again),
            Priority::First => count(&line.again) + count(&line.first),
        });
        let mut is_before = true;
        let others = self.round.iter().map(|name| {
            if name == app {
                is_before = false;
                return 0;
            }
            let waiting = self.apps.get(name);
            let waiting = waiting.map_or(0, |line| count(&line.again) + count(&line.first));
            // Each app before it in the round has one turn more.
            waiting.min(own + usize::from(is_before))
        });
        own + others.sum::<usize>()
    }

    pub fn earliest_deadline(&self) -> Option<Duration> {
        self.tickets().map(|ticket| ticket.deadline).min()
    }

    fn tickets(&self) -> impl Iterator<Item = &Ticket> {
        self.apps
            .values()
            .flat_map(|line| line.again.iter().chain(&line.first))
    }
}
