#!/bin/bash
# Sets up and runs all tests (warnings are errors, sanitizers on), and builds the optimized program. Arguments go to ctest, as in
#   scripts/test.sh -L unit
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/install_packages.sh
cmake --preset dev
cmake --build --preset dev
log=build/dev/ctest.log
ctest --preset dev -j2 "$@" | tee "$log"

cmake --preset release
cmake --build --preset release
grep 'tests passed' "$log"
