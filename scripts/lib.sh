# shellcheck shell=bash disable=SC2034
# Shared by the scripts of this folder: where things are, how steps are shown, how tools are had.
#
# Why: `make demo` and `make test` set themselves up on a bare machine, with or without root, and
#      say in one line each what they do.
# Promise: nothing is installed outside the repository's .cache folder, except Debian packages when
#      run as root and there is no other way. Each set-up step runs again only when its pin changes.

set -euo pipefail

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
CACHE=$ROOT/.cache
TOOLS=$CACHE/tools
LOGS=$CACHE/log
TARGET=${CARGO_TARGET_DIR:-$ROOT/target}
cd "$ROOT"
mkdir -p "$TOOLS/bin" "$LOGS"
export PATH="$TOOLS/bin:$PATH"
# shellcheck source=versions.env
. "$ROOT/scripts/versions.env"

say() { printf '==> %s\n' "$*"; }
die() { printf 'error: %s\n' "$*" >&2; exit 1; }
have() { command -v "$1" >/dev/null 2>&1; }
is_root() { [ "$(id -u)" -eq 0 ]; }

# run CMD…: show the command, then run it.
run() {
    printf '+ %s\n' "$*"
    "$@"
}

# quiet NAME CMD…: run with the output in a log; show it only when the command fails.
quiet() {
    local log=$LOGS/setup-$1.log
    shift
    printf '+ %s\n' "$*"
    "$@" >"$log" 2>&1 </dev/null || { cat "$log" >&2; return 1; }
}

# skip WHAT WHY: leave a part out, loudly. In CI nothing may be left out.
skip() {
    printf 'SKIPPED %s: %s\n' "$1" "$2"
    [ "${CI:-}" != true ] || die "$1 must not be skipped in CI"
}

# fresh DIR KEY: was DIR made from exactly this key, and at this place?  made DIR KEY: note that it was.
fresh() { [ "$(cat "$1/.made-from" 2>/dev/null)" = "$2 in $ROOT" ]; }
made() { printf '%s in %s\n' "$2" "$ROOT" >"$1/.made-from"; }

# apt_install PACKAGE…: as root on Debian, else fail without a word.
apt_install() {
    is_root && have apt-get || return 1
    say "installing Debian's $*"
    export DEBIAN_FRONTEND=noninteractive
    quiet apt apt-get install -y --no-install-recommends "$@" 2>/dev/null && return
    # One unreachable source among several must not stop us: the install reports it.
    quiet apt apt-get update || true
    quiet apt apt-get install -y --no-install-recommends "$@"
}

# apt_unpack PACKAGE DIR: download a Debian package and unpack it into DIR; no root is needed.
apt_unpack() {
    have apt-get && have dpkg-deb || return 1
    local tmp
    tmp=$(mktemp -d "$CACHE/deb.XXXXXX")
    (
        cd "$tmp"
        apt-get download "$1" >apt.log 2>&1 || {
            is_root && { apt-get update >>apt.log 2>&1 || true; } && apt-get download "$1" >>apt.log 2>&1
        } || { cat apt.log >&2; exit 1; }
        mkdir -p "$2" && dpkg-deb -x ./*.deb "$2"
    ) || { rm -rf "$tmp"; return 1; }
    rm -rf "$tmp"
}

# make_venv DIR: a Python environment with pip. Debian keeps ensurepip in a package of its own.
make_venv() {
    rm -rf "$1"
    have python3 || apt_install python3 || die "python3 is missing: install it (Debian: apt-get install python3 python3-venv)"
    python3 -m venv "$1" >"$LOGS/setup-venv.log" 2>&1 && return
    rm -rf "$1"
    apt_install python3-venv && python3 -m venv "$1" >"$LOGS/setup-venv.log" 2>&1 && return
    rm -rf "$1"
    cat "$LOGS/setup-venv.log" >&2
    return 1
}

# pip_tool NAME PINS PROGRAM…: programs that come as Python wheels, linked into the tools folder.
pip_tool() {
    local name=$1 pins=$2 venv=$TOOLS/$1 program
    shift 2
    fresh "$venv" "$pins" && return
    say "setting up $name below .cache ($pins)"
    make_venv "$venv" || return 1
    # shellcheck disable=SC2086  # several pins are several arguments
    quiet "$name" "$venv/bin/pip" install --disable-pip-version-check --no-input $pins || return 1
    for program in "$@"; do ln -sfn "../$name/bin/$program" "$TOOLS/bin/$program"; done
    made "$venv" "$pins"
}

# debian_tree SUITE PACKAGES: a Debian below .cache/SUITE, made once; root and debootstrap are needed.
debian_tree() {
    fresh "$CACHE/$1" "$2" && return
    say "setting up a Debian tree below .cache ($1)"
    rm -rf "${CACHE:?}/$1"
    quiet debootstrap debootstrap --variant=minbase ${2:+--include="$2"} "$1" "$CACHE/$1" || return 1
    made "$CACHE/$1" "$2"
}

# dist CARGO-COMMAND ARGUMENT…: a build as the packages have it, profile `dist`, bursar's own code for size. A threshold for
# inlining that is stated holds for such code, too; without it the program would be slow (docs/benchmarks.md).
dist() {
    run env RUSTFLAGS="${RUSTFLAGS:-} -Cllvm-args=-inline-threshold=120" cargo "$@" --workspace --locked \
        --profile dist --config 'profile.dist.package.bursar.opt-level="s"'
}
