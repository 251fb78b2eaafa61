//! The program. Everything but its allocator is in the library, so that tests and the demo can use it.
//!
//! Promise: memory is wiped before it is given back. pingora writes each request's head, the key in
//! it, into buffers of its own; no type of ours could wipe those.

#![forbid(unsafe_code)]

use std::alloc::System;
use std::process::ExitCode;

use zeroizing_alloc::ZeroAlloc;

#[global_allocator]
static WIPING: ZeroAlloc<System> = ZeroAlloc(System);

fn main() -> ExitCode {
    bursar::cli::main()
}
