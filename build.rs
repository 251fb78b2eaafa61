//! Which compiler builds the program: `bursar version` and `bursar_build_info` name it.
//!
//! Promise: nothing else is asked. Without an answer the build goes on, and the compiler is not known.

use std::env;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-env=BURSAR_RUSTC={}", version());
}

/// `1.95.0`
#[expect(
    clippy::disallowed_methods,
    reason = "cargo says by its environment which compiler it uses"
)]
fn version() -> String {
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let Ok(said) = Command::new(rustc).arg("--version").output() else {
        return String::new();
    };
    let said = String::from_utf8_lossy(&said.stdout);
    said.split_whitespace()
        .nth(1)
        .unwrap_or_default()
        .to_owned()
}
