//! What the holder of shared caps wishes ([`crate::caps`]), carried to the fleet's database and back.
//!
//! Promise: an answer is on the disk before it is in force; what goes back is on the disk, as not spent any more, before
//! the database hears of it. A carry that ends anywhere is gone on with by the next, under the same names.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use uuid::Uuid;

use super::database::Fleet;
use super::identity::{FleetIdentity, IdentityError};
use super::lease_file::{KeptLeases, Machine};
use super::ship::{Shipping, Trouble, journal_seq};
use crate::caps::leases::{GiveBack, GiveBackAnswer};
use crate::caps::{Call, Caps, Errand, Heard, Round, Slice};
use crate::clock::{SharedClock, millis};
use crate::config::FleetTable;
use crate::ledger::LedgerError;
use crate::ledger::state_dir::Directory;

/// Errands of one carry. Two copies that present the same leases in turn come to no end by themselves.
const ERRANDS_MAX: usize = 64;

/// A ledger by the name that it had when it was compared with the fleet's lines.
pub struct Carrier {
    state_dir: PathBuf,
    identity: FleetIdentity,
    machine: Machine,
    acknowledged_seq: u64,
    clock: SharedClock,
}

// === impl Carrier ===

impl Carrier {
    pub fn of(
        shipping: &Shipping,
        state_dir: PathBuf,
        machine: Machine,
        clock: SharedClock,
    ) -> Self {
        Self {
            state_dir,
            identity: shipping.identity().clone(),
            machine,
            acknowledged_seq: shipping.acknowledged_seq(),
            clock,
        }
    }

    /// Carries until nothing is left, or until lines have to be shipped first.
    pub async fn carry(&self, fleet: &Fleet, caps: &Caps, round: Round) -> Result<(), Trouble> {
        for _ in 0..ERRANDS_MAX {
            let Some(errand) = caps.errand(request()?, round) else {
                return Ok(());
            };
            let began_up_ms = self.up_ms();
            let heard = self.ask(fleet, caps, errand).await?;
            let call = Call {
                began_up_ms,
                ended_up_ms: self.up_ms(),
            };
            self.store(caps, &heard, call)?;
            caps.hear(&heard, call);
            if let Heard::GaveBack {
                answer: GiveBackAnswer::Behind,
                ..
            } = heard
            {
                return Ok(());
            }
        }
        Ok(())
    }

    async fn ask(&self, fleet: &Fleet, caps: &Caps, errand: Errand) -> Result<Heard, Trouble> {
        let (caller, machine) = (&self.identity, self.machine.as_str());
        match errand {
            Errand::Present(leases) => {
                let held = fleet.hold(caller, machine, self.acknowledged_seq, &leases);
                Ok(Heard::Held(held.await?))
            }
            Errand::Ask(ask) => {
                let answer = fleet.lease(caller, machine, &ask).await?;
                let cap = ask.cap;
                Ok(Heard::Answer { cap, answer })
            }
            Errand::GiveBack(part) => {
                let slices = caps.slices();
                self.write(&slices)?;
                let part = GiveBack {
                    up_to_seq: journal_seq(&self.state_dir).await?,
                    ..part
                };
                let answer = fleet.give_back(caller, &part).await?;
                let lease = part.lease;
                Ok(Heard::GaveBack { lease, answer })
            }
        }
    }

    fn store(&self, caps: &Caps, heard: &Heard, call: Call) -> Result<(), LedgerError> {
        let after = caps.slices_after(heard, call);
        match after == caps.slices() {
            true => Ok(()),
            false => self.write(&after),
        }
    }

    fn write(&self, slices: &[Slice]) -> Result<(), LedgerError> {
        let state = Directory::open(&self.state_dir)?;
        KeptLeases::store(&state, self.identity.ledger, &self.machine, slices)
    }

    fn up_ms(&self) -> u64 {
        millis(self.clock.since_boot())
    }
}

/// The last visit of a ledger that leaves, while no daemon runs: ships what is left, and gives back what it holds of shared
/// caps, as a daemon's last visit does. `caps`: stand on the ledger, which is open. Trouble with leases keeps no line from being
/// shipped.
pub async fn last_visit(
    shipping: &mut Shipping,
    fleet: &Fleet,
    caps: &Caps,
    (state_dir, table): (&Path, &FleetTable),
    clock: &SharedClock,
) -> Result<(), Trouble> {
    let mark_seq = shipping.agree(fleet, clock.wall_ms()).await?;
    let (state, machine) = (Directory::open(state_dir)?, Machine::this());
    let (ledger, up_ms) = (shipping.identity().ledger, millis(clock.since_boot()));
    let kept = KeptLeases::read(&state, ledger, &machine, up_ms)?;
    // Also of caps that the configuration names no longer.
    let mut names = table.shared_caps.clone();
    names.extend(kept.slices.iter().map(|slice| slice.cap.clone()));
    if names.is_empty() {
        return shipping.visit(fleet, clock.wall_ms()).await.map(|_| ());
    }
    caps.obey_shared(&names, table.ephemeral, kept.slices, kept.is_void);
    let carrier = |shipping: &Shipping| {
        let (state_dir, machine) = (state_dir.to_owned(), machine.clone());
        Carrier::of(shipping, state_dir, machine, Arc::clone(clock))
    };
    let presenting = carrier(shipping);
    let presented = presenting.carry(fleet, caps, Round::Present).await;
    // A database that was restored has to see the leases before it has the lines that it forgot.
    if presented.is_ok() || mark_seq >= shipping.acknowledged_seq() {
        shipping.visit(fleet, clock.wall_ms()).await?;
    }
    presented?;
    if shipping.identity().ledger != ledger {
        caps.forget_leases();
        return Ok(());
    }
    // With what the database counts now.
    caps.present_leases();
    let leaving = carrier(shipping);
    leaving.carry(fleet, caps, Round::Leave).await
}

/// The name of a wish.
fn request() -> Result<Uuid, IdentityError> {
    let mut name = [0; 16];
    getrandom::fill(&mut name).map_err(|error| IdentityError::NoRandomness(error.to_string()))?;
    Ok(uuid::Builder::from_random_bytes(name).into_uuid())
}
