//! What one record of the journal adds to the sums.
//!
//! Promise: the same record adds the same, whenever it is read; a record that adds nothing has no effect.

use crate::ledger::entry::{AttemptEnd, Labels, Outcome, State};
use crate::ledger::kept_key::KeyOrigin;
use crate::ledger::record::{COMPACTED, Record, Verdict};
use crate::ledger::rollup::Rollup;
use crate::ledger::sums::{
    Compared, Globals, HeldSums, LineKey, LineSums, MicroUsdSum, ReceiptKind,
};
use crate::protocol::Reported;
use crate::protocol::receipt::ReceiptSource;

/// What one record adds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Effect {
    pub line: LineKey,
    pub row: LineSums,
    pub globals: Option<Globals>,
}

// === impl Effect ===

impl Effect {
    /// What a record adds to the sums; `None` for one that adds nothing.
    pub fn of(record: &Record) -> Option<Self> {
        match record {
            Record::Intent(_) | Record::Delivery(..) | Record::Unknown => None,
            Record::Rollup(rollup) => Some(Self::of_rollup(rollup)),
            Record::Outcome(outcome, labels, verdict) => {
                Some(Self::of_outcome(outcome, labels, verdict))
            }
            Record::Crashed(ended, labels) | Record::Withdrawn(ended, labels) => {
                let row = LineSums {
                    adopted: adopted(labels),
                    held: held_from(ended.state, labels),
                    ..LineSums::ended(ended.state)
                };
                Some(Self {
                    line: LineKey::new(labels, None),
                    row,
                    globals: None,
                })
            }
            Record::Reconciled(evidence, labels) => {
                let mut row = LineSums {
                    reconciled: 1,
                    billed: evidence.adds_micro_usd.into(),
                    ..LineSums::default()
                };
                row.held.left = held_from(evidence.was, labels).came;
                match evidence.was {
                    State::Unreported => row.unreported.left = 1,
                    State::InDoubt { reason } => row.in_doubt.entry(reason).or_default().left = 1,
                    _ => {}
                }
                let globals = Globals::of_tags(labels, evidence.adds_micro_usd);
                Some(Self {
                    line: LineKey::new(labels, evidence.served_by),
                    row,
                    globals: Some(globals).filter(|globals| !globals.tagged.is_empty()),
                })
            }
        }
    }

    /// What a record adds to the sums where it lies. An entry that a compacted segment still lists has
    /// its counters in that segment's [`Rollup::globals`].
    pub fn at(record: &Record, segment: u32) -> Option<Self> {
        let mut effect = Self::of(record)?;
        if segment == COMPACTED && !matches!(record, Record::Rollup(_)) {
            effect.globals = None;
        }
        Some(effect)
    }
    /// What is left of many entries adds what they did.
    pub fn of_rollup(rollup: &Rollup) -> Self {
        Self {
            line: LineKey::new(&rollup.labels(), rollup.served_by),
            row: rollup.row.clone(),
            globals: rollup.globals.clone(),
        }
    }

    fn of_outcome(outcome: &Outcome, labels: &Labels, verdict: &Verdict) -> Self {
        let receipt = &outcome.receipt;
        let has = |end| outcome.attempts.iter().any(|attempt| attempt.end == end);
        let is_answered = has(AttemptEnd::Answered);

        let mut row = LineSums {
            billed: verdict.adds_micro_usd.into(),
            // Estimates are kept apart (rule I5), and counted once a key as the amount is.
            would_have_cost: match receipt.would_have_cost.value() {
                Some(estimate) if !receipt.replayed && verdict.state != State::Replayed => {
                    estimate.into()
                }
                _ => MicroUsdSum::default(),
            },
            // A reported count of tokens adds; an absent one does not.
            prompt_tokens: outcome.usage.prompt_tokens.map_or(0, |tokens| tokens),
            completion_tokens: outcome.usage.completion_tokens.map_or(0, |tokens| tokens),
            total_tokens: outcome.usage.total_tokens.map_or(0, |tokens| tokens),
            clarifications: u64::from(is_answered && receipt.input_required.is_some()),
            replays: u64::from(receipt.replayed),
            adopted: adopted(labels),
            held: held_from(verdict.state, labels),
            ..LineSums::ended(verdict.state)
        };
        if let (State::Settled { billed }, Some(estimate)) =
            (verdict.state, receipt.would_have_cost.value())
        {
            row.compared = Compared::one(billed, estimate);
        }
        if outcome.drained {
            row.drained = row.billed;
        }
        if is_answered && labels.operation.is_speech() {
            match outcome.audio_ms {
                Some(audio_ms) => row.audio_ms = audio_ms,
                None => row.audio_untold = 1,
            }
        }
        if is_answered {
            row.answers.insert(receipt.escalated, 1);
        }

        let mut globals = Globals::of_tags(labels, verdict.adds_micro_usd);
        for anomaly in &verdict.anomalies {
            *globals.anomalies.entry(*anomaly).or_default() += 1;
        }
        if is_answered || (has(AttemptEnd::Broken) && !receipt.billed.is_absent()) {
            let kind = match (receipt.replayed, receipt.billed, receipt.source) {
                (true, ..) => ReceiptKind::Replay,
                (_, Reported::Malformed, _) => ReceiptKind::Malformed,
                (_, Reported::Value(_), Some(ReceiptSource::Sse)) => ReceiptKind::Sse,
                (_, Reported::Value(_), Some(ReceiptSource::Body)) => ReceiptKind::Body,
                (_, Reported::Value(_), _) => ReceiptKind::Header,
                (_, Reported::Absent, _) => ReceiptKind::Missing,
            };
            globals.receipts.insert(kind, 1);
        }
        if is_answered && let Some(category) = &receipt.specialist {
            globals.specialists.insert(category.clone(), 1);
        }
        Self {
            line: LineKey::new(labels, receipt.served_by),
            row,
            globals: Some(globals),
        }
    }
}

fn adopted(labels: &Labels) -> u64 {
    let is_adopted = labels
        .key
        .as_ref()
        .is_some_and(|key| matches!(key.origin, KeyOrigin::Adopted { .. }));
    u64::from(is_adopted)
}

/// What caps hold for an entry that came into this state.
pub fn held_from(state: State, labels: &Labels) -> HeldSums {
    let mut held = HeldSums::default();
    if state.is_unresolved()
        && let Some(reserved) = labels.reserved
    {
        held.came = reserved.into();
    }
    held
}
