#!/bin/bash
# ResNet-50, batch 8, 2 ranks x 1 thread: stratplan's sample-parallel and recommended plans against PyTorch's DistributedDataParallel (gloo), in interleaved
# rounds, minimum of medians. Both take batch statistics over the same samples: the 4 of each rank.
#
#   tests/bench/against_pytorch_ddp.sh [ROUNDS] [STEPS]      from the project's root, after a release build; needs python3-torch and
# libopenblas0-pthread (on the reference BLAS that Debian installs with it PyTorch is several times slower)
set -euo pipefail
rounds=${1:-3} steps=${2:-8}
root=$(cd "$(dirname "$0")/../.." && pwd)
stratplan=$root/build/release/stratplan
python=${PYTHON:-/usr/bin/python3}
"$python" -c 'import torch' 2>/dev/null || { echo "needs PyTorch: apt-get install python3-torch"; exit 5; }
ldconfig -p | grep -q libopenblas || { echo "needs a fast BLAS for PyTorch: apt-get install libopenblas0-pthread"; exit 5; }
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
sed 's/"statistics_samples": *[0-9]*/"statistics_samples": 4/' "$root/networks/resnet50.json" >"$work/resnet50.json"
"$stratplan" plan "$work/resnet50.json" --ranks 2 --batch 8 --uniform N2 -o "$work/sample.json" >/dev/null
"$stratplan" plan "$work/resnet50.json" --ranks 2 --batch 8 -o "$work/best.json" >/dev/null
median() { "$python" -c 'import json,sys; print("%.6f" % json.load(sys.stdin)["step_seconds"]["median"])'; }
for round in $(seq "$rounds"); do
  for plan in sample best; do
    "$stratplan" run "$work/$plan.json" -n 2 --steps "$steps" --json 2>/dev/null | median >>"$work/$plan"
  done
  env OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 "$python" "$root/tests/bench/pytorch_resnet50.py" --processes 2 --batch 8 --steps "$steps" 2>/dev/null | median >>"$work/ddp"
  echo "round $round: sample $(tail -1 "$work/sample") s, recommended $(tail -1 "$work/best") s, PyTorch DDP $(tail -1 "$work/ddp") s"
done
least() { sort -g "$1" | head -1; }
awk -v s="$(least "$work/sample")" -v b="$(least "$work/best")" -v t="$(least "$work/ddp")" \
  'BEGIN { printf "minimum of medians: sample %.3f s, recommended %.3f s, PyTorch DDP %.3f s; ratio sample %.2f, recommended %.2f\n", s, b, t, s / t, b / t; exit !(b / t <= 0.8) }'
