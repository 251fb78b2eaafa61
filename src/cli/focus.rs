//! Entries as rows of FOCUS 1.0, the FinOps Foundation's form of bills: one row for each entry with a price.
//!
//! A billing period is a calendar month of the time zone, in UTC as the form wants it. Nothing is known of discounts:
//! list, contracted, effective and billed cost are one. What the form has no column for stands in columns that begin
//! with `x_`.
//!
//! Promise: the sum of `BilledCost` is that of the entries with a price, exact to the micro-dollar; an entry without a
//! known price is no row, and is counted. Columns are only ever added at the end.

use std::collections::{BTreeMap, HashMap};

use jiff::tz::TimeZone;
use serde::Serialize;
use serde_json::{Map, Value};

use super::cells::counted;
use super::csv::harmless;
use crate::calendar;
use crate::ledger::MicroUsdSum;
use crate::ledger::entry::{EntryId, State, StateWord};
use crate::ledger::query::EntryView;
use crate::money::MicroUsd;

/// Whose bill it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parties {
    pub provider: String,
    pub billing_account: String,
}

/// What became of the entries: the document beside the rows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct FocusCounts {
    rows: u64,
    billed_micro_usd: MicroUsdSum,
    /// No rows: what they cost is not known.
    without_a_price: BTreeMap<StateWord, u64>,
    /// No rows: they cost nothing.
    free: BTreeMap<StateWord, u64>,
    /// Entries from before this time were compacted, and are in no row (RFC 3339).
    compacted_before: Option<String>,
    /// How each entry was counted. `None`: each comes once.
    #[serde(skip)]
    counted: Option<HashMap<EntryId, StateWord>>,
}

/// The header row.
const COLUMNS: [&str; 49] = [
    "BilledCost",
    "BillingAccountId",
    "BillingAccountName",
    "BillingCurrency",
    "BillingPeriodEnd",
    "BillingPeriodStart",
    "ChargeCategory",
    "ChargeClass",
    "ChargeDescription",
    "ChargeFrequency",
    "ChargePeriodEnd",
    "ChargePeriodStart",
    "CommitmentDiscountCategory",
    "CommitmentDiscountId",
    "CommitmentDiscountName",
    "CommitmentDiscountStatus",
    "CommitmentDiscountType",
    "ConsumedQuantity",
    "ConsumedUnit",
    "ContractedCost",
    "ContractedUnitPrice",
    "EffectiveCost",
    "InvoiceIssuerName",
    "ListCost",
    "ListUnitPrice",
    "PricingCategory",
    "PricingQuantity",
    "PricingUnit",
    "ProviderName",
    "PublisherName",
    "RegionId",
    "RegionName",
    "ResourceId",
    "ResourceName",
    "ResourceType",
    "ServiceCategory",
    "ServiceName",
    "SkuId",
    "SkuPriceId",
    "SubAccountId",
    "SubAccountName",
    "Tags",
    "x_EntryId",
    "x_Lane",
    "x_Model",
    "x_Operation",
    "x_RequestId",
    "x_ServedBy",
    "x_State",
];

/// Of a second: the form has no parts of it.
const SECOND_MS: u64 = 1000;

pub fn names() -> impl Iterator<Item = String> {
    COLUMNS.iter().map(|name| (*name).to_owned())
}

/// The cells of an entry, empty where it has nothing to say. `None`: it is no row.
pub fn cells(entry: &EntryView, parties: &Parties, zone: &TimeZone) -> Option<Vec<String>> {
    let billed = charge(entry)?;
    let row = row(entry, billed, parties, zone);
    let cell = |name: &&str| row.get(name).cloned().unwrap_or_default();
    Some(COLUMNS.iter().map(cell).collect())
}

/// The price of an entry that may have cost something.
fn charge(entry: &EntryView) -> Option<MicroUsd> {
    match entry.state {
        State::Settled { billed } | State::Reconciled { billed } => Some(billed),
        _ => None,
    }
}

fn row(
    entry: &EntryView,
    billed: MicroUsd,
    parties: &Parties,
    zone: &TimeZone,
) -> BTreeMap<&'static str, String> {
    let sum = MicroUsdSum::from(billed);
    let cost = || sum.to_usd();
    let (period_ms, next_period_ms) = calendar::month_ms(entry.at_ms, zone).unzip();
    let begin_ms = entry.at_ms - entry.at_ms % SECOND_MS;
    // The end is not in the period, and no period is empty.
    let end_ms = entry.ended_ms.unwrap_or(begin_ms).max(begin_ms + 1);
    let end_ms = end_ms.div_ceil(SECOND_MS).saturating_mul(SECOND_MS);
    let operation = entry.operation.to_string();
    let served_by = entry.served_by.map(|by| by.to_string());
    let (quantity, unit) = consumed(entry);
    let words = operation.replace('_', " ");
    let description = match &entry.model {
        Some(model) => format!("{words}, model {model}"),
        None => words,
    };
    let price_of = served_by.as_deref().unwrap_or("unknown");
    let or_empty = |text: Option<&String>| text.map(|text| harmless(text)).unwrap_or_default();
    BTreeMap::from([
        ("BilledCost", cost()),
        ("BillingAccountId", harmless(&parties.billing_account)),
        ("BillingCurrency", "USD".to_owned()),
        ("BillingPeriodEnd", utc(next_period_ms)),
        ("BillingPeriodStart", utc(period_ms)),
        ("ChargeCategory", "Usage".to_owned()),
        ("ChargeDescription", harmless(&description)),
        ("ChargeFrequency", "Usage-Based".to_owned()),
        ("ChargePeriodEnd", utc(Some(end_ms))),
        ("ChargePeriodStart", utc(Some(begin_ms))),
        ("ConsumedQuantity", quantity),
        ("ConsumedUnit", unit.to_owned()),
        ("ContractedCost", cost()),
        ("ContractedUnitPrice", cost()),
        ("EffectiveCost", cost()),
        ("InvoiceIssuerName", harmless(&parties.provider)),
        ("ListCost", cost()),
        ("ListUnitPrice", cost()),
        // The price of a request is what the service says afterwards.
        ("PricingCategory", "Dynamic".to_owned()),
        ("PricingQuantity", "1.0".to_owned()),
        ("PricingUnit", "Requests".to_owned()),
        ("ProviderName", harmless(&parties.provider)),
        ("PublisherName", harmless(&parties.provider)),
        ("ServiceCategory", "AI and Machine Learning".to_owned()),
        ("ServiceName", format!("{} lane", entry.lane)),
        ("SkuId", operation.clone()),
        ("SkuPriceId", format!("{operation}/{price_of}")),
        ("SubAccountId", harmless(&entry.app)),
        ("SubAccountName", harmless(&entry.app)),
        ("Tags", tags(entry)),
        ("x_EntryId", entry.id.to_string()),
        ("x_Lane", entry.lane.to_string()),
        ("x_Model", or_empty(entry.model.as_ref())),
        ("x_Operation", operation),
        ("x_RequestId", or_empty(entry.request_id.as_ref())),
        ("x_ServedBy", served_by.unwrap_or_default()),
        ("x_State", entry.state.word().to_string()),
    ])
}

/// `2026-05-09T00:00:00Z`.
fn utc(at_ms: Option<u64>) -> String {
    let text = at_ms.and_then(calendar::rfc3339).unwrap_or_default();
    text.replace(".000Z", "Z")
}

/// What was used, and in which unit: the form wants a number in each row, with a point in it.
fn consumed(entry: &EntryView) -> (String, &'static str) {
    let usage = &entry.usage;
    let both = usage.prompt_tokens.zip(usage.completion_tokens);
    let both = both.and_then(|(input, output)| input.checked_add(output));
    match (usage.total_tokens.or(both), entry.audio_ms) {
        (Some(tokens), _) => (format!("{tokens}.0"), "Tokens"),
        (None, Some(ms)) => (format!("{}.{:03}", ms / 1000, ms % 1000), "Seconds"),
        (None, None) => ("1.0".to_owned(), "Requests"),
    }
}

/// What accountants group by. Its texts are those of the other cells.
fn tags(entry: &EntryView) -> String {
    let tags = [
        ("app", Some(entry.app.to_string())),
        ("lane", Some(entry.lane.to_string())),
        ("operation", Some(entry.operation.to_string())),
        ("model", entry.model.clone()),
        ("served_by", entry.served_by.map(|by| by.to_string())),
        ("run", entry.run.clone()),
        ("session", entry.session.map(|session| session.to_string())),
        ("user", entry.user.clone()),
    ];
    let own = entry.tags.iter();
    let own = own.map(|(key, value)| (format!("tag:{key}"), value.to_owned()));
    let tags = tags
        .into_iter()
        .filter_map(|(name, text)| Some((name.to_owned(), text?)));
    let tags = tags
        .chain(own)
        .map(|(name, text)| (name, Value::String(harmless(&text))));
    Value::Object(tags.collect::<Map<_, _>>()).to_string()
}

// === impl FocusCounts ===

impl FocusCounts {
    /// `compacted_ms`: entries from before then are only in sums.
    pub fn new(compacted_ms: Option<u64>) -> Self {
        Self {
            compacted_before: compacted_ms.and_then(calendar::rfc3339),
            ..Self::default()
        }
    }

    /// For entries that may come again: each counts once, by what it was last.
    #[must_use]
    pub fn each_once(self) -> Self {
        Self {
            counted: Some(HashMap::new()),
            ..self
        }
    }

    /// `false`: it has its row already.
    pub fn count(&mut self, entry: &EntryView) -> bool {
        let word = entry.state.word();
        let counted = self.counted.as_mut();
        match counted.and_then(|counted| counted.insert(entry.id, word)) {
            Some(StateWord::Settled | StateWord::Reconciled) => return false,
            Some(before) => {
                let kind = self.kind(before);
                if let Some(count) = kind.get_mut(&before) {
                    *count = count.saturating_sub(1);
                }
                kind.retain(|_, count| *count > 0);
            }
            None => {}
        }
        match charge(entry) {
            Some(billed) => {
                self.rows += 1;
                self.billed_micro_usd.add(billed);
            }
            None => *self.kind(word).entry(word).or_default() += 1,
        }
        true
    }

    /// Where what is no row is counted.
    fn kind(&mut self, word: StateWord) -> &mut BTreeMap<StateWord, u64> {
        match word {
            StateWord::Failed | StateWord::Replayed => &mut self.free,
            _ => &mut self.without_a_price,
        }
    }

    /// A sentence, where something is not in the rows.
    pub fn remark(&self) -> Option<String> {
        let states = self.without_a_price.iter();
        let parts: Vec<String> = states
            .map(|(state, count)| format!("{count} {state}"))
            .collect();
        let missing: u64 = self.without_a_price.values().sum();
        (missing > 0).then(|| {
            format!(
                "{} in no row, because the price is not known: {}",
                counted(missing, "entry is", "entries are"),
                parts.join(", ").replace('_', " ")
            )
        })
    }
}

#[cfg(test)]
mod tests;
