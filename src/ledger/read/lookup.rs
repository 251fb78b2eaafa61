//! Entries found by id, key or request id through the index: the few lines they consist of are read
//! where the index says they are. When one is not there, because lines were moved or damaged, the
//! whole journal is searched.
//!
//! Promise: what is returned was read from the journal and is that entry's.

use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::path::Path;

use rustix::fs::OFlags;

use crate::ledger::error::LedgerError;
use crate::ledger::id::EntryId;
use crate::ledger::index::db::IndexError;
use crate::ledger::index::tree::Index;
use crate::ledger::journal::scan::scan;
use crate::ledger::journal::segments::{segment_name, segments};
use crate::ledger::journal::state_dir::Directory;
use crate::ledger::kept_key::SoughtKey;
use crate::ledger::read::views::{EntryView, Views};
use crate::ledger::record::{LINE_BYTES_MAX, Line, Position};

/// Most entries that one lookup answers. A key is shared by a request and its repeats.
const FOUND_MAX: usize = 100;

/// What is known of the entries looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lookup<'a> {
    Id(EntryId),
    /// The Idempotency-Key.
    Key(&'a str),
    /// The service's `x-request-id`.
    Request(&'a str),
}

// === impl Lookup ===

impl Lookup<'_> {
    pub(crate) fn run(
        self,
        index: &Index,
        state_dir: &Path,
        secret: &[u8; 32],
    ) -> Result<Vec<EntryView>, LedgerError> {
        let failed = |error: IndexError| LedgerError::Unavailable {
            why: format!("its index cannot be read ({error}); the next start rebuilds it"),
        };
        let journal = Directory::open_to_read(&state_dir.join("journal"))?;
        let sought = match self {
            Self::Key(key) => Some(SoughtKey::of(secret, key)),
            Self::Id(_) | Self::Request(_) => None,
        };
        let ids = match self {
            Self::Id(id) => vec![id],
            Self::Key(_) => {
                let mut ids = Vec::new();
                for form in sought.iter().flat_map(SoughtKey::forms) {
                    ids.extend(index.by_key(&form, FOUND_MAX).map_err(failed)?);
                }
                ids.truncate(FOUND_MAX);
                ids
            }
            Self::Request(id) => index.by_request(id, FOUND_MAX).map_err(failed)?,
        };
        let mut views = Views::default();
        let mut lost = Vec::new();
        for id in ids.iter().copied() {
            let Some(entry) = index.entry(id).map_err(failed)? else {
                continue;
            };
            let places = [entry.intent, Some(entry.end), entry.evidence];
            let mut lines = Vec::new();
            for position in places.into_iter().flatten() {
                match read_line(&journal, position)? {
                    Some(Line::Record { seq, record }) if record.entry() == Some(id) => {
                        lines.push((seq, record));
                    }
                    _ => lost.push(id),
                }
            }
            if lost.last() != Some(&id) {
                lines
                    .into_iter()
                    .for_each(|(seq, record)| views.apply(seq, record));
            }
        }
        if !lost.is_empty() {
            scan(
                &journal,
                &segments(&journal, None)?,
                &mut |seq, _, record| {
                    if record.entry().is_some_and(|id| lost.contains(&id)) {
                        views.apply(seq, record);
                    }
                },
            )?;
        }
        let is_it = |view: &EntryView| match (&sought, &view.kept_key) {
            (Some(sought), Some(key)) => sought.is(key),
            (Some(_), None) => false,
            (None, _) => true,
        };
        Ok(views.finish(|view| ids.contains(&view.id) && is_it(view)))
    }
}

fn read_line(journal: &Directory, position: Position) -> Result<Option<Line>, LedgerError> {
    let name = segment_name(position.segment);
    let mut file = match journal.open_file(&name, OFlags::RDONLY) {
        // It was compacted, and the index is about to hear of it.
        Err(LedgerError::Io { source, .. }) if source.kind() == ErrorKind::NotFound => {
            return Ok(None);
        }
        opened => opened?,
    };
    let mut line = Vec::new();
    let cap = u64::try_from(LINE_BYTES_MAX).unwrap_or(u64::MAX);
    file.seek(SeekFrom::Start(position.offset))
        .and_then(|_| file.take(position.bytes.min(cap)).read_to_end(&mut line))
        .map_err(|error| LedgerError::io(&journal.path().join(&name), error))?;
    Ok(Line::decode(&line))
}
