//! `cargo +nightly fuzz run messages`: the check is `checks::messages` in `src/checks/messages.rs`.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| bursar_fuzz::checks::messages::check(bytes));
