#!/usr/bin/env bash
# Runs test/peers/ against programs that we did not write. Prepares them first, outside of the checkout:
#   Rust, from $ENGINEWIRE_SHARED/peers/engine: the released client, the wire crate as a line service, and the engine's
#   control plane, which takes minutes of C++. ENGINEWIRE_PEERS names a folder with the programs to use instead.
#   Python: msgspec, for the real classes of the engine's messages.
# What is built stays in $XDG_CACHE_HOME/enginewire-peers and is used again until its sources change.
# A part whose tools are not here is left out, and the reason is printed.
set -euo pipefail
cd "$(dirname "$0")/../.."

ENGINEWIRE_SHARED=$(realpath -m "${ENGINEWIRE_SHARED:-../shared}")
export ENGINEWIRE_SHARED
cache=${XDG_CACHE_HOME:-$HOME/.cache}/enginewire-peers
msgspec=0.23.0
# everything has to fit into 25 minutes: what the preparation may take, in seconds, and the engine of that
budget=${ENGINEWIRE_PREPARE_S:-1260}
engine_budget=${ENGINEWIRE_ENGINE_S:-1080}

say() { echo "peers: $*"; }
left() { echo $((budget > SECONDS ? budget - SECONDS : 0)); }

# Runs a command with its output in a log, at most so many seconds; shows the log's end when it fails.
logged() {
  local log=$cache/$1.log seconds=$2 code=0
  shift 2
  timeout --kill-after=10 "$seconds" "$@" > "$log" 2>&1 || code=$?
  [ "$code" -eq 0 ] && return 0
  tail -n 15 "$log" | sed 's/^/    /'
  [ "$code" -eq 124 ] && say "it took more than $seconds s"
  return 1
}

install_packages() {
  [ "$(id -u)" -eq 0 ] && command -v apt-get > /dev/null || return 1
  say "installing $*"
  logged apt-update 120 apt-get -q update || return 1
  logged apt-install 240 env DEBIAN_FRONTEND=noninteractive apt-get -q install -y "$@"
}

# A Python that can be linked against: a shared libpython, its headers, and venv.
linkable() {
  "$1" - 2> /dev/null << 'PYTHON'
import ensurepip, os, sysconfig, venv
assert sysconfig.get_config_var("Py_ENABLE_SHARED")
assert os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h"))
PYTHON
}
linkable_python() {
  for python in python3 /usr/bin/python3; do
    if linkable "$python"; then
      command -v "$python"
      return 0
    fi
  done
  return 1
}
missing_for_engine() {
  command -v g++ > /dev/null || echo g++
  command -v cmake > /dev/null || echo cmake
  [ -e /usr/include/openssl/ssl.h ] || echo libssl-dev
  linkable_python > /dev/null || echo python3-dev python3-venv
}

build_engine() {
  local work=$1 programs=$2 lacking python seconds
  lacking=$(missing_for_engine)
  if [ -n "$lacking" ]; then
    # shellcheck disable=SC2086 # a list of packages
    install_packages $lacking || true
    lacking=$(missing_for_engine)
  fi
  if [ -n "$lacking" ]; then
    say "without the real engine, for its build needs" $lacking
    return
  fi
  python=$(linkable_python)
  seconds=$(left)
  if [ "$seconds" -gt "$engine_budget" ]; then seconds=$engine_budget; fi
  say "building the real engine: 9 to 12 minutes on 2 cores, at most $seconds s"
  if (cd "$work" && PYTHON=$python logged engine "$seconds" sh -c './setup.sh && cargo build --release -p engine-peer'); then
    cp "$work/target/release/engine-peer" "$programs/"
  else
    say "without the real engine, which was not built; the next run goes on from there"
  fi
}

prepare_programs() {
  if [ -n "${ENGINEWIRE_PEERS:-}" ]; then
    ENGINEWIRE_PEERS=$(realpath "$ENGINEWIRE_PEERS")
    export ENGINEWIRE_PEERS
    say "the programs of $ENGINEWIRE_PEERS"
    return
  fi
  local sources=$ENGINEWIRE_SHARED/peers/engine work=$cache/engine stamp
  if [ ! -d "$sources" ]; then
    say "without the Rust programs, whose sources are not at $sources"
    return
  fi
  stamp=$(cd "$sources" && find . -type f -not -path './target/*' -not -path './deps/*' | LC_ALL=C sort | xargs -d '\n' sha256sum | sha256sum | cut -c1-16)
  local programs=$cache/programs/$stamp
  if [ ! -x "$programs/wire-oracle" ] || [ ! -x "$programs/frontend-peer" ] || [ ! -x "$programs/engine-peer" ]; then
    if ! command -v cargo > /dev/null; then
      say "without the Rust programs, for cargo is not installed"
      return
    fi
    mkdir -p "$work" "$programs"
    # times stay, so that cargo only builds what has changed; the sources may be read-only
    cp -r --preserve=timestamps "$sources/." "$work/"
    find "$work" \( -path "$work/target" -o -path "$work/deps" \) -prune -o -exec chmod u+w {} +
  fi
  if [ ! -x "$programs/wire-oracle" ] || [ ! -x "$programs/frontend-peer" ]; then
    say "building the released client and the wire crate: about 3 minutes"
    (cd "$work" && logged light "$(left)" cargo build --release)
    cp "$work/target/release/frontend-peer" "$work/target/release/wire-oracle" "$programs/"
  fi
  [ -x "$programs/engine-peer" ] || build_engine "$work" "$programs"
  export ENGINEWIRE_PEERS=$programs
}

has_msgspec() { [ -x "$1" ] && "$1" -c "import msgspec; assert msgspec.__version__ == '$msgspec'" 2> /dev/null; }

prepare_python() {
  if [ ! -d "$ENGINEWIRE_SHARED/peers/msgspec" ]; then
    say "without msgspec, for the classes are not at $ENGINEWIRE_SHARED/peers/msgspec"
    return
  fi
  local python=$cache/msgspec-$msgspec/bin/python
  if ! has_msgspec "$python"; then
    if ! python3 -c 'import ensurepip, venv' 2> /dev/null && ! install_packages python3 python3-venv; then
      say "without msgspec, for there is no python3 with pip"
      return
    fi
    logged venv 120 python3 -m venv --clear "$cache/msgspec-$msgspec"
    logged pip 180 "$python" -m pip install --disable-pip-version-check "msgspec==$msgspec"
    has_msgspec "$python"
  fi
  export ENGINEWIRE_PYTHON=$python
}

# In a function, so that bash has read all of this file before it may change under a long build.
main() {
  mkdir -p "$cache"
  # one run prepares at a time
  if command -v flock > /dev/null; then
    exec 9> "$cache/lock"
    flock 9
  fi
  prepare_python
  prepare_programs
  exec 9>&- || true
  say "prepared in $SECONDS s"
  exec npx vitest run --project peers "$@"
}
main "$@"
