#!/usr/bin/env bash
# systemd's own opinion of the units in systemd/: do they parse, and how exposed is the service?
#
# Why: a misspelt directive is only a warning at run time, and then the hardening is not there.
# Promise: any message of `verify` fails, and so does an exposure above 1.2, or above 6.3 of a user's own unit.

. "$(dirname "$0")/lib.sh"

unit=systemd/bursar.service
have systemd-analyze || apt_install systemd || {
    skip "systemd-analyze verify" "systemd-analyze is not on this machine"
    exit 0
}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
# `verify` wants each program to exist, and bursar is not installed yet.
sed 's|^ExecStart=/usr/bin/bursar |ExecStart=/bin/true |' "$unit" \
    >"$tmp/bursar.service"
grep -q '^ExecStart=/bin/true ' "$tmp/bursar.service" || die "$unit: no ExecStart=/usr/bin/bursar"
# The socket beside its service: a socket that starts nothing is found, too.
cp systemd/*.socket "$tmp/"

say "systemd-analyze verify $unit systemd/*.socket"
systemd-analyze verify --man=no "$tmp/bursar.service" "$tmp"/*.socket >"$tmp/out" 2>&1 || { cat "$tmp/out"; exit 1; }
[ ! -s "$tmp/out" ] || { cat "$tmp/out"; exit 1; }
# A service that reached a limit on starts would take the socket down with it (tests/it/service_unit.rs has the rest).
grep -qx 'StartLimitIntervalSec=0' "$unit" || die "$unit: a service that fails stays down"
grep -qx 'TriggerLimitIntervalSec=0' systemd/bursar.socket || die "systemd/bursar.socket: it fails with its service"
# Users of bursar.socket's path are apps by their uid; a private user namespace shows all of them as nobody.
! grep -qE '^PrivateUsers=(yes|true|on|1|self)' "$unit" || die "$unit: PrivateUsers= hides who connects to /run/bursar.sock"
# What parses the units must see a misspelt line in each.
for name in bursar.service bursar.socket bursar-admin.socket; do
    mkdir -p "$tmp/misspelt"
    cp "$tmp"/bursar.service "$tmp"/*.socket "$tmp/misspelt/"
    printf '[%s]\nLimitKORE=0\n' "$([ "$name" = bursar.service ] && echo Service || echo Socket)" >>"$tmp/misspelt/$name"
    systemd-analyze verify --man=no "$tmp/misspelt/bursar.service" "$tmp"/misspelt/*.socket 2>&1 |
        grep -q LimitKORE || die "verify does not see a misspelt line in $name"
done
# The units of a user's own systemd. It asks for a runtime directory, which root's shell may lack.
say "systemd-analyze --user verify systemd/user/*"
export XDG_RUNTIME_DIR=$tmp/run
mkdir -p "$tmp/user" "$XDG_RUNTIME_DIR"
cp systemd/user/* "$tmp/user/"
sed -i 's|=/usr/bin/bursar |=/bin/true |' "$tmp/user/bursar.service"
systemd-analyze --user verify --man=no "$tmp"/user/* >"$tmp/out" 2>&1 || { cat "$tmp/out"; exit 1; }
[ ! -s "$tmp/out" ] || { cat "$tmp/out"; exit 1; }
for name in bursar.service:Service bursar.socket:Socket; do
    rm -rf "$tmp/misspelt" && cp -r "$tmp/user" "$tmp/misspelt"
    printf '[%s]\nLimitKORE=0\n' "${name#*:}" >>"$tmp/misspelt/${name%:*}"
    systemd-analyze --user verify --man=no "$tmp"/misspelt/* 2>&1 |
        grep -q LimitKORE || die "verify does not see a misspelt line in the user's ${name%:*}"
done
if have systemd-sysusers; then
    say "systemd-sysusers --dry-run systemd/bursar.sysusers"
    systemd-sysusers --dry-run "$PWD/systemd/bursar.sysusers" >"$tmp/out" 2>&1 || { cat "$tmp/out"; exit 1; }
fi
# Older ones have no --offline; their verdict on the syntax is enough.
systemd-analyze security --help 2>/dev/null | grep -q -- --offline || exit 0
systemd-analyze security --no-pager --offline=true --threshold=12 "$tmp/bursar.service" >"$tmp/out" 2>&1 || { cat "$tmp/out"; exit 1; }
tail -n 1 "$tmp/out"
# Of a user's unit the rating counts what only root can give up.
systemd-analyze --user security --no-pager --offline=true --threshold=63 "$tmp/user/bursar.service" >"$tmp/out" 2>&1 ||
    { cat "$tmp/out"; exit 1; }
