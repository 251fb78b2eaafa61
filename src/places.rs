//! A bounded number of places for connections, so that a flood cannot take descriptors or memory without
//! limit. Both listeners use them.
//!
//! Why: over loopback all programs look like one client, and holding idle connections costs a program
//! nothing, so one program could hold all of them.
//!
//! Promise: an idle connection gives its place to a new one, in the order of [`Rest`], and among equals
//! the one that has been idle for longest goes first. A connection whose request came whole keeps its
//! place until it is answered. Connections by ports take no room reserved for Unix sockets, and the other
//! way round.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

/// By what a connection came in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Door {
    Port,
    Socket,
}

/// What an idle connection is waiting for, in the order in which connections give up their places.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rest {
    /// It has sent nothing yet.
    Silent,
    /// It was answered, and what it still sends is thrown away.
    Leaving,
    /// A head began.
    Begun,
    /// A head came, and its body is not complete.
    Asking,
    /// It was answered, and may ask again.
    Idle,
}

/// What comes with a place of each kind of memory: for a head, a small body, what came behind a request, an answer
/// that is gathered. What takes more draws on a budget that all share.
pub const PLACE_BYTES: usize = 8 * 1024;

/// The places of one listener.
#[derive(Clone, Debug)]
pub struct Places(Arc<DoorPlaces>);

/// One of them, until it is dropped.
#[derive(Debug)]
pub struct Place {
    shared: Arc<DoorPlaces>,
    ticket: u64,
    holder: Arc<Holder>,
}

#[derive(Debug)]
struct DoorPlaces {
    of_one_door: usize,
    all: usize,
    state: Mutex<Holders>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct Holders {
    holders: BTreeMap<u64, Arc<Holder>>,
    /// Of them, those that came by a port.
    by_port: usize,
    next: u64,
}

/// A connection that has a place. What it is doing changes several times with each request, so that is its own:
/// only a connection that finds no place looks at the others.
struct Holder {
    door: Door,
    doing: Mutex<Doing>,
    /// Whether bytes of it wait to be read: then it is not idle, its bytes are only unread so far.
    speaks: Box<dyn Fn() -> bool + Send + Sync>,
    given_away: Notify,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Doing {
    /// From this moment on it gives up its place.
    Rests(Rest, Instant),
    Serves,
    /// Its place is another's.
    HasGone,
}

/// There is no place now.
enum Full {
    /// A connection will give up its place at this time, unless it becomes active.
    Until(Instant),
    /// All are being served.
    Busy,
}

// === impl Places ===

impl Places {
    /// `of_one_door`: how many may come in by ports, and as many by Unix sockets. The difference between
    /// that and `all` is reserved for the other door.
    pub fn new(of_one_door: usize, all: usize) -> Self {
        Self(Arc::new(DoorPlaces {
            of_one_door,
            all,
            state: Mutex::default(),
            changed: Notify::new(),
        }))
    }

    /// A place for a connection that has sent nothing so far, and that may lose it from now on.
    /// `None`: no other connection gives way. `speaks`: whether bytes of it wait to be read.
    pub fn take(
        &self,
        door: Door,
        speaks: impl Fn() -> bool + Send + Sync + 'static,
    ) -> Option<Place> {
        self.look(door, Duration::ZERO, Box::new(speaks)).ok()
    }

    /// The same, waiting if necessary. The new connection keeps its place for at least `patience`.
    pub async fn wait(&self, door: Door, patience: Duration) -> Place {
        loop {
            let mut changed = std::pin::pin!(self.0.changed.notified());
            // Subscribe before the check, so that a change right after it is not missed.
            changed.as_mut().enable();
            match self.look(door, patience, Box::new(|| false)) {
                Ok(place) => return place,
                Err(Full::Busy) => changed.await,
                Err(Full::Until(ripe)) => tokio::select! {
                    () = changed => {}
                    () = sleep_until(ripe) => {}
                },
            }
        }
    }

    fn look(
        &self,
        door: Door,
        patience: Duration,
        speaks: Box<dyn Fn() -> bool + Send + Sync>,
    ) -> Result<Place, Full> {
        let mut state = self.0.state.lock();
        let now = Instant::now();
        let is_door_full = state.of(door) >= self.0.of_one_door;
        if is_door_full || state.holders.len() >= self.0.all {
            // If this door is not full itself, the other door uses more than its own room.
            state.give_away(is_door_full.then_some(door), now)?;
        }
        let holder = Arc::new(Holder {
            door,
            doing: Mutex::new(Doing::Rests(Rest::Silent, now + patience)),
            speaks,
            given_away: Notify::new(),
        });
        Ok(Place {
            shared: Arc::clone(&self.0),
            ticket: state.add(Arc::clone(&holder)),
            holder,
        })
    }
}

// === impl Holders ===

impl Holders {
    fn of(&self, door: Door) -> usize {
        match door {
            Door::Port => self.by_port,
            Door::Socket => self.holders.len().saturating_sub(self.by_port),
        }
    }

    fn add(&mut self, holder: Arc<Holder>) -> u64 {
        let ticket = self.next;
        self.next = ticket.wrapping_add(1);
        self.by_port += usize::from(holder.door == Door::Port);
        self.holders.insert(ticket, holder);
        ticket
    }

    fn remove(&mut self, ticket: u64) {
        if let Some(holder) = self.holders.remove(&ticket) {
            let by_port = usize::from(holder.door == Door::Port);
            self.by_port = self.by_port.saturating_sub(by_port);
        }
    }

    /// Takes a place from an idle connection, of one door or of any.
    fn give_away(&mut self, of: Option<Door>, now: Instant) -> Result<(), Full> {
        let mut resting = BinaryHeap::new();
        let mut soonest = None;
        for (ticket, holder) in &self.holders {
            if of.is_some_and(|door| door != holder.door) {
                continue;
            }
            match *holder.doing.lock() {
                Doing::Serves | Doing::HasGone => {}
                Doing::Rests(_, from) if from > now => {
                    soonest = Some(soonest.map_or(from, |known: Instant| known.min(from)));
                }
                doing @ Doing::Rests(..) => resting.push(Reverse((doing, *ticket))),
            }
        }
        while let Some(Reverse((doing, ticket))) = resting.pop() {
            let holder = self.holders.get(&ticket);
            if holder.is_some_and(|holder| !(holder.speaks)() && holder.goes(doing)) {
                self.remove(ticket);
                return Ok(());
            }
        }
        Err(soonest.map_or(Full::Busy, Full::Until))
    }
}

// === impl Holder ===

impl Holder {
    /// Gives up its place, if it is doing still what it was seen doing.
    fn goes(&self, seen: Doing) -> bool {
        let mut doing = self.doing.lock();
        let is_as_seen = *doing == seen;
        if is_as_seen {
            *doing = Doing::HasGone;
            self.given_away.notify_one();
        }
        is_as_seen
    }

    /// False: its place is another's.
    fn becomes(&self, next: Doing) -> bool {
        let mut doing = self.doing.lock();
        let is_here = *doing != Doing::HasGone;
        if is_here {
            *doing = next;
        }
        is_here
    }
}

// === impl Place ===

impl Place {
    /// The connection has sent no whole request, and gives up its place after `patience`.
    pub fn rests(&self, rest: Rest, patience: Duration) {
        self.holder
            .becomes(Doing::Rests(rest, Instant::now() + patience));
        self.shared.changed.notify_waiters();
    }

    /// The connection's request came whole and is served from now on. False: the place was given to another
    /// connection already, and nothing of the request may be done.
    #[must_use]
    pub fn serves(&self) -> bool {
        self.holder.becomes(Doing::Serves)
    }

    /// Resolves when the place was given to another connection, so that this one has to end.
    pub async fn given_away(&self) {
        self.holder.given_away.notified().await;
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.shared.state.lock().remove(self.ticket);
        self.shared.changed.notify_waiters();
    }
}

impl std::fmt::Debug for Holder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Holder")
            .field("door", &self.door)
            .field("doing", &self.doing)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
