//! The memory that one body fills.
//!
//! Why: a buffer that doubles copies a body as often as it grows and may be twice as large, and what an
//! allocator keeps of 20 MB for later is missing elsewhere. So a large body has pages of its own, as many as it may
//! fill: the kernel gives each when its first byte comes, and has them back when the body is dropped. To have them
//! costs as much as to fill them, so bodies of up to 1 MiB, which are many, use a few of them again, and so does the
//! beginning of a larger one: it has no large page (2 MiB) before its share goes beyond 1 MiB.
//!
//! Promise: it holds what came, and beyond its share no more than half a large page; a body is copied twice at most,
//! and only its first 1 MiB. Pages are used again only when they were wiped.

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
    spare: SparePages,
}

/// Pages of bodies that have gone, for others.
#[derive(Clone, Debug, Default)]
pub struct SparePages(Arc<Mutex<Vec<MmapMut>>>);

/// Of a body that has no pages.
const HEAP_BYTES_MAX: usize = 64 * 1024;

/// Of one piece of them, and of the bodies that get one.
const SPARE_BYTES: usize = 1024 * 1024;

/// Pieces that are kept: memory beyond the budget of bodies.
const SPARES_MAX: usize = 4;

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
        let pages = match bytes <= SPARE_BYTES {
            true => spare.used_again()?,
            false => own_pages(self.most)?,
        };
        let came = self.bytes();
        let mut grown = FilledPages {
            pages: Some(pages),
            filled: came.len(),
            spare: spare.clone(),
        };
        if let Some(start) = grown.pages_mut().get_mut(..came.len()) {
            start.copy_from_slice(came);
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
        if let Some(pages) = self.pages.take() {
            self.spare.take_back(pages, self.filled);
        }
    }
}

// === impl SparePages ===

impl SparePages {
    /// Room for [`SPARE_BYTES`], none of which holds anything.
    fn used_again(&self) -> io::Result<MmapMut> {
        let used_before = self.0.lock().pop();
        used_before.map_or_else(|| MmapMut::map_anon(SPARE_BYTES), Ok)
    }

    fn take_back(&self, mut pages: MmapMut, filled: usize) {
        if pages.len() != SPARE_BYTES || self.0.lock().len() >= SPARES_MAX {
            return;
        }
        if let Some(filled) = pages.get_mut(..filled) {
            filled.fill(0);
        }
        let mut spares = self.0.lock();
        if spares.len() < SPARES_MAX {
            spares.push(pages);
        }
    }
}

/// Room for a large body.
fn own_pages(bytes: usize) -> io::Result<MmapMut> {
    let pages = MmapOptions::new().len(bytes).no_reserve_swap().map_anon()?;
    // Fewer faults; where there are no such pages, the small ones do.
    pages.advise(Advice::HugePage).ok();
    Ok(pages)
}

#[cfg(test)]
mod tests;
