#!/usr/bin/env bash
# Builds bursar (dev profile) and shows it at work: sandbox, proxy, a short real story, the books.
#
# Arguments go to `bursar demo`, for example --once. Set ARGS with make: `make demo ARGS=--once`.

. "$(dirname "$0")/lib.sh"

scripts/setup-native.sh
[ -x "$TARGET/debug/bursar" ] || say "first build: a few minutes on two cores"
# A first look at bursar needs neither line numbers nor what a second build would reuse, nor the fleet and an allocator for load.
CARGO_PROFILE_DEV_DEBUG=false CARGO_INCREMENTAL=0 cargo build --workspace --locked \
    --no-default-features --features sandbox --config profile.dev.package.sled.opt-level=0
exec "$TARGET/debug/bursar" demo "$@"
