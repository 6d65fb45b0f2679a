#!/usr/bin/env bash
# Compares lowered programs, kernel keys and plans with the record (tests/golden/README.md).
#   scripts/golden.sh [BUILD] compare [--part K/N]   prints the first difference; exit code 1 if any
#   scripts/golden.sh [BUILD] make                   writes the record anew, for intended changes
#   scripts/golden.sh [BUILD] explain [COMMIT]       prints the first difference and the old text
# BUILD is a build folder with tests. Without it, build/golden is configured: optimized, no CUDA.
# `explain` builds an older version in BUILD-base: COMMIT, or the commit that last changed the
# record.
set -euo pipefail
cd "$(dirname "$0")/.."

build_of() {  # build_of SOURCES BUILD_FOLDER
  if [ ! -f "$2/CMakeCache.txt" ]; then
    cmake -S "$1" -B "$2" -G Ninja -DCMAKE_BUILD_TYPE=Release -DSTRATPLAN_WITH_CUDA=OFF \
      >"$2.log" || { cat "$2.log"; return 5; }
  fi
  cmake --build "$2" --target golden_record >"$2.log" || { tail -n 50 "$2.log"; return 5; }
}

build=build/golden
if [ $# -gt 0 ] && [ -f "$1/CMakeCache.txt" ]; then
  build=$1
  shift
fi
mode=${1:-compare}
[ $# -eq 0 ] || shift
mkdir -p build
build_of . "$build"
case $mode in
  make|compare) exec "$build/golden_record" "$mode" "$@" ;;
  explain)
    commit=${1:-$(git log -1 --format=%H -- tests/golden/record)}
    sources=$build-base-sources
    if [ -d "$sources" ]; then
      git -C "$sources" checkout -q --detach "$commit"
    else
      git worktree add -q --detach "$sources" "$commit"
    fi
    build_of "$sources" "$build-base"
    exec "$build/golden_record" compare --old "$build-base/golden_record" ;;
  *) echo "golden.sh: unknown mode $mode; expected make, compare or explain" >&2; exit 2 ;;
esac
