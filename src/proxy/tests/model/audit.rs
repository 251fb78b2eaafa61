//! The auditor: sees what bursar wrote durably, sent and delivered, and what the service debited,
//! and holds the rules against both after every step. Its memory is its own; of bursar it reads
//! records only.
//!
//! Promise: a rule that is broken panics in the step that broke it.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use super::service::Debit;
use crate::ledger::entry::{AttemptEnd, EntryId, State};
use crate::ledger::model_parts::Record;
use crate::protocol::Told;

/// What belongs together: all entries of a key, or one entry without a key.
#[derive(Default)]
struct Purchase {
    debited: u64,
    debits: u64,
    settled: u64,
    settlements: u64,
    /// Entries whose amount is not known (open, in doubt, unreported).
    loose: BTreeSet<EntryId>,
    deliveries: u64,
    /// bursar died between an answer and the note of it: an equal request gets the answer again.
    may_be_asked_again: bool,
    /// An app's own key reached the service behind its 24 h, from an intent that was written before:
    /// the service bills anew, the ledger counts it to the old epoch. A known limit.
    outlived: bool,
}

/// When a key was first used, by both clocks.
#[derive(Clone, Copy)]
pub struct Ages {
    pub wall_ms: u64,
    pub monotonic_ms: u64,
}

/// One send, as it leaves.
pub struct Send<'a> {
    pub entry: EntryId,
    pub key: Option<&'a Arc<str>>,
    pub body: u64,
    pub now: Ages,
    /// When this request, or the one whose key it adopted, began.
    pub began: Ages,
    pub repeats: bool,
}

#[derive(Default)]
pub struct Audit {
    purchases: HashMap<Arc<str>, Purchase>,
    purchase_of: HashMap<EntryId, Arc<str>>,
    intents: HashSet<EntryId>,
    outcomes: HashMap<EntryId, State>,
    debited_by: HashMap<EntryId, u64>,
    sent: HashMap<EntryId, (Option<Arc<str>>, u64, u32)>,
    /// Unkeyed requests that may have reached the service whole.
    may_have_run: HashSet<EntryId>,
    pub billed: u128,
    pub debited: u128,
}

const HOUR_MS: u64 = 3_600_000;

impl Audit {
    /// A record became durable.
    pub fn durable(&mut self, record: &Record) {
        let id = match record {
            Record::Intent(intent) => {
                let purchase: Arc<str> = intent.key.as_ref().map_or_else(
                    || intent.id.to_string().into(),
                    |key| Arc::clone(&key.value),
                );
                self.intents.insert(intent.id);
                self.purchase_of.insert(intent.id, Arc::clone(&purchase));
                let purchase = self.purchases.entry(purchase).or_default();
                purchase.loose.insert(intent.id);
                return;
            }
            Record::Outcome(outcome, _, verdict) => {
                self.outcome_is_fair(outcome, verdict.state);
                self.end(outcome.id, verdict.state);
                assert_eq!(verdict.adds_micro_usd, verdict.state.adds(), "I10");
                outcome.id
            }
            Record::Crashed(ended, _) | Record::Withdrawn(ended, _) => {
                self.end(ended.id, ended.state);
                ended.id
            }
            Record::Reconciled(evidence, _) => {
                let billed = evidence.adds_micro_usd;
                self.end(evidence.id, State::Reconciled { billed });
                evidence.id
            }
            Record::Delivery(row, handover) => {
                if handover.assumed {
                    self.may_be_asked_again(row.id);
                }
                return;
            }
            Record::Rollup(_) | Record::Unknown => panic!("the model writes no such record"),
        };
        self.check(id);
    }

    fn outcome_is_fair(&self, outcome: &crate::ledger::entry::Outcome, state: State) {
        let told = outcome.receipt.billed;
        if let State::Settled { .. } = state {
            let earlier = outcome.broken_billed.is_some();
            assert!(
                matches!(told, Told::Value(_)) || earlier,
                "I5: settled, not told"
            );
        }
        if state == State::Failed {
            let ran_nothing = |end| matches!(end, AttemptEnd::NotSent | AttemptEnd::Refused);
            assert!(
                outcome
                    .attempts
                    .iter()
                    .all(|attempt| ran_nothing(attempt.end)),
                "I4: failed, with an attempt that may have run"
            );
        }
    }

    fn end(&mut self, id: EntryId, state: State) {
        if let State::Failed = state {
            let debited = self.debited_by.get(&id).copied().unwrap_or(0);
            assert_eq!(
                debited, 0,
                "I4: failed is free, the service's books say otherwise"
            );
        }
        self.outcomes.insert(id, state);
        let purchase = self
            .purchase_of
            .get(&id)
            .expect("I1: an end without an intent");
        let purchase = self.purchases.get_mut(purchase).expect("its purchase");
        if state.is_unresolved() {
            purchase.loose.insert(id);
        } else {
            purchase.loose.remove(&id);
        }
        let adds = state.adds().get();
        if adds > 0 {
            purchase.settled += adds;
            purchase.settlements += 1;
            self.billed += u128::from(adds);
        }
    }

    /// The service debited the purchase of this entry.
    pub fn debit(&mut self, debit: &Debit) {
        let id = EntryId(uuid::Uuid::from_u128(debit.owner));
        *self.debited_by.entry(id).or_default() += debit.amount;
        assert_ne!(
            self.outcomes.get(&id).filter(|_| debit.amount > 0),
            Some(&State::Failed),
            "I4: debited after it was called failed"
        );
        self.debited += u128::from(debit.amount);
        let purchase = self
            .purchase_of
            .get(&id)
            .expect("I1: debited without an intent");
        let purchase = self.purchases.get_mut(purchase).expect("its purchase");
        purchase.debited += debit.amount;
        purchase.debits += u64::from(debit.amount > 0);
        self.check(id);
    }

    /// An attempt leaves bursar.
    pub fn send(&mut self, send: &Send<'_>) {
        assert!(
            self.intents.contains(&send.entry),
            "I1: sent before its intent"
        );
        assert!(
            !self.outcomes.contains_key(&send.entry),
            "I12: sent after its end"
        );
        let first = self
            .sent
            .entry(send.entry)
            .or_insert_with(|| (send.key.cloned(), send.body, 0));
        assert_eq!(first.0.as_ref(), send.key, "I6: another key");
        assert_eq!(first.1, send.body, "I6: another body");
        first.2 += 1;
        assert!(first.2 <= 3, "I12: sent more often than allowed");
        if send.key.is_none() {
            let may_have_run = self.may_have_run.contains(&send.entry);
            assert!(!may_have_run, "I7: unkeyed and sent again");
        } else if send.repeats {
            self.may_repeat(send.now, send.began);
        }
    }

    /// A key goes again by itself.
    pub fn may_repeat(&self, now: Ages, began: Ages) {
        let wall = now.wall_ms.saturating_sub(began.wall_ms);
        let monotonic = now.monotonic_ms - began.monotonic_ms;
        let is_set_back = now.wall_ms + 1000 < began.wall_ms;
        let is_doubtful = is_set_back || wall.abs_diff(monotonic) > HOUR_MS / 12;
        assert!(!is_doubtful, "I6: repeated with an age in doubt");
        assert!(
            wall.max(monotonic) < 23 * HOUR_MS,
            "I6: repeated after 23 h"
        );
    }

    /// The request may have reached the service, and was not refused by it.
    pub fn may_have_run(&mut self, id: EntryId) {
        self.may_have_run.insert(id);
    }

    /// An app's own key is sent so late that the service may have forgotten it.
    pub fn outlived(&mut self, id: EntryId) {
        let purchase = self.purchases.get_mut(&self.purchase_of[&id]);
        purchase.expect("its purchase").outlived = true;
    }

    /// The note that an app has the answer is not written, or its opposite is assumed (`Assumed:` in
    /// `ledger/undelivered.rs`).
    pub fn may_be_asked_again(&mut self, id: EntryId) {
        let purchase = self.purchases.get_mut(&self.purchase_of[&id]);
        purchase.expect("its purchase").may_be_asked_again = true;
    }

    /// An app has a complete success of this entry.
    pub fn delivered(&mut self, id: EntryId, is_own_key: bool) {
        assert!(
            self.outcomes.contains_key(&id),
            "I2: success before its receipt"
        );
        let purchase = self.purchases.get_mut(&self.purchase_of[&id]);
        let purchase = purchase.expect("its purchase");
        purchase.deliveries += 1;
        assert!(
            is_own_key || purchase.deliveries == 1 || purchase.may_be_asked_again,
            "one purchase was delivered twice"
        );
    }

    /// I3 and the central promise, for one purchase.
    fn check(&self, id: EntryId) {
        let name = &self.purchase_of[&id];
        check(name, &self.purchases[name]);
    }

    pub fn check_all(&self) {
        for (name, purchase) in &self.purchases {
            check(name, purchase);
        }
        assert!(self.billed <= self.debited, "more settled than debited");
    }
}

fn check(name: &str, purchase: &Purchase) {
    let Purchase {
        settled, debited, ..
    } = purchase;
    assert!(
        purchase.settlements <= purchase.debits && settled <= debited,
        "I3: {name}: settled {settled}, debited {debited}"
    );
    assert!(
        settled == debited || !purchase.loose.is_empty() || purchase.outlived,
        "I12: {name}: debited {debited}, settled {settled}, and nothing is in doubt"
    );
}
