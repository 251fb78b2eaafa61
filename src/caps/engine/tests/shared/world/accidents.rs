//! What befalls a bursar, its machine and the database.

use super::*;

impl World {
    /// What was under way is in doubt from now on, and is held at what was reserved for it.
    pub fn kill(&mut self, at: usize) {
        let holder = &mut self.holders[at];
        // The intent alone is on the disk. What the end said is not known any more.
        for (_, flying) in std::mem::take(&mut holder.unwritten) {
            let died = holder.charged(&flying, DOUBT);
            holder.journal.push(died);
            holder.doubts.retain(|doubt| doubt.entry != flying.entry);
            let of = Doubt::of(flying);
            holder.doubts.push(Doubt {
                was_known: true,
                ..of
            });
        }
        let mut billed = Vec::new();
        for mut flying in std::mem::take(&mut holder.flying) {
            flying.reserved = holder.reserved(flying.entry);
            flying.price = flying.price.min(flying.reserved);
            billed.push((flying.leases.clone(), flying.price));
            let died = holder.charged(&flying, DOUBT);
            holder.journal.push(died);
            holder.doubts.push(Doubt::of(flying));
        }
        holder.ways.clear();
        holder.starts(self.now_ms);
        for (leases, price) in billed {
            self.bill(&leases, price);
        }
    }

    pub fn reboot(&mut self, at: usize) {
        let holder = &mut self.holders[at];
        holder.machine += 1;
        holder.booted_ms = self.now_ms;
        self.kill(at);
    }

    /// What it never shipped is on no disk any more, and what it had leased stays charged.
    pub fn vanish(&mut self, at: usize) {
        if self.holders.iter().filter(|holder| !holder.is_gone).count() > 1 {
            self.kill(at);
            self.holders[at].is_gone = true;
            self.saw("a machine that never came back");
        }
    }

    /// A price that was not known arrives.
    pub fn evidence(&mut self, at: usize) {
        let Some(doubt) = self.holders[at].doubts.pop() else {
            return;
        };
        let price = match self.chance.one_in(4) && !doubt.was_known {
            // Where it is the first price of all, none behind it is four times as dear.
            true => doubt.held.max(self.dearest / 4) + 1 + self.chance.below(self.dearest),
            false => doubt.price,
        };
        if price > doubt.held {
            self.saw("a price above what was held");
            self.bill(&doubt.leases, price - doubt.price);
            self.dearest_late = self.dearest_late.max(price);
            for lease in doubt.leases.iter() {
                let of = self.windows[&lease].clone();
                *self.late.entry(of).or_default() += price - doubt.held;
            }
        }
        let state = State::Settled { billed: usd(price) };
        let held = usd(doubt.held);
        let mut evidence = Charged {
            leases: doubt.leases,
            requests: 0,
            ..charged(
                doubt.entry,
                "a",
                Operation::Chat,
                doubt.at_ms,
                state,
                held,
                0,
            )
        };
        evidence.charge.held.left = MicroUsdSum::from(held);
        let holder = &mut self.holders[at];
        holder.journal.push(evidence.clone());
        holder.engine.update(&UsageUpdate::Records(vec![evidence]));
    }

    pub fn change_period(&mut self) {
        let terms = &mut self.database.caps[0];
        terms.period = match terms.period {
            Period::Hour => Period::Day,
            _ => Period::Hour,
        };
        self.saw("another period");
    }

    pub fn restore(&mut self) {
        let Some(backup) = self.backup.take() else {
            return;
        };
        for (id, row) in &self.database.leases {
            let had = backup.leases.get(id);
            let had = had.map_or(0, |row| row.granted - row.given_back);
            let lost = (row.granted - row.given_back).saturating_sub(had);
            let Window { since_ms, until_ms } = row.window;
            let of = (row.cap.clone(), since_ms, until_ms);
            *self.forgotten.entry(of).or_default() += lost;
        }
        let incarnation = self.database.incarnation + 1;
        self.database = backup;
        self.database.incarnation = incarnation;
        self.saw("a restored backup");
    }
}
