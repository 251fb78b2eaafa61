//! What became of notices about caps (`[notify]`).

use prometheus::IntCounterVec;

use super::families::{Families, add};
use crate::protocol::closed_set;

closed_set! {
    /// What became of one.
    NoticeResult {
        Sent => "sent",
        /// The receiver did not take it, or may not have.
        Failed => "failed",
        /// Too many waited.
        Dropped => "dropped",
    }
}

#[derive(Debug)]
pub struct NoticeMetrics(IntCounterVec);

// === impl NoticeMetrics ===

impl NoticeMetrics {
    pub(super) fn new(families: &Families) -> prometheus::Result<Self> {
        let notices = families.counters(
            "bursar_cap_notices_total",
            "Notices that a share of a cap is used, to what [notify] names: sent, failed, or dropped because 64 waited.",
            &["result"],
        )?;
        for result in NoticeResult::ALL {
            add(&notices, &[result.as_str()], 0);
        }
        Ok(Self(notices))
    }

    pub fn count(&self, result: NoticeResult) {
        add(&self.0, &[result.as_str()], 1);
    }
}
