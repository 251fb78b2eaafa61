//! What bursar finds out for itself: looks at eval runs, and how far the ledger and the service's own
//! figure are apart.
//!
//! Promise: a difference is shown only after a reconciliation was made, exact to the micro-dollar, with
//! the time of the answer beside it; before that there is no sample, never a 0.

use parking_lot::Mutex;
use prometheus::IntCounterVec;

use super::families::{Families, add};
use crate::ledger::reconcile::Conclusion;
use crate::ledger::totals::MicroUsdSum;
use crate::protocol::closed_set;
use crate::telemetry::exposition::{Exposition, MetricType, MsAsSeconds};

/// What `eval_run_looks_total{result}` can be.
const EVAL_RUN_LOOKS: [&str; 5] = ["not_yet", "over", "gone", "unreadable", "busy"];

closed_set! {
    /// What came of a comparison with the service's figure.
    ComparisonResult {
        Equal => "equal",
        Explained => "explained",
        Unexplained => "unexplained",
        /// The service could not be asked, or its answer has no such figure.
        Failed => "failed",
    }
}

/// The service's figure less the ledger's sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Difference {
    pub micro_usd: i128,
    /// The part of it that nothing the ledger knows can explain.
    pub unexplained: MicroUsdSum,
    /// The part of it that only entries without any bound can explain.
    pub unbounded: MicroUsdSum,
    /// When the service reported its figure, Unix milliseconds.
    pub at_ms: u64,
}

#[derive(Debug)]
pub struct EvidenceMetrics {
    looks: IntCounterVec,
    reconciliations: IntCounterVec,
    difference: Mutex<Option<Difference>>,
}

// === impl ComparisonResult ===

impl From<Conclusion> for ComparisonResult {
    fn from(conclusion: Conclusion) -> Self {
        match conclusion {
            Conclusion::Equal => Self::Equal,
            Conclusion::Explained => Self::Explained,
            Conclusion::Unexplained => Self::Unexplained,
        }
    }
}

// === impl EvidenceMetrics ===

impl EvidenceMetrics {
    pub(super) fn new(families: &Families) -> prometheus::Result<Self> {
        let looks = families.counters(
            "bursar_eval_run_looks_total",
            "Requests by which bursar itself asked for the price of eval runs.",
            &["result"],
        )?;
        for result in EVAL_RUN_LOOKS {
            add(&looks, &[result], 0);
        }
        let reconciliations = families.counters(
            "bursar_reconciliations_total",
            "Comparisons of the ledger with the service's own figure, on the schedule of [reconcile] every_h or asked \
             for.",
            &["result"],
        )?;
        for result in ComparisonResult::ALL {
            add(&reconciliations, &[result.as_str()], 0);
        }
        Ok(Self {
            looks,
            reconciliations,
            difference: Mutex::new(None),
        })
    }

    pub fn eval_run_look(&self, result: &'static str) {
        add(&self.looks, &[result], 1);
    }

    pub fn reconciled(&self, result: ComparisonResult) {
        add(&self.reconciliations, &[result.as_str()], 1);
    }

    pub fn differs(&self, difference: Difference) {
        *self.difference.lock() = Some(difference);
    }

    pub(super) fn write(&self, text: &mut Exposition) {
        let difference = *self.difference.lock();
        let mut family = text.family(
            MetricType::Gauge,
            "bursar_reconcile_difference_usd",
            "The service's spend figure less the ledger's sum over the same days, in USD, when it was last asked.",
        );
        if let Some(Difference { micro_usd, .. }) = difference {
            family.sample(&[], usd(micro_usd));
        }
        let mut family = text.family(
            MetricType::Gauge,
            "bursar_reconcile_unexplained_usd",
            "The part of the difference, without its sign, that entries in doubt, unreported, in flight or at the \
             edges of those days cannot explain, in USD.",
        );
        if let Some(Difference { unexplained, .. }) = difference {
            family.sample(&[], unexplained.to_usd());
        }
        let mut family = text.family(
            MetricType::Gauge,
            "bursar_reconcile_unbounded_usd",
            "The part of the difference that only what nothing bounds can explain, in USD: unreported entries, an \
             operation without any price, damaged lines.",
        );
        if let Some(Difference { unbounded, .. }) = difference {
            family.sample(&[], unbounded.to_usd());
        }
        let mut family = text.family(
            MetricType::Gauge,
            "bursar_reconcile_timestamp_seconds",
            "When the service was last asked for its figure, and had one.",
        );
        if let Some(Difference { at_ms, .. }) = difference {
            family.sample(&[], MsAsSeconds(at_ms));
        }
    }
}

/// The exact decimal, six digits after the point.
fn usd(micro_usd: i128) -> String {
    let sign = if micro_usd < 0 { "-" } else { "" };
    let absolute = micro_usd.unsigned_abs();
    format!("{sign}{}.{:06}", absolute / 1_000_000, absolute % 1_000_000)
}
