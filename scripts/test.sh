#!/bin/bash
# Sets up and runs all tests (warnings are errors, sanitizers on). Arguments go to ctest, as in
#   scripts/test.sh -L unit
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/install_packages.sh
cmake --preset dev
cmake --build --preset dev
ctest --preset dev -j2 "$@"
