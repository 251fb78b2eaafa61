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
            holder.doubts.push(Doubt::of(flying));
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

    pub fn restore(&mut self) {
        let Some(backup) = self.backup.take() else {
            return;
        };
        for (id, row) in &self.database.leases {
            let had = backup.leases.get(id);
            let had = had.map_or(0, |row| row.granted - row.given_back);
            let lost = (row.granted - row.given_back).saturating_sub(had);
            let of = (row.cap.clone(), row.window.since_ms);
            *self.forgotten.entry(of).or_default() += lost;
        }
        let incarnation = self.database.incarnation + 1;
        self.database = backup;
        self.database.incarnation = incarnation;
        self.saw("a restored backup");
    }
}
