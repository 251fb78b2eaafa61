//! The program. Everything is in the library, so that tests and the demo can use it.
//!
//! Promise: it has the system's allocator, which gives memory back as it is. Where the key was is wiped by
//! the types that hold it (docs/secrets.md).

#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    bursar::cli::main()
}
