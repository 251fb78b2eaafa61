#!/usr/bin/env bash
# Every check of the project, in one run: layout, lints, Rust tests, the systemd units, real SDKs.
#
# Why: CI and a developer must run the same thing.
# Promise: one failing part fails the whole, and the parts after it still run (only a build that
#      fails ends it at once). The last line is the sum over all runners: N passed, N failed.
#
# RUNNER=cargo takes cargo's own test runner even where nextest is installed.
# IGNORED=1 runs the slow tests too, the previous major of the Python SDK, the scorers against reference
# implementations, the FOCUS export against its validator, and the real client programs (`make test-all`). These must
# run: BURSAR_CLIENTS=skip says that they need not.

. "$(dirname "$0")/lib.sh"

rm -f "$LOGS"/step-*
failed=()
began=$SECONDS

# step NAME CMD…: one part, shown and kept in a log; a failure is remembered.
step() {
    local name=$1 start=$SECONDS
    shift
    say "$name"
    printf '+ %s\n' "$*"
    if "$@" 2>&1 </dev/null | tee "$LOGS/step-$name.log"; then
        printf -- '--- %s: ok, %d s\n\n' "$name" $((SECONDS - start))
    else
        printf -- '--- %s: FAILED, %d s\n\n' "$name" $((SECONDS - start))
        failed+=("$name")
        return 1
    fi
}

finish() {
    [ ${#failed[@]} -eq 0 ] || printf 'FAILED: %s\n' "${failed[*]}"
    printf 'all parts took %d s\n' $((SECONDS - began))
    python3 scripts/summary.py "$LOGS" "${failed[@]}"
    exit $((${#failed[@]} > 0))
}

run scripts/setup-native.sh
# Without PostgreSQL the fleet's tests are left out; without pgbouncer, those that go through it.
not_these=()
if [ -n "${IGNORED:-}" ]; then
    scripts/setup-postgresql.sh || case $? in
        2) ;;
        3) not_these=(fleet::) ;;
        *) failed+=(postgresql-setup) ;;
    esac
fi

step format cargo fmt --all --check || true
step clippy cargo clippy --workspace --all-targets --locked -- -D warnings || true
# What `make demo` builds.
step demo-features cargo check --workspace --locked --no-default-features --features sandbox || true
# This also builds target/debug/bursar, with the features the tests use: no second build for the SDKs.
step build cargo test --workspace --locked --no-run || finish

if [ "${RUNNER:-nextest}" = nextest ] && have cargo-nextest; then
    step rust cargo nextest run --workspace --locked --no-tests=pass ${IGNORED:+--run-ignored all} \
        ${not_these:+-E "not (binary(it) & test(/^${not_these[0]}/))"} || true
    step doctests cargo test --workspace --locked --doc || true
else
    step rust cargo test --workspace --locked --no-fail-fast \
        ${IGNORED:+-- --include-ignored "${not_these[@]/#/--skip=}"} || true
fi

step unit scripts/check-unit.sh || true
step confined env BURSAR_BIN="${BURSAR_BIN:-$TARGET/debug/bursar}" scripts/confined.sh || true
step sdk-setup scripts/setup-sdk.sh || finish
step promtool-setup scripts/setup-promtool.sh || true

export BURSAR_BIN=${BURSAR_BIN:-$TARGET/debug/bursar}
[ -x "$BURSAR_BIN" ] || step binary cargo build --workspace --locked || finish
step sdk-python "$CACHE/sdk-python/bin/python" -m pytest tests/sdk/python || true
[ -z "${IGNORED:-}" ] || step sdk-python-openai2 "$CACHE/sdk-python-openai2/bin/python" -m pytest tests/sdk/python || true
[ -z "${IGNORED:-}" ] || step reference scripts/test-reference.sh || true
[ -z "${IGNORED:-}" ] || step focus scripts/test-focus.sh || true
[ -z "${IGNORED:-}" ] || step clients scripts/test-clients.sh || true
[ -z "${IGNORED:-}" ] || step schemathesis scripts/test-schemathesis.sh || true
[ -z "${IGNORED:-}" ] || step page scripts/test-page.sh || true
[ -z "${IGNORED:-}" ] || step prometheus scripts/test-prometheus.sh || true
if [ -d tests/sdk/node/node_modules ]; then
    step sdk-node node --test --test-reporter=spec tests/sdk/node/*.test.mjs || true
fi
finish
