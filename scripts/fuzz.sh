#!/usr/bin/env bash
# Runs each fuzz target for SECONDS_EACH (default 600), one after the other. Needs a C++ compiler; cargo-fuzz goes into
# .cache when it is missing. Without a nightly toolchain the stable one is allowed the flags that only nightly has.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/setup-native.sh
root=$PWD/.cache/tools/cargo-fuzz
export PATH=$PWD/.cache/tools/bin:$root/bin:$PATH
if cargo +nightly --version >/dev/null 2>&1; then
  export RUSTUP_TOOLCHAIN=nightly
else
  export RUSTC_BOOTSTRAP=1
fi
if ! command -v cargo-fuzz >/dev/null; then
  cargo install cargo-fuzz --locked --version 0.13.2 --root "$root"
fi
# `cargo fuzz` has no flag for that; it builds what the lock file says.
cargo metadata --locked --manifest-path fuzz/Cargo.toml --format-version 1 >/dev/null
targets=${TARGETS:-sse receipt journal routes config responses messages}
for target in $targets; do
  # What is found goes to .cache first; what is worth keeping is packed beside the seeds by hand:
  #   cargo fuzz cmin TARGET .cache/fuzz/TARGET && scripts/seeds.py pack TARGET .cache/fuzz/TARGET
  found=$PWD/.cache/fuzz/$target
  seeds=$PWD/.cache/seeds/$target
  mkdir -p "$found"
  rm -rf "$seeds"
  scripts/seeds.py unpack "$target" "$seeds"
  echo "== $target: ${SECONDS_EACH:-600} s"
  cargo fuzz run "$target" "$found" "$seeds" -- \
    -max_total_time="${SECONDS_EACH:-600}" -print_final_stats=1
done
