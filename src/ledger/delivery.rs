//! What is written of answers that went another way than straight to the app that asked.
//!
//! Promise: nouns alone. What becomes of them is folded in `fold/undelivered`.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::ledger::entry::{Intent, KeyUse};
use crate::ledger::fingerprint::Fingerprint;
use crate::ledger::id::EntryId;
use crate::ledger::kept_key::{EntryKey, KeyOrigin};
use crate::ledger::shared_text;

/// A request whose key an equal request of its app may adopt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Undelivered {
    pub id: EntryId,
    /// When it ended, Unix milliseconds; while it is open, when it began.
    pub at_ms: u64,
    #[serde(with = "shared_text")]
    pub app: Arc<str>,
    pub fingerprint: Fingerprint,
    /// Never an app's own.
    pub key: EntryKey,
    pub key_use: KeyUse,
}

/// What became of an answer after its outcome was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Handover {
    pub delivered: bool,
    /// Not seen: the process was killed between settling and writing.
    #[serde(default, skip_serializing_if = "is_false")]
    pub assumed: bool,
}

/// What a restarted proxy reads back.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Remembered {
    /// Of the last 24 hours, in the order in which they ended.
    pub rows: Vec<Undelivered>,
    /// Wall time of the last record that was there when the ledger was opened. A clock that shows an
    /// earlier time was set back.
    pub journal_ended_ms: u64,
}

// === impl Undelivered ===

impl Undelivered {
    /// `None` for an app's own key, for a request without one, and for lines of an older bursar, whose
    /// key's age is not known.
    pub fn of_intent(intent: &Intent) -> Option<Self> {
        let key = intent.key.as_ref()?;
        if key.origin == KeyOrigin::App {
            return None;
        }
        Some(Self {
            id: intent.id,
            at_ms: intent.at_ms,
            app: Arc::clone(&intent.app),
            fingerprint: intent.fingerprint,
            key: key.sent()?,
            key_use: intent.key_use?,
        })
    }
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "the shape that serde calls"
)]
fn is_false(flag: &bool) -> bool {
    !*flag
}
