#!/usr/bin/env bash
# systemd's own opinion of systemd/bursar.service: does it parse, and how exposed is it?
#
# Why: a misspelt directive is only a warning at run time, and then the hardening is not there.
# Promise: any message of `verify` fails, and so does an exposure above 1.3.

. "$(dirname "$0")/lib.sh"

unit=systemd/bursar.service
have systemd-analyze || apt_install systemd || {
    skip "systemd-analyze verify" "systemd-analyze is not on this machine"
    exit 0
}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
# `verify` wants each program to exist: bursar is not installed yet, and a bare machine has no kill.
sed 's|^ExecStart=/usr/bin/bursar |ExecStart=/bin/true |; s|^ExecReload=/bin/kill |ExecReload=/bin/true |' "$unit" \
    >"$tmp/bursar.service"
grep -q '^ExecStart=/bin/true ' "$tmp/bursar.service" || die "$unit: no ExecStart=/usr/bin/bursar"

say "systemd-analyze verify $unit"
systemd-analyze verify --man=no "$tmp/bursar.service" >"$tmp/out" 2>&1 || { cat "$tmp/out"; exit 1; }
[ ! -s "$tmp/out" ] || { cat "$tmp/out"; exit 1; }
# Older ones have no --offline; their verdict on the syntax is enough.
systemd-analyze security --help 2>/dev/null | grep -q -- --offline || exit 0
systemd-analyze security --no-pager --offline=true --threshold=13 "$tmp/bursar.service" >"$tmp/out" 2>&1 || { cat "$tmp/out"; exit 1; }
tail -n 1 "$tmp/out"
