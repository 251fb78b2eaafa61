#!/usr/bin/env bash
# The FOCUS export of a real ledger against PyPI's focus-validator.
#
# Why: an accountant's program decides whether a row is one of FOCUS, not ours.
# Promise: the rows were written by a real `bursar run` and `bursar ledger export` (BURSAR_BIN, else the debug build).
#      Where the validator cannot be had, one line says so; in CI that fails.

. "$(dirname "$0")/lib.sh"

venv=$CACHE/focus requirements=tests/focus/requirements.txt
key="$(python3 --version) $(sha256sum <"$requirements")"
fresh "$venv" "$key" || {
    say "setting up focus-validator below .cache"
    { make_venv "$venv" &&
        quiet focus "$venv/bin/pip" install --disable-pip-version-check --no-input --no-deps -r "$requirements"; } || {
        skip "the FOCUS rows" "focus-validator cannot be installed here (see above)"
        exit 0
    }
    made "$venv" "$key"
}

export BURSAR_BIN=${BURSAR_BIN:-$TARGET/debug/bursar}
[ -x "$BURSAR_BIN" ] || run cargo build --workspace --locked
run "$venv/bin/python" -m pytest tests/focus "$@"
