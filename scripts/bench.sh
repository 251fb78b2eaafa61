#!/usr/bin/env bash
# The benchmark of bursar's own cost, with nginx at hand as the plain proxy to compare with.
#
# Why: only ratios within one run mean anything on a shared machine.
# Promise: nginx is never installed, for Debian's package would start a server: it is unpacked below
#      .cache, without root. Where it cannot be had the rest still runs.
#
# Arguments go to the benchmark: `make bench ARGS='--json figures.json'`; see benches/overhead/args.rs.

. "$(dirname "$0")/lib.sh"

NGINX_DIR=$TOOLS/nginx
# Debian's name for the package with the program, this release's and the one's before.
NGINX_PACKAGES=(nginx nginx-light)
# What the program is linked with, for machines that lack it.
NGINX_LIBRARIES=(libcrypt1 libpcre2-8-0 libssl3 zlib1g)

runs() { "$1" -v >/dev/null 2>&1; }

# find_nginx: set NGINX_BIN to a program that runs; one that is set already goes first.
find_nginx() {
    local program name libraries
    for program in "${NGINX_BIN:-}" nginx /usr/sbin/nginx "$TOOLS/bin/nginx"; do
        [ -n "$program" ] && runs "$program" && NGINX_BIN=$(command -v "$program") && return
    done
    say "setting up nginx below .cache"
    program=$NGINX_DIR/usr/sbin/nginx
    for name in "${NGINX_PACKAGES[@]}"; do
        [ -x "$program" ] || apt_unpack "$name" "$NGINX_DIR" || true
    done
    [ -x "$program" ] || return 1
    if ! runs "$program"; then
        for name in "${NGINX_LIBRARIES[@]}"; do apt_unpack "$name" "$NGINX_DIR" || true; done
    fi
    libraries=$(find "$NGINX_DIR/usr/lib" "$NGINX_DIR/lib" -name '*.so.*' -printf '%h\n' 2>/dev/null | sort -u | paste -sd:)
    printf '#!/bin/sh\nexec env LD_LIBRARY_PATH=%s %s "$@"\n' "$libraries" "$program" >"$TOOLS/bin/nginx"
    chmod +x "$TOOLS/bin/nginx"
    NGINX_BIN=$TOOLS/bin/nginx
    runs "$NGINX_BIN"
}

scripts/setup-native.sh
arguments=()
if find_nginx; then
    arguments=(--nginx "$NGINX_BIN")
else
    skip "the comparison with nginx" "Debian's package nginx could not be had"
fi
run cargo bench --workspace --locked --bench overhead -- "${arguments[@]}" "$@"
