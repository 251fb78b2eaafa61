//! `cargo +nightly fuzz run routes`: the check is `checks::routes` in `src/checks/routes.rs`.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| bursar_fuzz::checks::routes::check(bytes));
