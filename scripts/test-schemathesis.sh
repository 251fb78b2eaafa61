#!/usr/bin/env bash
# The OpenAPI document and the sandbox: the one is valid OpenAPI 3.1, and schemathesis compares the two on every
# route with documented, random and wrong requests.
#
# Why: the document is written by hand, and so are the routes; a fuzzer that reads the one and calls the
#      other finds where they differ.
# Promise: no violation, or the run fails. The seed, the examples and the time are fixed below.
#
# BURSAR_BIN names the binary; OPENAPI_INCLUDE is a regular expression of paths, for a part of them.

. "$(dirname "$0")/lib.sh"

BURSAR_BIN=${BURSAR_BIN:-$TARGET/debug/bursar}
SEED=${SEED:-7}
EXAMPLES=${EXAMPLES:-25}
SECONDS_MAX=${SECONDS_MAX:-240}
INCLUDE=${OPENAPI_INCLUDE:-^/}
[ -x "$BURSAR_BIN" ] || die "no $BURSAR_BIN: run 'make build' first"

venv=$CACHE/schemathesis
requirements=tests/openapi/requirements.txt
key="$(python3 --version) $(sha256sum <"$requirements")"
fresh "$venv" "$key" || {
    say "setting up schemathesis below .cache"
    make_venv "$venv" || die "no Python venv: install it (Debian: apt-get install python3-venv)"
    quiet schemathesis "$venv/bin/pip" install --disable-pip-version-check --no-input --no-deps -r "$requirements"
    made "$venv" "$key"
}

work=$(mktemp -d)
# Else it leaves notes on this machine in the tree.
export HYPOTHESIS_STORAGE_DIRECTORY=$work/hypothesis
"$BURSAR_BIN" sandbox --listen 127.0.0.1:0 >"$work/out" &
sandbox=$!
trap 'kill "$sandbox" 2>/dev/null || true; wait "$sandbox" 2>/dev/null || true; rm -rf "$work"' EXIT
for _ in $(seq 100); do
    base=$(sed -n 's/^sandbox listening on //p' "$work/out")
    [ -z "$base" ] || break
    kill -0 "$sandbox" 2>/dev/null || die "the sandbox did not start"
    sleep 0.1
done
[ -n "$base" ] || die "the sandbox did not start"

control() {
    python3 - "$base/sandbox/$1" "$2" <<'PY'
import sys
import urllib.request

urllib.request.urlopen(urllib.request.Request(sys.argv[1], sys.argv[2].encode(), method="POST")).read()
PY
}
# The ceilings have tests of their own, and money that is gone would hide what lies behind a 402.
control limits '{"in_flight": 1000, "per_minute": 4000000000}'
control balance '{"micro_usd": 9000000000000000}'

# check PHASES ARGUMENT…
check() {
    local phases=$1
    shift
    run "$venv/bin/schemathesis" --config-file tests/openapi/schemathesis.toml run "$base/openapi.json" \
        --header "Authorization: Bearer sandbox-key" --include-path-regex "$INCLUDE" --phases "$phases" \
        --checks all --seed "$SEED" --max-examples "$EXAMPLES" --max-time "$SECONDS_MAX" \
        --request-timeout 30 --generation-database none --warnings off --no-color "$@"
}
say "the document itself"
python3 -c 'import sys, urllib.request; urllib.request.urlretrieve(sys.argv[1], sys.argv[2])' "$base/openapi.json" "$work/openapi.json"
run "$venv/bin/python" -m openapi_spec_validator --schema 3.1 "$work/openapi.json"
say "documented examples"
# An id of an example is no id of a resource that exists, so that 404 is a right answer, too; see the check's own list.
check examples
say "coverage and random requests"
# A request that is valid by the schema may break a rule that no schema states: a tool_choice that names no tool, a whole
# number written 1.0, an audio file that is none. So acceptance is judged on the examples alone.
check coverage,fuzzing --exclude-checks positive_data_acceptance
