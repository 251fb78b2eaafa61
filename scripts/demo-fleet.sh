#!/usr/bin/env bash
# Builds bursar (dev profile) and shows a fleet: three machines, one account, one shared cap, one database.
#
# Promise: PostgreSQL, pgbouncer, the sandbox and the machines live in a temporary folder, and nothing of them is left.
#      Exit code 0 means that hosts, journals and the service's own books have the same sum, within the bound that was
#      printed before; without PostgreSQL or pgbouncer it is 1, with the line that installs them.

. "$(dirname "$0")/lib.sh"

have python3 || apt_install python3 || die "python3 is missing: install it (Debian: apt-get install python3)"
scripts/setup-postgresql.sh || die "the demo of the fleet needs PostgreSQL and pgbouncer (above)"
scripts/setup-native.sh
[ -x "$TARGET/debug/bursar" ] || say "first build: a few minutes on two cores"
CARGO_PROFILE_DEV_DEBUG=false CARGO_INCREMENTAL=0 cargo build --workspace --locked
export BURSAR_BIN=$TARGET/debug/bursar
exec python3 scripts/demo-fleet.py "$@"
