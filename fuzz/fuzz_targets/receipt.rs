//! `cargo +nightly fuzz run receipt`: the check is `checks::receipt` in `src/checks/receipt.rs`.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| bursar_fuzz::checks::receipt::check(bytes));
