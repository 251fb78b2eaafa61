#!/usr/bin/env bash
# Layout, lints and supply chain.
#
# Promise: advisories are judged when their database can be reached, and only then; everything else
#      of deny.toml needs no network.

. "$(dirname "$0")/lib.sh"

scripts/setup-native.sh
run cargo fmt --all --check
run cargo clippy --workspace --all-targets --locked -- -D warnings
scripts/setup-deny.sh
have cargo-deny || exit 0
run cargo deny --locked check licenses bans sources
if GIT_TERMINAL_PROMPT=0 timeout 60 cargo deny fetch db >"$LOGS/advisories.log" 2>&1; then
    run cargo deny --locked check advisories
else
    say "advisories not judged: their database cannot be reached"
fi
