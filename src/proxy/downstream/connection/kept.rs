//! What an app has not taken of its answer, kept for it.
//!
//! Promise: counted by the memory that it takes, not by its bytes; no connection, no app and all of them
//! together keep more than their bounds; what the app has taken is freed block by block.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use parking_lot::Mutex;

/// Bytes of an answer that wait for their app, in blocks that are counted in [`KEEP`] until they are gone.
#[derive(Debug)]
pub(super) struct Kept {
    app: Arc<str>,
    blocks: VecDeque<Vec<u8>>,
    /// So much of the first block is gone.
    gone: usize,
}

/// What is kept for all apps of this process, and for each, by memory.
struct Keep {
    all: usize,
    apps: BTreeMap<Arc<str>, usize>,
}

/// Least memory that is taken and freed.
const BLOCK_BYTES: usize = 64 * 1024;

/// Most that is kept for one connection, for one app and for all. Beyond any, a write waits for its app.
const CONNECTION_BYTES_MAX: usize = 16 * 1024 * 1024;
const APP_BYTES_MAX: usize = 32 * 1024 * 1024;
const ALL_BYTES_MAX: usize = 64 * 1024 * 1024;

static KEEP: Mutex<Keep> = Mutex::new(Keep {
    all: 0,
    apps: BTreeMap::new(),
});

// === impl Keep ===

impl Keep {
    /// Counts one more block, if there is room for it.
    fn opens_block(&mut self, app: &Arc<str>) -> bool {
        let own = self.apps.get(app).copied().unwrap_or(0);
        let (own, all) = (own + BLOCK_BYTES, self.all + BLOCK_BYTES);
        let fits = own <= APP_BYTES_MAX && all <= ALL_BYTES_MAX;
        if fits {
            self.all = all;
            self.apps.insert(Arc::clone(app), own);
        }
        fits
    }

    fn freed(&mut self, app: &Arc<str>, blocks: usize) {
        let bytes = blocks.saturating_mul(BLOCK_BYTES);
        self.all = self.all.saturating_sub(bytes);
        if let Some(own) = self.apps.get_mut(app) {
            *own = own.saturating_sub(bytes);
            if *own == 0 {
                self.apps.remove(app);
            }
        }
    }
}

// === impl Kept ===

impl Kept {
    pub(super) fn of(app: &Arc<str>) -> Self {
        Self {
            app: Arc::clone(app),
            blocks: VecDeque::new(),
            gone: 0,
        }
    }

    /// Takes the first of these bytes, as many as there is room for.
    pub(super) fn take(&mut self, bytes: &[u8]) -> usize {
        let mut rest = bytes;
        while !rest.is_empty() {
            let has_room = self
                .blocks
                .back()
                .is_some_and(|last| last.len() < BLOCK_BYTES);
            if !has_room && !self.opens_block() {
                break;
            }
            let Some(last) = self.blocks.back_mut() else {
                break;
            };
            let room = BLOCK_BYTES.saturating_sub(last.len());
            let (now, later) = rest.split_at(room.min(rest.len()));
            last.extend_from_slice(now);
            rest = later;
        }
        bytes.len().saturating_sub(rest.len())
    }

    fn opens_block(&mut self) -> bool {
        let fits = (self.blocks.len() + 1) * BLOCK_BYTES <= CONNECTION_BYTES_MAX
            && KEEP.lock().opens_block(&self.app);
        if fits {
            self.blocks.push_back(Vec::with_capacity(BLOCK_BYTES));
        }
        fits
    }

    /// What is to go out next; `None` when nothing is kept.
    pub(super) fn first(&self) -> Option<&[u8]> {
        self.blocks.front()?.get(self.gone..)
    }

    /// So much of [`Self::first`] went out.
    pub(super) fn went(&mut self, count: usize) {
        self.gone = self.gone.saturating_add(count);
        let is_over = |first: &Vec<u8>| first.len() <= self.gone;
        if self.blocks.front().is_some_and(is_over) {
            self.blocks.pop_front();
            self.gone = 0;
            KEEP.lock().freed(&self.app, 1);
        }
    }

    pub(super) fn len(&self) -> usize {
        let all: usize = self.blocks.iter().map(Vec::len).sum();
        all.saturating_sub(self.gone)
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        KEEP.lock().freed(&self.app, self.blocks.len());
    }
}

#[cfg(test)]
mod tests;
