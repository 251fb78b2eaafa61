//! `cargo +nightly fuzz run responses`: the check is `checks::responses` in `src/checks/responses.rs`.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| bursar_fuzz::checks::responses::check(bytes));
