//! One entry, found by whatever a person has of it: its id, the end or the beginning of it, its
//! Idempotency-Key, or the service's `x-request-id`; and with it all entries of the same key, which
//! are one purchase.
//!
//! Two passes over the journal. Most lines are only searched for the text, which is as fast as
//! `grep`; the few that hold it are decoded.
//! Promise: reads only; at most [`FOUND_MAX`] entries are held, and more are told of.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;

use memchr::memmem::Finder;

use crate::ledger::error::LedgerError;
use crate::ledger::id::EntryId;
use crate::ledger::journal::reader::{JournalReader, Place};
use crate::ledger::journal::state_dir::Directory;
use crate::ledger::kept_key::{EPOCH_MS, KeptKey, KeyForm, SoughtKey};
use crate::ledger::read::views::{EntryView, Views};
use crate::ledger::record::{Line, Record};
use crate::protocol::closed_set;

/// Most entries in an answer.
pub const FOUND_MAX: usize = 100;

/// Fewest characters of an id that are looked for. At its beginning stands the time, and 8 of them are
/// what about a minute's ids have in common; its end is random.
pub const PART_CHARS_MIN: usize = 8;

/// The end of an id that lists show: its last group, 48 random bits.
pub const TAIL_CHARS: usize = 12;

closed_set! {
    /// What the text turned out to be; where it is several things, the first of these.
    FoundBy {
        Id => "id",
        Key => "key",
        RequestId => "request_id",
        Tail => "tail",
        Prefix => "prefix",
    }
}

/// The answer of [`find`].
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// `None`: nothing was found.
    pub by: Option<FoundBy>,
    /// What was asked for, oldest first. Several only of a key or a request id.
    pub entries: Vec<EntryView>,
    /// All entries of the same key within its 24 hours, those asked for among them, oldest first.
    /// Without a key only those asked for.
    pub family: Vec<EntryView>,
    /// Entries whose ids all end or begin with what was asked for.
    pub candidates: Vec<EntryView>,
    /// There were more entries than [`FOUND_MAX`].
    pub more: bool,
}

/// What was asked for, in the forms in which it may stand in a line.
struct Asked {
    id: Option<EntryId>,
    /// May be the end or the beginning of an id.
    part: Option<String>,
    key: SoughtKey,
    request_id: String,
}

/// The entries of the first pass, with their keys.
#[derive(Default)]
struct Hits {
    by: BTreeMap<FoundBy, HashSet<EntryId>>,
    keys: HashMap<EntryId, KeptKey>,
    more: bool,
}

/// What a line says of its entry.
struct Said<'a> {
    id: EntryId,
    key: Option<&'a KeptKey>,
    request_id: Option<&'a str>,
}

/// Looks for `text`. Time: two passes of the journal's bytes.
pub fn find(state_dir: &Path, text: &str) -> Result<Found, LedgerError> {
    let reader = JournalReader::open(state_dir)?;
    let asked = Asked::of(text.trim(), &secret(state_dir));
    let mut hits = Hits::default();
    each_with(&reader, &asked.needles(), |_, record| {
        if let Some(said) = Said::of(record)
            && let Some(by) = asked.matches(&said)
        {
            hits.take(by, &said);
        }
    })?;
    let mut by_kind = hits.by.into_iter();
    let Some((by, mut ids)) = by_kind.next() else {
        return Ok(Found::default());
    };
    let is_part = matches!(by, FoundBy::Tail | FoundBy::Prefix);
    if is_part {
        // The end of one id and the beginning of another: nobody can know which is meant.
        ids.extend(by_kind.flat_map(|(_, ids)| ids));
    }
    let is_ambiguous = is_part && ids.len() > 1;
    let keys: Vec<&KeptKey> = if is_ambiguous {
        Vec::new()
    } else {
        ids.iter().filter_map(|id| hits.keys.get(id)).collect()
    };

    let mut needles: Vec<String> = keys.iter().map(|key| needle(&key.form)).collect();
    needles.sort();
    needles.dedup();
    needles.extend(ids.iter().map(ToString::to_string));
    let mut views = Views::default();
    let mut held: HashSet<EntryId> = ids.clone();
    let mut more = hits.more;
    each_with(&reader, &needles, |seq, record| {
        if let Record::Delivery(..) = record {
            views.apply(seq, record.clone());
        }
        let Some(said) = Said::of(record) else {
            return;
        };
        let is_kin = said
            .key
            .is_some_and(|key| keys.iter().any(|other| key.is_same_key(other)));
        if !is_kin && !ids.contains(&said.id) {
            return;
        }
        if held.len() < FOUND_MAX {
            held.insert(said.id);
        }
        if held.contains(&said.id) {
            views.apply(seq, record.clone());
        } else {
            more = true;
        }
    })?;

    let mut family = views.finish(|_| true);
    family.sort_by_key(|view| (view.at_ms, view.id));
    let is_asked = |view: &EntryView| ids.contains(&view.id);
    let entries: Vec<EntryView> = family
        .iter()
        .filter(|view| is_asked(view))
        .cloned()
        .collect();
    if is_ambiguous {
        return Ok(Found {
            by: Some(by),
            candidates: entries,
            more,
            ..Found::default()
        });
    }
    // The service binds a key for 24 hours; what came under it at another time is another purchase.
    let of_epoch = |view: &EntryView| {
        let near = |asked: &EntryView| asked.at_ms.abs_diff(view.at_ms) < EPOCH_MS;
        entries.iter().any(near)
    };
    family.retain(of_epoch);
    Ok(Found {
        by: Some(by),
        entries,
        family,
        candidates: Vec::new(),
        more,
    })
}

/// Decodes the lines that hold one of the texts.
fn each_with(
    reader: &JournalReader,
    needles: &[String],
    mut visit: impl FnMut(u64, &Record),
) -> Result<(), LedgerError> {
    let finders: Vec<Finder<'_>> = needles.iter().map(Finder::new).collect();
    let mut forward = reader.forward(Place {
        segment: 0,
        offset: 0,
    });
    while let Some(line) = forward.next_line()? {
        let holds = finders.iter().any(|finder| finder.find(line).is_some());
        if holds && let Some(Line::Record { seq, record }) = Line::decode(line) {
            visit(seq, &record);
        }
    }
    Ok(())
}

/// What long keys are told by; of a ledger that lost it, no line knows one.
fn secret(state_dir: &Path) -> [u8; 32] {
    let directory = Directory::open_to_read(state_dir).ok();
    let identity = directory.and_then(|directory| directory.known_identity().ok()??);
    identity.map_or([0; 32], |identity| identity.fingerprint_secret)
}

fn needle(key: &KeyForm) -> String {
    match key {
        KeyForm::Text(text) => in_json(text),
        KeyForm::Hash(hash) => hash.to_string(),
    }
}

/// A text as it stands in a line, without its quotes.
fn in_json(text: &str) -> String {
    let quoted = serde_json::Value::from(text).to_string();
    let inner = quoted.strip_prefix('"').unwrap_or(&quoted);
    inner.strip_suffix('"').unwrap_or(inner).to_owned()
}

// === impl Asked ===

impl Asked {
    fn of(text: &str, secret: &[u8; 32]) -> Self {
        let lower = text.to_ascii_lowercase();
        let is_part = lower.len() >= PART_CHARS_MIN
            && lower
                .bytes()
                .all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
        Self {
            id: lower.parse().ok(),
            part: is_part.then_some(lower),
            key: SoughtKey::of(secret, text),
            request_id: text.to_owned(),
        }
    }

    fn needles(&self) -> Vec<String> {
        if self.request_id.is_empty() {
            return Vec::new();
        }
        let id = self.id.map(|id| id.to_string());
        let mut needles: Vec<String> = self.key.forms().map(|form| needle(&form)).collect();
        needles.push(in_json(&self.request_id));
        needles.extend(id);
        needles.extend(self.part.clone());
        needles.sort();
        needles.dedup();
        needles
    }

    fn matches(&self, said: &Said<'_>) -> Option<FoundBy> {
        let part = self.part.as_deref();
        let ends = |part: &str| said.id.to_string().ends_with(part);
        let begins = |part: &str| said.id.to_string().starts_with(part);
        if self.id == Some(said.id) {
            Some(FoundBy::Id)
        } else if said.key.is_some_and(|key| self.key.is(key)) {
            Some(FoundBy::Key)
        } else if said.request_id == Some(self.request_id.as_str()) {
            Some(FoundBy::RequestId)
        } else if part.is_some_and(ends) {
            Some(FoundBy::Tail)
        } else if part.is_some_and(begins) {
            Some(FoundBy::Prefix)
        } else {
            None
        }
    }
}

// === impl Hits ===

impl Hits {
    fn take(&mut self, by: FoundBy, said: &Said<'_>) {
        let ids = self.by.entry(by).or_default();
        if ids.len() >= FOUND_MAX && !ids.contains(&said.id) {
            self.more = true;
            return;
        }
        ids.insert(said.id);
        if let Some(key) = said.key {
            self.keys.insert(said.id, key.clone());
        }
    }
}

// === impl Said ===

impl<'a> Said<'a> {
    /// `None` for a line of a newer bursar.
    fn of(record: &'a Record) -> Option<Self> {
        let (id, key, request_id) = match record {
            Record::Intent(intent) => (intent.id, intent.key.as_ref(), None),
            Record::Outcome(outcome, labels, _) => (
                outcome.id,
                labels.key.as_ref(),
                outcome.request_id.as_deref(),
            ),
            Record::Crashed(ended, labels) | Record::Withdrawn(ended, labels) => {
                (ended.id, labels.key.as_ref(), None)
            }
            Record::Reconciled(evidence, labels) => (evidence.id, labels.key.as_ref(), None),
            Record::Delivery(..) | Record::Rollup(_) | Record::Unknown => return None,
        };
        Some(Self {
            id,
            key,
            request_id,
        })
    }
}

#[cfg(test)]
mod tests;
