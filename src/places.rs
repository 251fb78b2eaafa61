//! Places for connections: a bounded number of them, so that a flood takes neither descriptors nor memory
//! without end. Both listeners have them.
//!
//! Why: over loopback all programs look like one client. Who holds a connection and asks for nothing costs
//! it nothing to hold all of them.
//!
//! Promise: a connection that rests gives its place to one that comes, in the order of [`Rest`], and among
//! equals the one that rests for longest; one whose request came whole keeps its own until it is answered.
//! Who comes in by a port takes no room that is the Unix sockets' own, and the other way round.

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

/// What a connection is about whose place may be given away, in the order in which they give way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rest {
    /// It has said nothing yet.
    Silent,
    /// It was answered, and what it still sends is thrown away.
    Leaving,
    /// A head began.
    Begun,
    /// A head came, and its body has not come whole.
    Asking,
    /// It was answered, and may ask again.
    Idle,
}

/// The places of one listener.
#[derive(Clone, Debug)]
pub struct Places(Arc<Shared>);

/// One of them, until it is dropped.
#[derive(Debug)]
pub struct Place {
    shared: Arc<Shared>,
    ticket: u64,
    given_away: Arc<Notify>,
}

#[derive(Debug)]
struct Shared {
    of_one_door: usize,
    all: usize,
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct State {
    holders: BTreeMap<u64, Holder>,
    next: u64,
}

/// A connection that has a place.
struct Holder {
    door: Door,
    doing: Doing,
    /// Whether bytes of it wait to be read: then it does not rest, only nobody has looked yet.
    speaks: Box<dyn Fn() -> bool + Send + Sync>,
    given_away: Arc<Notify>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Doing {
    /// It gives way from this moment on.
    Rests(Rest, Instant),
    Serves,
}

/// There is no place now.
enum Full {
    /// One will give way then, unless it goes on.
    Until(Instant),
    /// All are being served.
    Busy,
}

// === impl Places ===

impl Places {
    /// `of_one_door`: that come in by ports, and as many by Unix sockets; what is between that and `all`
    /// is the other one's own.
    pub fn new(of_one_door: usize, all: usize) -> Self {
        Self(Arc::new(Shared {
            of_one_door,
            all,
            state: Mutex::default(),
            changed: Notify::new(),
        }))
    }

    /// A place for a connection that is silent so far, and gives way from now on. `None`: no other
    /// gives way. `speaks`: whether bytes of it wait to be read.
    pub fn take(
        &self,
        door: Door,
        speaks: impl Fn() -> bool + Send + Sync + 'static,
    ) -> Option<Place> {
        self.look(door, Duration::ZERO, Box::new(speaks)).ok()
    }

    /// The same after a wait, if it has to be. It keeps its place for `patience` at least.
    pub async fn wait(&self, door: Door, patience: Duration) -> Place {
        loop {
            let mut changed = std::pin::pin!(self.0.changed.notified());
            // From here on, so that a change behind the look is not missed.
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
            // Where the door itself is not full, the other has more than its own room.
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

// === impl State ===

impl State {
    /// Takes a place from who rests, of one door or of any.
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
    /// The connection has sent no whole request, and gives way after `patience`.
    pub fn rests(&self, rest: Rest, patience: Duration) {
        self.becomes(Doing::Rests(rest, Instant::now() + patience));
        self.shared.changed.notify_waiters();
    }

    /// The connection's request came whole, and is served from now on. False: its place is another's already,
    /// and nothing of the request may be done.
    #[must_use]
    pub fn serves(&self) -> bool {
        self.becomes(Doing::Serves)
    }

    /// Resolves when the place is another's, and the connection has to end.
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
