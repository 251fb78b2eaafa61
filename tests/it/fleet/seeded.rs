//! Histories by chance: machines that buy and ship, one after the other, whose acknowledgements are lost, that are copied
//! and restored from images, that lose their names, below a database that is restored from backups and then does not know
//! each of them.
//!
//! Promise: in the end the table, the journals and what the service billed are the same to the micro-dollar.

use std::collections::BTreeMap;
use std::path::PathBuf;

use bursar::clock::SystemClock;
use bursar::fleet::{Fleet, FleetError, Shipping, Trouble};
use bursar::ledger::{Durability, Ledger, LedgerOptions};
use tempfile::TempDir;

use super::{CODE, DATABASE, connect, copied, copy, fleet, summed};
use crate::ledger_care;
use crate::support::bursar::entries;
use crate::support::postgres::Postgres;

const SEEDS: u64 = 12;
const STEPS: usize = 50;
const MACHINES_MAX: usize = 6;

/// A generator of one history's choices.
struct Chance(u64);

struct Machine {
    directory: TempDir,
    /// Its disk as it was once.
    image: Option<TempDir>,
}

struct History {
    chance: Chance,
    postgres: Postgres,
    database: Fleet,
    backup: Option<PathBuf>,
    codes: u32,
    machines: Vec<Machine>,
    /// What the service billed.
    books: Vec<u64>,
    /// How often what happened.
    seen: BTreeMap<&'static str, u32>,
}

// === impl Chance ===

impl Chance {
    fn below(&mut self, most: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 11).expect("64 bits") % most
    }
}

// === impl Machine ===

impl Machine {
    fn state_dir(&self) -> PathBuf {
        self.directory.path().join("state")
    }
}

// === impl History ===

impl History {
    async fn new(seed: u64) -> Self {
        let postgres = fleet();
        let database = connect(&postgres).await;
        let machines = (0..3).map(|_| Machine {
            directory: tempfile::tempdir().expect("a directory"),
            image: None,
        });
        let mut history = Self {
            chance: Chance(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15)),
            postgres,
            database,
            backup: None,
            codes: 0,
            machines: machines.collect(),
            books: Vec::new(),
            seen: BTreeMap::new(),
        };
        for at in 0..history.machines.len() {
            history.buy(at).await;
            history.ship(at).await;
        }
        history
    }

    fn saw(&mut self, what: &'static str) {
        *self.seen.entry(what).or_default() += 1;
    }

    async fn step(&mut self) {
        let at = self.chance.below(self.machines.len());
        match self.chance.below(14) {
            0..5 => self.buy(at).await,
            5..7 => self.ship(at).await,
            7 => self.lose_acknowledgement(at).await,
            8 => self.copy(at),
            9 => self.restore_machine(at).await,
            10 => self.restore_database().await,
            11 => self.look(at).await,
            12 => self.lose_name(at),
            _ => {
                self.buy(at).await;
                self.ship(at).await;
            }
        }
    }

    async fn buy(&mut self, at: usize) {
        let clock = SystemClock::shared();
        let ledger = Ledger::open(LedgerOptions {
            durability: Durability::Process,
            ..LedgerOptions::new(self.machines[at].state_dir(), clock.clone())
        });
        let ledger = ledger.expect("a ledger");
        for _ in 0..=self.chance.below(3) {
            let amount = u64::try_from(self.chance.below(90)).expect("it fits") + 1;
            ledger_care::buy(&ledger, clock.wall_ms(), "notes", Some(amount)).await;
            self.books.push(amount);
        }
        ledger.close().await;
    }

    /// Opened, and let in with a code where the fleet does not know it.
    async fn joined(&mut self, at: usize) -> Shipping {
        let (state_dir, label) = (self.machines[at].state_dir(), "host".to_owned());
        let known = Shipping::open(state_dir.clone(), label.clone(), false).expect("it opens");
        let was_known = known.is_some();
        let mut shipping = match known {
            Some(known) => known,
            None => Shipping::create(state_dir, label, false).expect("a name"),
        };
        let heard = shipping.hearing().hello(&self.database, 0).await;
        if let Err(Trouble::Fleet(FleetError::Unknown)) = heard {
            self.codes += 1;
            let code = format!("{CODE}of-chance-{}", self.codes);
            let invite = format!("SELECT bursar_fleet.invite('{code}', NULL)");
            self.postgres.sql(DATABASE, &invite);
            let enrolled = shipping.enrol(&self.database, &code);
            enrolled.await.expect("it is let in");
            if was_known {
                self.saw("a ledger that a restored database did not know");
            }
        }
        shipping
    }

    async fn ship(&mut self, at: usize) {
        let mut shipping = self.joined(at).await;
        let shipped = shipping.visit(&self.database, 0).await.expect("a visit");
        assert_eq!(shipped.mark_seq, shipped.journal_seq, "all of it");
        if shipped.forked {
            self.saw("a copy that noticed");
        }
    }

    fn lose_name(&mut self, at: usize) {
        let name = self.machines[at].state_dir().join("fleet.json");
        if std::fs::remove_file(name).is_ok() {
            self.saw("a lost name");
        }
    }

    /// It compares itself with the fleet, and takes another name where it is a copy. Others may ship before it does.
    async fn look(&mut self, at: usize) {
        let mut shipping = self.joined(at).await;
        let named = shipping.identity().ledger;
        shipping.agree(&self.database, 0).await.expect("a name");
        if shipping.identity().ledger != named {
            self.saw("a copy that noticed before it shipped");
        }
    }

    /// The database took the lines, and the machine does not know.
    async fn lose_acknowledgement(&mut self, at: usize) {
        let marks = self.machines[at].state_dir().join("fleet-marks");
        let identity = self.machines[at].state_dir().join("fleet.json");
        let named = std::fs::read(&identity).ok();
        let before = std::fs::read(&marks).unwrap_or_default();
        self.ship(at).await;
        // The marks of another name are no marks of this one.
        if std::fs::read(&identity).ok() == named {
            std::fs::write(&marks, before).expect("as before the answer");
            self.saw("a lost acknowledgement");
        }
    }

    fn copy(&mut self, at: usize) {
        if self.machines.len() < MACHINES_MAX {
            let directory = copied(&self.machines[at].state_dir());
            self.machines.push(Machine {
                directory,
                image: None,
            });
            self.saw("a copy");
        }
    }

    /// Its disk is what it once was. What it had shipped is in the fleet; what is on no disk and was not shipped would be
    /// lost, so it ships before.
    async fn restore_machine(&mut self, at: usize) {
        let state_dir = self.machines[at].state_dir();
        let Some(image) = self.machines[at].image.take() else {
            self.machines[at].image = Some(copied(&state_dir));
            return;
        };
        self.ship(at).await;
        std::fs::remove_dir_all(&state_dir).expect("it was there");
        copy(&image.path().join("state"), &state_dir);
        // An older database would have forgotten what is on no disk any more.
        self.backup = None;
        self.saw("a restored machine");
    }

    async fn restore_database(&mut self) {
        let Some(backup) = self.backup.take() else {
            self.backup = Some(self.postgres.backup(DATABASE));
            return;
        };
        self.postgres.restore(DATABASE, &backup);
        self.database = connect(&self.postgres).await;
        self.saw("a restored database");
    }

    /// Everything is shipped.
    async fn end(&mut self) {
        for _ in 0..2 {
            for at in 0..self.machines.len() {
                self.ship(at).await;
            }
        }
        let bought = i64::try_from(self.books.len()).expect("it fits");
        assert_eq!(summed(&self.postgres), (bought, self.books.iter().sum()));
        let of_copies = "SELECT count(*) FROM bursar_fleet.ledgers one JOIN bursar_fleet.ledgers other \
             ON one.copy_of = other.id WHERE other.copy_of IS NOT NULL";
        if self.postgres.sql(DATABASE, of_copies) != "0" {
            self.saw("a copy of a copy");
        }
        let twice = "SELECT count(*) FROM bursar_fleet.anomalies";
        assert_eq!(self.postgres.sql(DATABASE, twice), "0");
        // An entry is in several journals where a machine was copied behind it.
        let all = self.machines.iter();
        let all = all.flat_map(|machine| entries(&machine.state_dir()));
        let journals: BTreeMap<_, _> = all
            .map(|entry| {
                (
                    entry.id,
                    entry.state.billed().map_or(0, |billed| billed.get()),
                )
            })
            .collect();
        let sum: u64 = journals.values().sum();
        if self.seen.contains_key("a restored machine") {
            assert!(sum <= self.books.iter().sum());
        } else {
            assert_eq!(sum, self.books.iter().sum::<u64>());
        }
    }
}

#[tokio::test]
#[ignore = "needs PostgreSQL: make test-all"]
async fn in_histories_by_chance_the_table_the_journals_and_the_books_are_equal() {
    let mut seen: BTreeMap<&str, u32> = BTreeMap::new();
    for seed in 1..=SEEDS {
        println!("seed {seed}");
        let mut history = History::new(seed).await;
        for _ in 0..STEPS {
            history.step().await;
        }
        history.end().await;
        for (what, count) in &history.seen {
            *seen.entry(what).or_default() += count;
        }
    }
    let wanted = [
        "a copy",
        "a copy that noticed",
        "a copy that noticed before it shipped",
        "a copy of a copy",
        "a ledger that a restored database did not know",
        "a lost name",
        "a lost acknowledgement",
        "a restored machine",
        "a restored database",
    ];
    let missing: Vec<_> = wanted
        .iter()
        .filter(|what| !seen.contains_key(*what))
        .collect();
    assert!(missing.is_empty(), "never: {missing:?}");
}
