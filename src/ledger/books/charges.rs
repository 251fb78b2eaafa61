//! What the books know of charges against caps, and how readers of usage are told.
//!
//! Promise: a reader is told every record once, or all anew.

use super::Books;
use crate::ledger::entry::Fingerprint;
use crate::ledger::kept_key::KeptKey;
use crate::ledger::keys::KeyCharge;
use crate::ledger::record::Record;
use crate::ledger::usage::{Charged, Kept, News, Usage};

// === impl Books ===

impl Books {
    /// Goes on from what was charged up to a record.
    pub fn with_usage(mut self, kept: Kept) -> Self {
        self.usage = kept.usage;
        self.usage_seq = kept.last_seq;
        self
    }

    pub fn usage(&self) -> &Usage {
        &self.usage
    }

    /// What readers of usage are to be told; `None` when there is nothing.
    pub fn take_news(&mut self) -> Option<News> {
        match self.news.replace(Vec::new()) {
            None => Some(News::All {
                usage: self.usage.clone(),
                ended: self.recent_order.iter().copied().collect(),
            }),
            Some(records) if records.is_empty() => None,
            Some(records) => Some(News::Records(records)),
        }
    }

    /// What is charged under a key for an equal request, in its 24 h; `None`: nothing is.
    pub fn key_charge(
        &self,
        key: &KeptKey,
        fingerprint: Fingerprint,
        now_ms: u64,
    ) -> Option<KeyCharge> {
        self.keys.charge(key, fingerprint, now_ms)
    }

    /// Before the entry leaves `open`, which knows the size of its request.
    pub(super) fn charge(&mut self, seq: u64, record: &Record) {
        if seq <= self.usage_seq {
            return;
        }
        let open = record.entry().and_then(|id| self.open.get(&id));
        let bytes = open.map_or(0, |open| open.request_bytes);
        if let Some(charged) = Charged::of(record, bytes) {
            self.usage.add(&charged);
            if let Some(news) = &mut self.news {
                news.push(charged);
            }
        }
    }
}
