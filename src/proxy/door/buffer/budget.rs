//! One budget for the request bodies in memory, in bytes that came.
//!
//! Bodies that grow together could each hold a part and wait for the rest that the others hold. So a
//! body is given more only if, after it, all that are being read could still be read whole one after
//! the other, the eldest first; and none takes what the eldest still lacks, or an elder waits for. The
//! same holds within what one app may have.
//!
//! Promise: a waiting body waits for an answer to another whole body, or for the one body
//! that goes first; what is announced and not sent takes nothing, but for the eldest's rest. A body that
//! came quickly and then drips holds nothing that another waits for: the slowest is asked to go. No app
//! takes what is left to others.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{Notify, Semaphore};
use tokio::time::{Instant, timeout_at};

use super::room::SparePages;

/// How long a body waits for its share.
const SHARE_WAIT: Duration = Duration::from_secs(10);

/// While one waits: a body that grows no further in this time, although nothing keeps it from growing, is asked to
/// go. Bodies grow by 1 MiB, so this is 256 KiB a second.
const SLOW_AFTER: Duration = Duration::from_secs(4);

/// Most bodies that wait for their share; one more is refused at once.
const WAITING_MAX: usize = 512;

#[derive(Clone, Debug)]
pub struct BodyBudget(Arc<SharedBudget>);

#[derive(Debug)]
struct SharedBudget {
    state: Mutex<Allotments>,
    spare_pages: SparePages,
    changed: Notify,
    /// Room among those that wait: each change wakes all of them, and each may hold a few KiB beside the budget.
    waiting: Semaphore,
}

#[derive(Debug)]
struct Allotments {
    free: usize,
    /// Held by bodies that came whole: given back when their requests end.
    whole: usize,
    /// Held by the bodies of each app, whole or not.
    by_app: HashMap<Arc<str>, usize>,
    /// Bodies that are being read, by age.
    growing: BTreeMap<u64, GrowingBody>,
    next: u64,
}

#[derive(Debug)]
struct GrowingBody {
    app: Arc<str>,
    /// The most that all bodies of its app may hold.
    of_app: usize,
    held: usize,
    /// The most it may come to hold.
    most: usize,
    does: Does,
    asked_to_go: Arc<Notify>,
}

/// What a body that is being read is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Does {
    /// It fills what it was given then.
    Fills(Instant),
    Waits(Short),
    /// It was asked to go, and has not gone yet.
    Goes,
}

/// What there is too little of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Short {
    /// Of what its app may have.
    OfApp,
    OfAll,
}

/// What one body has of the budget; given back when it is dropped.
#[derive(Debug)]
pub struct BudgetShare {
    budget: BodyBudget,
    app: Arc<str>,
    ticket: u64,
    bytes: usize,
    is_whole: bool,
    asked_to_go: Arc<Notify>,
}

/// Why a body grows no further.
#[derive(Debug, PartialEq, Eq)]
pub enum NoShare {
    /// There was no share within the time that one waits.
    InTime,
    /// Others need what it holds, and it came slowest.
    AskedToGo,
}

/// What a body is not given now.
enum NotGiven {
    /// It is looked again at this time at the latest.
    Yet(Option<Instant>),
    /// It was asked to go.
    Ever,
}

// === impl BodyBudget ===

impl BodyBudget {
    pub fn new(bytes: usize) -> Self {
        Self(Arc::new(SharedBudget {
            state: Mutex::new(Allotments {
                free: bytes,
                whole: 0,
                by_app: HashMap::new(),
                growing: BTreeMap::new(),
                next: 0,
            }),
            spare_pages: SparePages::default(),
            changed: Notify::new(),
            waiting: Semaphore::new(WAITING_MAX),
        }))
    }

    /// What is left of it, in bytes.
    pub fn free(&self) -> usize {
        self.0.state.lock().free
    }

    /// Pages of bodies that have gone.
    pub fn spare_pages(&self) -> &SparePages {
        &self.0.spare_pages
    }

    /// A share for what is there already, beside the body that it was made of: at once, or not at all.
    pub fn share_of(&self, app: &Arc<str>, of_app: usize, bytes: usize) -> Option<BudgetShare> {
        let mut state = self.0.state.lock();
        let held = state.by_app.get(app).copied().unwrap_or(0);
        if held.saturating_add(bytes) > of_app {
            return None;
        }
        state.free = state.free.checked_sub(bytes)?;
        state.whole = state.whole.saturating_add(bytes);
        state
            .by_app
            .insert(Arc::clone(app), held.saturating_add(bytes));
        let ticket = state.next;
        state.next = ticket.saturating_add(1);
        Some(BudgetShare {
            budget: self.clone(),
            app: Arc::clone(app),
            ticket,
            bytes,
            is_whole: true,
            asked_to_go: Arc::default(),
        })
    }

    /// The share of a body of at most `most` bytes, nothing yet. `of_app`: what all bodies of its app may
    /// have together.
    pub fn share(&self, app: &Arc<str>, of_app: usize, most: usize) -> BudgetShare {
        let mut state = self.0.state.lock();
        let ticket = state.next;
        state.next = state.next.wrapping_add(1);
        let asked_to_go = Arc::new(Notify::new());
        let growing = GrowingBody {
            app: Arc::clone(app),
            of_app,
            held: 0,
            most,
            does: Does::Fills(Instant::now()),
            asked_to_go: Arc::clone(&asked_to_go),
        };
        state.growing.insert(ticket, growing);
        BudgetShare {
            budget: self.clone(),
            app: Arc::clone(app),
            ticket,
            bytes: 0,
            is_whole: false,
            asked_to_go,
        }
    }
}

// === impl Allotments ===

impl Allotments {
    /// Gives `more` bytes to a body that is being read, if that leaves a way for all; else makes room, and
    /// says when to look again at the latest.
    fn give(&mut self, ticket: u64, more: usize, now: Instant) -> Result<(), NotGiven> {
        let short = self.short_after(ticket, more);
        let Some(growing) = self.growing.get_mut(&ticket) else {
            return Err(NotGiven::Ever);
        };
        // The body for which it was asked waits for it to go.
        if growing.does == Does::Goes {
            return Err(NotGiven::Ever);
        }
        if let Some(short) = short {
            growing.does = Does::Waits(short);
            let app = Arc::clone(&growing.app);
            return Err(NotGiven::Yet(self.make_room(short, &app, now)));
        }
        growing.does = Does::Fills(now);
        growing.held = growing.held.saturating_add(more);
        let of_app = self.by_app.entry(Arc::clone(&growing.app)).or_default();
        *of_app = of_app.saturating_add(more);
        self.free = self.free.saturating_sub(more);
        Ok(())
    }

    /// What there would be too little of.
    fn short_after(&self, ticket: u64, more: usize) -> Option<Short> {
        let own = self.growing.get(&ticket)?;
        let of_app = self.by_app.get(&own.app).copied().unwrap_or(0);
        if of_app.saturating_add(more) > own.of_app {
            return Some(Short::OfApp);
        }
        let Some(left) = self.free.checked_sub(more) else {
            return Some(Short::OfAll);
        };
        let of_its_app = self.growing.values().filter(|body| body.app == own.app);
        let held: usize = of_its_app.map(|body| body.held).sum();
        let mut reach_of_app = own.of_app.saturating_sub(held.saturating_add(more));
        let mut reach = left.saturating_add(self.whole);
        let mut is_eldest = true;
        for (of, growing) in &self.growing {
            let given = if *of == ticket { more } else { 0 };
            let held = growing.held.saturating_add(given);
            let rest = growing.most.saturating_sub(held);
            let is_of_app = growing.app == own.app;
            if is_of_app && rest > reach_of_app {
                return Some(Short::OfApp);
            }
            // The eldest's rest is kept free; a waiting body is served before one that came later.
            let is_elder = *of < ticket;
            match growing.does {
                Does::Waits(Short::OfApp) if is_elder && is_of_app => return Some(Short::OfApp),
                Does::Waits(Short::OfAll) if is_elder => return Some(Short::OfAll),
                _ if rest > reach => return Some(Short::OfAll),
                // It would not be given what is kept free.
                Does::Waits(Short::OfApp) => {}
                _ if is_eldest && is_elder && rest > left => return Some(Short::OfAll),
                _ => is_eldest = false,
            }
            reach = reach.saturating_add(held);
            if is_of_app {
                reach_of_app = reach_of_app.saturating_add(held);
            }
        }
        None
    }

    /// Asks the body to go that has filled for longest what it was given, one at a time; or says when there
    /// is one to ask.
    fn make_room(&mut self, short: Short, app: &Arc<str>, now: Instant) -> Option<Instant> {
        let mut slowest: Option<(Instant, &mut GrowingBody)> = None;
        for growing in self.growing.values_mut() {
            match growing.does {
                Does::Goes => return None,
                Does::Fills(since)
                    if growing.held > 0
                        && (short == Short::OfAll || growing.app == *app)
                        && slowest.as_ref().is_none_or(|(known, _)| since < *known) =>
                {
                    slowest = Some((since, growing));
                }
                Does::Fills(_) | Does::Waits(_) => {}
            }
        }
        let (since, growing) = slowest?;
        let slow_at = since + SLOW_AFTER;
        if now < slow_at {
            return Some(slow_at);
        }
        growing.does = Does::Goes;
        growing.asked_to_go.notify_one();
        None
    }

    fn take_from_app(&mut self, app: &Arc<str>, bytes: usize) {
        if let Some(of_app) = self.by_app.get_mut(app) {
            *of_app = of_app.saturating_sub(bytes);
            if *of_app == 0 {
                self.by_app.remove(app);
            }
        }
    }
}

// === impl BudgetShare ===

impl BudgetShare {
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Takes `more` bytes of the budget, after a wait if it has to be.
    pub async fn grow(&mut self, more: usize) -> Result<(), NoShare> {
        let until = Instant::now() + SHARE_WAIT;
        let mut waiting = None;
        loop {
            let mut changed = std::pin::pin!(self.budget.0.changed.notified());
            // From here on, so that a change behind the look is not missed.
            changed.as_mut().enable();
            let now = Instant::now();
            let given = self.budget.0.state.lock().give(self.ticket, more, now);
            match given {
                Ok(()) => {
                    self.bytes = self.bytes.saturating_add(more);
                    return Ok(());
                }
                Err(NotGiven::Ever) => return Err(NoShare::AskedToGo),
                Err(NotGiven::Yet(_)) if now >= until => return Err(NoShare::InTime),
                // Over, it is looked once more. A waiting body is not asked to go.
                Err(NotGiven::Yet(again)) => {
                    if waiting.is_none() {
                        let entered = self.budget.0.waiting.try_acquire();
                        waiting = Some(entered.map_err(|_| NoShare::InTime)?);
                    }
                    let again = again.map_or(until, |again| again.min(until));
                    timeout_at(again, changed).await.ok();
                }
            }
        }
    }

    /// Resolves when others need what this body holds, and it came slowest.
    pub async fn asked_to_go(&self) {
        self.asked_to_go.notified().await;
    }

    /// The body came whole: it grows no more.
    pub fn is_complete(&mut self) {
        let mut state = self.budget.0.state.lock();
        state.growing.remove(&self.ticket);
        state.whole = state.whole.saturating_add(self.bytes);
        self.is_whole = true;
        drop(state);
        self.budget.0.changed.notify_waiters();
    }
}

impl Drop for BudgetShare {
    fn drop(&mut self) {
        let mut state = self.budget.0.state.lock();
        state.growing.remove(&self.ticket);
        state.free = state.free.saturating_add(self.bytes);
        state.take_from_app(&self.app, self.bytes);
        if self.is_whole {
            state.whole = state.whole.saturating_sub(self.bytes);
        }
        drop(state);
        self.budget.0.changed.notify_waiters();
    }
}

#[cfg(test)]
mod tests;
