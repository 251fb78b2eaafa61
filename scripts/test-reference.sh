#!/usr/bin/env bash
# The sandbox's scorers against reference implementations: scikit-learn, scipy, jiwer, rouge_score.
#
# Why: a score that only its own tests agree with is an opinion; these are the programs that others use.
# Promise: every figure compared came from a real `bursar sandbox` (BURSAR_BIN, else the debug build).

. "$(dirname "$0")/lib.sh"

venv=$CACHE/reference requirements=tests/reference/requirements.txt
key="$(python3 --version) $(sha256sum <"$requirements")"
fresh "$venv" "$key" || {
    say "setting up the reference implementations below .cache"
    make_venv "$venv" || die "no Python venv: install it (Debian: apt-get install python3-venv)"
    quiet reference "$venv/bin/pip" install --disable-pip-version-check --no-input --no-deps -r "$requirements"
    made "$venv" "$key"
}

export BURSAR_BIN=${BURSAR_BIN:-$TARGET/debug/bursar}
[ -x "$BURSAR_BIN" ] || run cargo build --workspace --locked
run "$venv/bin/python" -m pytest tests/reference "$@"
