#!/usr/bin/env bash
# The status page in Chromium: links and attacks from another origin, the script, axe-core, narrow screens, the keyboard.
#
# Why: what a browser lets another page do, and how a page looks, is known by the browser alone.
# Promise: Chromium is Debian's; the screenshots of the run lie in .cache/page. Without a Chromium the tests are left out, loudly.
#
# BURSAR_BIN names the binary; CHROMIUM another browser.

. "$(dirname "$0")/lib.sh"

export BURSAR_BIN=${BURSAR_BIN:-$TARGET/debug/bursar}
[ -x "$BURSAR_BIN" ] || die "no $BURSAR_BIN: run 'make build' first"
export CHROMIUM=${CHROMIUM:-/usr/bin/chromium}
[ -x "$CHROMIUM" ] || apt_install chromium || true
[ -x "$CHROMIUM" ] || {
    skip "the page in a browser" "no $CHROMIUM, and Debian's package chromium could not be installed"
    exit 0
}
# Node is set up with the SDKs.
have node && have npm || {
    skip "the page in a browser" "no Node"
    exit 0
}

modules=tests/browser/node_modules
key="$(node --version) $(sha256sum <tests/browser/package-lock.json)"
fresh "$modules" "$key" || {
    say "setting up playwright-core and axe-core below tests/browser"
    quiet browser npm --prefix tests/browser ci --no-audit --no-fund --ignore-scripts
    made "$modules" "$key"
}

export BURSAR_SCREENSHOTS=${BURSAR_SCREENSHOTS:-$CACHE/page}
rm -rf "$BURSAR_SCREENSHOTS"
mkdir -p "$BURSAR_SCREENSHOTS"
run node --test --test-reporter=spec tests/browser/*.test.mjs
say "screenshots: $BURSAR_SCREENSHOTS"
