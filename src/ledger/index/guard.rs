//! sled panics on some damage. Here that is an error as any other.
//!
//! Promise: a panic behind the guard, or on a thread of sled's own, prints nothing; every other one does
//! what it did before.

use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe, catch_unwind};
use std::sync::Once;

use super::IndexError;

/// How sled names its threads.
const SLEDS_THREADS: &str = "sled-";

thread_local! {
    static IS_GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// Runs what may panic in sled.
pub(super) fn guarded<T>(work: impl FnOnce() -> Result<T, IndexError>) -> Result<T, IndexError> {
    static HUSHED: Once = Once::new();
    HUSHED.call_once(hush);
    let was_guarded = IS_GUARDED.replace(true);
    let done = catch_unwind(AssertUnwindSafe(work));
    IS_GUARDED.set(was_guarded);
    done.unwrap_or(Err(IndexError::Panicked))
}

/// The words of such a panic are for sled's makers. What it means is said by who opens the index.
fn hush() {
    let before = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        let thread = std::thread::current();
        let is_sleds = thread
            .name()
            .is_some_and(|name| name.starts_with(SLEDS_THREADS));
        if !is_sleds && !IS_GUARDED.get() {
            before(info);
        }
    }));
}

#[cfg(test)]
mod tests;
