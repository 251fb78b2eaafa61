//! How long requests take, by app, lane, operation and stream.
//!
//! Why beside the other families: a histogram is a dozen series, so their number is held, and a request finds
//! all of its histograms with one look. Promise: at most [`LABEL_SETS_MAX`] label sets a histogram, then
//! `app="other"`; nothing that was measured is left out.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::RwLock;
use prometheus::{Histogram, HistogramVec};

use super::families::{Families, LONG_BUCKETS, SHORT_BUCKETS, bool_label};
use crate::protocol::{Lane, Operation};
use crate::telemetry::labels::OTHER;

/// Label sets of one histogram (rule I11).
pub const LABEL_SETS_MAX: usize = 4096;

/// Those of `app="other"`, for which there is always room: every lane, operation and kind of answer.
const OTHER_SETS_MAX: usize = 2 * Lane::ALL.len() * Operation::ALL.len();

/// What the histograms are kept by, beside the app.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TimedAs {
    pub lane: Lane,
    pub operation: Operation,
    pub stream: bool,
}

/// One request's times.
#[derive(Clone, Copy, Debug, Default)]
pub struct RequestTimes {
    pub total: Duration,
    pub first_byte: Option<Duration>,
    pub own: Duration,
}

#[derive(Debug)]
pub struct TimingMetrics {
    duration: HistogramVec,
    first_byte: HistogramVec,
    overhead: HistogramVec,
    known: RwLock<KnownSets>,
}

/// The histograms that there are.
#[derive(Debug, Default)]
struct KnownSets {
    by: HashMap<TimedAs, HashMap<Box<str>, Arc<RequestTimings>>>,
    sets: usize,
}

/// The histograms of one label set.
#[derive(Debug)]
struct RequestTimings {
    duration: Histogram,
    first_byte: Histogram,
    overhead: Histogram,
}

// === impl TimingMetrics ===

impl TimingMetrics {
    pub(super) fn new(families: &Families) -> prometheus::Result<Self> {
        let labels = &["app", "lane", "operation", "stream"];
        Ok(Self {
            duration: families.histograms(
                "bursar_request_duration_seconds",
                "From a request's arrival to the last byte of its answer.",
                labels,
                &LONG_BUCKETS,
            )?,
            first_byte: families.histograms(
                "bursar_time_to_first_byte_seconds",
                "From a request's arrival to the first byte of the service's answer.",
                labels,
                &LONG_BUCKETS,
            )?,
            overhead: families.histograms(
                "bursar_overhead_seconds",
                "bursar's own share of a request until its outcome goes to the ledger: the total less waits, the \
                 service's time and the app's.",
                labels,
                &SHORT_BUCKETS,
            )?,
            known: RwLock::default(),
        })
    }

    /// `app`: as the other families name it.
    pub fn observe(&self, app: &str, of: TimedAs, times: &RequestTimes) {
        let Some(histograms) = self.find(app, of).or_else(|| self.make(app, of)) else {
            return;
        };
        histograms.duration.observe(times.total.as_secs_f64());
        if let Some(first_byte) = times.first_byte {
            histograms.first_byte.observe(first_byte.as_secs_f64());
        }
        histograms.overhead.observe(times.own.as_secs_f64());
    }

    fn find(&self, app: &str, of: TimedAs) -> Option<Arc<RequestTimings>> {
        self.known.read().find(app, of).map(Arc::clone)
    }

    /// The first request of a label set.
    fn make(&self, app: &str, of: TimedAs) -> Option<Arc<RequestTimings>> {
        let mut known = self.known.write();
        if let Some(there) = known.find(app, of) {
            return Some(Arc::clone(there));
        }
        let app = if known.is_full() { OTHER } else { app };
        let labels = [
            app,
            of.lane.as_str(),
            of.operation.as_str(),
            bool_label(of.stream),
        ];
        let of_set = |family: &HistogramVec| family.get_metric_with_label_values(&labels);
        let made = of_set(&self.duration).and_then(|duration| {
            Ok(Arc::new(RequestTimings {
                duration,
                first_byte: of_set(&self.first_byte)?,
                overhead: of_set(&self.overhead)?,
            }))
        });
        debug_assert!(made.is_ok(), "a label is missing: {labels:?}");
        let made = made.ok()?;
        known.sets += usize::from(app != OTHER);
        let apps = known.by.entry(of).or_default();
        apps.insert(app.into(), Arc::clone(&made));
        Some(made)
    }
}

// === impl KnownSets ===

impl KnownSets {
    /// Those of `app="other"`, where an app has none and there is no room for more.
    fn find(&self, app: &str, of: TimedAs) -> Option<&Arc<RequestTimings>> {
        let apps = self.by.get(&of)?;
        let other = || apps.get(OTHER).filter(|_| self.is_full());
        apps.get(app).or_else(other)
    }

    fn is_full(&self) -> bool {
        self.sets >= LABEL_SETS_MAX - OTHER_SETS_MAX
    }
}

#[cfg(test)]
mod tests;
