//! What makes two requests equal, and whether a repeat may belong to an earlier one.

use std::sync::Arc;
use std::time::Duration;

use crate::config::Adopt;
use crate::ledger::entry::{EntryId, EntryKey, Fingerprint, KeyOrigin};

/// The app and what it asks for: requests with equal keys are equal.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RequestKey {
    pub app: Arc<str>,
    pub fingerprint: Fingerprint,
}

/// One request that looks for its predecessor.
#[derive(Debug)]
pub struct Claimant {
    pub request_key: RequestKey,
    pub entry: EntryId,
    /// The app's own key. It always wins.
    pub own_key: Option<String>,
    /// The route honors keys.
    pub keyed: bool,
    /// The app says that this is a retry.
    pub marked_retry: bool,
    /// An answer that no app took is kept for a repeat when it is whole. Not that of a deploy: what it
    /// made may have been deleted since.
    pub keeps_answer: bool,
}

/// How the table treats equal requests; from the config.
#[derive(Clone, Copy, Debug)]
pub struct AdoptPolicy {
    pub adopt: Adopt,
    pub window: Duration,
}

// === impl AdoptPolicy ===

impl AdoptPolicy {
    /// Whether this claimant's request may belong to an earlier one. The app's own key says by itself
    /// which purchase is meant.
    pub fn allows(self, claimant: &Claimant) -> bool {
        let allowed = match self.adopt {
            Adopt::Always => true,
            Adopt::Marked => claimant.marked_retry,
            Adopt::Never => false,
        };
        allowed || claimant.own_key.is_some()
    }
}

/// It says by itself which purchase is meant, and is never mixed with another.
pub fn is_apps_own(key: &EntryKey) -> bool {
    key.origin == KeyOrigin::App
}
