#!/usr/bin/env bash
# PostgreSQL and pgbouncer, for the tests of the fleet, its demo and its bench; Debian's packages, only unpacked.
#
# Why: installing the packages would start servers on the machine; the programs below .cache are enough, and need no root.
# Promise: those of the machine are used as they are. What cannot be had is left out loudly, with the line that
#      installs it: exit code 3 where there is no PostgreSQL, 2 where there is no pgbouncer.

. "$(dirname "$0")/lib.sh"

PLACE=$TOOLS/postgresql
INSTALL="apt-get install postgresql pgbouncer"
export LC_ALL=C

# as_server CMD…: as the user that the tests run servers as, which is not root.
as_server() {
    if is_root; then setpriv --reuid 65534 --regid 65534 --clear-groups "$@"; else "$@"; fi
}

# starts PROGRAM: with the libraries that were unpacked beside it.
starts() {
    [ -x "$1" ] || return 1
    case $1 in
        "$PLACE"/*) as_server env LD_LIBRARY_PATH="$PLACE/libraries" "$1" --version >/dev/null 2>&1 ;;
        *) as_server "$1" --version >/dev/null 2>&1 ;;
    esac
}

# found PROGRAM: one that starts, where Debian's packages and this script put them, or on the PATH.
found() {
    local place
    for place in "$PLACE"/usr/lib/postgresql/*/bin "$PLACE/usr/sbin" /usr/lib/postgresql/*/bin /usr/sbin \
        "$(dirname "$(command -v "$1" || echo /nowhere/nothing)")"; do
        ! starts "$place/$1" || return 0
    done
    return 1
}

has_server() { found postgres && found initdb && found psql; }

# unpack PACKAGE: with the libraries of it that the machine lacks. What translates queries to machine code is left out.
unpack() {
    local missing
    have apt-get || return 1
    missing=$(apt-get -s install --no-install-recommends "$1" 2>/dev/null | awk '/^Inst lib/ { print $2 }' |
        grep -v -e '^libllvm' -e '^libz3' -e perl || true)
    for package in "$1" $missing; do
        printf '+ unpack %s\n' "$package"
        apt_unpack "$package" "$PLACE" || return 1
    done
    # One name for the folder of the libraries, whatever the processor.
    local libraries
    libraries=$(cd "$PLACE" && ls -d usr/lib/*-linux-gnu* 2>/dev/null | head -1)
    [ -z "$libraries" ] || ln -sfn "$libraries" "$PLACE/libraries"
}

has_server || {
    say "setting up PostgreSQL below .cache"
    # The package postgresql names the one of this release, where there are lists of packages.
    server=$(apt-cache depends postgresql 2>/dev/null | sed -n 's/.*Depends: \(postgresql-[0-9]*\)$/\1/p' | head -1) || true
    { [ -n "$server" ] && unpack "$server" && unpack "${server/postgresql-/postgresql-client-}" && has_server; } ||
        { apt_install postgresql && has_server; } || {
        skip "the fleet's tests" "no PostgreSQL. Install it: $INSTALL"
        exit 3
    }
}
found pgbouncer || {
    say "setting up pgbouncer below .cache"
    { unpack pgbouncer && found pgbouncer; } || { apt_install pgbouncer && found pgbouncer; } || {
        skip "the fleet through pgbouncer" "no pgbouncer. Install it: $INSTALL"
        exit 2
    }
}
