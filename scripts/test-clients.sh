#!/usr/bin/env bash
# The programs of docs/clients.md, the real packages without a screen, through bursar on the sandbox.
#
# Why: what docs/clients.md has people paste must work as it stands, and must be billed once a turn.
# Promise: each program runs in a network of its own that reaches bursar alone, in a home of its own; where the packages
#      cannot be had, or networks cannot be made, one line says so and what helps; in CI and in `make test-all` that
#      fails. Where only aider or LlamaIndex cannot be installed, their tests alone are left out, by name.
#
# BURSAR_CLIENTS=skip leaves all of this out, and `make test-all` may pass without it.

. "$(dirname "$0")/lib.sh"

# left_out WHY: ends this part without a test.
left_out() {
    skip "the clients" "$1"
    [ -z "${IGNORED:-}" ] || [ "${BURSAR_CLIENTS:-}" = skip ] ||
        die "make test-all runs the clients; to run all but them: make test-all BURSAR_CLIENTS=skip"
    exit 0
}

[ "${BURSAR_CLIENTS:-}" != skip ] || left_out "BURSAR_CLIENTS=skip says so"
unshare --net true 2>/dev/null ||
    left_out "no network namespace can be made here: run as root, in a container with CAP_SYS_ADMIN (docker run --privileged)"
[ "$(uname -s)-$(uname -m)" = Linux-x86_64 ] || left_out "the programs are pinned for Linux on x86-64"
# npm and Node, of which scripts/setup-sdk.sh may have made a newer one below .cache.
run scripts/setup-sdk.sh
have npm || left_out "no npm (see above)"

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
environment clients requirements.txt || left_out "their Python packages cannot be installed here (see above)"
# What may be missing alone: these two have an environment of their own. tests/clients/conftest.py leaves their tests out.
BURSAR_CLIENTS_WITHOUT=
for program in aider llamaindex; do
    environment "clients-$program" "requirements-$program.txt" || {
        skip "the tests of $program" "its Python packages cannot be installed here (see above)"
        BURSAR_CLIENTS_WITHOUT+=" $program"
    }
done
export BURSAR_CLIENTS_WITHOUT

modules=tests/clients/node_modules
key="$(node --version) $(sha256sum <tests/clients/package-lock.json)"
fresh "$modules" "$key" || {
    say "setting up the programs below tests/clients (1.3 GB)"
    # Where the registry has not the packages for other systems, `ci` finds the lock file incomplete. By `install` it
    # decides all the same.
    quiet clients-node npm --prefix tests/clients ci --no-audit --no-fund --ignore-scripts ||
        quiet clients-node npm --prefix tests/clients install --no-save --no-audit --no-fund --ignore-scripts ||
        left_out "their npm packages cannot be installed here (see above)"
    made "$modules" "$key"
}

[ -d "${OPENRESPONSES_SUITE:-}" ] || skip "the OpenResponses suite" "set OPENRESPONSES_SUITE to its folder (bin/compliance-test.ts)"

export BURSAR_BIN=${BURSAR_BIN:-$TARGET/debug/bursar}
[ -x "$BURSAR_BIN" ] || run cargo build --workspace --locked
run "$CACHE/clients/bin/python" -m pytest tests/clients "$@"
