#!/usr/bin/env bash
# The dashboard and the alerts with the programs they are for: promtool, Prometheus, Grafana's own types.
#
# Why: a query can be valid and return nothing, and a key of a dashboard can be misspelt in silence.
# Promise: what is shipped in grafana/ runs as it is shipped. Grafana itself is in no registry that this may use: the
#      dashboard is checked against the types that Grafana publishes, and every query of it is run.
#
# BURSAR_BIN names the binary.

. "$(dirname "$0")/lib.sh"

export BURSAR_BIN=${BURSAR_BIN:-$TARGET/debug/bursar}
[ -x "$BURSAR_BIN" ] || die "no $BURSAR_BIN: run 'make build' first"

scripts/setup-promtool.sh
# Without PostgreSQL the fleet's panels are left out.
scripts/setup-postgresql.sh || [ $? -ge 2 ]
if have promtool && have prometheus; then
    run promtool check rules grafana/alerts.yml
    run promtool test rules grafana/alerts-tests.yml
    run promtool check config grafana/prometheus.yml
    run python3 tests/prometheus/run.py
else
    skip "Prometheus" "it could not be had"
fi

have npm || pip_tool node "$NODE_PIN" node npm || { skip "the dashboard's types" "no npm"; exit 0; }
modules=tests/grafana/node_modules
key="$(node --version) $(sha256sum <tests/grafana/package-lock.json)"
fresh "$modules" "$key" || {
    say "setting up Grafana's types below tests/grafana"
    quiet grafana-types npm --prefix tests/grafana ci --no-audit --no-fund --ignore-scripts
    made "$modules" "$key"
}
run node tests/grafana/check.mjs
