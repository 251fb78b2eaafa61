//! What became of reloads of the configuration.
//!
//! Promise: how the last one ended stays until the next; before the first there is no sample, never a 0.

use parking_lot::Mutex;
use prometheus::{IntCounterVec, IntGauge};

use super::families::{Families, add};
use crate::telemetry::exposition::{Exposition, MetricType, MsAsSeconds};

#[derive(Debug)]
pub struct ReloadMetrics {
    results: IntCounterVec,
    waiting_keys: IntGauge,
    last: Mutex<Option<LastReload>>,
}

#[derive(Clone, Copy, Debug)]
struct LastReload {
    ok: bool,
    at_ms: u64,
}

// === impl ReloadMetrics ===

impl ReloadMetrics {
    pub(super) fn new(families: &Families) -> prometheus::Result<Self> {
        let results = families.counters(
            "bursar_config_reloads_total",
            "Reloads of the configuration; a refused one changed nothing.",
            &["result"],
        )?;
        for ok in [true, false] {
            add(&results, &[word(ok)], 0);
        }
        Ok(Self {
            results,
            waiting_keys: families.gauge(
                "bursar_config_keys_waiting_for_restart",
                "Keys of the configuration file that the last reload could not put in force: they take a restart. \
                 `bursar status` names them.",
            )?,
            last: Mutex::default(),
        })
    }

    pub fn count(&self, ok: bool, at_ms: u64) {
        add(&self.results, &[word(ok)], 1);
        *self.last.lock() = Some(LastReload { ok, at_ms });
    }

    /// The last reload left so many keys to a restart.
    pub fn leaves_to_restart(&self, keys: usize) {
        self.waiting_keys
            .set(i64::try_from(keys).unwrap_or(i64::MAX));
    }

    pub(super) fn write(&self, text: &mut Exposition) {
        let last = *self.last.lock();
        let mut family = text.family(
            MetricType::Gauge,
            "bursar_config_last_reload_successful",
            "1: the last reload put the file in force; 0: it was refused, and the file is still to be corrected. Absent: \
             there was none since the start.",
        );
        if let Some(last) = last {
            family.sample(&[], u8::from(last.ok));
        }
        let mut family = text.family(
            MetricType::Gauge,
            "bursar_config_last_reload_timestamp_seconds",
            "When the last reload ended. Absent: there was none since the start.",
        );
        if let Some(last) = last {
            family.sample(&[], MsAsSeconds(last.at_ms));
        }
    }
}

fn word(ok: bool) -> &'static str {
    if ok { "ok" } else { "refused" }
}
