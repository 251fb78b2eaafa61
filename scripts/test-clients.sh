#!/usr/bin/env bash
# The programs of docs/clients.md, the real packages without a screen, through bursar on the sandbox.
#
# Why: what docs/clients.md has people paste must work as it stands, and must be billed once a turn.
# Promise: each program runs in a network of its own that reaches bursar alone, in a home of its own; where the packages
#      cannot be had, or networks cannot be made, one line says so and what helps; in CI that fails.

. "$(dirname "$0")/lib.sh"

unshare --net true 2>/dev/null || {
    skip "the clients" "no network namespace can be made here: run as root, in a container with CAP_SYS_ADMIN (docker run --privileged)"
    exit 0
}
[ "$(uname -s)-$(uname -m)" = Linux-x86_64 ] || {
    skip "the clients" "the programs are pinned for Linux on x86-64"
    exit 0
}
# npm and Node, of which scripts/setup-sdk.sh may have made a newer one below .cache.
run scripts/setup-sdk.sh
have npm || { skip "the clients" "no npm (see above)"; exit 0; }

# environment NAME REQUIREMENTS
environment() {
    local venv=$CACHE/$1 requirements=tests/clients/$2 key
    key="$(python3 --version) $(sha256sum <"$requirements")"
    fresh "$venv" "$key" && return
    say "setting up $1 below .cache ($2)"
    make_venv "$venv" &&
        quiet "$1" "$venv/bin/pip" install --disable-pip-version-check --no-input --no-deps -r "$requirements" &&
        made "$venv" "$key"
}
environment clients requirements.txt && environment clients-aider requirements-aider.txt &&
    environment clients-llamaindex requirements-llamaindex.txt || {
    skip "the clients" "their Python packages cannot be installed here (see above)"
    exit 0
}

modules=tests/clients/node_modules
key="$(node --version) $(sha256sum <tests/clients/package-lock.json)"
fresh "$modules" "$key" || {
    say "setting up the programs below tests/clients (1.3 GB)"
    # Where the registry has not the packages for other systems, `ci` finds the lock file incomplete. By `install` it
    # decides all the same.
    quiet clients-node npm --prefix tests/clients ci --no-audit --no-fund --ignore-scripts ||
        quiet clients-node npm --prefix tests/clients install --no-save --no-audit --no-fund --ignore-scripts || {
        skip "the clients" "their npm packages cannot be installed here (see above)"
        exit 0
    }
    made "$modules" "$key"
}

[ -d "${OPENRESPONSES_SUITE:-}" ] || skip "the OpenResponses suite" "set OPENRESPONSES_SUITE to its folder (bin/compliance-test.ts)"

export BURSAR_BIN=${BURSAR_BIN:-$TARGET/debug/bursar}
[ -x "$BURSAR_BIN" ] || run cargo build --workspace --locked
run "$CACHE/clients/bin/python" -m pytest tests/clients "$@"
