#!/bin/bash
# An imported table in a machine file: plans use it, and the file says where it comes from.
. "$(dirname "$0")/expect.bash"
data=$(dirname "$0")/data here=$scratch/here.json
expect 0 "left out 1 rows of 0 B" sp machines import "$data/all_reduce.txt" -m dgx-h100 -o "$here"
check "the file says where the table comes from" grep -q '"tool": "nccl-tests"' "$here"
check "the device keeps its sources" grep -q '"flops_per_s":' "$here"
expect 0 "" sp plan tiny -n 4 -m "$here" --uniform N4 -o "$scratch/plan.json"
step_on() { sp predict "$scratch/plan.json" -m "$1" --json 2>/dev/null | grep -oE '"predicted_step_seconds":[0-9.e-]+'; }
check "predictions use the table" test "$(step_on "$here")" != "$(step_on dgx-h100)"
# A second import into the same file replaces the table.
expect 0 "" sp machines import "$data/all_reduce.txt" -m "$here" -o "$here"
check "imports are listed" test "$(grep -c '"tool": "nccl-tests"' "$here")" = 2
check "the table stands once" test "$(grep -c '"all_reduce f32 4"' "$here")" = 1
finish
