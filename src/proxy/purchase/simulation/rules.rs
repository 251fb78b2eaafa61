//! The rules, as far as they show in the model. What is checked, rule by rule:
//!
//! * I1: nothing is sent whose intent is not in the journal ([`Facts::sending`]).
//! * I2: no success is given whole before its outcome is in the journal ([`Facts::giving`]).
//! * I3, I4, I12: [`Facts::account`], after every debit and every line. What an account's entries add
//!   is never more than the service's debits, each positive one is one of these debits, and where the
//!   two differ an entry of the account is open, in doubt or unreported. So `failed` everywhere means
//!   that nothing was billed, and nothing is guessed.
//! * I5: receipts are read by the real parser from absent, malformed, repeated and zero headers; a
//!   reading that made one of the others would break I3.
//! * I6: one key goes with one path and body, is held by one request at a time, is not repeated 23 h
//!   after its first use, and is not used again once its answer was given ([`Facts::claimed`],
//!   [`Facts::sending`]).
//! * What a stop cut can be adopted after it, whatever of it was given before ([`Facts::stopped`]).
//! * One purchase is asked for once: a try whose app gave it up before bursar read it is not sent beside
//!   its retry ([`super::world::World`] asks before its intent).
//! * I7: an unkeyed request is not sent while an earlier attempt may run or was billed.
//! * I10: billed money never goes back, over restarts too, and all sums agree.
//! * I11: the table's bound ([`super::world::World`] asks after every claim). The bounds of queues and
//!   buffers are not in the model; the tests of `claim`, `queue`, `buffer` and `later` hold them.
//! * I8: what a connection is given of a stream is what the service sent, in its order, and it ends cleanly behind all
//!   of it alone ([`super::transcript`]). The rest of I8, and I9, are of bytes on the wire, which the model
//!   has none of; `tests/it/door`, `heads` and `retries` hold them.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::scribe::Reading;
use super::service::{Account, Ask, Service};
use crate::ledger::entry::{EntryId, State};
use crate::ledger::undelivered::Undelivered;

/// What the rules remember of a run.
#[derive(Debug, Default)]
pub struct Facts {
    /// Whose entry.
    pub accounts: HashMap<Account, Vec<EntryId>>,
    pub account_of: HashMap<EntryId, Account>,
    first_sent: HashMap<Arc<str>, FirstUse>,
    /// Minted keys whose answer an app has.
    delivered: HashSet<Arc<str>>,
    /// Minted keys of streams that a stop cut: no app has their end.
    cut: HashSet<Arc<str>>,
    billed_before: u128,
}

/// The first time a key was sent.
#[derive(Clone, Debug)]
struct FirstUse {
    true_ms: u64,
    /// Wall time less true time: differs when the clock was set.
    wall_error: i128,
    body: u64,
}

/// "No automatic repeat once the key is 23 h old".
const REPEAT_AGE_MAX_MS: u64 = 23 * 3600 * 1000;

// === impl Facts ===

impl Facts {
    pub fn opens(&mut self, id: EntryId, account: Account) {
        self.account_of.insert(id, account.clone());
        self.accounts.entry(account).or_default().push(id);
    }

    /// A key was claimed: `others` are those that live requests hold.
    pub fn claimed(&self, key: &Arc<str>, mut others: impl Iterator<Item = Arc<str>>) -> Ruling {
        if self.delivered.contains(key) {
            return Err(format!("I6: {key} was delivered and is used again"));
        }
        if others.any(|other| other == *key) {
            return Err(format!("I6: two running requests hold {key}"));
        }
        Ok(())
    }

    pub fn sending(
        &mut self,
        ask: &Ask,
        is_own: bool,
        at: (u64, i128),
        reading: &Reading,
        service: &Service,
    ) -> Ruling {
        if reading.states.get(&ask.entry) != Some(&State::Open) {
            return Err("I1: sent without an open intent in the journal".to_owned());
        }
        let account = ask.account();
        let Some(key) = &ask.key else {
            let is_billed = service.debits.contains_key(&account);
            if is_billed || service.may_still_run(&account) {
                return Err("I7: sent again although it may have been delivered".to_owned());
            }
            return Ok(());
        };
        if is_own {
            return Ok(());
        }
        let (true_ms, wall_error) = at;
        let first = self.first_sent.entry(Arc::clone(key)).or_insert(FirstUse {
            true_ms,
            wall_error,
            body: ask.body,
        });
        if first.body != ask.body {
            return Err(format!("I6: {key} goes with two bodies"));
        }
        let age_ms = true_ms.saturating_sub(first.true_ms);
        if age_ms >= REPEAT_AGE_MAX_MS && first.wall_error == wall_error {
            return Err(format!("I6: {key} is sent {age_ms} ms after its first use"));
        }
        Ok(())
    }

    /// A 2xx answer goes out whole.
    pub fn giving(&self, id: EntryId, reading: &Reading) -> Ruling {
        match reading.states.get(&id) {
            None | Some(State::Open) => Err("I2: given before its receipt was durable".to_owned()),
            Some(_) => Ok(()),
        }
    }

    pub fn delivered(&mut self, key: &Arc<str>) -> Ruling {
        if self.cut.contains(key) || self.delivered.insert(Arc::clone(key)) {
            return Ok(());
        }
        Err(format!("the answer of {key} was given twice"))
    }

    /// A killed process: what was given in its last moments is assumed not to have been.
    pub fn killed(&mut self) {
        self.delivered.clear();
        self.cut.clear();
    }

    /// bursar's stop cut a stream.
    pub fn cut(&mut self, key: &Arc<str>) {
        self.delivered.remove(key);
        self.cut.insert(Arc::clone(key));
    }

    /// A commit failed: what it was to note of deliveries is lost.
    pub fn notes_lost(&mut self) {
        self.cut.clear();
    }

    /// bursar has stopped in order, and left these for the next process to adopt.
    pub fn stopped(&mut self, left: &[Undelivered]) -> Ruling {
        for key in self.cut.drain() {
            if left.iter().all(|row| row.key.value != key) {
                return Err(format!(
                    "a stop cut the stream of {key}, and no request can adopt it"
                ));
            }
        }
        Ok(())
    }

    /// What one account adds beside what the service debited it.
    pub fn account(&self, account: &Account, reading: &Reading, service: &Service) -> Ruling {
        let entries = self.accounts.get(account).map_or(&[][..], Vec::as_slice);
        let debits = service.debits.get(account).map_or(&[][..], Vec::as_slice);
        let states = || entries.iter().filter_map(|id| reading.states.get(id));
        let account_text = || {
            format!(
                "{account:?}: {:?} of {debits:?}",
                states().collect::<Vec<_>>()
            )
        };
        let mut left = debits.to_vec();
        for adds in states().map(|state| state.adds().get()) {
            if adds == 0 {
                continue;
            }
            match left.iter().position(|debit| *debit == adds) {
                Some(at) => left.remove(at),
                None => return Err(format!("I3: {adds} was not debited: {}", account_text())),
            };
        }
        let may_come = states().any(|state| state.is_unresolved() || *state == State::Open);
        // Known limit: the service counts an app's own key from when it arrives, the ledger from its
        // intent. One that is used again at the 24 h edge may be a new purchase to the one and a
        // repeat to the other. bursar's own keys never come near.
        let used_anew = debits.len() > 1 && entries.len() > 1;
        if !left.is_empty() && !may_come && !used_anew {
            return Err(format!(
                "I4: no entry accounts for {left:?}: {}",
                account_text()
            ));
        }
        Ok(())
    }

    pub fn all_accounts(&self, reading: &Reading, service: &Service) -> Ruling {
        self.accounts
            .keys()
            .try_for_each(|account| self.account(account, reading, service))
    }

    pub fn sums(&mut self, reading: &Reading, service: &Service) -> Ruling {
        if reading.billed > service.total {
            return Err(format!(
                "the ledger sums {}, the service {}",
                reading.billed, service.total
            ));
        }
        if reading.billed < self.billed_before {
            return Err(format!(
                "I10: {} became {}",
                self.billed_before, reading.billed
            ));
        }
        self.billed_before = reading.billed;
        Ok(())
    }
}

/// A rule holds, or how it was broken.
pub type Ruling = Result<(), String>;
