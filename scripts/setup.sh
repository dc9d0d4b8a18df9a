# Shared by ./quickstart, ./check and .ci/run, which source it: what has to be installed, building, and how it is told.
# shellcheck shell=bash
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"
# The compiler cache then serves other clones of this tree too.
export CCACHE_BASEDIR="$root" CCACHE_NOHASHDIR=1
jobs=$(nproc 2>/dev/null || echo 2)

# shellcheck disable=SC2034
build_packages=(g++ cmake ninja-build ccache zlib1g-dev libfmt-dev libcli11-dev nlohmann-json3-dev libxxhash-dev)
# shellcheck disable=SC2034
data_packages=(dataset-fashion-mnist)
# shellcheck disable=SC2034
test_packages=(libgtest-dev python3 bible-kjv)
optional_packages=(bible-kjv)  # installed where that can be done, done without elsewhere
# shellcheck disable=SC2034
lint_packages=(clang-16 clang-format-16 clang-tidy-16 libbenchmark-dev)

# ---- telling ----

if [[ -t 1 && -z ${NO_COLOR:-} && ${TERM:-dumb} != dumb ]]; then
  bold=$'\e[1m' dim=$'\e[2m' red=$'\e[31m' green=$'\e[32m' plain=$'\e[0m'
else
  bold='' dim='' red='' green='' plain=''
fi
script=${0##*/}

step() { printf '\n%s==> %s%s\n' "$bold" "$*" "$plain"; }
note() { printf '    %s\n' "$*"; }
good() { printf '    %s%s%s\n' "$green" "$*" "$plain"; }
faint() { printf '%s    %s%s\n' "$dim" "$*" "$plain"; }
# fail STATUS TEXT...: ends the script.
fail() {
  local status=$1
  shift
  printf '%s%s: %s%s\n' "$red" "$script" "$*" "$plain" >&2
  exit "$status"
}
# minutes SECONDS -> "1.3 min"
minutes() { printf '%d.%d min' $(($1 / 60)) $(($1 % 60 * 10 / 60)); }

# ---- interruption ----

# run COMMAND...: as written, in a process group of its own. An interrupt or termination of this script is passed on to
# that whole group, and ends the script with 130 or 143 once the command is gone. Everything can be run again.
child=
run() {
  local status=0
  set -m
  "$@" </dev/null &
  child=$!
  set +m
  wait "$child" || status=$?
  child=
  return "$status"
}
stopped() {
  local signal=$1 status=$2
  trap '' INT TERM
  if [[ -n $child ]]; then
    kill -s "$signal" -- "-$child" 2>/dev/null || true
    wait "$child" 2>/dev/null || true
  fi
  fail "$status" "stopped by $signal; run it again to go on"
}
trap 'stopped INT 130' INT
trap 'stopped TERM 143' TERM

# ---- packages ----

have_header() {
  [[ -e /usr/include/$1 || -e /usr/local/include/$1 ]] ||
    printf '#include <%s>\n' "$1" | g++ -std=c++20 -fsyntax-only -x c++ - 2>/dev/null
}

# present PACKAGE: whether what the package gives is there, from wherever it came.
present() {
  case $1 in
    g++) have_header source_location ;;
    cmake) command -v cmake >/dev/null &&
      [[ $(printf '3.22\n%s\n' "$(cmake --version | sed -n '1s/[^0-9]*//p')" | sort -V | head -n 1) == 3.22 ]] ;;
    ninja-build) command -v ninja >/dev/null ;;
    ccache | python3 | clang-format-16 | clang-tidy-16) command -v "$1" >/dev/null ;;
    clang-16) command -v clang++-16 >/dev/null ;;
    zlib1g-dev) have_header zlib.h ;;
    libfmt-dev) have_header fmt/format.h ;;
    libcli11-dev) have_header CLI/CLI.hpp ;;
    nlohmann-json3-dev) have_header nlohmann/json.hpp ;;
    libxxhash-dev) have_header xxhash.h ;;
    libgtest-dev) have_header gtest/gtest.h ;;
    libbenchmark-dev) have_header benchmark/benchmark.h ;;
    bible-kjv) command -v bible >/dev/null ;;
    dataset-fashion-mnist)
      local folder
      for folder in ${LAMINA_DATA:+"$LAMINA_DATA/fashion-mnist" "$LAMINA_DATA"} /usr/share/datasets/fashion-mnist; do
        [[ -r $folder/train-images-idx3-ubyte.gz ]] && return 0
      done
      return 1
      ;;
    *) return 1 ;;
  esac
}

# missing PACKAGE...: those of them that are not there, one a line.
missing() {
  local package installed=' '
  if command -v dpkg-query >/dev/null; then
    # "installed" of dpkg is taken at its word for libraries and data; a program must also be found in PATH.
    installed=" $(dpkg-query -W -f '${Package} ${db:Status-Status}\n' "$@" 2>/dev/null |
      sed -n 's/ installed$//p' | tr '\n' ' ') " || true
  fi
  for package; do
    case $package in
      lib*-dev | zlib1g-dev | nlohmann-json3-dev | dataset-*) [[ $installed == *" $package "* ]] && continue ;;
    esac
    present "$package" || echo "$package"
  done
}

# How to become root for apt-get: nothing when already, sudo when it may be used, else a failure.
as_root=()
may_install() {
  [[ -r /etc/os-release ]] || return 1
  [[ $(. /etc/os-release && echo "${ID:-} ${VERSION_ID:-}") == 'debian 12' ]] || return 1
  command -v apt-get >/dev/null || return 1
  [[ $EUID == 0 ]] && return 0
  command -v sudo >/dev/null || return 1
  if [[ -t 0 ]]; then as_root=(sudo); else as_root=(sudo -n); fi
  "${as_root[@]}" true 2>/dev/null
}

apt() { run "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300 "$@"; }

# ensure_packages PACKAGE...: installs those that are missing, or says which and ends with 2.
ensure_packages() {
  local wanted needed plan log
  mapfile -t wanted < <(missing "$@")
  step 'Packages'
  if ((${#wanted[@]} == 0)); then
    note 'nothing to install'
    return
  fi
  if ! may_install; then
    mapfile -t needed < <(printf '%s\n' "${wanted[@]}" | grep -vxF -f <(printf '%s\n' "${optional_packages[@]}"))
    ((${#needed[@]} == 0)) || fail 2 "missing: ${needed[*]}
    To install them takes Debian 12 with apt-get, as root or with sudo; elsewhere install what matches these names."
    note "goes on without: ${wanted[*]}"
    return
  fi
  note "missing: ${wanted[*]}"
  log=$(mktemp)
  run "${as_root[@]}" dpkg --configure -a >"$log" 2>&1 || true  # what an interrupted run may have left
  if ! plan=$(apt-get -s -qq install --no-install-recommends "${wanted[@]}" 2>/dev/null); then
    faint 'apt-get update'
    apt update >"$log" 2>&1 || { cat "$log" >&2; fail 1 'apt-get update failed'; }
    plan=$(apt-get -s -qq install --no-install-recommends "${wanted[@]}" 2>"$log") || {
      cat "$log" >&2
      fail 1 "apt-get knows no way to install: ${wanted[*]}"
    }
  fi
  sed -n 's/^Inst \([^ ]*\) \(\[[^]]*\] \)\{0,1\}(\([^ ]*\).*/    installs \1 \3/p' <<<"$plan"
  if ! apt install -y --no-install-recommends "${wanted[@]}" >"$log" 2>&1; then
    # A package list that is out of date names files that are gone.
    faint 'apt-get update'
    apt update >"$log" 2>&1 || { cat "$log" >&2; fail 1 'apt-get update failed'; }
    apt install -y --no-install-recommends "${wanted[@]}" >"$log" 2>&1 || {
      cat "$log" >&2
      fail 1 'apt-get install failed'
    }
  fi
  rm -f "$log"
  mapfile -t wanted < <(missing "${wanted[@]}")
  ((${#wanted[@]} == 0)) || fail 1 "installed, but still not found: ${wanted[*]}"
  good 'installed'
}

# ---- building ----

# configure PRESET FOLDER [CMAKE ARGUMENT...]: once; after that the build itself sees what changed.
configure() {
  local preset=$1 folder=$2
  shift 2
  [[ -f $folder/configured && $(<"$folder/configured") == "$preset $*" ]] && return
  run cmake --preset "$preset" "$@" >"$folder.log" 2>&1 || { cat "$folder.log" >&2; fail 1 "configuring $folder failed"; }
  rm -f "$folder.log"
  echo "$preset $*" >"$folder/configured"
}

# build PRESET FOLDER [CMAKE ARGUMENT...]: configures and builds, and tells the time.
build() {
  local preset=$1 folder=$2 start=$SECONDS
  step "Build: $folder"
  mkdir -p "${folder%/*}"
  configure "$@"
  run ninja -C "$folder" -j "$jobs" || fail 1 "building $folder failed"
  good "built in $(minutes $((SECONDS - start)))"
}

# jobs_option VALUE: takes --jobs.
jobs_option() {
  [[ ${1:-} =~ ^[1-9][0-9]*$ ]] || fail 2 '--jobs takes a number from 1'
  jobs=$1
}
