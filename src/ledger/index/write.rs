//! How changed sums go into the index's blocks.
//!
//! Promise: one batch, and a block of each length and detail gets the same.

use std::collections::BTreeMap;

use super::blocks::{Cell, Detail, Length, TimeBlock};
use super::db::IndexError;
use super::figures::Figures;
use super::lines::LineNumbers;
use super::rows::{
    EVIDENCE, FILED, FILED_OF_RUN, block_key, decode_entry, encode, encode_entry, entry_key,
    line_key, opened, sealed,
};
use crate::ledger::fold::models::{ModelLine, SumsAt};
use crate::ledger::fold::quarters::{Changes, Filed};
use crate::ledger::id::EntryId;
use crate::ledger::kept_key::EPOCH_MS;

/// How long it is kept what an entry without a price added. Its key is forgotten after 24 hours.
const FILED_MS: u64 = 3 * EPOCH_MS;

/// Most of these that are forgotten at once.
const FORGOTTEN_MAX: usize = 1_000;

/// One change of the blocks of its quarter hour.
struct Change {
    at_ms: u64,
    all_models: Cell,
    by_model: Cell,
    figures: Figures,
    is_added: bool,
}

// === impl Change ===

impl Change {
    fn make(&self, detail: Detail, block: &mut TimeBlock) -> Result<(), IndexError> {
        let cell = match detail {
            Detail::AllModels => self.all_models,
            Detail::ByModel => self.by_model,
        };
        if self.is_added {
            block.add(cell, &self.figures);
            return Ok(());
        }
        block.take_away(cell, &self.figures)
    }
}

/// Adds what changed to a batch. Answers what has no place in the blocks.
pub fn write_sums(
    db: &sled::Db,
    lines: &mut LineNumbers,
    batch: &mut sled::Batch,
    mut sums: Changes,
) -> Result<Changes, IndexError> {
    for mut evidenced in sums.take_evidence() {
        let (id, at_ms) = (evidenced.id, evidenced.at.at_ms);
        let model = match evidenced.model.take() {
            Some(model) => model,
            None => {
                let (key, filed) = filed(db, lines, id, at_ms)?.unzip();
                if let Some(key) = key {
                    batch.remove(key);
                }
                sums.resolve(&evidenced, filed)
            }
        };
        let at = SumsAt::of(evidenced.at, model);
        let line = number(lines, batch, &at.line)?;
        let key = entry_key(EVIDENCE, at_ms, Some(id));
        batch.insert(
            key,
            encode_entry(line, at.state, &Figures::of(&evidenced.row)),
        );
    }
    for (id, filed) in sums.unresolved() {
        let kind = if filed.is_of_run { FILED_OF_RUN } else { FILED };
        let line = number(lines, batch, &filed.at.line)?;
        let key = entry_key(kind, filed.at.at_ms, Some(id));
        batch.insert(
            key,
            encode_entry(line, filed.at.state, &Figures::of(&filed.row)),
        );
    }
    let mut changes = Vec::new();
    for (at, row, is_added) in sums.sums() {
        changes.push(Change {
            at_ms: at.at_ms,
            all_models: (number(lines, batch, &at.line.of_any())?, at.state),
            by_model: (number(lines, batch, &at.line)?, at.state),
            figures: Figures::of(row),
            is_added,
        });
    }
    for length in Length::ALL {
        let mut blocks: BTreeMap<u64, Vec<&Change>> = BTreeMap::new();
        for change in &changes {
            let at_ms = length.floor(change.at_ms);
            blocks.entry(at_ms).or_default().push(change);
        }
        for detail in Detail::ALL {
            for (at_ms, changes) in &blocks {
                let key = block_key(length, detail, *at_ms);
                let mut block = match db.get(&key)? {
                    Some(value) => TimeBlock::decode(opened(&value)?)?,
                    None => TimeBlock::default(),
                };
                for change in changes {
                    change.make(detail, &mut block)?;
                }
                if (length, detail) == (Length::Quarter, Detail::AllModels)
                    && let Some(ends) = sums.ends(*at_ms)
                {
                    block.note_ends(ends);
                }
                batch.insert(key, sealed(&block.encode()));
            }
        }
    }
    Ok(sums.without_sums())
}

/// What an entry added when it ended, where that is still known, and the key of that row.
pub fn filed(
    db: &sled::Db,
    lines: &LineNumbers,
    id: EntryId,
    quarter_ms: u64,
) -> Result<Option<(Vec<u8>, Filed)>, IndexError> {
    for kind in [FILED, FILED_OF_RUN] {
        let key = entry_key(kind, quarter_ms, Some(id));
        if let Some(value) = db.get(&key)? {
            let (line, state, figures) = decode_entry(&value)?;
            let at = SumsAt {
                at_ms: quarter_ms,
                line: lines.get(line)?.clone(),
                state,
            };
            let filed = Filed {
                at,
                row: figures.row(),
                is_of_run: kind == FILED_OF_RUN,
            };
            return Ok(Some((key, filed)));
        }
    }
    Ok(None)
}

/// Forgets what entries added for whose key no amount comes any more. `pruned_ms`: keys were forgotten by
/// this time.
pub fn forget_filed(
    db: &sled::Db,
    batch: &mut sled::Batch,
    pruned_ms: u64,
) -> Result<(), IndexError> {
    let from = entry_key(FILED, 0, None);
    let to = entry_key(FILED, pruned_ms.saturating_sub(FILED_MS), None);
    for key in db.range(from..to).keys().take(FORGOTTEN_MAX) {
        batch.remove(key?);
    }
    Ok(())
}

/// The number of a line. A new one is written down with what is written of it.
fn number(
    lines: &mut LineNumbers,
    batch: &mut sled::Batch,
    line: &ModelLine,
) -> Result<u16, IndexError> {
    let (number, is_new) = lines.number(line)?;
    if is_new {
        batch.insert(line_key(number), encode(lines.get(number)?)?);
    }
    Ok(number)
}
