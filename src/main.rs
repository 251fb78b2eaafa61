//! The program. Everything is in the library, so that tests and the demo can use it.
//!
//! Promise: memory is given back as it is, with the feature `jemalloc` by jemalloc, which takes 7 % off a small request's
//! processor time and returns to the system what a burst filled; `.cargo/config.toml` has its options. Where the key was is
//! wiped by the types that hold it (docs/secrets.md).

#![forbid(unsafe_code)]

use std::process::ExitCode;

#[cfg(feature = "jemalloc")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    bursar::cli::main()
}
