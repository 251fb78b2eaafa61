#!/usr/bin/env bash
# promtool, which judges the text of /metrics and the alerts, and Prometheus itself; from Debian's package
# `prometheus`, only unpacked.
#
# Why: installing the package would start a server on the machine; two files of it are enough.
# Promise: those on the PATH are used as they are; without them and without Debian's package tools
#      the checks are left out, loudly.

. "$(dirname "$0")/lib.sh"

have promtool && have prometheus && exit 0
say "setting up promtool and prometheus below .cache"
tmp=$CACHE/prometheus.tmp
rm -rf "$tmp"
if apt_unpack prometheus "$tmp"; then
    mv "$tmp/usr/bin/promtool" "$tmp/usr/bin/prometheus" "$TOOLS/bin/"
    rm -rf "$tmp"
else
    rm -rf "$tmp"
    skip "promtool and prometheus" "Debian's package prometheus could not be had"
fi
