//! `cargo +nightly fuzz run journal`: the check is `checks::journal` in `src/checks/journal.rs`.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| bursar_fuzz::checks::journal::check(bytes));
