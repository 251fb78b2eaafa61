//! The memory that one body fills.
//!
//! Why: a buffer that doubles copies a body as often as it grows and may be twice as large, and what an
//! allocator keeps of 20 MB for later is missing elsewhere. So a large body has pages of its own, as many as it may
//! fill: the kernel gives each when its first byte comes, and has them back when the body is dropped. To have them
//! costs as much as to fill them, so bodies of up to 1 MiB, which are many, use a few pieces one after the other, and
//! so does the beginning of a larger one: it has no large page (2 MiB) before its share goes beyond 1 MiB.
//!
//! Promise: a body is copied twice at most, and only its first 1 MiB. Beyond its share it has no more than half a large
//! page, or the rest of a piece that others filled before: there are never more than [`PIECES_MAX`] of these.

use std::io;
use std::sync::Arc;

use bytes::Bytes;
use memmap2::{Advice, MmapMut, MmapOptions};
use parking_lot::Mutex;

use crate::proxy::downstream::{BodyLost, Downstream};

/// A body that arrives.
#[derive(Debug)]
pub struct BodyRoom {
    memory: Memory,
    /// The most that it may come to hold.
    most: usize,
}

#[derive(Debug)]
enum Memory {
    Heap(Vec<u8>),
    Pages(FilledPages),
}

#[derive(Debug)]
struct FilledPages {
    /// `None` once they are given back.
    pages: Option<MmapMut>,
    filled: usize,
    /// Where they go after this body; without one, back to the system.
    used_again: Option<SparePages>,
}

/// Pieces of pages, for bodies that follow each other.
#[derive(Clone, Debug, Default)]
pub struct SparePages(Arc<Mutex<Pieces>>);

#[derive(Debug, Default)]
struct Pieces {
    idle: Vec<MmapMut>,
    in_use: usize,
}

/// Of a body that has no pages.
const HEAP_BYTES_MAX: usize = 64 * 1024;

/// Of one piece, and of the bodies that get one.
const PIECE_BYTES: usize = 1024 * 1024;

/// Pieces that there are, in use or not: what they hold of bodies that have gone is memory beyond the budget.
const PIECES_MAX: usize = 16;

/// Of these, those that wait for a body.
const IDLE_PIECES_MAX: usize = 4;

// === impl BodyRoom ===

impl BodyRoom {
    /// Of a body of at most `most` bytes; there is room for `first` of them until it [grows](Self::grow).
    pub fn new(most: usize, first: usize) -> Self {
        Self {
            memory: Memory::Heap(Vec::with_capacity(most.min(first))),
            most,
        }
    }

    /// From here on there is room for so many bytes of it, or more.
    pub fn grow(&mut self, bytes: usize, spare: &SparePages) -> io::Result<()> {
        let bytes = bytes.min(self.most);
        match &mut self.memory {
            Memory::Heap(heap) if bytes <= HEAP_BYTES_MAX => {
                heap.reserve_exact(bytes.saturating_sub(heap.len()));
                return Ok(());
            }
            Memory::Pages(pages) if pages.room() >= bytes => return Ok(()),
            Memory::Heap(_) | Memory::Pages(_) => {}
        }
        let mut grown = match bytes <= PIECE_BYTES {
            true => spare.piece(self.most)?,
            false => FilledPages::own(self.most)?,
        };
        let came = self.bytes();
        if let Some(start) = grown.pages_mut().get_mut(..came.len()) {
            start.copy_from_slice(came);
            grown.filled = came.len();
        }
        self.memory = Memory::Pages(grown);
        Ok(())
    }

    /// Reads up to `most` bytes more; 0 at the body's end.
    pub async fn read_from(
        &mut self,
        app: &mut Downstream,
        most: usize,
    ) -> Result<usize, BodyLost> {
        match &mut self.memory {
            Memory::Heap(heap) => app.read_body(heap, most).await,
            Memory::Pages(grown) => {
                let filled = grown.filled;
                let mut free = grown.pages_mut().get_mut(filled..).unwrap_or_default();
                let count = app.read_body(&mut free, most).await?;
                grown.filled = filled.saturating_add(count);
                Ok(count)
            }
        }
    }

    pub fn bytes(&self) -> &[u8] {
        match &self.memory {
            Memory::Heap(heap) => heap,
            Memory::Pages(pages) => pages.as_ref(),
        }
    }

    pub fn freeze(self) -> Bytes {
        match self.memory {
            Memory::Heap(heap) => Bytes::from(heap),
            Memory::Pages(pages) => Bytes::from_owner(pages),
        }
    }
}

// === impl FilledPages ===

impl FilledPages {
    /// Pages that nothing was in, and which nothing else will be in.
    fn own(bytes: usize) -> io::Result<Self> {
        let pages = MmapOptions::new().len(bytes).no_reserve_swap().map_anon()?;
        if bytes > PIECE_BYTES {
            // Fewer faults; where there are no such pages, the small ones do.
            pages.advise(Advice::HugePage).ok();
        }
        Ok(Self {
            pages: Some(pages),
            filled: 0,
            used_again: None,
        })
    }

    fn room(&self) -> usize {
        self.pages.as_ref().map_or(0, |pages| pages.len())
    }

    fn pages_mut(&mut self) -> &mut [u8] {
        self.pages.as_deref_mut().unwrap_or_default()
    }
}

impl AsRef<[u8]> for FilledPages {
    fn as_ref(&self) -> &[u8] {
        let pages = self.pages.as_deref().unwrap_or_default();
        pages.get(..self.filled).unwrap_or_default()
    }
}

impl Drop for FilledPages {
    fn drop(&mut self) {
        if let (Some(pages), Some(spare)) = (self.pages.take(), &self.used_again) {
            let mut pieces = spare.0.lock();
            pieces.in_use = pieces.in_use.saturating_sub(1);
            if pieces.idle.len() < IDLE_PIECES_MAX {
                pieces.idle.push(pages);
            }
        }
    }
}

// === impl SparePages ===

impl SparePages {
    /// Room for a body of at most `most` bytes, or for as much of it as a piece holds.
    fn piece(&self, most: usize) -> io::Result<FilledPages> {
        let mut pieces = self.0.lock();
        let pages = match pieces.idle.pop() {
            Some(pages) => pages,
            None if pieces.in_use < PIECES_MAX => MmapMut::map_anon(PIECE_BYTES)?,
            None => return FilledPages::own(most.min(PIECE_BYTES)),
        };
        pieces.in_use = pieces.in_use.saturating_add(1);
        Ok(FilledPages {
            pages: Some(pages),
            filled: 0,
            used_again: Some(self.clone()),
        })
    }
}

#[cfg(test)]
mod tests;
