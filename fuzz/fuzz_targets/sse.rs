//! `cargo +nightly fuzz run sse`: the check is `checks::sse` in `src/checks/sse.rs`.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| bursar_fuzz::checks::sse::check(bytes));
