//! The entries of one session. No file says where they lie, so the segments are searched for the text that
//! their lines hold, which is as fast as `grep`, in two passes: which entries they are, and their lines.
//!
//! Promise: the answer is that of a reader of all lines. Held are the entries listed, and of the others of the
//! session the id.

use std::collections::{BTreeMap, HashMap};

use memchr::memmem::Finder;

use crate::ledger::error::LedgerError;
use crate::ledger::id::EntryId;
use crate::ledger::journal::reader::JournalReader;
use crate::ledger::marks::SoughtSession;
use crate::ledger::read::filter::{Filter, Listing, Said};
use crate::ledger::read::views::Views;
use crate::ledger::record::{Line, Record};

/// Holds of a line that no session names: what became of an answer.
const DELIVERY: &str = r#","kind":"delivery""#;

/// What is known of an entry from the lines so far.
struct Met {
    /// Of the last of them, and whether that one is asked for.
    seq: u64,
    is_admitted: bool,
    /// `None`: its intent was not met.
    is_of_model: Option<bool>,
}

/// The newest `limit` entries of the session that the filter names.
pub fn of_session(
    reader: &JournalReader,
    filter: &Filter,
    sought: &SoughtSession,
    limit: usize,
) -> Result<Listing, LedgerError> {
    let mut met: HashMap<EntryId, Met> = HashMap::new();
    let mut last_seq = None;
    let texts = sought.texts();
    let finders: Vec<Finder<'_>> = texts.iter().map(Finder::new).collect();
    search(reader, filter, &finders, &mut |seq, record| {
        let Some(said) = Said::of(&record).filter(|said| filter.admits_labels(said)) else {
            return;
        };
        let known = met.entry(said.id).or_insert(Met {
            seq: 0,
            is_admitted: false,
            is_of_model: None,
        });
        known.is_of_model = known.is_of_model.or(filter.admits_model(&said));
        if seq >= known.seq {
            known.seq = seq;
            known.is_admitted = filter.admits(seq, &said);
        }
        last_seq = last_seq.max(Some(seq));
    })?;
    let listed = |met: &Met| met.is_admitted && met.is_of_model == Some(true);
    let mut newest: Vec<(u64, EntryId)> = met
        .iter()
        .filter(|(_, met)| listed(met))
        .map(|(id, met)| (met.seq, *id))
        .collect();
    newest.sort_unstable();
    let surplus = newest.len().saturating_sub(limit);
    let chosen: HashMap<EntryId, u64> =
        newest.drain(surplus..).map(|(seq, id)| (id, seq)).collect();

    let delivery = Finder::new(DELIVERY);
    let finders: Vec<Finder<'_>> = finders.into_iter().chain([delivery]).collect();
    let mut lines: BTreeMap<u64, Record> = BTreeMap::new();
    search(reader, filter, &finders, &mut |seq, record| {
        let id = match &record {
            Record::Delivery(row, _) => Some(row.id),
            other => other.entry(),
        };
        if id.is_some_and(|id| chosen.contains_key(&id)) {
            lines.insert(seq, record);
        }
    })?;
    let mut views = Views::default();
    for (seq, record) in lines {
        views.apply(seq, record);
    }
    Ok(Listing {
        entries: views.finish(|_| true),
        last_seq: reader.mark.known().max(last_seq),
    })
}

/// Hands out the records whose line holds one of the texts.
fn search(
    reader: &JournalReader,
    filter: &Filter,
    finders: &[Finder<'_>],
    visit: &mut dyn FnMut(u64, Record),
) -> Result<(), LedgerError> {
    for segment in reader.first_since(filter.since_ms)..reader.segments.len() {
        reader.holding(segment, 0, finders, &mut |line| {
            if let Some(Line::Record { seq, record }) = Line::decode(line) {
                visit(seq, record);
            }
        })?;
    }
    Ok(())
}
