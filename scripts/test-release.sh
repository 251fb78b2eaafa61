#!/usr/bin/env bash
# What is handed out, as a person gets it: the tarball in an empty directory and on the oldest Debian that it is for,
# `cargo install` into a directory of its own, and the container image.
#
# Why: a tarball that lacks a file, or asks for a newer glibc, is found by the person who unpacks it.
# Promise: what cannot be tried here is one line with SKIPPED, the reason and what would help; the last line counts
#      both. REUSE=1 takes the programs that `scripts/package.sh` made last.

. "$(dirname "$0")/lib.sh"

GLIBC=2.31
VERSION=$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml | head -n 1)
OLDEST=bullseye
tried=()
skipped=()

work=$(mktemp -d "$CACHE/release.XXXXXX")
# shellcheck disable=SC2329
cleanup() { rm -rf "$work"; }
trap cleanup EXIT

# without WHAT WHY: a part that is left out.
without() {
    skip "$1" "$2"
    skipped+=("$1")
}

# bare CMD…: in the environment of a person who has just logged in, and in no repository.
bare() {
    printf '+ %s\n' "$*"
    (cd "$work" && env -i HOME="$work/home" PATH=/usr/bin:/bin LC_ALL=C "$@") >"$work/said" 2>&1 </dev/null ||
        { cat "$work/said"; die "failed: $*"; }
}

tarball() {
    local tarball root newest program
    scripts/package.sh tarball
    tarball=$(ls "$CACHE/package/out/bursar-$VERSION"-*.tar.gz)
    (cd "$CACHE/package/out" && run sha256sum -c "${tarball##*/}.sha256") || die "the checksum does not fit"
    mkdir -p "$work/home" "$work/unpacked"
    tar -C "$work/unpacked" -xf "$tarball"
    root=$(ls -d "$work"/unpacked/*)
    for program in bursar bursar-with-sandbox; do
        newest=$(objdump -T "$root/$program" | grep -o 'GLIBC_[0-9.]*' | sort -uV | tail -n 1)
        [ "$(printf '%s\nGLIBC_%s\n' "$newest" "$GLIBC" | sort -V | tail -n 1)" = "GLIBC_$GLIBC" ] ||
            die "$program asks for $newest, and may ask for $GLIBC"
        bare "$root/$program" --version
        grep -qx "bursar $VERSION" "$work/said" || die "$program is not $VERSION: $(cat "$work/said")"
    done
    local file
    for file in man/bursar.1.gz man/bursar-sandbox.1.gz completions/completions.zsh systemd/bursar.service \
        systemd/user/bursar.service grafana/bursar.json docs/apps.md config.toml LICENSE; do
        [ -s "$root/$file" ] || die "the tarball lacks $file"
    done
    # The smaller program finds the sandbox beside itself.
    bare "$root/bursar" demo --once
    tail -n 3 "$work/said"
    tried+=(tarball)
}

cargo_install() {
    run cargo install --path . --locked --root "$work/root" --target-dir "$TARGET" --quiet
    bare "$work/root/bin/bursar" --version
    grep -qx "bursar $VERSION" "$work/said" || die "it is not $VERSION: $(cat "$work/said")"
    bare "$work/root/bin/bursar" demo --once
    tried+=("cargo install")
}

container() {
    # It says by itself what is missing.
    REUSE=1 scripts/package.sh container | tee "$work/container"
    if grep -q '^SKIPPED' "$work/container"; then
        skipped+=("the container image")
    else
        tried+=("the container image")
    fi
}

oldest() {
    local what="the tarball on Debian $OLDEST"
    is_root || { without "$what" "root is needed for a tree of it"; return; }
    have debootstrap || apt_install debootstrap || { without "$what" "debootstrap is missing: install it"; return; }
    have unshare || { without "$what" "unshare is missing: install util-linux"; return; }
    debian_tree "$OLDEST" "" || {
        without "$what" "debootstrap got no $OLDEST from its mirror (above); with an own one: debootstrap $OLDEST $CACHE/$OLDEST URL"
        return
    }
    cp -a "$CACHE/$OLDEST" "$work/tree"
    tar -C "$work/tree/srv" -xf "$CACHE/package/out/bursar-$VERSION"-*.tar.gz
    say "$what: $(unshare --root="$work/tree" /bin/sh -c 'ldd --version' | head -n 1)"
    bare unshare --mount --pid --fork --mount-proc --root="$work/tree" /bin/sh -c '/srv/bursar-*/bursar demo --once'
    tail -n 3 "$work/said"
    tried+=("$what")
}

have objdump || apt_install binutils || die "objdump is missing: install binutils"
tarball
cargo_install
container
oldest
say "release: ${#tried[@]} parts tried, ${#skipped[@]} skipped"
for part in "${tried[@]}"; do echo "    tried: $part"; done
for part in "${skipped[@]}"; do echo "    skipped: $part (see above)"; done
