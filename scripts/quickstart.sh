#!/bin/bash
# Builds stratplan and finds the best way to train ResNet-50 on two ranks of this machine. autotune
# measures what decides between plans, and runs those that may win. machine.json, plan.json,
# timings.json and a report go to results/resnet50. Arguments go to autotune. The time that each of
# the three stages takes goes to standard error.
set -euo pipefail
cd "$(dirname "$0")/.."

shares=
# stage NAME EXPECTED COMMAND...: runs the command, and notes how long it takes. EXPECTED: text that
# says how long it may take.
stage() {
  local name=$1 expected=$2 began=$SECONDS
  shift 2
  printf '\n== %s: %s; %d s since the start\n' "$name" "$expected" "$SECONDS" >&2
  "$@"
  shares+="$name $((SECONDS - began)) s; "
}
build() { { cmake --preset release && cmake --build --preset release --target stratplan; } >&2; }
autotune() { build/release/stratplan autotune resnet50 --ranks 2 --batch 8 -o results/resnet50 "$@"; }

mkdir -p results
stage "1 of 3, packages" "about 2 minutes, none if they are installed" scripts/install_packages.sh
stage "2 of 3, build" "about $((10 / $(nproc) + 1)) minutes on $(nproc) cores" build
stage "3 of 3, answer" "at most 3 minutes" autotune "$@"

printf '\n%s%d s in all\n' "$shares" "$SECONDS" >&2
cat >&2 <<'MESSAGE'

The report is results/resnet50/report.md. For your own network, write a file like
networks/tiny.json and run
  build/release/stratplan autotune my_network.json --ranks 2 --batch 8 -o results/my_network
All commands and files are described by build/release/stratplan --help and in docs/.
MESSAGE
