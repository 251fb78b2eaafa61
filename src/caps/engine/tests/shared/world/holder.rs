//! One bursar of a world: what is on its disk, and what a kill takes away.

use super::*;

/// A generator of one run's choices.
pub struct Chance(pub u64);

/// A request under way.
pub struct Flying {
    pub entry: EntryId,
    pub leases: Leases,
    pub reserved: u64,
    pub at_ms: u64,
    pub price: u64,
}

/// An entry whose price is not known to its ledger.
pub struct Doubt {
    pub entry: EntryId,
    pub leases: Leases,
    pub held: u64,
    pub at_ms: u64,
    pub price: u64,
    /// Its end said the price, and was lost: no evidence says another.
    pub was_known: bool,
}

/// One bursar: what is on its disk, and what a kill takes away.
pub struct Holder {
    pub engine: Engine,
    pub ways: Vec<(EntryId, oneshot::Receiver<Decision>)>,
    pub flying: Vec<Flying>,
    /// Ends that the ledger could not write yet.
    pub unwritten: Vec<(Charged, Flying)>,
    pub journal: Vec<Charged>,
    pub doubts: Vec<Doubt>,
    pub file: (Vec<Slice>, u64),
    pub machine: u64,
    pub booted_ms: u64,
    pub skew_ms: u64,
    pub acknowledged: usize,
    pub is_ephemeral: bool,
    /// It never comes back.
    pub is_gone: bool,
}

impl Chance {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    pub fn below(&mut self, most: u64) -> u64 {
        self.next() % most.max(1)
    }

    pub fn one_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    pub fn place(&mut self, of: usize) -> usize {
        usize::try_from(self.below(u64::try_from(of).unwrap())).unwrap()
    }
}

pub fn engine(journal: &[Charged]) -> Engine {
    let rules = rules(Limits::default(), &[("a", Limits::default())], 0);
    let mut engine = Engine::new(rules, Orders::default());
    let mut usage = CapUsage::default();
    journal.iter().for_each(|charged| usage.add(charged));
    let ended = Vec::new();
    engine.update(&UsageUpdate::All { usage, ended });
    engine
}

impl Holder {
    pub fn new(machine: u64, now_ms: u64, is_ephemeral: bool) -> Self {
        let mut holder = Self {
            engine: engine(&[]),
            ways: Vec::new(),
            flying: Vec::new(),
            unwritten: Vec::new(),
            journal: Vec::new(),
            doubts: Vec::new(),
            file: (Vec::new(), machine),
            machine,
            booted_ms: now_ms,
            skew_ms: 0,
            acknowledged: 0,
            is_ephemeral,
            is_gone: false,
        };
        holder.starts(now_ms);
        holder
    }

    pub fn up_ms(&self, now_ms: u64) -> u64 {
        now_ms - self.booted_ms
    }

    /// As `fleet::Worker::restore` does it.
    pub fn starts(&mut self, now_ms: u64) {
        self.engine = engine(&self.journal);
        let up_ms = self.up_ms(now_ms);
        let (slices, machine) = self.file.clone();
        let is_void = machine != self.machine;
        let slices = slices.into_iter();
        let slices = slices.filter(|slice| is_void || !slice.is_over(up_ms));
        let names = [TEAM.to_owned(), ORG.to_owned()];
        let slices = slices.collect();
        self.engine
            .shared
            .obey(&names, self.is_ephemeral, slices, is_void);
        self.engine.shared.at(up_ms);
    }

    pub fn charged(&self, flying: &Flying, state: State) -> Charged {
        let held = usd(flying.reserved);
        Charged {
            leases: flying.leases.clone(),
            ..charged(
                flying.entry,
                "a",
                Operation::Chat,
                flying.at_ms,
                state,
                held,
                100,
            )
        }
    }

    /// A dearer answer than those before raises what is held for those under way.
    pub fn reserved(&self, entry: EntryId) -> u64 {
        self.engine.flights[&entry].reserved.get()
    }

    pub fn wall_ms(&self, now_ms: u64) -> u64 {
        now_ms + self.skew_ms
    }
}

impl Doubt {
    pub fn of(flying: Flying) -> Self {
        Self {
            entry: flying.entry,
            leases: flying.leases,
            held: flying.reserved,
            at_ms: flying.at_ms,
            price: flying.price,
            was_known: false,
        }
    }
}
