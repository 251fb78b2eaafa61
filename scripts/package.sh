#!/usr/bin/env bash
# What can be handed out: two Debian packages, a tarball with its checksum, a container image.
#
# Why: who installs bursar has no Rust. All of them hold the same two programs, linked against an old glibc, so that
#      they start on every Debian since 11, every Ubuntu since 20.04, and what is as old.
# Promise: nothing is installed and nothing needs root; all of it lands in .cache/package/out. A program that asks
#      for a newer glibc than GLIBC is not packed.
#
# package.sh deb|tarball|container…; DEB_REVISION=2 for a second package of the same version.

. "$(dirname "$0")/lib.sh"

GLIBC=2.31
STAGE=$CACHE/package/stage
OUT=$CACHE/package/out
HOST=$(rustc -vV | sed -n 's/^host: //p')
# What `bursar version` names; empty outside of a repository.
BURSAR_COMMIT=$(git rev-parse --short=12 HEAD 2>/dev/null || true)
export BURSAR_COMMIT
VERSION=$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml | head -n 1)

# The linker of an old glibc, and the program that packs.
setup() {
    scripts/setup-native.sh
    pip_tool zig "$ZIG_PINS" cargo-zigbuild || die "zig, which links against an old glibc, could not be had"
    printf '#!/bin/sh\nexec "%s/zig/bin/python" -m ziglang "$@"\n' "$TOOLS" >"$TOOLS/bin/zig"
    chmod +x "$TOOLS/bin/zig"
    fresh "$TOOLS/cargo-deb" "$CARGO_DEB_VERSION" && return
    say "setting up cargo-deb below .cache ($CARGO_DEB_VERSION)"
    quiet cargo-deb cargo install cargo-deb --version "$CARGO_DEB_VERSION" --locked --root "$TOOLS/cargo-deb"
    ln -sfn ../cargo-deb/bin/cargo-deb "$TOOLS/bin/cargo-deb"
    made "$TOOLS/cargo-deb" "$CARGO_DEB_VERSION"
}

# build NAME ARGUMENT…: one program into the stage.
build() {
    local name=$1 program=$TARGET/$HOST/dist/bursar newest
    shift
    dist zigbuild --target "$HOST.$GLIBC" --bin bursar "$@"
    newest=$(objdump -T "$program" | grep -o 'GLIBC_[0-9.]*' | sort -uV | tail -n 1)
    say "$name asks for $newest at most"
    [ "$(printf '%s\nGLIBC_%s\n' "$newest" "$GLIBC" | sort -V | tail -n 1)" = "GLIBC_$GLIBC" ] ||
        die "$name asks for $newest, and may ask for $GLIBC"
    install -D -m 0755 "$program" "$STAGE/$name"
}

# All files of the packages, made once for each of them.
stage() {
    rm -rf "$STAGE" && mkdir -p "$STAGE" "$OUT"
    have objdump || apt_install binutils || die "objdump is missing: install binutils"
    build bursar-with-sandbox
    build bursar --no-default-features --features fleet,jemalloc
    # Each page is in one package: those of the sandbox's commands beside the sandbox. A shell completes from one file,
    # so the daemon's package has the options of those commands, too.
    "$STAGE/bursar-with-sandbox" man --output "$STAGE/man"
    mkdir "$STAGE/man-sandbox"
    mv "$STAGE"/man/bursar-demo*.1 "$STAGE"/man/bursar-sandbox*.1 "$STAGE/man-sandbox/"
    gzip -9n "$STAGE"/man/*.1 "$STAGE"/man-sandbox/*.1
    local shell
    for shell in bash zsh fish; do "$STAGE/bursar-with-sandbox" completions "$shell" >"$STAGE/completions.$shell"; done
    gzip -9nc CHANGELOG.md >"$STAGE/changes.gz"
    # Debian's form: cargo-deb compresses it.
    {
        printf 'bursar (%s-%s) unstable; urgency=medium\n\n' "$VERSION" "${DEB_REVISION:-1}"
        printf '  * See changelog.gz beside this file.\n\n'
        printf ' -- the bursar authors <bursar@bursar.invalid>  %s\n' "$(git log -1 --format=%cD 2>/dev/null || date -R)"
    } >"$STAGE/changelog"
}

deb() {
    local package
    for package in bursar bursar-sandbox; do
        local variant=()
        [ "$package" = bursar ] || variant=(--variant sandbox)
        run cargo deb --no-build --no-strip --locked --deb-revision "${DEB_REVISION:-1}" \
            "${variant[@]}" --output "$OUT/"
    done
    ls -l "$OUT"/*.deb
    # dpkg would refuse the second of them.
    local shared=
    ! have dpkg-deb || shared=$(for package in bursar bursar-sandbox; do
        dpkg-deb --fsys-tarfile "$OUT/${package}_$VERSION-${DEB_REVISION:-1}"_*.deb | tar -t | grep -v '/$'
    done | sort | uniq -d)
    [ -z "$shared" ] || die "both packages hold $shared"
    have lintian || apt_install lintian || { skip "lintian" "it is missing: install Debian's package lintian"; return; }
    run lintian --fail-on error --tag-display-limit 0 "$OUT"/*_"$VERSION"-"${DEB_REVISION:-1}"_*.deb
}

tarball() {
    local name=bursar-$VERSION-$HOST root
    root=$STAGE/$name
    rm -rf "$root"
    mkdir -p "$root/man" "$root/completions"
    cp "$STAGE/bursar" "$STAGE/bursar-with-sandbox" config.toml LICENSE README.md CHANGELOG.md "$root/"
    cp "$STAGE"/man/* "$STAGE"/man-sandbox/* "$root/man/"
    cp "$STAGE"/completions.* "$root/completions/"
    cp -r systemd "$root/systemd"
    cp -r docs "$root/docs"
    [ ! -d grafana ] || cp -r grafana "$root/grafana"
    # The same bytes for the same commit.
    tar --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$(git log -1 --format=%ct)" -C "$STAGE" -cf - "$name" |
        gzip -9n >"$OUT/$name.tar.gz"
    (cd "$OUT" && sha256sum "$name.tar.gz" >"$name.tar.gz.sha256")
    ls -l "$OUT/$name.tar.gz"*
}

container() {
    local tool base
    base=$(sed -n 's/^ARG BASE=//p' packaging/Containerfile)
    tool=$(command -v podman || command -v docker) || {
        skip "the container image" "neither podman nor docker is here: install one; packaging/Containerfile is built from the tarball"
        return
    }
    "$tool" info >/dev/null 2>&1 || {
        skip "the container image" "$tool is here and cannot run anything: start its daemon, or install podman"
        return
    }
    "$tool" image inspect "$base" >/dev/null 2>&1 || {
        skip "the container image" "its base $base is not at hand: $tool pull $base"
        return
    }
    run "$tool" build -f packaging/Containerfile --build-arg "TARBALL=bursar-$VERSION-$HOST.tar.gz" -t "bursar:$VERSION" "$OUT"
    run "$tool" run --rm "bursar:$VERSION" --version
}

[ $# -gt 0 ] || die "name what is made: deb, tarball, container"
setup
# REUSE=1 packs the programs of the last time again.
[ "${REUSE:-}" = 1 ] && [ -x "$STAGE/bursar" ] || stage
for what in "$@"; do
    case $what in
    deb | tarball | container) "$what" ;;
    *) die "package.sh $what: deb, tarball or container" ;;
    esac
done
