//! The program. Everything is in the library, so that tests and the demo can use it.

#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    bursar::cli::main()
}
