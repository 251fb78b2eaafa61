#!/usr/bin/env bash
# Builds bursar (dev profile) and shows it at work: sandbox, proxy, a short real story, the books.
#
# Arguments go to `bursar demo`, for example --once. Set ARGS with make: `make demo ARGS=--once`.

. "$(dirname "$0")/lib.sh"

scripts/setup-native.sh
[ -x "$TARGET/debug/bursar" ] || say "first build: about five minutes on two cores"
cargo build --workspace --locked
exec "$TARGET/debug/bursar" demo "$@"
