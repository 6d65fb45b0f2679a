#!/bin/bash
# Traces of real runs and of predicted plans, by the rules of check_trace.py.
. "$(dirname "$0")/expect.bash"
here=$(cd "$(dirname "$0")" && pwd)
checker=$here/check_trace.py

# traced DESCRIPTION SLICES ARROWS [TIMINGS]: the trace is right, and has at least so many.
traced() {
  local text
  text=$("$checker" "$scratch/trace.json" ${4:+"$4"} 2>&1) || {
    echo "FAILED: $1: $text"
    failures=$((failures + 1))
    return
  }
  read -r _ _ slices _ arrows _ <<<"$text"
  check "$1: $text" test "$slices" -ge "$2" -a "$arrows" -ge "$3"
}

# A run with checkpoints and verification, in which halos are exchanged; one op after the other, and
# with communication beside kernels.
for beside in false true; do
  rm -rf "$scratch/ckpt"
  echo "{\"schema_version\": 1, \"network\": {\"source\": \"tiny\"}, \"batch\": 4, \"ranks\": 2, \"decomposition\": \"H2\", \"execution\": {\"concurrent_tracks\": $beside}}" >"$scratch/plan.json"
  expect 0 "" sp launch "$scratch/plan.json" --steps 20 --verify --checkpoint "$scratch/ckpt" --checkpoint-every 8 -o "$scratch/timings.json"
  expect 0 "" sp trace "$scratch/plan.json" "$scratch/timings.json" -o "$scratch/trace.json"
  traced "2 ranks, H2, side by side: $beside" 100 8 "$scratch/timings.json"
  for part in "warm-up step" step checkpoint verification; do
    check "a part $part" grep -q "\"name\":\"$part\"" "$scratch/trace.json"
  done
done
check "all processes are named" test "$(grep -c '"name":"process_name"' "$scratch/trace.json")" = 5

# A folder stands for its plan and timings.
expect 0 "" sp trace "$scratch" -o "$scratch/trace.json"
traced "a folder" 100 8 "$scratch/timings.json"

# A predicted plan of 64 ranks, and one of so many that only four are drawn.
expect 0 "" sp plan resnet18 -n 64 -b 64 -m lassen --uniform "N16 H2 W2" -o "$scratch/many.json"
expect 0 "" sp trace "$scratch/many.json" -m lassen -o "$scratch/trace.json"
traced "64 ranks" 6400 1000
expect 0 "" sp plan tiny -n 128 -b 128 -m lassen --uniform N128 -o "$scratch/more.json"
expect 0 "more\.json: 4 of 128 ranks are drawn, which stand for all" sp trace "$scratch/more.json" -m lassen -o "$scratch/trace.json"
traced "128 ranks" 40 0

# Wrong inputs.
rm "$scratch/trace.json"
expect 3 "timings\.json: at /plan/fingerprint: expected its plan .* beside it" sp trace "$scratch/timings.json" -o "$scratch/trace.json"
expect 3 "timings\.json: at /plan/fingerprint: expected its plan" sp trace "$scratch/more.json" "$scratch/timings.json" -m lassen -o "$scratch/trace.json"
expect 3 "missing\.json" sp trace "$scratch/missing.json" -o "$scratch/trace.json"
sed 's/"recorded_step"/"$schema": "x", "unknown_step"/' "$scratch/timings.json" >"$scratch/odd.json"
expect 3 "odd\.json.*unknown_step" sp trace "$scratch/plan.json" "$scratch/odd.json" -o "$scratch/trace.json"
python3 - "$scratch" <<'PYTHON'
import json, sys
timings = json.load(open(sys.argv[1] + "/timings.json"))
timings["recorded_step"]["ranks"][1]["spans"].pop()
json.dump(timings, open(sys.argv[1] + "/short.json", "w"))
del timings["recorded_step"]
json.dump(timings, open(sys.argv[1] + "/old.json", "w"))
PYTHON
expect 3 "short\.json: at /recorded_step/ranks: expected one span for each op" sp trace "$scratch/plan.json" "$scratch/short.json" -o "$scratch/trace.json"
expect 3 "old\.json: at /recorded_step: expected one step op by op" sp trace "$scratch/plan.json" "$scratch/old.json" -o "$scratch/trace.json"
expect 2 "--output is required" sp trace "$scratch/plan.json"
check "nothing half-written" test ! -e "$scratch/trace.json"
finish
