#!/usr/bin/env bash
# promtool, which judges the text of /metrics; from Debian's package `prometheus`, only unpacked.
#
# Why: installing the package would start a server on the machine; one file of it is enough.
# Promise: a promtool on the PATH is used as it is; without one and without Debian's package tools
#      the check is left out, loudly.

. "$(dirname "$0")/lib.sh"

have promtool && exit 0
say "setting up promtool below .cache"
tmp=$CACHE/prometheus.tmp
rm -rf "$tmp"
if apt_unpack prometheus "$tmp"; then
    mv "$tmp/usr/bin/promtool" "$TOOLS/bin/promtool"
    rm -rf "$tmp"
else
    rm -rf "$tmp"
    skip "promtool" "Debian's package prometheus could not be had"
fi
