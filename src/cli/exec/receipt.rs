//! What a run came to, folded from the ledger's entries with its name.
//!
//! Promise: a sum holds known amounts only; what is not known is counted beside it. What was saved
//! against a frontier model is told for the answers whose two prices the service told, and for how
//! many.

use std::fmt::Write;
use std::time::Duration;

use serde_json::{Value, json};

use crate::cli::CliError;
use crate::cli::source::Source;
use crate::ledger::query::Filter;
use crate::money::MicroUsd;

/// How long the last answers of a run may take to be settled.
const SETTLE_MAX: Duration = Duration::from_secs(3);
const LOOK: Duration = Duration::from_millis(100);

/// How far the clock may have been set back since the run began.
const CLOCK_SLACK_MS: u64 = 60 * 60 * 1000;

/// The sums of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Receipt {
    requests: u64,
    /// `None`: more than can be held.
    billed: Option<MicroUsd>,
    escalated: u64,
    joined: u64,
    adopted: u64,
    replayed: u64,
    failed: u64,
    in_doubt: u64,
    unreported: u64,
    open: u64,
    /// What a frontier model would have cost, and what was billed instead, where both are known.
    compared: u64,
    frontier: Option<MicroUsd>,
    instead: Option<MicroUsd>,
}

/// Reads until every entry of the run has ended, or for some seconds.
pub(super) async fn of(place: &Source, run: &str, started_ms: u64) -> Result<Receipt, CliError> {
    let filter = Filter {
        since_ms: Some(started_ms.saturating_sub(CLOCK_SLACK_MS)),
        ..Filter::default()
    };
    let until = tokio::time::Instant::now() + SETTLE_MAX;
    loop {
        let mut receipt = Receipt::new();
        let mut visit = |entry: Value| {
            if entry.get("run").and_then(Value::as_str) == Some(run) {
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

// === impl Receipt ===

impl Receipt {
    fn new() -> Self {
        Self {
            billed: Some(MicroUsd::ZERO),
            frontier: Some(MicroUsd::ZERO),
            instead: Some(MicroUsd::ZERO),
            ..Self::default()
        }
    }

    /// Takes one entry, as [`crate::admin::documents::receipt`] describes it.
    fn add(&mut self, entry: &Value) {
        let text = |name: &str| entry.get(name).and_then(Value::as_str);
        let amount = |name: &str| entry.get(name).and_then(Value::as_u64).map(MicroUsd::new);
        self.requests += 1;
        let billed = amount("billed_micro_usd");
        if let Some(billed) = billed {
            self.billed = self.billed.and_then(|sum| sum.checked_add(billed));
        }
        match text("state") {
            Some("open") => self.open += 1,
            Some("failed") => self.failed += 1,
            Some("in_doubt") => self.in_doubt += 1,
            Some("unreported") => self.unreported += 1,
            Some("replayed") => self.replayed += 1,
            _ => {}
        }
        if text("escalated") == Some("true") || entry.get("escalated") == Some(&json!(true)) {
            self.escalated += 1;
        }
        if entry.pointer("/key_origin/adopted").is_some() {
            self.adopted += 1;
        }
        if text("delivery") == Some("late") {
            self.joined += 1;
        }
        let is_settled = text("state") == Some("settled");
        if let (true, Some(billed), Some(estimate)) =
            (is_settled, billed, amount("would_have_cost_micro_usd"))
        {
            self.compared += 1;
            self.frontier = self.frontier.and_then(|sum| sum.checked_add(estimate));
            self.instead = self.instead.and_then(|sum| sum.checked_add(billed));
        }
    }

    /// `None` where nothing can be compared, and where the frontier would have been the cheaper.
    fn saved(&self) -> Option<MicroUsd> {
        if self.compared == 0 {
            return None;
        }
        self.frontier?.checked_sub(self.instead?)
    }

    /// For people, on standard error.
    pub(super) fn text(&self, run: &str, app: &str, max: Option<MicroUsd>) -> String {
        let shown = |amount: Option<MicroUsd>| {
            amount.map_or_else(
                || "more than can be shown".to_owned(),
                |sum| sum.to_string(),
            )
        };
        let limit = max.map_or_else(String::new, |max| format!(" of {max}"));
        let mut text = format!(
            "bursar: run {run} of {app}: {} requests, {} billed{limit}",
            self.requests,
            shown(self.billed)
        );
        let mut line = |words: &[(&str, u64)]| {
            let words: Vec<String> = words
                .iter()
                .filter(|(_, count)| *count > 0)
                .map(|(word, count)| format!("{count} {word}"))
                .collect();
            if !words.is_empty() {
                // Writing to a string does not fail.
                let _ = write!(text, "\nbursar:   {}", words.join(", "));
            }
        };
        line(&[
            ("escalated", self.escalated),
            ("retries joined", self.joined),
            ("retries adopted", self.adopted),
            ("replayed", self.replayed),
            ("failed (billed 0)", self.failed),
        ]);
        line(&[
            ("in doubt", self.in_doubt),
            ("without a price (unreported)", self.unreported),
            ("not ended yet", self.open),
        ]);
        if let Some(saved) = self.saved() {
            let _ = write!(
                text,
                "\nbursar:   saved against a frontier model: {saved} ({} answers told both prices)",
                self.compared
            );
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
            "joined": self.joined,
            "adopted": self.adopted,
            "replayed": self.replayed,
            "failed": self.failed,
            "in_doubt": self.in_doubt,
            "unreported": self.unreported,
            "open": self.open,
            "compared": self.compared,
            "would_have_cost_micro_usd": self.frontier,
            "saved_micro_usd": self.saved(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_the_sum_of_its_entries() {
        let mut receipt = Receipt::new();
        for entry in [
            json!({"state": "settled", "billed_micro_usd": 40, "would_have_cost_micro_usd": 100,
                "escalated": "false"}),
            json!({"state": "settled", "billed_micro_usd": 2, "escalated": "true",
                "key_origin": {"adopted": {"from": "x"}}}),
            json!({"state": "reconciled", "billed_micro_usd": 5, "would_have_cost_micro_usd": 7,
                "delivery": "late"}),
            json!({"state": "replayed", "billed_micro_usd": 0}),
            json!({"state": "failed", "billed_micro_usd": 0}),
            json!({"state": "in_doubt", "billed_micro_usd": null}),
            json!({"state": "unreported", "billed_micro_usd": null}),
            json!({"state": "open", "billed_micro_usd": null}),
        ] {
            receipt.add(&entry);
        }

        let document = receipt.document("r", "nightly", Some(MicroUsd::new(2_000_000)));
        let wanted = json!({
            "run": "r", "app": "nightly", "max_micro_usd": 2_000_000, "requests": 8,
            "billed_micro_usd": 47, "escalated": 1, "joined": 1, "adopted": 1, "replayed": 1,
            "failed": 1, "in_doubt": 1, "unreported": 1, "open": 1, "compared": 1,
            "would_have_cost_micro_usd": 100, "saved_micro_usd": 60,
        });
        assert_eq!(document, wanted);
        let text = receipt.text("r", "nightly", Some(MicroUsd::new(2_000_000)));
        assert_eq!(
            text,
            "bursar: run r of nightly: 8 requests, $0.000047 billed of $2.000000\n\
             bursar:   1 escalated, 1 retries joined, 1 retries adopted, 1 replayed, 1 failed (billed 0)\n\
             bursar:   1 in doubt, 1 without a price (unreported), 1 not ended yet\n\
             bursar:   saved against a frontier model: $0.000060 (1 answers told both prices)"
        );
    }

    #[test]
    fn what_cannot_be_known_is_not_told_as_a_number() {
        let mut dearer = Receipt::new();
        dearer.add(
            &json!({"state": "settled", "billed_micro_usd": 9, "would_have_cost_micro_usd": 8}),
        );
        assert_eq!(dearer.saved(), None);
        assert_eq!(Receipt::new().saved(), None);
        let mut beyond = Receipt::new();
        for _ in 0..2 {
            beyond.add(&json!({"state": "settled", "billed_micro_usd": u64::MAX}));
        }
        assert_eq!(
            beyond.document("r", "a", None)["billed_micro_usd"],
            Value::Null
        );
    }
}
