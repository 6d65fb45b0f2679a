#!/bin/bash
# Builds stratplan and finds the best way to train ResNet-50 on two ranks of this machine. autotune
# measures what the machine profile lacks, plans, and runs the plan and its baselines. machine.json,
# plan.json, timings.json and a report go to results/resnet50. Arguments go to autotune.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/install_packages.sh
{ cmake --preset release && cmake --build --preset release; } >&2
mkdir -p results
build/release/stratplan autotune resnet50 --ranks 2 --batch 8 -o results/resnet50 "$@"

cat >&2 <<'MESSAGE'

The report is results/resnet50/report.md. For your own network, write a file like
networks/tiny.json and run
  build/release/stratplan autotune my_network.json --ranks 2 --batch 8 -o results/my_network
All commands and files are described by build/release/stratplan --help and in docs/.
MESSAGE
