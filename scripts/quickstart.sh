#!/bin/bash
# Sets up and runs the main job: the best way to train ResNet-50 on two ranks of this machine. Measures what is missing, plans, runs the
# plan and its baselines, and leaves machine.json, plan.json, timings.json and a report in results/resnet50. Arguments go to autotune.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/install_packages.sh
{ cmake --preset release && cmake --build --preset release; } >&2
mkdir -p results
build/release/stratplan autotune resnet50 --ranks 2 --batch 8 -o results/resnet50 "$@"

cat >&2 <<'MESSAGE'

The report is results/resnet50/report.md. For a network of your own, write it as networks/tiny.json shows, and say
  build/release/stratplan autotune my_network.json --ranks 2 --batch 8 -o results/my_network
Every command and file: build/release/stratplan --help, README.md.
MESSAGE
