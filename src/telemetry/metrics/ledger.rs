//! What the ledger knows beside money: what has no price yet, and how it is itself. Asked at each
//! scrape; nothing is kept here.

use std::collections::BTreeMap;

use crate::ledger::entry::InDoubt;
use crate::ledger::{LedgerHealth, Totals};
use crate::protocol::Operation;
use crate::telemetry::exposition::{Exposition, MetricType, MsAsSeconds};
use crate::telemetry::labels::FirstSeen;

/// What speech is billed by, where the service reports no price.
pub(super) fn write_audio(totals: &Totals, text: &mut Exposition) {
    let mut family = text.family(
        MetricType::Counter,
        "bursar_audio_seconds_total",
        "Sound of the speech routes' complete answers as the service reported it, over the whole life of \
         the ledger.",
    );
    let sums = totals.audio_ms();
    for operation in Operation::ALL.iter().filter(|of| of.is_speech()) {
        let ms = sums.get(operation).copied().unwrap_or(0);
        family.sample(&[("operation", operation.as_str())], MsAsSeconds(ms));
    }
}

/// What the ledger does not know the price of (rule I12): counted, beside the sum that is known.
pub(super) fn write_unknowns(totals: &Totals, apps: &FirstSeen, text: &mut Exposition) {
    let mut in_doubt: BTreeMap<_, u64> = BTreeMap::new();
    for (line, row) in &totals.lines {
        let app = apps.hold(&line.app);
        // Each reason of each app: a series that only appears with its first doubt hides it from `delta()`.
        for reason in InDoubt::ALL {
            let standing = row.in_doubt.get(reason);
            let now = standing.map_or(0, |standing| standing.now());
            let sum = in_doubt.entry([app, reason.as_str()]).or_default();
            *sum = sum.saturating_add(now);
        }
    }
    let mut family = text.family(
        MetricType::Gauge,
        "bursar_in_doubt_requests",
        "Entries that may have been billed and whose amount is not known, by the reason.",
    );
    for ([app, reason], count) in &in_doubt {
        family.sample(&[("app", app), ("reason", reason)], count);
    }
    let mut family = text.family(
        MetricType::Gauge,
        "bursar_unreported_requests",
        "Complete answers for which the service reports no amount.",
    );
    let sums = totals.unreported();
    for operation in Operation::ALL {
        let count = sums.get(operation).copied().unwrap_or(0);
        family.sample(&[("operation", operation.as_str())], count);
    }
}

pub(super) fn write_health(health: &LedgerHealth, text: &mut Exposition) {
    text.family(
        MetricType::Gauge,
        "bursar_ledger_writable",
        "1 while the ledger takes entries; 0: metered requests are refused, or with [ledger] \
         on_failure = \"serve\" sent and kept in memory.",
    )
    .sample(&[], u8::from(health.is_writable()));
    text.family(
        MetricType::Gauge,
        "bursar_ledger_unwritten_entries",
        "Entries that wait in memory because the ledger could not be written. They are lost if the \
         process dies before it can be.",
    )
    .sample(&[], health.waiting);
    text.family(
        MetricType::Counter,
        "bursar_ledger_dropped_entries_total",
        "Entries whose outcome found no room to wait: in doubt after the next start.",
    )
    .sample(&[], health.dropped);
    text.family(
        MetricType::Gauge,
        "bursar_journal_bytes",
        "Size of all segments of the journal.",
    )
    .sample(&[], health.journal_bytes);
    let mut family = text.family(
        MetricType::Gauge,
        "bursar_journal_last_commit_timestamp_seconds",
        "When the last group commit was durable.",
    );
    if let Some(at_ms) = health.last_commit_ms {
        family.sample(&[], MsAsSeconds(at_ms));
    }
    text.family(
        MetricType::Gauge,
        "bursar_journal_quarantined_ranges",
        "Damaged ranges of the journal that were set aside; `bursar ledger verify` lists them.",
    )
    .sample(&[], health.quarantined);
    text.family(
        MetricType::Gauge,
        "bursar_index_lag_records",
        "Records of the journal that are not in the index yet.",
    )
    .sample(&[], health.index_lag_records);
    text.family(
        MetricType::Counter,
        "bursar_index_rebuilds_total",
        "Indexes rebuilt from the journal because the one that was found could not be trusted.",
    )
    .sample(&[], health.index_rebuilds);
    text.family(
        MetricType::Counter,
        "bursar_keys_dropped_total",
        "Idempotency-Keys forgotten, or their entries without an amount, before their 24 hours were over.",
    )
    .sample(&[], health.keys_dropped);
}
