//! The entries that a filter admits: the newest, those that changed after a mark, or all.
//!
//! Lowest first: `gathering` reads backward, `pages` reads forward, `of_session` searches.
//!
//! Promise: an answer is the same with lookup files and without, and lists each entry once, also where lines lie
//! twice or out of order. Memory does not grow with the journal.

use std::path::Path;

use crate::ledger::error::LedgerError;
use crate::ledger::journal::reader::{JournalReader, steadily};
use crate::ledger::journal::segments::Segment;
use crate::ledger::read::filter::{Filter, Listing};
use crate::ledger::read::lookup::{Detour, Lookups};
use crate::ledger::read::views::EntryView;

mod gathering;
mod of_session;
mod pages;

pub use gathering::Work;
use gathering::newest;
use of_session::of_session;
pub use pages::{Pages, reconciled_after};

/// Entries held at once where all are asked for.
pub(super) const PAGE: usize = 1000;

/// Lists entries as [`list`] does. Without a limit all that match are held: for tests and tools with
/// small ledgers.
pub fn entries(state_dir: &Path, filter: &Filter) -> Result<Vec<EntryView>, LedgerError> {
    if filter.limit.is_some() {
        return Ok(list(state_dir, filter)?.entries);
    }
    let mut all = Vec::new();
    for_each_entry(state_dir, filter, |view| {
        all.push(view);
        Ok::<_, LedgerError>(())
    })?;
    Ok(all)
}

/// Lists the newest `limit` entries, read backward from the journal's end; with `after_seq` the
/// oldest `limit` that changed since, read forward from there. Without a limit, 1000.
///
/// An entry is listed once, by its last line, as it is now: evidence that comes for an old entry
/// makes it appear again behind a mark that it lay before.
///
/// Memory: `limit` entries of a few kilobytes. With `after_seq` also those that were in flight at
/// one moment, and the ids of those that evidence came for after the mark. Time: the lines back to
/// the oldest entry listed; with `after_seq` those of the page, and what `grep` would take for the
/// rest.
pub fn list(state_dir: &Path, filter: &Filter) -> Result<Listing, LedgerError> {
    let filter = filter.keyed(state_dir);
    let (listing, work) = steadily(|| list_on(JournalReader::open(state_dir)?, &filter))?;
    tracing::debug!(
        lines = work.lines,
        held_max = work.held_max,
        "entries were listed"
    );
    Ok(listing)
}

/// Hands out every entry that matches, oldest change first, on the journal as it is at the call. With
/// a limit only those that [`list`] gives.
///
/// Memory: as [`list`] with a limit of 1000, however long the journal is.
pub fn for_each_entry<E: From<LedgerError>>(
    state_dir: &Path,
    filter: &Filter,
    mut visit: impl FnMut(EntryView) -> Result<(), E>,
) -> Result<(), E> {
    let filter = &filter.keyed(state_dir);
    let mut reader = steadily(|| JournalReader::open(state_dir))?;
    if filter.limit.is_some() || (filter.id.is_some() && filter.after_seq.is_none()) {
        let (listing, _) = list_on(reader, filter)?;
        return listing.entries.into_iter().try_for_each(visit);
    }
    if has_misplaced(&reader) {
        reader = reader.in_order()?;
    }
    let mut mark = filter.after_seq.unwrap_or(0);
    while !visit_pages(&reader, filter, &mut mark, &mut visit)? {
        reader = reader.in_order()?;
    }
    Ok(())
}

/// Hands out the entries behind a mark and moves it. `false`: the journal does not lie in the order of its
/// numbers.
fn visit_pages<E: From<LedgerError>>(
    reader: &JournalReader,
    filter: &Filter,
    mark: &mut u64,
    visit: &mut impl FnMut(EntryView) -> Result<(), E>,
) -> Result<bool, E> {
    let mut pages = Pages::new(reader, filter);
    loop {
        let page = match pages.page(*mark, PAGE) {
            Ok(page) => page,
            Err(Detour::Failed(error)) => return Err(error.into()),
            Err(Detour::Unfit(..) | Detour::Disorder) => return Ok(false),
        };
        let is_last = page.entries.len() < PAGE;
        page.entries.into_iter().try_for_each(&mut *visit)?;
        match page.last_seq {
            Some(last_seq) if !is_last && last_seq > *mark => *mark = last_seq,
            _ => return Ok(true),
        }
    }
}

/// Whether a file has another segment's name: then the newest lines are not those of the last file.
fn has_misplaced(reader: &JournalReader) -> bool {
    reader.segments.iter().any(Segment::is_misplaced)
}

pub(super) fn list_on(
    mut reader: JournalReader,
    filter: &Filter,
) -> Result<(Listing, Work), LedgerError> {
    let limit = filter.limit.unwrap_or(PAGE);
    let limit = match (filter.id, filter.after_seq) {
        (Some(_), None) => limit.min(1),
        _ => limit,
    };
    if let (Some(sought), None) = (&filter.session, filter.after_seq) {
        let listing = of_session(&reader, filter, sought, limit)?;
        return Ok((listing, Work::default()));
    }
    let mut lookups = Lookups::beside(&reader);
    if has_misplaced(&reader) {
        reader = reader.in_order()?;
        lookups = Lookups::none();
    }
    loop {
        let listed = match filter.after_seq {
            None => newest(&reader, &lookups, filter, limit),
            Some(mark) => {
                let mut pages = Pages::new(&reader, filter);
                let page = pages.page(mark, limit);
                page.map(|page| (page, pages.work()))
            }
        };
        match listed {
            Ok(listed) => return Ok(listed),
            Err(Detour::Failed(error)) => return Err(error),
            Err(Detour::Unfit(segment, why)) => lookups.distrust(&reader, segment, why),
            Err(Detour::Disorder) => {
                reader = reader.in_order()?;
                lookups = Lookups::none();
            }
        }
    }
}

/// Everything before this moment was compacted: of entries that began before it only sums may be
/// left. Unix milliseconds; `None` when nothing was.
pub fn compacted_until_ms(state_dir: &Path) -> Result<Option<u64>, LedgerError> {
    let reader = steadily(|| JournalReader::open(state_dir))?;
    let stands_for = reader.segments.first().and_then(Segment::stands_for);
    Ok(stands_for.map(|stands_for| stands_for.until_ms))
}
