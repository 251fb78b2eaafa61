#!/usr/bin/env bash
# The benchmarks, with nginx at hand as the plain proxy to compare with (NGINX_BIN).
#
# Why: only ratios within one run mean anything on a shared machine.
# Promise: nginx is not installed, only unpacked below .cache; without it the rest still runs.

. "$(dirname "$0")/lib.sh"

scripts/setup-native.sh
if have nginx; then
    NGINX_BIN=$(command -v nginx)
else
    NGINX_BIN=$TOOLS/nginx/usr/sbin/nginx
    [ -x "$NGINX_BIN" ] || {
        say "setting up nginx below .cache"
        apt_unpack nginx "$TOOLS/nginx" || say "SKIPPED the comparison: Debian's package nginx could not be had"
    }
fi
[ ! -x "$NGINX_BIN" ] || export NGINX_BIN
run cargo bench --workspace --locked "$@"
