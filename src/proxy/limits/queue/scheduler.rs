//! Which request may go to the service now: the line, the rate and the limits together. No time of its own, no
//! task, no lock: the caller passes the time and carries out what is decided.
//!
//! Promise: pure. What the property tests hold of it holds on the wire.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use super::adaptive_limits::{AdaptiveLimits, Busy};
use super::line::{Priority, RoundRobin, Ticket, TicketNo};
use super::rate_window::RateWindow;
use crate::ceilings::{Ceilings, Demand};
use crate::config::Shaping;

/// The number of a place in flight.
pub type SlotNo = u64;

/// What becomes of a request that comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entered {
    Goes(SlotNo),
    Waits(TicketNo),
    /// The minute has no place for it within its time, but at this moment.
    TooLate(Duration),
    /// The line is full, and this app has its share of it.
    Full,
    /// bursar is stopping.
    Closed,
}

/// A request that is let go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Granted {
    pub ticket: TicketNo,
    pub slot: SlotNo,
}

/// What is to be carried out.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Due {
    pub granted: Vec<Granted>,
    /// Drains that are to end, because requests wait for their places.
    pub displaced: Vec<SlotNo>,
}

/// A place in flight.
#[derive(Clone, Copy, Debug)]
struct Held {
    let_go: Duration,
    stage: Stage,
}

/// How far the request of a place is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Nothing was sent.
    Granted,
    Sending,
    Arrived,
}

/// A request ahead that gives up no earlier than so long before another's own time is up, makes no place
/// for it.
const LAST_MOMENT: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub struct Scheduler {
    line: RoundRobin,
    pace: RateWindow,
    ceilings: AdaptiveLimits,
    queue_max: usize,
    held: HashMap<SlotNo, Held>,
    /// Streams that are read without a reader, oldest first.
    drains: VecDeque<SlotNo>,
    /// Drains that were asked to end and have not.
    ending: BTreeSet<SlotNo>,
    next_no: u64,
    closed: bool,
}

// === impl Scheduler ===

impl Scheduler {
    pub fn new(config: &Shaping) -> Self {
        Self {
            line: RoundRobin::default(),
            pace: RateWindow::default(),
            ceilings: AdaptiveLimits::new(config),
            queue_max: config.queue_max,
            held: HashMap::new(),
            drains: VecDeque::new(),
            ending: BTreeSet::new(),
            next_no: 0,
            closed: false,
        }
    }

    pub fn reconfigure(&mut self, config: &Shaping) {
        self.ceilings.reconfigure(config);
        self.queue_max = config.queue_max;
    }

    pub fn demand(&mut self, now: Duration) -> Demand {
        Demand {
            ceilings: self.ceilings.configured(),
            limits: self.ceilings.now(),
            in_flight: self.held.len(),
            sent: self.pace.count(now),
            waiting_for_place: if self.has_place() { 0 } else { self.line.len() },
            waiting_for_time: if self.is_minute_full(now) {
                self.line.len()
            } else {
                0
            },
        }
    }

    /// What other machines leave of the ceilings, until a time.
    pub fn share(&mut self, share: Ceilings, until: Duration) {
        self.ceilings.share(share, until);
    }

    /// No new request waits from now on; one that can go at once still does.
    pub fn close(&mut self) {
        self.closed = true;
        self.line = RoundRobin::default();
    }

    /// A request comes. The second value is the ticket that has to make room for it.
    pub fn enter(
        &mut self,
        now: Duration,
        app: &Arc<str>,
        turn: Priority,
        deadline: Duration,
    ) -> (Entered, Option<TicketNo>) {
        self.ceilings.forget_old(now);
        if self.line.is_empty() && self.may_go(now) {
            return (Entered::Goes(self.hold(now)), None);
        }
        if self.closed {
            return (Entered::Closed, None);
        }
        if let Some(at) = self.comes_too_late(now, app, turn, deadline) {
            return (Entered::TooLate(at), None);
        }
        let mut gone = None;
        // A retry is not turned away for a line that filled while it was being tried.
        if turn == Priority::First && self.line.len() >= self.queue_max {
            gone = self.line.make_room(app);
            if gone.is_none() {
                return (Entered::Full, None);
            }
        }
        let no = self.number();
        self.line.push(app, turn, Ticket { no, deadline });
        (Entered::Waits(no), gone)
    }

    /// The minute's window alone says when a request that comes now could go, at the earliest: with the
    /// highest limit that there can be, no wait for a place, and those ahead of it going as soon as they
    /// may. `None`: that is in time. How long answers take is not asked.
    fn comes_too_late(
        &mut self,
        now: Duration,
        app: &Arc<str>,
        turn: Priority,
        deadline: Duration,
    ) -> Option<Duration> {
        let limit = self.ceilings.configured().per_minute?;
        // A request that gives up before leaves its place in the window.
        let stays = |ticket: &Ticket| ticket.deadline.saturating_add(LAST_MOMENT) > deadline;
        let ahead = self.line.ahead(app, turn, stays);
        let at = self.pace.earliest(now, limit, ahead);
        (at > deadline).then_some(at)
    }

    /// Lets all requests go that may, and asks drains to end where that is what is waited for.
    pub fn due(&mut self, now: Duration) -> Due {
        self.ceilings.forget_old(now);
        let mut due = Due::default();
        while self.may_go(now) {
            let Some(ticket) = self.line.pop() else {
                break;
            };
            let slot = self.hold(now);
            due.granted.push(Granted {
                ticket: ticket.no,
                slot,
            });
        }
        while self.line.len() > self.ending.len() && self.only_places_lack(now) {
            let Some(slot) = self.drains.pop_front() else {
                break;
            };
            self.ending.insert(slot);
            due.displaced.push(slot);
        }
        due
    }

    /// Takes out those whose time is up.
    pub fn expired(&mut self, now: Duration) -> Vec<TicketNo> {
        let mut expired = Vec::new();
        self.line.remove(|ticket| {
            let is_over = ticket.deadline <= now;
            if is_over {
                expired.push(ticket.no);
            }
            is_over
        });
        expired
    }

    /// A waiting request has left.
    pub fn leave(&mut self, ticket: TicketNo) {
        self.line.remove(|held| held.no == ticket);
    }

    /// The bytes of this place's request are about to leave.
    pub fn sends(&mut self, slot: SlotNo, now: Duration) {
        if let Some(held) = self.held.get_mut(&slot)
            && held.stage == Stage::Granted
        {
            held.stage = Stage::Sending;
            held.let_go = now;
        }
    }

    /// The service has had the request by now.
    pub fn arrived(&mut self, slot: SlotNo, now: Duration) {
        if let Some(held) = self.held.get_mut(&slot)
            && held.stage != Stage::Arrived
        {
            held.stage = Stage::Arrived;
            self.pace.arrived(now, self.ceilings.per_minute());
        }
    }

    /// The service never had the request.
    pub fn not_sent(&mut self, slot: SlotNo) {
        if let Some(held) = self.held.get_mut(&slot)
            && held.stage == Stage::Sending
        {
            held.stage = Stage::Granted;
        }
    }

    /// The service answered 429.
    pub fn busy(&mut self, slot: SlotNo, now: Duration, busy: Busy) {
        let Some(held) = self.held.get(&slot).copied() else {
            return;
        };
        let sent = self.pace.count(now);
        self.ceilings
            .busy(now, held.let_go, self.held.len(), sent, busy);
    }

    /// The service began to answer as it should.
    pub fn served(&mut self, now: Duration) {
        self.ceilings.served(now);
    }

    /// The stream of this place is read without a reader.
    pub fn drains(&mut self, slot: SlotNo) {
        if self.held.contains_key(&slot) && !self.drains.contains(&slot) {
            self.drains.push_back(slot);
        }
    }

    /// An app reads the stream again.
    pub fn drains_no_more(&mut self, slot: SlotNo) {
        self.drains.retain(|drain| *drain != slot);
        self.ending.remove(&slot);
    }

    /// The place is free.
    pub fn end(&mut self, slot: SlotNo, now: Duration) {
        self.drains_no_more(slot);
        match self.held.remove(&slot).map(|held| held.stage) {
            Some(Stage::Granted) => self.pace.taken_back(),
            Some(Stage::Sending) => self.pace.arrived(now, self.ceilings.per_minute()),
            Some(Stage::Arrived) | None => {}
        }
    }

    /// When there is something to do by time alone.
    pub fn next_at(&mut self, now: Duration) -> Option<Duration> {
        let deadline = self.line.earliest_deadline()?;
        Some(self.opens_at(now).map_or(deadline, |at| at.min(deadline)))
    }

    /// When time alone lets the next one go; `None` where it takes a free place.
    pub fn opens_at(&mut self, now: Duration) -> Option<Duration> {
        let pause = self.ceilings.pause(now);
        let limit = self.ceilings.per_minute();
        let rate = limit.and_then(|limit| self.pace.next_at(now, limit));
        pause.max(rate)
    }

    pub fn waiting(&self) -> usize {
        self.line.len()
    }

    pub fn in_flight(&self) -> usize {
        self.held.len()
    }

    pub fn ceilings(&self) -> &AdaptiveLimits {
        &self.ceilings
    }

    fn may_go(&mut self, now: Duration) -> bool {
        self.has_place() && self.has_time(now)
    }

    fn has_place(&self) -> bool {
        !self.is_full() && self.is_below_share(self.drains.len() + self.ending.len())
    }

    fn is_full(&self) -> bool {
        let limit = self.ceilings.own_in_flight();
        limit.is_some_and(|limit| self.held.len() >= limit)
    }

    /// Whether what other machines leave has room, where `unread` streams without a reader do not count: none is given up
    /// for other machines, and no request waits for its end while this machine's own limit has room.
    fn is_below_share(&self, unread: usize) -> bool {
        let limit = self.ceilings.in_flight();
        limit.is_none_or(|limit| self.held.len().saturating_sub(unread) < limit)
    }

    fn has_time(&mut self, now: Duration) -> bool {
        self.ceilings.pause(now).is_none() && !self.is_minute_full(now)
    }

    fn is_minute_full(&mut self, now: Duration) -> bool {
        let limit = self.ceilings.per_minute();
        limit.is_some_and(|limit| self.pace.count(now) >= limit)
    }

    /// Another stream that ends would let a request go.
    fn only_places_lack(&mut self, now: Duration) -> bool {
        self.is_full() && self.is_below_share(self.drains.len()) && self.has_time(now)
    }

    fn hold(&mut self, now: Duration) -> SlotNo {
        let slot = self.number();
        self.pace.let_go();
        let stage = Stage::Granted;
        let let_go = now;
        self.held.insert(slot, Held { let_go, stage });
        slot
    }

    fn number(&mut self) -> u64 {
        self.next_no += 1;
        self.next_no
    }
}
