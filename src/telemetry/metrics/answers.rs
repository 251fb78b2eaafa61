//! What the ledger counted of answers: which model served them, what they reported, and which of them were
//! adopted retries or replays. Read at each scrape, so that a restart takes nothing away (rule I10).

use std::collections::BTreeMap;

use crate::ledger::Totals;
use crate::ledger::entry::Anomaly;
use crate::ledger::totals::ReceiptKind;
use crate::protocol::Lane;
use crate::telemetry::exposition::{Exposition, MetricType};
use crate::telemetry::labels::FirstSeen;

/// Sums over the lines of the ledger.
#[derive(Default)]
struct AnswerSums<'a> {
    /// By app, lane, served-by and escalation.
    answers: BTreeMap<[&'a str; 4], u64>,
    /// By lane and type.
    tokens: BTreeMap<[&'static str; 2], u64>,
    adopted: u64,
    replays: u64,
    clarifications: u64,
}

pub fn write(totals: &Totals, apps: &FirstSeen, text: &mut Exposition) {
    let sums = AnswerSums::of(totals, apps);
    let mut family = text.family(
        MetricType::Counter,
        "bursar_answers_total",
        "Answers with a 2xx status on metered routes, by the model that served them and whether a specialist's answer \
         was escalated, over the whole life of the ledger. Streams do not report it: unknown.",
    );
    for ([app, lane, served_by, escalated], count) in &sums.answers {
        let labels = [
            ("app", *app),
            ("escalated", escalated),
            ("lane", lane),
            ("served_by", served_by),
        ];
        family.sample(&labels, count);
    }
    let mut family = text.family(
        MetricType::Counter,
        "bursar_tokens_total",
        "Tokens that answers reported, over the whole life of the ledger. An answer that reported none adds none.",
    );
    for ([lane, kind], count) in &sums.tokens {
        family.sample(&[("lane", lane), ("type", kind)], count);
    }
    // A series that only appears with its first event hides that event from `increase()`.
    let mut family = text.family(
        MetricType::Counter,
        "bursar_receipts_total",
        "Answers on metered routes that were complete or carried a price, by the place of the price, over the whole \
         life of the ledger. missing: the answer carries none; malformed: what it carries is no amount.",
    );
    for kind in ReceiptKind::ALL {
        let count = totals.globals.receipts.get(kind).copied().unwrap_or(0);
        family.sample(&[("source", kind.as_str())], count);
    }
    let mut family = text.family(
        MetricType::Counter,
        "bursar_receipt_anomalies_total",
        "Receipts that contradict something, over the whole life of the ledger. They are listed, never added \
         to a sum.",
    );
    for kind in Anomaly::ALL {
        let count = totals.globals.anomalies.get(kind).copied().unwrap_or(0);
        family.sample(&[("kind", kind.as_str())], count);
    }
    let mut family = text.family(
        MetricType::Counter,
        "bursar_specialist_answers_total",
        "Answers by the specialist's category, over the whole life of the ledger; the first 32 categories, \
         then other.",
    );
    for (category, count) in &totals.globals.specialists {
        family.sample(&[("category", category)], count);
    }
    for (name, help, count) in [
        (
            "bursar_adopted_retries_total",
            "Entries of retries under the key of their first try, so that they are billed once, over the \
             whole life of the ledger; one that was refused after its intent was written counts too.",
            sums.adopted,
        ),
        (
            "bursar_idempotent_replays_total",
            "Answers, refusals too, that the service marked as a replay, over the whole life of the ledger: they add 0.",
            sums.replays,
        ),
        (
            "bursar_clarifications_total",
            "Answers that ask the app for missing input, billed 0, over the whole life of the ledger.",
            sums.clarifications,
        ),
    ] {
        text.family(MetricType::Counter, name, help)
            .sample(&[], count);
    }
}

// === impl AnswerSums ===

impl<'a> AnswerSums<'a> {
    fn of(totals: &'a Totals, apps: &'a FirstSeen) -> Self {
        let mut sums = Self::default();
        for lane in Lane::ALL {
            for kind in ["input", "output"] {
                sums.tokens.insert([lane.as_str(), kind], 0);
            }
        }
        for (line, row) in &totals.lines {
            let (app, lane) = (apps.hold(&line.app), line.lane.as_str());
            for (escalated, count) in &row.answers {
                let labels = [app, lane, line.served_by_word(), escalated.as_str()];
                add(sums.answers.entry(labels).or_default(), *count);
            }
            for (kind, count) in [
                ("input", row.prompt_tokens),
                ("output", row.completion_tokens),
            ] {
                add(sums.tokens.entry([lane, kind]).or_default(), count);
            }
            add(&mut sums.adopted, row.adopted);
            add(&mut sums.replays, row.replays);
            add(&mut sums.clarifications, row.clarifications);
        }
        sums
    }
}

/// A counter that ran over would go back.
fn add(sum: &mut u64, more: u64) {
    *sum = sum.saturating_add(more);
}
