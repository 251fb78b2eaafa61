//! Caps that many machines share: this bursar spends of each only what the fleet's database leased to it.
//!
//! A shared cap is one more cap under the rule of [`super`], for all apps together. Its limit is what is held of the
//! window's lease, and what counts are the entries that name that lease. What is lacking is asked for by the shell
//! (`fleet::worker`), which carries an [`Errand`] to the database and what it [`Heard`] back; so is what nobody needs.
//!
//! Promise: pure: no I/O, no clock, no randomness. An entry counts against the lease that its intent names from its
//! admission to the end of the lease. What is given back is at most what was granted, less what is billed, held and
//! under way, and is not spent from the moment on at which that is decided. Only a request that finds its slice used up
//! waits for the database.

use std::collections::{BTreeMap, HashMap};

use uuid::Uuid;

use super::flight::Ask;
use super::room::{Room, Share, Take, Under, sum};
use crate::caps::leases::{GiveBackAnswer, Grant, LeaseAnswer, LiveLease};
use crate::caps::refused::{Refused, SharedRefusal, SharedWhy};
use crate::caps::view::SharedCapView;
use crate::ledger::entry::{LeaseId, Leases};
use crate::ledger::totals::MicroUsdSum;
use crate::ledger::usage::Charge;
use crate::money::MicroUsd;

mod errand;
mod holding;
mod slice;

pub use self::errand::{Errand, Heard, Round};
use self::holding::{ChargedOf, Holding, Lack, Nothing, Standing};
pub use self::slice::{Call, Slice};

/// What is taken at once, over the dearest request.
const SLICE_OF_DEAREST: u128 = 16;

/// What the database was like when it was asked last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Contact {
    /// It was not asked since the start.
    #[default]
    Unheard,
    Away,
    /// It was restored from a backup, and grants nothing yet.
    Paused,
    Grants,
}

/// Whether the database knows what is held as this machine's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Proof {
    #[default]
    Given,
    /// What is held is to be presented; it may be spent.
    Due,
    /// The same, and it belongs to another machine, or to another start of this one: none of it is spent before.
    Void,
}

/// All of them. The default obeys none.
#[derive(Debug, Default)]
pub struct SharedCaps {
    of: BTreeMap<String, Holding>,
    is_ephemeral: bool,
    /// Milliseconds since the machine's start.
    up_ms: u64,
    contact: Contact,
    proof: Proof,
    /// By the lease that it names.
    under: HashMap<LeaseId, Under>,
    /// The shell is to be woken.
    is_wanted: bool,
    refusals: BTreeMap<String, Refusals>,
}

/// Since the start.
#[derive(Debug, Clone, Copy, Default)]
struct Refusals {
    all: u64,
    /// With nothing left of the cap, or of this ledger's share of it.
    reached: u64,
}

/// What a request lacks of a shared cap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lacking {
    cap: String,
    lack: Lack,
}

/// Whether a request fits below one of them now.
#[derive(Debug)]
pub enum SharedRoom {
    Enough(LeaseId),
    /// What is under way here has to end first, or more has to be leased, where that helps.
    Taken(Option<Lacking>),
    /// The slice is used up, and the database is asked.
    UsedUp(Lacking),
    Never(Refused, Option<Lacking>),
}

// === impl SharedCaps ===

impl SharedCaps {
    /// From now on the caps of these names are obeyed, with what was held of them. `is_void`: by another machine, or
    /// before this one started anew.
    pub fn obey(
        &mut self,
        names: &[String],
        is_ephemeral: bool,
        slices: Vec<Slice>,
        is_void: bool,
    ) {
        let names = names.iter().map(|name| (name.clone(), Holding::default()));
        self.of = names.collect();
        self.is_ephemeral = is_ephemeral;
        self.proof = if is_void { Proof::Void } else { Proof::Due };
        self.distribute(slices);
    }

    pub fn is_on(&self) -> bool {
        !self.of.is_empty()
    }

    /// The moment of what follows.
    pub fn at(&mut self, up_ms: u64) {
        self.up_ms = up_ms;
    }

    #[cfg(test)]
    pub fn up_ms(&self) -> u64 {
        self.up_ms
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.of.keys().map(String::as_str)
    }

    /// The slice of a cap that is spent now.
    fn current(&self, holding: &Holding, charged: ChargedOf<'_>) -> Option<Slice> {
        let slice = holding.current(self.up_ms, charged);
        slice.filter(|_| self.proof != Proof::Void).cloned()
    }

    fn under(&self, lease: LeaseId) -> Under {
        self.under.get(&lease).copied().unwrap_or_default()
    }

    /// What a repeat repeats is charged in the window in which it was bought, and is no new purchase there. The lease that
    /// it names then.
    pub fn covers(&self, cap: &str, ask: &Ask, charged: ChargedOf<'_>) -> Option<LeaseId> {
        let slice = self.current(self.of.get(cap)?, charged)?;
        let repeats = ask.repeats.as_ref()?;
        (slice.window.holds(repeats.since_ms)).then_some(slice.lease)
    }

    /// Whether a request fits below a cap. `charged`: what the ledger has of a lease.
    pub fn room(&self, cap: &str, share: Share, take: Take, charged: ChargedOf<'_>) -> SharedRoom {
        let Some(holding) = self.of.get(cap) else {
            return self.never(cap, SharedWhy::NoCap, None);
        };
        let slice = self.current(holding, charged);
        let (limit, charge, under) = match &slice {
            Some(slice) => {
                let charge = slice.counted(charged(slice.lease));
                (slice.limit(), charge, self.under(slice.lease))
            }
            None => (MicroUsd::ZERO, Charge::default(), Under::default()),
        };
        let over = |needed: u128| needed.saturating_sub(limit.get().into()).max(1);
        let lacking = Lacking {
            cap: cap.to_owned(),
            lack: Lack {
                want: over(under.needed(charge, take)),
                least: over(
                    sum(charge)
                        .saturating_add(under.reserved())
                        .saturating_add(share.reserved.max(1)),
                ),
            },
        };
        match (under.room(charge, limit, take), slice) {
            (Room::Enough, Some(slice)) => SharedRoom::Enough(slice.lease),
            (Room::Taken, Some(_)) => {
                let is_short = sum(charge) >= limit.get().into() || under.may_share(take);
                SharedRoom::Taken(is_short.then_some(lacking))
            }
            (Room::Reached, _) | (_, None) => self.used_up(cap, holding, lacking),
        }
    }

    fn used_up(&self, cap: &str, holding: &Holding, lacking: Lacking) -> SharedRoom {
        if self.contact == Contact::Away {
            return self.never(cap, SharedWhy::Away, Some(lacking));
        }
        if self.contact == Contact::Paused {
            return self.never(cap, SharedWhy::Paused, None);
        }
        let nothing = holding.nothing(self.up_ms);
        match nothing {
            None => SharedRoom::UsedUp(lacking),
            Some(Nothing::Empty { may_return: true }) => self.never(cap, SharedWhy::Busy, None),
            Some(Nothing::Empty { may_return: false }) => self.never(cap, SharedWhy::Reached, None),
            Some(Nothing::Share) => self.never(cap, SharedWhy::Share, None),
            Some(Nothing::NoCap) => self.never(cap, SharedWhy::NoCap, None),
        }
    }

    fn never(&self, cap: &str, why: SharedWhy, lacking: Option<Lacking>) -> SharedRoom {
        SharedRoom::Never(self.refusal(cap, why), lacking)
    }

    fn refusal(&self, cap: &str, why: SharedWhy) -> Refused {
        let holding = self.of.get(cap);
        Refused::shared(cap, why, holding.and_then(Holding::order))
    }

    /// For a request that waited for the database as long as one may.
    pub fn late(&self, lacking: &Lacking) -> Refused {
        self.refusal(&lacking.cap, SharedWhy::Busy)
    }

    /// A cap that is known to have nothing left, for what takes no room.
    pub fn reached(&self, charged: ChargedOf<'_>) -> Option<Refused> {
        let names = self.of.keys();
        let mut rooms = names.map(|cap| self.room(cap, Share::default(), Take::default(), charged));
        rooms.find_map(|room| match room {
            SharedRoom::Never(refused, _) => Some(refused),
            _ => None,
        })
    }

    /// A lease that was named when a request was admitted, and that the cost of others has used up since.
    pub fn over(&self, ask: &Ask, leases: &Leases, charged: ChargedOf<'_>) -> Option<Refused> {
        let all = self.of.iter().flat_map(|(cap, holding)| {
            let slices = holding.slices().iter();
            slices.map(move |slice| (cap, slice))
        });
        let named = all.filter(|(_, slice)| leases.contains(slice.lease));
        let mut named = named.filter(|(cap, _)| self.covers(cap, ask, charged).is_none());
        let (cap, _) = named.find(|(_, slice)| {
            sum(slice.counted(charged(slice.lease))) >= u128::from(slice.limit().get())
        })?;
        Some(self.refusal(cap, SharedWhy::Busy))
    }

    /// More is needed, and the shell is to be woken for it, unless the database has just said that there is none.
    pub fn lack(&mut self, lacking: Vec<Lacking>) {
        for Lacking { cap, lack } in lacking {
            let holding = self.of.get_mut(&cap);
            let holding = holding.filter(|holding| holding.nothing(self.up_ms).is_none());
            if let Some(holding) = holding.filter(|_| self.contact != Contact::Paused) {
                holding.lacks(lack);
                self.is_wanted = true;
            }
        }
    }

    /// Whether the shell is to be woken; it is said once.
    pub fn take_wanted(&mut self) -> bool {
        std::mem::take(&mut self.is_wanted)
    }

    pub fn begins(&mut self, leases: &Leases, share: Share, charged: ChargedOf<'_>) {
        for lease in leases.iter() {
            self.under.entry(lease).or_default().add(share, share.all);
            let standing = self.standing(lease, charged);
            let up_ms = self.up_ms;
            let is_low = self.holding_of(lease).is_some_and(|holding| {
                holding.used(up_ms);
                holding.is_running_low(up_ms, standing)
            });
            self.is_wanted |= is_low && !self.is_ephemeral;
        }
    }

    pub fn changes(&mut self, leases: &Leases, before: Share, share: Share) {
        for lease in leases.iter() {
            if let Some(under) = self.under.get_mut(&lease) {
                under.remove(before, before.all);
                under.add(share, share.all);
            }
        }
    }

    pub fn ends(&mut self, leases: &Leases, share: Share) {
        let up_ms = self.up_ms;
        for lease in leases.iter() {
            if let Some(under) = self.under.get_mut(&lease) {
                under.remove(share, share.all);
                if *under == Under::default() {
                    self.under.remove(&lease);
                }
            }
            if let Some(holding) = self.holding_of(lease) {
                holding.used(up_ms);
            }
        }
    }

    fn holding_of(&mut self, lease: LeaseId) -> Option<&mut Holding> {
        let mut all = self.of.values_mut();
        all.find(|holding| holding.slices().iter().any(|slice| slice.lease == lease))
    }

    fn standing(&self, lease: LeaseId, charged: ChargedOf<'_>) -> Standing {
        let under = self.under(lease);
        let mut slices = self.of.values().flat_map(Holding::slices);
        let slice = slices.find(|slice| slice.lease == lease);
        let charge = charged(lease);
        let charge = slice.map_or(charge, |slice| slice.counted(charge));
        Standing {
            limit: slice.map_or(MicroUsd::ZERO, Slice::limit),
            taken: sum(charge).saturating_add(under.reserved()),
            is_idle: under == Under::default(),
        }
    }

    /// With the next errand all that is held is presented.
    pub fn present(&mut self) {
        if self.is_on() && self.proof == Proof::Given {
            self.proof = Proof::Due;
        }
    }

    /// The database cannot be asked.
    pub fn away(&mut self) {
        self.contact = Contact::Away;
    }

    /// What the shell is to carry now. `request`: a name that no other wish has. `dearest`: the largest price that one
    /// request is expected to have.
    pub fn errand(
        &mut self,
        request: Uuid,
        dearest: Option<MicroUsd>,
        round: Round,
        charged: ChargedOf<'_>,
    ) -> Option<Errand> {
        let up_ms = self.up_ms;
        if self.proof != Proof::Given {
            let live = self.slices();
            let live = live
                .iter()
                .filter(|slice| self.proof == Proof::Void || !slice.is_over(up_ms));
            return Some(Errand::Present(live.map(Slice::presented).collect()));
        }
        if round == Round::Present {
            return None;
        }
        let slice = dearest.map_or(0, |dearest| u128::from(dearest.get()));
        let slice = (slice.saturating_mul(SLICE_OF_DEAREST), self.is_ephemeral);
        let names: Vec<String> = self.of.keys().cloned().collect();
        for cap in names {
            let Some(holding) = self.of.get(&cap) else {
                continue;
            };
            let of = |slice: &Slice| self.standing(slice.lease, charged);
            let current = holding.current(up_ms, charged);
            let standing = current.map(of).unwrap_or_default();
            let current = current.map(|slice| slice.lease);
            let standings: Vec<Standing> = holding.slices().iter().map(of).collect();
            let Some(holding) = self.of.get_mut(&cap) else {
                continue;
            };
            if !round.is_last()
                && self.contact != Contact::Paused
                && let Some(ask) = holding.ask(&cap, request, slice, standing, up_ms)
            {
                return Some(Errand::Ask(ask));
            }
            if round == Round::Ask {
                continue;
            }
            holding.give_back((round, self.is_ephemeral), current, &standings, up_ms);
            if let Some(back) = holding.on_its_way(up_ms) {
                return Some(Errand::GiveBack(back));
            }
        }
        None
    }

    /// Whether something is to be asked for, or was not answered.
    pub fn is_lacking(&self) -> bool {
        self.of.values().any(Holding::is_lacking)
    }

    /// All that is held, as it stands on the disk.
    pub fn slices(&self) -> Vec<Slice> {
        let slices = self.of.values().flat_map(Holding::slices);
        slices.cloned().collect()
    }

    /// What may still be spent of those whose windows have begun, with what is on its way back and did not arrive.
    pub fn left_open(&self, charged: ChargedOf<'_>) -> u128 {
        let slices = self.of.values().flat_map(Holding::slices);
        let begun = slices.filter(|slice| slice.is_current(self.up_ms));
        let open = begun.map(|slice| {
            let giving = slice.giving.unwrap_or(MicroUsd::ZERO);
            let limit = u128::from(slice.limit().get()) + u128::from(giving.get());
            limit.saturating_sub(self.standing(slice.lease, charged).taken)
        });
        open.sum()
    }

    /// The same after something was heard. It is written to the disk before [`Self::hear`] puts it in force.
    pub fn slices_after(&self, heard: &Heard, call: Call) -> Vec<Slice> {
        let mut slices = self.slices_heard(heard, call);
        slices.sort_by(|one, other| {
            (&one.cap, one.window.since_ms).cmp(&(&other.cap, other.window.since_ms))
        });
        slices
    }

    fn slices_heard(&self, heard: &Heard, call: Call) -> Vec<Slice> {
        let before = self.slices();
        let known = |live: &LiveLease| {
            let mut before = before.iter();
            before.find(|slice| slice.lease.0 == live.lease.lease)
        };
        match heard {
            Heard::Held(held) => {
                let ours = held.leases.iter();
                let ours = ours.filter(|live| self.of.contains_key(&live.lease.cap));
                let slices = ours.map(|live| match known(live) {
                    Some(before) => Slice::of(live, call).after(before),
                    None => Slice::of(live, call),
                });
                slices.collect()
            }
            Heard::Answer {
                answer: LeaseAnswer::Granted(grant),
                ..
            } => {
                let live = &grant.lease;
                let slice = match known(live) {
                    Some(before) => Slice::of(live, call).granted_after(before),
                    None => Slice::of(live, call),
                };
                let others = before.iter().filter(|other| other.lease != slice.lease);
                let others = others.filter(|other| !other.is_over(call.ended_up_ms));
                let mut slices: Vec<Slice> = others.cloned().collect();
                slices.push(slice);
                slices
            }
            Heard::Answer { .. } => before,
            Heard::GaveBack { lease, answer } => {
                let slices = before
                    .into_iter()
                    .map(|slice| match slice.lease.0 == *lease {
                        true => slice.given_back(answer),
                        false => slice,
                    });
                slices.collect()
            }
        }
    }

    /// Puts in force what was heard.
    pub fn hear(&mut self, heard: &Heard, call: Call) {
        let slices = self.slices_after(heard, call);
        let up_ms = call.ended_up_ms;
        // Only what is held, presented once more, says that a pause is over.
        let is_paused = heard.says_paused(self.contact == Contact::Paused);
        self.contact = match is_paused {
            true => Contact::Paused,
            false => Contact::Grants,
        };
        match heard {
            Heard::Held(held) => {
                self.proof = Proof::Given;
                for (cap, holding) in &mut self.of {
                    let mut orders = held.caps.iter();
                    holding.set_order(orders.find(|order| order.cap == *cap).cloned());
                }
            }
            Heard::Answer { cap, answer } => {
                let is_forgotten = match answer {
                    LeaseAnswer::Elsewhere => true,
                    LeaseAnswer::Granted(grant) => self.forgot(grant),
                    _ => false,
                };
                if is_forgotten {
                    self.present();
                }
                if let Some(holding) = self.of.get_mut(cap) {
                    holding.answered(answer, up_ms);
                }
            }
            Heard::GaveBack { lease, answer } => {
                if *answer == GiveBackAnswer::Unknown {
                    self.present();
                }
                for holding in self.of.values_mut() {
                    holding.gave_back(LeaseId(*lease), answer, up_ms);
                }
            }
        }
        self.distribute(slices);
    }

    /// The database shows less of a lease than it had granted, or another lease in its place: it was restored from a
    /// backup.
    fn forgot(&self, grant: &Grant) -> bool {
        let lease = &grant.lease.lease;
        let mut slices = self.of.values().flat_map(Holding::slices);
        slices.any(|slice| match slice.lease.0 == lease.lease {
            true => lease.totals.granted < slice.totals.granted,
            false => slice.cap == lease.cap && slice.window == lease.window,
        })
    }

    /// This ledger has taken another name in the fleet, or left it: the leases are another's.
    pub fn forget(&mut self) {
        self.distribute(Vec::new());
        self.present();
    }

    fn distribute(&mut self, slices: Vec<Slice>) {
        for (cap, holding) in &mut self.of {
            let own = slices.iter().filter(|slice| slice.cap == *cap);
            holding.set_slices(own.cloned().collect());
        }
    }

    /// Whether it is the first for its reason, in the cap's window.
    pub fn count_refusal(&mut self, refusal: &SharedRefusal) -> bool {
        let refusals = self.refusals.entry(refusal.cap.clone()).or_default();
        refusals.all = refusals.all.saturating_add(1);
        if matches!(refusal.why, SharedWhy::Reached | SharedWhy::Share) {
            refusals.reached = refusals.reached.saturating_add(1);
        }
        let holding = self.of.get_mut(&refusal.cap);
        holding.is_some_and(|holding| holding.is_news(refusal.why))
    }

    /// What is shown of them. `dearest`: the largest price that one request is expected to have.
    pub fn view(&self, dearest: Option<MicroUsd>, charged: ChargedOf<'_>) -> Vec<SharedCapView> {
        let views = self.of.iter().map(|(cap, holding)| {
            let slice = self.current(holding, charged);
            let charge = slice
                .as_ref()
                .map(|slice| slice.counted(charged(slice.lease)));
            let under = slice.as_ref().map(|slice| self.under(slice.lease));
            let (charge, under) = (charge.unwrap_or_default(), under.unwrap_or_default());
            let held = slice.as_ref().map_or(MicroUsd::ZERO, Slice::limit);
            let taken = sum(charge).saturating_add(under.reserved());
            let order = holding.order();
            let refusals = self.refusals.get(cap).copied().unwrap_or_default();
            SharedCapView {
                cap: cap.clone(),
                period: order.map(|order| order.period),
                time_zone: order.map(|order| order.zone.clone()),
                limit: order.map(|order| order.limit),
                charged: order.map(|order| order.charged),
                since_ms: order.map(|order| order.window.since_ms),
                resets_at_ms: order.map(|order| order.window.until_ms),
                state: self.state_word(holding).to_owned(),
                leased: held,
                spent: charge.billed,
                held: MicroUsdSum::from_micro_usd(charge.held.now()),
                reserved: MicroUsdSum::from_micro_usd(under.reserved()),
                under_way: under.requests(),
                open: MicroUsdSum::from_micro_usd(u128::from(held.get()).saturating_sub(taken)),
                ends_in_ms: slice.map(|slice| slice.ends_up_ms.saturating_sub(self.up_ms)),
                ahead: MicroUsdSum::from_micro_usd(self.ahead(holding)),
                dearest,
                refusals: refusals.all,
                reached: refusals.reached,
            }
        });
        views.collect()
    }

    /// What is leased of windows that have not begun.
    fn ahead(&self, holding: &Holding) -> u128 {
        let slices = holding.slices().iter();
        let ahead = slices.filter(|slice| slice.begins_up_ms > self.up_ms);
        ahead.map(|slice| u128::from(slice.limit().get())).sum()
    }

    fn state_word(&self, holding: &Holding) -> &'static str {
        match (self.contact, holding.nothing(self.up_ms)) {
            (Contact::Away, _) => "unreachable",
            (Contact::Unheard, _) => "unheard",
            (Contact::Paused, _) => "paused",
            (Contact::Grants, Some(Nothing::NoCap)) => "no_cap",
            (Contact::Grants, Some(Nothing::Empty { .. })) => "empty",
            (Contact::Grants, Some(Nothing::Share)) => "share",
            (Contact::Grants, None) if holding.order().is_none() => "no_cap",
            (Contact::Grants, None) => "leased",
        }
    }
}
