#!/usr/bin/env bash
# Layout, lints and supply chain (scripts/deny.sh).

. "$(dirname "$0")/lib.sh"

scripts/setup-native.sh
run cargo fmt --all --check
run cargo fmt --manifest-path benches/pass-through/Cargo.toml --check
run cargo clippy --workspace --all-targets --locked -- -D warnings
run scripts/deny.sh
