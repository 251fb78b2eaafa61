//! What one record adds to the sums.
//!
//! Promise: by what the record says alone, so that it adds the same when it is read back.

use super::{Effect, Globals, MicroUsdSum, ReceiptKind, RollupKey, Row};
use crate::ledger::entry::{AttemptEnd, KeyOrigin, Outcome, State};
use crate::ledger::record::{Labels, Record, Verdict};
use crate::protocol::Told;
use crate::protocol::receipt::ReceiptSource;

// === impl Effect ===

impl Effect {
    /// What a record adds to the sums; `None` for one that adds nothing.
    pub fn of(record: &Record) -> Option<Self> {
        match record {
            Record::Intent(_) | Record::Delivery(..) | Record::Unknown => None,
            Record::Outcome(outcome, labels, verdict) => {
                Some(Self::of_outcome(outcome, labels, verdict))
            }
            Record::Crashed(ended, labels) | Record::Withdrawn(ended, labels) => {
                let mut row = Row {
                    requests: 1,
                    adopted: adopted(labels),
                    ..Row::default()
                };
                row.enter(ended.state);
                Some(Self {
                    key: RollupKey::new(labels, None),
                    row,
                    globals: None,
                })
            }
            Record::Reconciled(evidence, labels) => {
                let mut row = Row {
                    reconciled: 1,
                    billed: evidence.adds_micro_usd.into(),
                    ..Row::default()
                };
                match evidence.was {
                    State::Unreported => row.unreported.left = 1,
                    State::InDoubt { reason } => row.in_doubt.entry(reason).or_default().left = 1,
                    _ => {}
                }
                Some(Self {
                    key: RollupKey::new(labels, evidence.served_by),
                    row,
                    globals: None,
                })
            }
        }
    }

    fn of_outcome(outcome: &Outcome, labels: &Labels, verdict: &Verdict) -> Self {
        let receipt = &outcome.receipt;
        let has = |end| outcome.attempts.iter().any(|attempt| attempt.end == end);
        let is_answered = has(AttemptEnd::Answered);

        let mut row = Row {
            requests: 1,
            billed: verdict.adds_micro_usd.into(),
            // Estimates are kept apart (rule I5), and counted once a key as the amount is.
            would_have_cost: match receipt.would_have_cost.value() {
                Some(estimate) if !receipt.replayed && verdict.state != State::Replayed => {
                    estimate.into()
                }
                _ => MicroUsdSum::default(),
            },
            // Told or not told: a count of tokens that was told adds, another one does not.
            prompt_tokens: outcome.usage.prompt_tokens.map_or(0, |tokens| tokens),
            completion_tokens: outcome.usage.completion_tokens.map_or(0, |tokens| tokens),
            total_tokens: outcome.usage.total_tokens.map_or(0, |tokens| tokens),
            clarifications: u64::from(is_answered && receipt.input_required.is_some()),
            replays: u64::from(receipt.replayed),
            adopted: adopted(labels),
            ..Row::default()
        };
        if outcome.drained {
            row.drained = row.billed;
        }
        row.enter(verdict.state);
        if is_answered {
            row.answers.insert(receipt.escalated, 1);
        }

        let mut globals = Globals::default();
        for anomaly in &verdict.anomalies {
            *globals.anomalies.entry(*anomaly).or_default() += 1;
        }
        if is_answered || (has(AttemptEnd::Broken) && !receipt.billed.is_absent()) {
            let kind = match (receipt.replayed, receipt.billed, receipt.source) {
                (true, ..) => ReceiptKind::Replay,
                (_, Told::Malformed, _) => ReceiptKind::Malformed,
                (_, Told::Value(_), Some(ReceiptSource::Sse)) => ReceiptKind::Sse,
                (_, Told::Value(_), Some(ReceiptSource::Body)) => ReceiptKind::Body,
                (_, Told::Value(_), _) => ReceiptKind::Header,
                (_, Told::Absent, _) => ReceiptKind::Missing,
            };
            globals.receipts.insert(kind, 1);
        }
        if is_answered && let Some(category) = &receipt.specialist {
            globals.specialists.insert(category.clone(), 1);
        }
        Self {
            key: RollupKey::new(labels, receipt.served_by),
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
