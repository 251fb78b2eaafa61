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

use std::collections::BTreeMap;
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

/// The places of one listener.
#[derive(Clone, Debug)]
pub struct Places(Arc<DoorPlaces>);

/// One of them, until it is dropped.
#[derive(Debug)]
pub struct Place {
    shared: Arc<DoorPlaces>,
    ticket: u64,
    given_away: Arc<Notify>,
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
    holders: BTreeMap<u64, Holder>,
    next: u64,
}

/// A connection that has a place.
struct Holder {
    door: Door,
    doing: Doing,
    /// Whether bytes of it wait to be read: then it is not idle, its bytes are only unread so far.
    speaks: Box<dyn Fn() -> bool + Send + Sync>,
    given_away: Arc<Notify>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Doing {
    /// From this moment on it gives up its place.
    Rests(Rest, Instant),
    Serves,
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
        let of_this = state.holders.values();
        let of_this = of_this.filter(|holder| holder.door == door).count();
        let is_door_full = of_this >= self.0.of_one_door;
        if is_door_full || state.holders.len() >= self.0.all {
            // If this door is not full itself, the other door uses more than its own room.
            state.give_away(is_door_full.then_some(door), now)?;
        }
        let ticket = state.next;
        state.next = state.next.wrapping_add(1);
        let given_away = Arc::new(Notify::new());
        let holder = Holder {
            door,
            doing: Doing::Rests(Rest::Silent, now + patience),
            speaks,
            given_away: Arc::clone(&given_away),
        };
        state.holders.insert(ticket, holder);
        Ok(Place {
            shared: Arc::clone(&self.0),
            ticket,
            given_away,
        })
    }
}

// === impl Holders ===

impl Holders {
    /// Takes a place from an idle connection, of one door or of any.
    fn give_away(&mut self, of: Option<Door>, now: Instant) -> Result<(), Full> {
        let mut resting: Vec<(Doing, u64)> = Vec::new();
        let mut soonest = None;
        for (ticket, holder) in &self.holders {
            if of.is_some_and(|door| door != holder.door) {
                continue;
            }
            match holder.doing {
                Doing::Serves => {}
                Doing::Rests(_, from) if from > now => {
                    soonest = Some(soonest.map_or(from, |known: Instant| known.min(from)));
                }
                Doing::Rests(..) => resting.push((holder.doing, *ticket)),
            }
        }
        resting.sort_unstable();
        let mut quiet = resting.into_iter().filter(|(_, ticket)| {
            let holder = self.holders.get(ticket);
            holder.is_some_and(|holder| !(holder.speaks)())
        });
        let Some((_, ticket)) = quiet.next() else {
            return Err(soonest.map_or(Full::Busy, Full::Until));
        };
        drop(quiet);
        if let Some(holder) = self.holders.remove(&ticket) {
            holder.given_away.notify_one();
        }
        Ok(())
    }
}

// === impl Place ===

impl Place {
    /// The connection has sent no whole request, and gives up its place after `patience`.
    pub fn rests(&self, rest: Rest, patience: Duration) {
        self.becomes(Doing::Rests(rest, Instant::now() + patience));
        self.shared.changed.notify_waiters();
    }

    /// The connection's request came whole and is served from now on. False: the place was given to another
    /// connection already, and nothing of the request may be done.
    #[must_use]
    pub fn serves(&self) -> bool {
        self.becomes(Doing::Serves)
    }

    /// Resolves when the place was given to another connection, so that this one has to end.
    pub async fn given_away(&self) {
        self.given_away.notified().await;
    }

    fn becomes(&self, doing: Doing) -> bool {
        let mut state = self.shared.state.lock();
        let own = state.holders.get_mut(&self.ticket);
        own.map(|holder| holder.doing = doing).is_some()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.shared.state.lock().holders.remove(&self.ticket);
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
