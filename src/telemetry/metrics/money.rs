//! Money, summed by the ledger in integers and asked at each scrape; beside it, in families of their own, the
//! estimates, which are in no sum of billed money (rule I5).
//!
//! Promise: the decimals are the ledger's to the micro-dollar, whatever restarts and crashes (rule I10). What is
//! to be compared is summed over the same answers: those that reported both prices.

use std::collections::BTreeMap;

use crate::ledger::Totals;
use crate::ledger::totals::{Compared, MicroUsdSum};
use crate::money::MicroUsd;
use crate::telemetry::exposition::{Exposition, MetricType};
use crate::telemetry::labels::FirstSeen;

pub(super) fn write(totals: &Totals, apps: &FirstSeen, text: &mut Exposition) {
    let mut billed: BTreeMap<_, MicroUsdSum> = BTreeMap::new();
    let mut estimates: BTreeMap<_, MicroUsdSum> = BTreeMap::new();
    let mut compared: BTreeMap<_, Compared> = BTreeMap::new();
    for (line, row) in &totals.lines {
        let app = apps.hold(&line.app);
        let (lane, operation) = (line.lane.as_str(), line.operation.as_str());
        let labels = [app, lane, operation, line.served_by_word()];
        billed.entry(labels).or_default().merge(row.billed);
        let estimate = estimates.entry([app, lane]).or_default();
        estimate.merge(row.would_have_cost);
        if row.compared.answers > 0 {
            *compared.entry([app, lane, operation]).or_default() += row.compared;
        }
    }
    let mut family = text.family(
        MetricType::Counter,
        "bursar_billed_usd_total",
        "What the service said it billed, in USD, over the whole life of the ledger. What is \
         not known is in bursar_in_doubt_requests and bursar_unreported_requests.",
    );
    for ([app, lane, operation, served_by], sum) in &billed {
        let labels = [
            ("app", *app),
            ("lane", lane),
            ("operation", operation),
            ("served_by", served_by),
        ];
        family.sample(&labels, sum.to_usd());
    }
    let mut family = text.family(
        MetricType::Counter,
        "bursar_frontier_would_have_cost_usd_total",
        "The service's estimate of what a frontier model would have cost, in USD, for the answers \
         that carried one, over the whole life of the ledger. Others are billed too: for savings take \
         bursar_compared_frontier_usd_total.",
    );
    for ([app, lane], sum) in &estimates {
        family.sample(&[("app", *app), ("lane", lane)], sum.to_usd());
    }
    type Sum = fn(&Compared) -> MicroUsdSum;
    let of_compared: [(_, _, Sum); 2] = [
        (
            "bursar_compared_billed_usd_total",
            "What was billed, in USD, for the answers that reported both prices, over the whole life of the ledger.",
            |sums| sums.billed,
        ),
        (
            "bursar_compared_frontier_usd_total",
            "What a frontier model would have cost by the service's estimate, in USD, for the same answers as in \
             bursar_compared_billed_usd_total, over the whole life of the ledger. The difference is what was saved.",
            |sums| sums.frontier,
        ),
    ];
    for (name, help, sum) in of_compared {
        let mut family = text.family(MetricType::Counter, name, help);
        for ([app, lane, operation], sums) in &compared {
            let labels = [("app", *app), ("lane", lane), ("operation", operation)];
            family.sample(&labels, sum(sums).to_usd());
        }
    }
    text.family(
        MetricType::Counter,
        "bursar_drained_usd_total",
        "What answers cost whose app had left when they ended, in USD, over the whole life of the \
         ledger. It is in bursar_billed_usd_total too.",
    )
    .sample(&[], totals.drained().to_usd());
}

pub(super) fn write_repeats_avoided(sum: MicroUsd, text: &mut Exposition) {
    text.family(
        MetricType::Counter,
        "bursar_repeats_avoided_usd_estimate_total",
        "What retries of apps would have cost as purchases of their own, in USD: for each one that joined its first \
         try or adopted its key, the price of that purchase, once it is settled. An estimate: a second answer may \
         have had another price, and where the price is not known nothing is added.",
    )
    .sample(&[], MicroUsdSum::from(sum).to_usd());
}
