//! What was billed for the values of tags that the configuration lists (`[[app]] tag_metrics`): one family a key.
//!
//! Promise: a family's series of an app add up to what the app was billed; no value is a label that the
//! configuration does not list.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::config::App;
use crate::ledger::Totals;
use crate::ledger::totals::MicroUsdSum;
use crate::protocol::tags::TagKey;
use crate::telemetry::exposition::{Exposition, MetricType};
use crate::telemetry::labels::{FirstSeen, OTHER};

/// The value of what has none.
const NONE: &str = "none";

/// A key of an app with the values that are shown.
#[derive(Debug)]
pub struct ListedTag {
    key: TagKey,
    app: Arc<str>,
    values: Vec<String>,
}

// === impl ListedTag ===

impl ListedTag {
    /// Of all apps, sorted by key.
    pub fn of(apps: &[App]) -> Vec<Self> {
        let mut listed = Vec::new();
        for app in apps {
            for key in &app.tags {
                let values = app.tag_metrics.iter().filter(|value| value.key == *key);
                let values: Vec<String> = values.map(|listed| listed.value.clone()).collect();
                if !values.is_empty() {
                    listed.push(Self {
                        key: *key,
                        app: Arc::clone(&app.name),
                        values,
                    });
                }
            }
        }
        listed.sort_by_key(|listed| listed.key);
        listed
    }

    /// What its values were billed, each, and what all others were.
    fn sums(&self, totals: &Totals) -> Vec<(&str, MicroUsdSum)> {
        let none = &BTreeMap::new();
        let keys = totals.globals.tagged.get(&*self.app);
        let tagged = keys.and_then(|keys| keys.get(&self.key)).unwrap_or(none);
        let of = |value: &String| tagged.get(value).copied().unwrap_or_default();
        let named = self.values.iter().map(|value| (value.as_str(), of(value)));
        let mut sums: Vec<_> = named.collect();
        let (mut with_value, mut other) = (0u128, MicroUsdSum::default());
        for (value, billed) in tagged {
            with_value = with_value.saturating_add(billed.get());
            if !self.values.contains(value) {
                other.merge(*billed);
            }
        }
        let mut all = MicroUsdSum::default();
        let lines = totals.lines.iter().filter(|(line, _)| line.app == self.app);
        lines.for_each(|(_, row)| all.merge(row.billed));
        let without = all.get().saturating_sub(with_value);
        sums.push((OTHER, other));
        sums.push((NONE, MicroUsdSum::from_micro_usd(without)));
        sums
    }
}

pub(super) fn write(
    totals: &Totals,
    listed: &[ListedTag],
    apps: &FirstSeen,
    text: &mut Exposition,
) {
    for of_key in listed.chunk_by(|one, next| one.key == next.key) {
        let Some(first) = of_key.first() else {
            continue;
        };
        let name = format!("bursar_tag_{}_billed_usd_total", first.key);
        let mut family = text.family(
            MetricType::Counter,
            &name,
            "What was billed for the values of this tag, in USD, over the whole life of the ledger; other: values that \
             [[app]] tag_metrics does not list; none: requests without the tag.",
        );
        for tag in of_key {
            let app = apps.hold(&tag.app);
            let mut shown: BTreeMap<&str, MicroUsdSum> = BTreeMap::new();
            for (value, billed) in tag.sums(totals) {
                shown.entry(value).or_default().merge(billed);
            }
            for (value, billed) in shown {
                family.sample(&[("app", app), ("value", value)], billed.to_usd());
            }
        }
    }
}

#[cfg(test)]
mod tests;
