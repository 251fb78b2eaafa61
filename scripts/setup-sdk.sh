#!/usr/bin/env bash
# The real OpenAI SDKs for tests/sdk: a Python environment and, for Node, the locked package.
#
# Why: unmodified clients are the promise; they come from their registries at pinned versions.
# Promise: a Node that is missing or too old is replaced by a Python wheel of Node below .cache.

. "$(dirname "$0")/lib.sh"

# python_sdk ENVIRONMENT REQUIREMENTS
python_sdk() {
    local venv=$CACHE/$1 requirements=tests/sdk/python/$2 key
    key="$(python3 --version) $(sha256sum <"$requirements")"
    fresh "$venv" "$key" && return
    say "setting up the Python SDK below .cache ($2)"
    make_venv "$venv" || die "no Python venv: install it (Debian: apt-get install python3-venv)"
    quiet "$1" "$venv/bin/pip" install --disable-pip-version-check --no-input --no-deps -r "$requirements"
    made "$venv" "$key"
}
python_sdk sdk-python requirements.txt
[ -z "${IGNORED:-}" ] || python_sdk sdk-python-openai2 requirements-openai2.txt

# Node itself.
node_fits() {
    have npm && have node && [ "$(node -p 'process.versions.node.split(".")[0]' 2>/dev/null || echo 0)" -ge "$NODE_MAJOR_MIN" ]
}
node_fits || pip_tool node "$NODE_PIN" node npm || {
    skip "the Node SDK set-up" "no Node $NODE_MAJOR_MIN or newer, and the wheel of it could not be had"
    exit 0
}

# The SDK for it.
modules=tests/sdk/node/node_modules
key="$(node --version) $(sha256sum <tests/sdk/node/package-lock.json)"
fresh "$modules" "$key" || {
    say "setting up the Node SDK below tests/sdk/node"
    quiet sdk-node npm --prefix tests/sdk/node ci --no-audit --no-fund --ignore-scripts
    made "$modules" "$key"
}
