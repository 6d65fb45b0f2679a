#!/bin/bash
# Sets up and runs all tests (warnings are errors, sanitizers on). Arguments go to ctest, as in
#   scripts/test.sh -L unit
# Without any, the sweeps labelled slow are left out.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/install_packages.sh tests
cmake --preset dev
cmake --build --preset dev
[[ $# -gt 0 ]] || set -- -LE slow
ctest --preset dev -j2 "$@"
