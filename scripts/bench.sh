#!/usr/bin/env bash
# The benchmark of bursar's own cost, with the proxies at hand that it is compared with: a bare pingora proxy
# ("BP", benches/pass-through), nginx and HAProxy.
#
# Why: only ratios within one run mean anything on a shared machine.
# Promise: nginx and HAProxy are never installed, for Debian's packages would start a server: they are unpacked
#      below .cache, without root. Where one cannot be had its columns are not measured, and one line says so.
#
# bench.sh [full|quick|compare|baseline|soak] ARGUMENTS…: arguments go to the benchmark, as in
# `make bench ARGS='--json figures.json'`; see benches/overhead/args.rs.

. "$(dirname "$0")/lib.sh"

# What the two are linked with, for machines that lack it.
LIBRARIES=(libcrypt1 libpcre2-8-0 libpcre2-posix3 libssl3 zlib1g liblua5.3-0 libopentracing-c-wrapper0 libopentracing1)

runs() { "$1" -v >/dev/null 2>&1; }

# find_proxy NAME PACKAGE…: print the path of a program that runs; one that is there already goes first.
find_proxy() {
    local name=$1 folder=$TOOLS/$1 program package libraries
    shift
    for program in "$name" "/usr/sbin/$name" "$TOOLS/bin/$name"; do
        runs "$program" && { command -v "$program"; return; }
    done
    say "setting up $name below .cache" >&2
    program=$folder/usr/sbin/$name
    for package in "$@"; do
        [ -x "$program" ] || apt_unpack "$package" "$folder" >&2 || true
    done
    [ -x "$program" ] || return 1
    if ! runs "$program"; then
        for package in "${LIBRARIES[@]}"; do apt_unpack "$package" "$folder" >/dev/null 2>&1 || true; done
    fi
    libraries=$(find "$folder/usr/lib" "$folder/lib" -name '*.so.*' -printf '%h\n' 2>/dev/null | sort -u | paste -sd:)
    printf '#!/bin/sh\nexec env LD_LIBRARY_PATH=%s %s "$@"\n' "$libraries" "$program" >"$TOOLS/bin/$name"
    chmod +x "$TOOLS/bin/$name"
    runs "$TOOLS/bin/$name" && printf '%s\n' "$TOOLS/bin/$name"
}

# add_proxy NAME PACKAGE…: its path as an argument of the benchmark.
add_proxy() {
    local program
    if program=$(find_proxy "$@"); then
        arguments+=("--$1" "$program")
    else
        skip "the comparison with $1" "it could not be had: install Debian's package $2; its columns are not measured"
    fi
}

# The packaged program: no sandbox, the packages' profile, stripped.
build_daemon() {
    have strip || { skip "size and start of the packaged program" "strip is missing: install Debian's package binutils"; return; }
    dist build --no-default-features --features fleet,jemalloc --bin bursar
    mkdir -p "$TARGET/bench"
    run strip -o "$TARGET/bench/bursar" "$TARGET/dist/bursar"
    arguments+=(--daemon "$TARGET/bench/bursar" --binary "packaged=$TARGET/bench/bursar")
}

what=full
case "${1:-}" in full | quick | compare | baseline | soak) what=$1; shift ;; esac

scripts/setup-native.sh
arguments=()
case $what in
full) arguments+=(--document docs/benchmarks.md) ;;
quick) arguments+=(--quick) ;;
compare) arguments+=(--compare benches/baseline.json) ;;
baseline) arguments+=(--document docs/benchmarks.md --baseline benches/baseline.json) ;;
soak)
    # The table of keys holds a million (src/ledger/fold/keys.rs).
    rm -rf "$TARGET/bench/full" && mkdir -p "$TARGET/bench"
    run cargo bench --workspace --locked --bench ledger -- fill "$TARGET/bench/full" 1000000
    arguments+=(--soak "${MINUTES:-30}" --full-state "$TARGET/bench/full" --document docs/benchmarks.md)
    ;;
esac
if [ "$what" != soak ]; then
    add_proxy nginx nginx nginx-light
    add_proxy haproxy haproxy
    run cargo build --locked --release --manifest-path benches/pass-through/Cargo.toml --target-dir "$TARGET/pass-through"
    mkdir -p "$TARGET/bench"
    arguments+=(--pass-through "$TARGET/pass-through/release/pass-through" --json "$TARGET/bench/figures.json")
fi
case $what in full | baseline) build_daemon ;; esac
run cargo bench --workspace --locked --bench overhead -- "${arguments[@]}" "$@"
