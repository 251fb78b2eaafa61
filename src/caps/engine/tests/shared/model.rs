//! The database's functions for holders, as `schema.sql` has them, without a database. `tests/it/fleet/likeness.rs` has it
//! beside a real one, so the words that it needs are those of whatever it stands in.

use super::*;

const DAY_MS: u64 = 24 * 60 * 60 * 1000;
const HEARD_MS: u64 = 5 * 60 * 1000;

/// A row of `leases`.
#[derive(Clone, Debug)]
pub struct Row {
    pub ledger: usize,
    pub cap: String,
    pub window: Window,
    pub granted: u64,
    pub given_back: u64,
    number: u32,
    last: Option<(Uuid, u64)>,
    pub billed: u64,
    replaced: bool,
}

/// A row of `ledgers`.
#[derive(Clone, Debug, Default)]
struct Ledger {
    mark: usize,
    mark_stated: usize,
    heard_ms: u64,
    heard_in: u64,
    held_in: Option<u64>,
    machine: u64,
    greeted: u64,
}

/// A cap and what each ledger may have of it.
#[derive(Clone, Debug)]
pub struct Terms {
    pub name: String,
    pub period: Period,
    pub limit: u64,
    pub largest: Option<u64>,
    pub ahead_windows: u32,
    pub ahead: u64,
}

/// What a line of a journal adds to its leases.
#[derive(Clone, Debug)]
pub struct Line {
    pub leases: Vec<LeaseId>,
    pub billed: u64,
}

/// All of it. A clone is a backup.
#[derive(Clone, Debug)]
pub struct Database {
    pub caps: Vec<Terms>,
    pub leases: BTreeMap<Uuid, Row>,
    ledgers: BTreeMap<usize, Ledger>,
    epoch: u64,
    paused_ms: Option<u64>,
    awaited_ms: u64,
    /// Which run of which database it is.
    pub incarnation: u64,
    /// The run in which a ledger was heard last, and when one was heard last before that.
    run: u64,
    heard_before_ms: Option<u64>,
}

// === impl Row ===

impl Row {
    pub fn charged(&self) -> u64 {
        self.billed.max(self.granted - self.given_back)
    }

    pub fn open(&self) -> u64 {
        (self.granted - self.given_back).saturating_sub(self.billed)
    }

    fn overlaps(&self, window: Window) -> bool {
        self.window.since_ms < window.until_ms && self.window.until_ms > window.since_ms
    }

    fn totals(&self) -> LeaseTotals {
        LeaseTotals {
            granted: MicroUsd::new(self.granted),
            given_back: MicroUsd::new(self.given_back),
            give_back_number: self.number,
        }
    }

    fn live(&self, lease: Uuid, now_ms: u64) -> LiveLease {
        LiveLease {
            lease: Lease {
                lease,
                cap: self.cap.clone(),
                window: self.window,
                totals: self.totals(),
            },
            begins_in_ms: self.window.since_ms.saturating_sub(now_ms),
            ends_in_ms: self.window.until_ms.saturating_sub(now_ms),
            billed: MicroUsdSum::from_micro_usd(self.billed.into()),
        }
    }
}

// === impl Database ===

impl Database {
    pub fn new(caps: Vec<Terms>) -> Self {
        Self {
            caps,
            leases: BTreeMap::new(),
            ledgers: BTreeMap::new(),
            epoch: 0,
            paused_ms: None,
            awaited_ms: 0,
            incarnation: 1,
            run: 0,
            heard_before_ms: None,
        }
    }

    pub fn window(&self, cap: &str, now_ms: u64, ahead: u32) -> Window {
        let terms = self.terms(cap).expect("a cap");
        let mut window = Window::of(terms.period, now_ms, &TimeZone::UTC);
        for _ in 0..ahead {
            window = Window::of(terms.period, window.until_ms, &TimeZone::UTC);
        }
        window
    }

    fn terms(&self, cap: &str) -> Option<&Terms> {
        self.caps.iter().find(|terms| terms.name == cap)
    }

    pub fn is_paused(&self, now_ms: u64) -> bool {
        self.paused_ms.is_some_and(|since| since + DAY_MS > now_ms)
    }

    pub fn resume(&mut self) {
        self.paused_ms = None;
    }

    pub fn charged(&self, cap: &str, window: Window) -> u64 {
        let rows = self.leases.values();
        let rows = rows.filter(|row| row.cap == cap && row.overlaps(window));
        rows.map(Row::charged).sum()
    }

    pub fn mark(&self, ledger: usize) -> usize {
        self.ledgers.get(&ledger).map_or(0, |known| known.mark)
    }

    pub fn hello(&mut self, ledger: usize, now_ms: u64) {
        let (epoch, incarnation) = (self.epoch, self.incarnation);
        if self.run != incarnation {
            let before = self.ledgers.values();
            let before = before.filter(|other| ![0, incarnation].contains(&other.heard_in));
            self.heard_before_ms = before.map(|other| other.heard_ms).max();
            self.run = incarnation;
        }
        let is_new = !self.ledgers.contains_key(&ledger);
        let known = self.ledgers.entry(ledger).or_default();
        known.heard_ms = now_ms;
        known.heard_in = incarnation;
        if is_new {
            known.greeted = epoch;
        }
        self.end_pause(now_ms);
    }

    /// Lines that follow the mark.
    pub fn ship(&mut self, ledger: usize, lines: &[Line]) {
        for line in lines {
            for lease in &line.leases {
                let row = self.leases.get_mut(&lease.0);
                if let Some(row) = row.filter(|row| row.ledger == ledger) {
                    row.billed += line.billed;
                }
            }
        }
        self.ledgers.entry(ledger).or_default().mark += lines.len();
    }

    fn end_pause(&mut self, now_ms: u64) {
        let mut others = self.ledgers.values();
        let is_awaited =
            |other: &Ledger| other.greeted < self.epoch && other.heard_ms >= self.awaited_ms;
        if !others.any(is_awaited) || !self.is_paused(now_ms) {
            self.paused_ms = None;
        }
    }

    fn is_forgotten(&self, ledger: usize, stated: &Lease, now_ms: u64) -> bool {
        let is_known = self.leases.get(&stated.lease).is_some_and(|row| {
            row.ledger != ledger
                || (row.granted >= stated.totals.granted.get()
                    && row.number >= stated.totals.give_back_number)
        });
        stated.window.until_ms > now_ms && !is_known
    }

    fn put_back(&mut self, ledger: usize, stated: &Lease, now_ms: u64) {
        let (granted, mut given_back) =
            (stated.totals.granted.get(), stated.totals.given_back.get());
        let Some(terms) = self.terms(&stated.cap).cloned() else {
            return;
        };
        let others = self.leases.iter().filter(|(id, row)| {
            row.ledger == ledger
                && row.cap == stated.cap
                && **id != stated.lease
                && row.overlaps(stated.window)
        });
        let others: u64 = others.map(|(_, row)| row.charged()).sum();
        let ahead = (0..8).find(|ahead| self.window(&stated.cap, now_ms, *ahead) == stated.window);
        let largest = terms.largest.unwrap_or(terms.limit);
        let most = match ahead {
            _ if stated.window.since_ms <= now_ms => largest,
            Some(ahead) if ahead <= terms.ahead_windows => largest.min(terms.ahead),
            _ => 0,
        };
        let most = most.saturating_sub(others);
        if let Some(row) = self.leases.get_mut(&stated.lease) {
            if stated.totals.give_back_number <= row.number {
                given_back = row.given_back;
            }
            let net = granted.max(row.granted).saturating_sub(given_back);
            let net = net.min(most.max(row.granted - row.given_back));
            row.granted = given_back + net;
            row.given_back = given_back;
            row.number = row.number.max(stated.totals.give_back_number);
            return;
        }
        let net = (granted - given_back).min(most);
        if net > 0 && ahead.is_some() {
            for row in self.leases.values_mut() {
                row.replaced |=
                    row.ledger == ledger && row.cap == stated.cap && row.window == stated.window;
            }
            let row = Row {
                ledger,
                cap: stated.cap.clone(),
                window: stated.window,
                granted: given_back + net,
                given_back,
                number: stated.totals.give_back_number,
                last: None,
                billed: 0,
                replaced: false,
            };
            self.leases.insert(stated.lease, row);
        }
    }

    pub fn hold(
        &mut self,
        ledger: usize,
        machine: u64,
        mark: usize,
        stated: &[Lease],
        now_ms: u64,
    ) -> Held {
        let known = self.ledgers.get(&ledger).cloned().unwrap_or_default();
        let mut forgot = mark > known.mark.max(known.mark_stated);
        for lease in stated {
            if self.is_forgotten(ledger, lease, now_ms) {
                forgot = true;
                self.put_back(ledger, lease, now_ms);
            }
        }
        if forgot && self.epoch <= known.greeted {
            let awaited_ms = self.heard_before_ms.unwrap_or(now_ms);
            let awaited_ms = awaited_ms.saturating_sub(DAY_MS);
            self.awaited_ms = match self.is_paused(now_ms) {
                true => awaited_ms.min(self.awaited_ms),
                false => awaited_ms,
            };
            self.epoch += 1;
            self.paused_ms = Some(now_ms);
        }
        let (epoch, incarnation) = (self.epoch, self.incarnation);
        let known = self.ledgers.entry(ledger).or_default();
        known.greeted = epoch;
        known.machine = machine;
        known.held_in = Some(incarnation);
        known.mark_stated = known.mark_stated.max(mark);
        known.heard_ms = now_ms;
        self.end_pause(now_ms);
        let caps = self.caps.iter().map(|terms| {
            let window = self.window(&terms.name, now_ms, 0);
            SharedCap {
                cap: terms.name.clone(),
                period: terms.period,
                zone: "UTC".to_owned(),
                limit: MicroUsd::new(terms.limit),
                charged: MicroUsdSum::from_micro_usd(self.charged(&terms.name, window).into()),
                window,
                largest: terms.largest.map(MicroUsd::new),
                ahead_windows: terms.ahead_windows,
                ahead: MicroUsd::new(terms.ahead),
            }
        });
        Held {
            is_paused: self.is_paused(now_ms),
            caps: caps.collect(),
            leases: self.live(ledger, now_ms),
        }
    }

    /// What a ledger has.
    pub fn live(&self, ledger: usize, now_ms: u64) -> Vec<LiveLease> {
        let live = self.leases.iter().filter(|(_, row)| {
            row.ledger == ledger && row.window.until_ms > now_ms && !row.replaced
        });
        live.map(|(id, row)| row.live(*id, now_ms)).collect()
    }

    /// `fresh`: a name that no lease ever had.
    pub fn lease(
        &mut self,
        ledger: usize,
        machine: u64,
        ask: &LeaseAsk,
        fresh: Uuid,
        now_ms: u64,
    ) -> LeaseAnswer {
        let Some(terms) = self.terms(&ask.cap).cloned() else {
            return LeaseAnswer::NoCap;
        };
        let limit = MicroUsd::new(terms.limit);
        let known = self.ledgers.get(&ledger).cloned().unwrap_or_default();
        if known.machine != machine || known.held_in != Some(self.incarnation) {
            return LeaseAnswer::Elsewhere;
        }
        if ask.ahead > terms.ahead_windows {
            return LeaseAnswer::Share { limit };
        }
        let window = self.window(&ask.cap, now_ms, ask.ahead);
        let found = self.leases.iter().find(|(_, row)| {
            row.ledger == ledger && row.cap == ask.cap && row.window == window && !row.replaced
        });
        let found = found.map(|(id, row)| (*id, row.clone()));
        let left = terms.limit.saturating_sub(self.charged(&ask.cap, window));
        let before = found.as_ref().and_then(|(_, row)| row.last);
        if let Some((_, amount)) = before.filter(|(request, _)| *request == ask.request) {
            let (id, row) = found.expect("a row");
            return granted(row.live(id, now_ms), amount, left, limit);
        }
        if self.is_paused(now_ms) {
            return LeaseAnswer::Paused;
        }
        let of_window = self.leases.values();
        let of_window = of_window.filter(|row| row.cap == ask.cap && row.overlaps(window));
        let of_window: Vec<&Row> = of_window.collect();
        let own = of_window.iter().filter(|row| row.ledger == ledger);
        let own: u64 = own.map(|row| row.charged()).sum();
        let most = match ask.ahead {
            0 => terms.largest,
            _ => Some(terms.ahead.min(terms.largest.unwrap_or(u64::MAX))),
        };
        let room = most.map_or(u64::MAX, |most| most.saturating_sub(own));
        if room == 0 {
            return LeaseAnswer::Share { limit };
        }
        let is_heard = |row: &&&Row| {
            let heard_ms = self
                .ledgers
                .get(&row.ledger)
                .map_or(0, |other| other.heard_ms);
            row.ledger != ledger && heard_ms + HEARD_MS > now_ms
        };
        let others = || of_window.iter().filter(is_heard);
        if left == 0 {
            let may_return = others().any(|row| row.open() > 0 && !row.replaced);
            return LeaseAnswer::Empty { may_return, limit };
        }
        let mut names: Vec<usize> = others().map(|row| row.ledger).collect();
        names.sort_unstable();
        names.dedup();
        let share = left / (u64::try_from(names.len()).expect("few") + 1);
        let mut amount = ask.want.get().min(room).min(share);
        if amount < ask.least.get() {
            amount = ask.least.get().min(left).min(room);
        }
        let (id, mut row) = found.unwrap_or_else(|| {
            let row = Row {
                ledger,
                cap: ask.cap.clone(),
                window,
                granted: 0,
                given_back: 0,
                number: 0,
                last: None,
                billed: 0,
                replaced: false,
            };
            (fresh, row)
        });
        row.granted += amount;
        row.last = Some((ask.request, amount));
        let live = row.live(id, now_ms);
        self.leases.insert(id, row);
        let charged = self.charged(&ask.cap, window);
        assert!(charged <= terms.limit, "{charged} of {}", terms.limit);
        granted(live, amount, left - amount, limit)
    }

    pub fn give_back(&mut self, ledger: usize, part: &GiveBack) -> GiveBackAnswer {
        let mark = self.mark(ledger);
        let row = self.leases.get_mut(&part.lease);
        let Some(row) = row.filter(|row| row.ledger == ledger && !row.replaced) else {
            return GiveBackAnswer::Unknown;
        };
        if part.number <= row.number {
            return GiveBackAnswer::Known(row.totals());
        }
        if u64::try_from(mark).expect("few") < part.up_to_seq {
            return GiveBackAnswer::Behind;
        }
        if part.number > row.number + 1 || part.amount.get() > row.open() {
            return GiveBackAnswer::TooMuch(row.totals());
        }
        row.given_back += part.amount.get();
        row.number = part.number;
        GiveBackAnswer::Taken(row.totals())
    }
}

fn granted(lease: LiveLease, amount: u64, left: u64, limit: MicroUsd) -> LeaseAnswer {
    LeaseAnswer::Granted(Grant {
        lease,
        amount: MicroUsd::new(amount),
        left: MicroUsd::new(left),
        limit,
    })
}
