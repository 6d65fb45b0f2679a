#!/bin/bash
# Scratch memory on an offline machine: counted where cuDNN can tell it without a device, and
# otherwise a message says that it is not counted.
. "$(dirname "$0")/expect.bash"
export STRATPLAN_CACHE_DIR=$scratch/cache
uncounted="published rates of [a-z0-9-]+, and count no scratch memory"
workspace_of() { sp predict "$1" -m "$2" --json 2>/dev/null | grep -oE '"workspace_bytes":[0-9]+' | cut -d: -f2; }

expect 0 "$uncounted" sp plan resnet18 -n 2 -b 32 -m lassen --uniform N2 -o "$scratch/volta.json"
check "none is counted" test "$(workspace_of "$scratch/volta.json" lassen)" = 0

if ! sp doctor --json | grep -q '"cuda":{"built":true'; then
  expect 0 "$uncounted" sp plan resnet18 -n 2 -b 32 -m dgx-h100 --uniform N2
  echo "the rest is skipped: built without CUDA"
  [ "$failures" = 0 ] && exit 77
  finish
fi

plan=$scratch/hopper.json cache=$STRATPLAN_CACHE_DIR/workspaces-h100.txt
expect 0 "published rates of dgx-h100$" sp plan resnet18 -n 2 -b 32 -m dgx-h100 --uniform N2 -o "$plan"
if grep -q "leaves out the scratch memory" "$scratch/stderr"; then
  echo "skipped: cuDNN's precompiled engines are not installed"
  exit 77
fi
fp32=$(workspace_of "$plan" dgx-h100) tf32=$(workspace_of "$plan" dgx-h100:tf32) bf16=$(workspace_of "$plan" dgx-h100:bf16)
check "fp32 takes some" test "$fp32" -gt 0
check "tf32 takes some" test "$tf32" -gt 0
check "bf16 takes less than fp32, whose engines want channels first" test "$bf16" -lt "$fp32"
check "answers are kept" grep -q "^cuDNN " "$cache"
before=$(stat -c %i "$cache")
check "and the same in the next run" test "$(workspace_of "$plan" dgx-h100)" = "$fp32"
check "which asks nothing" test "$(stat -c %i "$cache")" = "$before"
finish
