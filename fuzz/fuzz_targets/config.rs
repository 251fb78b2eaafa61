//! `cargo +nightly fuzz run config`: the check is `checks::config` in `src/checks/config.rs`.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| bursar_fuzz::checks::config::check(bytes));
