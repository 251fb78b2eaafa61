//! The document that explains an entry: what is kept of it, what the ledger made of that and why,
//! and what else happened under its key. `/api/explain` answers it and `bursar explain` prints it.
//!
//! Promise: every figure is what a line of the journal said; the sentences say which line that was,
//! and nothing that no line said.

pub mod timeline;
mod words;

use serde::{Deserialize, Serialize, Serializer, ser};
use serde_json::{Map, Value};

use super::documents::{EntryDocument, members_of, object, state};
use crate::calendar;
use crate::ledger::MicroUsdSum;
use crate::ledger::entry::{EntryId, Fingerprint, InDoubt, KeyOrigin, State, StateWord};
use crate::ledger::query::{EntryView, Found, FoundBy};
use crate::money::MicroUsd;
use crate::protocol::Operation;

/// What was found, and what it means.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Explanation {
    /// `None`: nothing was found.
    pub found_by: Option<FoundBy>,
    pub entries: Vec<ExplainedEntry>,
    /// `None` without a key.
    pub purchase: Option<KeyPurchase>,
    /// Entries whose ids all end or begin with what was asked for.
    pub candidates: Vec<EntryLine>,
    /// There are more entries than are shown.
    pub more: bool,
}

/// An entry, and what is said of it.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "Map<String, Value>")]
pub struct ExplainedEntry {
    pub entry: EntryView,
    pub said: Sentences,
}

/// Why an entry stands as it does, what would settle it, what is odd.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Sentences {
    pub why: String,
    /// `None`: the amount is known.
    pub what_would_settle: Option<String>,
    pub odd: Vec<String>,
    /// Of the doubt that evidence ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    was_reason: Option<InDoubt>,
    /// The entries that its key went on to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub adopted_by: Vec<EntryId>,
}

/// What one key bought.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct KeyPurchase {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Of a key that is longer than what is kept as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_hash: Option<Fingerprint>,
    /// All entries of the key, oldest first.
    pub entries: Vec<EntryLine>,
    pub billed_micro_usd: MicroUsdSum,
    /// How many of them have an amount that is not known.
    pub not_known: usize,
}

/// What a list shows of an entry.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct EntryLine {
    pub id: EntryId,
    pub at: Option<String>,
    pub at_ms: u64,
    pub app: String,
    pub operation: Operation,
    pub state: StateWord,
    /// Of a doubt.
    pub reason: Option<InDoubt>,
    pub billed_micro_usd: Option<MicroUsd>,
}

/// Why the amount of an entry in doubt is not known.
pub const fn doubt(reason: InDoubt) -> &'static str {
    words::in_doubt(reason)
}

// === impl Explanation ===

impl Explanation {
    pub fn new(found: &Found) -> Self {
        let entries = found.entries.iter();
        let explained = entries.map(|entry| ExplainedEntry {
            entry: entry.clone(),
            said: Sentences::new(entry, &found.family),
        });
        Self {
            found_by: found.by,
            entries: explained.collect(),
            purchase: KeyPurchase::of(found),
            candidates: found.candidates.iter().map(EntryLine::of).collect(),
            more: found.more,
        }
    }

    /// The same as other users of this machine may read it ([`EntryDocument::without_key`]).
    #[must_use]
    pub fn without_keys(mut self) -> Self {
        let stripped = self.entries.into_iter().map(|explained| ExplainedEntry {
            entry: EntryDocument(explained.entry).without_key().0,
            said: explained.said,
        });
        self.entries = stripped.collect();
        if let Some(purchase) = &mut self.purchase {
            purchase.key = None;
            purchase.key_hash = None;
        }
        self
    }
}

// === impl ExplainedEntry ===

impl Serialize for ExplainedEntry {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let members = || -> serde_json::Result<Map<String, Value>> {
            let mut members = members_of(&self.entry)?;
            if let Some(was) = self.entry.was {
                members.insert("was".to_owned(), was.word().as_str().into());
            }
            members.extend(object(&self.said)?);
            Ok(members)
        };
        members().map_err(ser::Error::custom)?.serialize(to)
    }
}

impl TryFrom<Map<String, Value>> for ExplainedEntry {
    type Error = serde_json::Error;

    fn try_from(mut members: Map<String, Value>) -> serde_json::Result<Self> {
        let said = Sentences::deserialize(&members)?;
        let was = members.shift_remove("was").map(StateWord::deserialize);
        let EntryDocument(mut entry) = EntryDocument::try_from(members)?;
        // Only what is not known waits for evidence.
        entry.was = match was.transpose()? {
            Some(word) => Some(state(word, None, said.was_reason)?),
            None => None,
        };
        Ok(Self { entry, said })
    }
}

// === impl Sentences ===

impl Sentences {
    fn new(entry: &EntryView, family: &[EntryView]) -> Self {
        let odd = entry.anomalies.iter().map(|kind| words::odd(*kind));
        let heirs = family
            .iter()
            .filter(|other| other.key_origin == Some(KeyOrigin::Adopted { from: entry.id }));
        Self {
            why: words::why(entry, family),
            what_would_settle: words::what_would_settle(entry).map(str::to_owned),
            odd: odd.map(str::to_owned).collect(),
            was_reason: entry.was.and_then(State::reason),
            adopted_by: heirs.map(|heir| heir.id).collect(),
        }
    }
}

// === impl KeyPurchase ===

impl KeyPurchase {
    fn of(found: &Found) -> Option<Self> {
        let keyed = found.entries.iter().find(|view| view.kept_key.is_some())?;
        let mut billed = MicroUsdSum::default();
        for view in &found.family {
            billed.add(view.state.adds());
        }
        let is_unknown = |view: &&EntryView| view.state.billed().is_none();
        Some(Self {
            key: keyed.key.clone(),
            key_hash: keyed.key_hash,
            entries: found.family.iter().map(EntryLine::of).collect(),
            billed_micro_usd: billed,
            not_known: found.family.iter().filter(is_unknown).count(),
        })
    }
}

// === impl EntryLine ===

impl EntryLine {
    fn of(entry: &EntryView) -> Self {
        Self {
            id: entry.id,
            at: calendar::rfc3339(entry.at_ms),
            at_ms: entry.at_ms,
            app: entry.app.to_string(),
            operation: entry.operation,
            state: entry.state.word(),
            reason: entry.state.reason(),
            billed_micro_usd: entry.billed_micro_usd,
        }
    }
}
