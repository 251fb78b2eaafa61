#!/usr/bin/env bash
# `make install` and `make install-user`, and how each is undone: what the package bursar holds, from a release build.
#
# Why: man pages, completions, dashboards and pages belong to the program however it was installed.
# Promise: the list is the package's own (assets in Cargo.toml), so the two cannot differ. A configuration that is there
#      stays as it is; configuration, key and ledger outlive an uninstall. install-user needs no root, and writes
#      below the user's home only.
#
# install.sh install|uninstall|install-user|uninstall-user, with PREFIX, DESTDIR, SYSCONFDIR, UNITDIR, USERUNITDIR,
# SYSUSERSDIR, ZSHDIR and TARGET (where cargo built) from the environment.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

die() { printf 'error: %s\n' "$*" >&2; exit 1; }

DESTDIR=${DESTDIR:-}
program=${TARGET:-${CARGO_TARGET_DIR:-target}}/release/bursar
whose=system
case ${1:-} in
install | uninstall)
    PREFIX=${PREFIX:-/usr}
    SYSCONFDIR=${SYSCONFDIR:-/etc}
    UNITDIR=${UNITDIR:-$PREFIX/lib/systemd/system}
    USERUNITDIR=${USERUNITDIR:-$PREFIX/lib/systemd/user}
    SYSUSERSDIR=${SYSUSERSDIR:-$PREFIX/lib/sysusers.d}
    state=/var/lib/bursar
    ;;
install-user | uninstall-user)
    whose=user
    PREFIX=${PREFIX:-$HOME/.local}
    SYSCONFDIR=${SYSCONFDIR:-${XDG_CONFIG_HOME:-$HOME/.config}}
    USERUNITDIR=${USERUNITDIR:-${XDG_DATA_HOME:-$HOME/.local/share}/systemd/user}
    state=${XDG_STATE_HOME:-$HOME/.local/state}/bursar
    ;;
*) die "install.sh ${1:-}: install, uninstall, install-user or uninstall-user" ;;
esac
# Debian's own folder is on the path of zsh below /usr alone.
zsh_default=$PREFIX/share/zsh/site-functions
[ "$PREFIX" != /usr ] || zsh_default=$PREFIX/share/zsh/vendor-completions
ZSHDIR=${ZSHDIR:-$zsh_default}

# SOURCE PLACE MODE, a line for each asset of the package.
assets() {
    sed -n '/^\[package\.metadata\.deb\]$/,/^\[/ s/^ *\["\(.*\)", "\(.*\)", "\(.*\)"\],$/\1 \2 \3/p' Cargo.toml
}

# place PATH: where a path of the package is here; nothing for what a user has no use for.
place() {
    case $1 in
    usr/lib/systemd/system/* | usr/lib/sysusers.d/*) [ "$whose" = system ] || return 0 ;;
    esac
    case $1 in
    etc/*) printf '%s\n' "$SYSCONFDIR/${1#etc/}" ;;
    usr/lib/systemd/system/*) printf '%s\n' "$UNITDIR/${1#usr/lib/systemd/system/}" ;;
    usr/lib/systemd/user/*) printf '%s\n' "$USERUNITDIR/${1#usr/lib/systemd/user/}" ;;
    usr/lib/sysusers.d/*) printf '%s\n' "$SYSUSERSDIR/${1#usr/lib/sysusers.d/}" ;;
    usr/share/zsh/vendor-completions/*) printf '%s\n' "$ZSHDIR/${1#usr/share/zsh/vendor-completions/}" ;;
    usr/*) printf '%s\n' "$PREFIX/${1#usr/}" ;;
    *) die "Cargo.toml: where does $1 belong?" ;;
    esac
}

# What is made from the program, under the names that the assets have for it.
make_stage() {
    stage=$(mktemp -d)
    trap 'rm -rf "$stage"' EXIT
    cp "$program" "$stage/bursar"
    "$program" man --output "$stage/man"
    gzip -9n "$stage"/man/*.1
    local shell
    for shell in bash zsh fish; do "$program" completions "$shell" >"$stage/completions.$shell"; done
    gzip -9nc CHANGELOG.md >"$stage/changes.gz"
}

# put SOURCE PLACE MODE: one file, with the paths of this installation inside.
put() {
    local from=$1 to=$DESTDIR$2 mode=$3
    case $from in
    config.toml)
        [ ! -e "$to" ] || return 0
        # A user's key is in the file beside it; the system's comes as a credential of the unit.
        [ "$whose" = system ] || {
            sed 's|^# api_key_file = .*|api_key_file = "api-key"|' config.toml >"$stage/put"
            from=$stage/put
        }
        ;;
    systemd/*.service | systemd/*.socket)
        sed "s|/usr/bin/bursar |$PREFIX/bin/bursar |g; s|/etc/bursar/|$SYSCONFDIR/bursar/|g" "$from" >"$stage/put"
        from=$stage/put
        ;;
    esac
    install -D -m "0$mode" "$from" "$to"
}

put_all() {
    [ -x "$program" ] || die "no $program: run 'make release' first"
    make_stage
    local source to mode from
    while read -r source to mode; do
        to=$(place "$to")
        [ -n "$to" ] || continue
        for from in ${source/#.cache\/package\/stage/$stage}; do
            case $to in
            */) put "$from" "$to${from##*/}" "$mode" ;;
            *) put "$from" "$to" "$mode" ;;
            esac
        done
    done < <(assets)
}

take_all() {
    local source to mode from
    while read -r source to mode; do
        to=$(place "$to")
        case $to in
        '' | "$SYSCONFDIR"/*) continue ;;
        "$PREFIX"/share/man/man1/) rm -f "$DESTDIR$to"bursar.1.gz "$DESTDIR$to"bursar-*.1.gz ;;
        */) for from in $source; do rm -f "$DESTDIR$to${from##*/}"; done ;;
        *) rm -f "$DESTDIR$to" ;;
        esac
    done < <(assets)
    # Nothing else is in these.
    rm -rf "$DESTDIR$PREFIX/share/doc/bursar" "$DESTDIR$PREFIX/share/bursar"
}

case $1 in
install)
    put_all
    echo "next, as root: systemd-sysusers && systemctl daemon-reload; set base_url in $SYSCONFDIR/bursar/config.toml; bursar key set"
    ;;
install-user)
    put_all
    case :$PATH: in
    *:"$PREFIX/bin":*) ;;
    *) echo "$PREFIX/bin is not in PATH: add it" ;;
    esac
    echo "next: set base_url in $SYSCONFDIR/bursar/config.toml; bursar key set; systemctl --user daemon-reload"
    echo "then: systemctl --user enable --now bursar.socket bursar"
    ;;
uninstall | uninstall-user)
    take_all
    echo "kept: $SYSCONFDIR/bursar (configuration, key), $state (the ledger)"
    ;;
esac
