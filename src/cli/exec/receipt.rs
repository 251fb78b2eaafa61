//! What a run cost, folded from the ledger's entries with its name.
//!
//! Promise: a sum holds known amounts only; what is not known is counted beside it. What was saved
//! against a frontier model is summed over the answers that carry both prices, with their number.

use std::fmt::Write;
use std::time::Duration;

use serde_json::{Value, json};

use crate::cli::error::CliError;
use crate::cli::source::Source;
use crate::ledger::entry::{KeyOrigin, State};
use crate::ledger::query::{DeliveryWord, EntryView, Filter};
use crate::ledger::{Compared, MicroUsdSum};
use crate::money::MicroUsd;
use crate::protocol::Escalated;

/// How long the last answers of a run may take to be settled.
const SETTLE_MAX: Duration = Duration::from_secs(3);
const LOOK: Duration = Duration::from_millis(100);

/// How far the clock may have been set back since the run began.
const CLOCK_SLACK_MS: u64 = 60 * 60 * 1000;

/// The sums of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct RunReceipt {
    requests: u64,
    /// `None`: more than can be held.
    billed: Option<MicroUsd>,
    escalated: u64,
    /// Answers with a price that did not report whether they were escalated.
    escalation_unknown: u64,
    joined: u64,
    adopted: u64,
    replayed: u64,
    failed: u64,
    in_doubt: u64,
    unreported: u64,
    open: u64,
    compared: Compared,
}

/// Reads until every entry of the run has ended, or for some seconds.
pub(super) async fn of(place: &Source, run: &str, started_ms: u64) -> Result<RunReceipt, CliError> {
    let filter = Filter {
        since_ms: Some(started_ms.saturating_sub(CLOCK_SLACK_MS)),
        ..Filter::default()
    };
    let until = tokio::time::Instant::now() + SETTLE_MAX;
    loop {
        let mut receipt = RunReceipt::new();
        let mut visit = |entry: EntryView| {
            if entry.run.as_deref() == Some(run) {
                receipt.add(&entry);
            }
            Ok(())
        };
        place.for_each_receipt(&filter, &mut visit).await?;
        if receipt.open == 0 || tokio::time::Instant::now() >= until {
            return Ok(receipt);
        }
        tokio::time::sleep(LOOK).await;
    }
}

// === impl RunReceipt ===

impl RunReceipt {
    fn new() -> Self {
        Self {
            billed: Some(MicroUsd::ZERO),
            ..Self::default()
        }
    }

    fn add(&mut self, entry: &EntryView) {
        self.requests += 1;
        self.billed = self
            .billed
            .and_then(|sum| sum.checked_add(entry.state.adds()));
        match entry.state {
            State::Open => self.open += 1,
            State::Failed => self.failed += 1,
            State::InDoubt { .. } => self.in_doubt += 1,
            State::Unreported => self.unreported += 1,
            State::Replayed => self.replayed += 1,
            State::Settled { .. } | State::Reconciled { .. } => {}
        }
        match entry.escalated {
            Escalated::True => self.escalated += 1,
            Escalated::Unknown if !entry.state.adds().is_zero() => self.escalation_unknown += 1,
            Escalated::Unknown | Escalated::False => {}
        }
        if matches!(entry.key_origin, Some(KeyOrigin::Adopted { .. })) {
            self.adopted += 1;
        }
        if entry.delivery == Some(DeliveryWord::Late) {
            self.joined += 1;
        }
        if let (State::Settled { billed }, Some(estimate)) =
            (entry.state, entry.would_have_cost_micro_usd)
        {
            self.compared += Compared::one(billed, estimate);
        }
    }

    /// Retries of the app's that were not bought again.
    fn saved_retries(&self) -> u64 {
        self.joined.saturating_add(self.adopted)
    }

    /// For people, on standard error. The first five lines are always there.
    pub(super) fn text(&self, run: &str, app: &str, max: Option<MicroUsd>) -> String {
        let limit = max.map_or_else(String::new, |max| format!(" of {max}"));
        let mut text = format!("bursar: run {run} of {app} has ended");
        let mut line = |name: &str, value: String| {
            // Writing to a string does not fail.
            let _ = write!(text, "\nbursar:   {name:<24}{value}");
        };
        line("requests", self.requests.to_string());
        line("billed", format!("{}{limit}", shown(self.billed)));
        let unknown = match self.escalation_unknown {
            0 => String::new(),
            count => format!(" ({count} did not report it)"),
        };
        line("escalated", format!("{}{unknown}", self.escalated));
        let how = match (self.joined, self.adopted) {
            (0, 0) => String::new(),
            (joined, adopted) => format!(" ({joined} joined, {adopted} adopted)"),
        };
        line("retries saved", format!("{}{how}", self.saved_retries()));
        line("saved against frontier", self.compared.to_string());
        for (name, count) in [
            ("replayed, billed 0", self.replayed),
            ("failed, billed 0", self.failed),
            ("in doubt", self.in_doubt),
            ("without a price", self.unreported),
            ("not ended yet", self.open),
        ] {
            if count > 0 {
                line(name, count.to_string());
            }
        }
        text
    }

    /// The same as one JSON object.
    pub(super) fn document(&self, run: &str, app: &str, max: Option<MicroUsd>) -> Value {
        json!({
            "run": run,
            "app": app,
            "max_micro_usd": max,
            "requests": self.requests,
            "billed_micro_usd": self.billed,
            "escalated": self.escalated,
            "escalated_unknown": self.escalation_unknown,
            "saved_retries": self.saved_retries(),
            "joined": self.joined,
            "adopted": self.adopted,
            "replayed": self.replayed,
            "failed": self.failed,
            "in_doubt": self.in_doubt,
            "unreported": self.unreported,
            "open": self.open,
            "compared": self.compared.answers,
            "would_have_cost_micro_usd": self.compared.frontier.as_amount(),
            "saved_micro_usd": self.compared.saved().and_then(MicroUsdSum::as_amount),
        })
    }
}

fn shown(amount: Option<MicroUsd>) -> String {
    amount.map_or_else(
        || "more than can be shown".to_owned(),
        |sum| sum.to_string(),
    )
}

#[cfg(test)]
mod tests;
