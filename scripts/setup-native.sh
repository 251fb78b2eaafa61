#!/usr/bin/env bash
# What a build needs besides Rust: a C compiler, and cmake for pingora's zlib-ng.
#
# Why: a bare machine has neither, and the build would stop after a minute inside a build script.
# Promise: the system's cmake is used when there is one; else a Python wheel below .cache, without
#      root; else Debian's package. What cannot be had is named, with the command that installs it.

. "$(dirname "$0")/lib.sh"

have cargo || die "cargo is missing: install Rust (see rust-version in Cargo.toml) and run again"
have cc || apt_install gcc libc6-dev || die "no C compiler: install one (Debian: apt-get install gcc libc6-dev)"
have cmake && cmake --version >/dev/null 2>&1 && exit 0
pip_tool cmake "$CMAKE_PIN" cmake || apt_install cmake ||
    die "no cmake: install it, or Python's venv (Debian: apt-get install cmake, or python3-venv)"
