//! What holds after each step of a world, and when all is well again.

use super::*;

impl World {
    pub fn check(&self) {
        self.check_books();
        (0..self.holders.len()).for_each(|at| self.check_holder(at));
    }

    /// What the service billed is within the bound.
    pub fn check_books(&self) {
        let holders = u64::try_from(self.holders.len()).unwrap();
        for (of, billed) in &self.books {
            let terms = self
                .database
                .caps
                .iter()
                .find(|terms| terms.name == of.0)
                .unwrap();
            let forgotten = self.forgotten.get(of).copied().unwrap_or(0);
            let late = self.late.get(of).copied().unwrap_or(0);
            let bound = terms.limit + forgotten + late + holders * self.dearest_request();
            assert!(
                *billed <= bound,
                "{of:?}: {billed} of {} + {forgotten} + {late}, {holders} holders, at most {} a request",
                terms.limit,
                self.dearest_request()
            );
        }
    }

    /// One whose price came late may cost what was held for it, which rises with such prices.
    fn dearest_request(&self) -> u64 {
        self.dearest.max(self.dearest_late)
    }

    /// What a bursar counts and holds is what its disk and the database have.
    pub fn check_holder(&self, at: usize) {
        let holder = &self.holders[at];
        let counts = holder.engine.counts();
        for slice in holder.engine.shared.slices() {
            let counted = counts.of_lease(slice.lease);
            let named = |leases: &Leases| leases.contains(slice.lease);
            let unwritten = holder.unwritten.iter().map(|(charged, _)| charged);
            let written = holder.journal.iter().chain(unwritten);
            let mut known = Charge::default();
            let written = written.filter(|charged| named(&charged.leases));
            written.for_each(|charged| known += charged.charge);
            assert_eq!(counted, known, "holder {at}: an entry counts once");
            let under = holder.flying.iter().filter(|flying| named(&flying.leases));
            let reserved: u64 = under.map(|flying| flying.reserved).sum();
            let limit = u128::from(slice.limit().get());
            // Without what is held: a kill that takes away what an end said leaves the estimate in its place.
            let beyond = counted.billed.get() + u128::from(reserved);
            let late = self.late.get(&self.windows[&slice.lease]);
            let over = self.dearest_request() + late.copied().unwrap_or(0);
            assert!(
                beyond <= limit + u128::from(over) || self.was_restored(),
                "holder {at}: {beyond} of {limit}"
            );
            let row = self.database.leases.get(&slice.lease.0);
            let has = row.map_or(0, |row| row.granted - row.given_back);
            assert!(
                limit <= u128::from(has) || self.was_restored(),
                "holder {at} has {limit}, and the database {has}"
            );
        }
    }

    /// A lease on which its holder has spent is one that the database knows, also where it had forgotten it.
    ///
    /// Without prices that came late: a lease that went back whole before them is not put back. Without caps that had another
    /// period when the backup was made: a lease of no window of the cap is not put back either.
    fn check_known(&self) {
        if self.was_restored() && self.was_changed() {
            return;
        }
        for (at, holder) in self.holders.iter().enumerate() {
            let spent = holder
                .journal
                .iter()
                .filter(|charged| charged.requests > 0 && charged.charge.billed.get() > 0);
            for lease in spent.flat_map(|charged| charged.leases.iter()) {
                let (cap, since_ms, until_ms) = &self.windows[&lease];
                let window = Window {
                    since_ms: *since_ms,
                    until_ms: *until_ms,
                };
                if holder.is_gone || !self.is_live(window) {
                    continue;
                }
                let row = self.database.leases.get(&lease.0);
                assert!(
                    row.is_some_and(|row| row.ledger == at),
                    "holder {at} spent of {lease:?} of {cap}: {row:?}"
                );
            }
        }
    }

    /// It was that when each bursar was heard last.
    fn is_live(&self, window: Window) -> bool {
        window.until_ms > self.now_ms + 4 * MINUTE
    }

    /// All is well again: everything is counted once, and what nobody needs comes back.
    pub fn heal(&mut self) {
        self.is_faulty = false;
        for at in 0..self.holders.len() {
            while !self.holders[at].flying.is_empty() {
                self.end(at);
            }
            let waiting: Vec<EntryId> = self.holders[at].ways.iter().map(|(id, _)| *id).collect();
            for entry in waiting {
                let holder = &mut self.holders[at];
                let wall_ms = holder.wall_ms(self.now_ms);
                let gone = holder.engine.give_up(entry, wall_ms).send();
                assert!(gone.is_empty());
            }
            self.holders[at].ways.clear();
            self.write(at);
        }
        for _ in 0..3 {
            for at in 0..self.holders.len() {
                if self.holders[at].is_gone {
                    continue;
                }
                while !self.holders[at].flying.is_empty() {
                    self.end(at);
                }
                self.write(at);
                self.visit(at, true, Round::Whole);
                self.check_books();
                self.check_holder(at);
            }
            self.check();
            self.database.resume();
            self.now_ms += 2 * MINUTE;
        }
        self.check_known();
        let mut billed: BTreeMap<LeaseId, u128> = BTreeMap::new();
        let mut held: BTreeMap<LeaseId, u128> = BTreeMap::new();
        for (at, holder) in self.holders.iter().enumerate() {
            if holder.is_gone {
                // What it has not shipped nobody will know.
                for charged in holder.journal.iter().take(self.database.mark(at)) {
                    for lease in charged.leases.iter() {
                        *billed.entry(lease).or_default() += charged.charge.billed.get();
                    }
                }
                continue;
            }
            for lease in holder
                .journal
                .iter()
                .flat_map(|charged| charged.leases.iter())
            {
                let charge = holder.engine.counts().of_lease(lease);
                billed.insert(lease, charge.billed.get());
                held.insert(lease, charge.held.now());
            }
        }
        for (id, row) in &self.database.leases {
            let of = |sums: &BTreeMap<LeaseId, u128>| sums.get(&LeaseId(*id)).copied().unwrap_or(0);
            let has = u128::from(row.billed);
            assert_eq!(has, of(&billed), "each line counts once: {row:?}");
            let is_live = self.is_live(row.window);
            let is_there = !self.holders[row.ledger].is_gone;
            if row.cap == TEAM && is_live && is_there && !self.was_restored() {
                let open = u128::from(row.open());
                assert!(open <= of(&held), "{open} was left behind: {row:?}");
            }
        }
    }
}
