#!/bin/bash
# Builds and runs all tests, with warnings as errors and with sanitizers. Arguments go to ctest:
#   scripts/test.sh -L unit
# Without arguments, tests with the label `slow` are left out.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/install_packages.sh tests
cmake --preset dev
cmake --build --preset dev
[[ $# -gt 0 ]] || set -- -LE slow
ctest --preset dev -j2 "$@"
