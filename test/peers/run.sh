#!/usr/bin/env bash
# Builds the real peers beside the checkout and runs test/peers/ against them. Takes the programs from ENGINEWIRE_PEERS
# (a folder of binaries) when set, else from the sources in ../shared/peers, built once into ~/.cache/enginewire-peers.
# Where cargo or those sources are missing it says so and passes: there is nothing to test against.
set -euo pipefail
cd "$(dirname "$0")/../.."

if [ -z "${ENGINEWIRE_PEERS:-}" ]; then
  sources=../shared/peers/engine
  cache=${XDG_CACHE_HOME:-$HOME/.cache}/enginewire-peers
  if ! command -v cargo > /dev/null; then
    echo "skipped: the peers are Rust programs and cargo is not installed"
    exit 0
  fi
  if [ ! -d "$sources" ]; then
    echo "skipped: the sources of the peers are not at $sources"
    exit 0
  fi
  mkdir -p "$cache"
  cp -r --no-preserve=mode "$sources" "$cache/"
  (cd "$cache/engine" && cargo build --release --quiet)
  export ENGINEWIRE_PEERS=$cache/engine/target/release
fi

exec npx vitest run --project peers
