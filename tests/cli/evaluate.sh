#!/bin/bash
# Loss and accuracy of a checkpoint over a data set, on any plan.
. "$(dirname "$0")/expect.bash"
data=$(cd "$(dirname "$0")/data" && pwd)
expect 0 "" sp plan "$data/small.json" -n 1 -o "$scratch/one.json"
expect 0 "" sp plan "$data/small.json" -n 2 -b 4 --uniform H2 -o "$scratch/two.json"
evaluate=(sp run "$scratch/one.json" --evaluate --backend reference)
value() { grep -oE "\"$1\":[0-9.e-]+" "$scratch/stdout" | cut -d: -f2; }

# Without normalization and dropout, on the one synthetic batch, the loss equals the next training
# step's loss.
expect 0 "" sp run "$scratch/one.json" --backend reference --warmup 0 --steps 12 --optimizer adamw --checkpoint "$scratch/state" -q
expect 0 "evaluating the state after step 12" "${evaluate[@]}" --checkpoint "$scratch/state"
check "loss and accuracy are printed" grep -qzE 'loss +[0-9.e-]+ over 2 samples.*accuracy +[0-9.]+ %' "$scratch/stdout"
expect 0 "" "${evaluate[@]}" --checkpoint "$scratch/state" --json
loss=$(value loss)
expect 0 "" sp run "$scratch/one.json" --backend reference --warmup 0 --steps 13 --optimizer adamw --checkpoint "$scratch/state" --resume --loss-curve "$scratch/curve.csv" -q
next=$(tail -1 "$scratch/curve.csv" | cut -d, -f3)
check "it is the loss of the next step: $loss and $next" awk -v a="$loss" -v b="$next" 'BEGIN { exit !(a > 0 && (a - b < 1e-5 * a) && (b - a < 1e-5 * a)) }'
check "nothing was written" test "$(ls "$scratch/state" | grep -c 00000013)" = 1

# Over a data set, with running statistics, on another plan and another batch.
expect 0 "" sp data mesh -o "$scratch/mesh" --samples 13 --size 16 --block 4
expect 0 "" sp plan "$data/normalized.json" -n 1 -o "$scratch/normalized.json"
expect 0 "" sp plan "$data/normalized.json" -n 2 -b 6 --uniform C2 -o "$scratch/split.json"
expect 0 "" sp run "$scratch/normalized.json" --data "$scratch/mesh" --warmup 0 --steps 30 --checkpoint "$scratch/trained" -q
expect 0 "leaves out 1 sample," sp run "$scratch/normalized.json" --evaluate --checkpoint "$scratch/trained" --data "$scratch/mesh" --json
loss=$(value loss)
check "no accuracy where there are no labels" test -z "$(value accuracy)"
check "whole batches of samples" test "$(value samples)" = 12
expect 0 "" sp launch "$scratch/split.json" --evaluate --checkpoint "$scratch/trained" --data "$scratch/mesh" --json
check "another plan finds the same: $loss" awk -v a="$loss" -v b="$(value loss)" 'BEGIN { exit !(a > 0 && (a - b < 1e-5 * a) && (b - a < 1e-5 * a)) }'
check "and prints it once" test "$(grep -c samples "$scratch/stdout")" = 1

expect 2 "needs the --checkpoint folder" "${evaluate[@]}"
expect 2 "evaluate" "${evaluate[@]}" --checkpoint "$scratch/state" --verify
expect 3 "expected a folder of checkpoints" "${evaluate[@]}" --checkpoint "$scratch/nowhere"
expect 3 "has network normalized, this run has small" "${evaluate[@]}" --checkpoint "$scratch/trained"
sed '/running_momentum/d' "$data/normalized.json" >"$scratch/forgetful.json"
expect 0 "" sp plan "$scratch/forgetful.json" -n 1 -o "$scratch/forgetful_plan.json"
expect 3 "/running_momentum.*needs the running statistics of layer" sp run "$scratch/forgetful_plan.json" --evaluate --checkpoint "$scratch/state"

# Shipped networks keep running statistics, whether the batch runs whole or in micro-batches.
expect 0 "" sp plan tiny -n 1 -b 64 -o "$scratch/tiny.json"
for parts in 1 2; do
  expect 0 "" sp run "$scratch/tiny.json" --steps 3 --accumulate $parts --checkpoint "$scratch/tiny$parts" -q
  expect 0 "evaluating the state after step 5" sp run "$scratch/tiny.json" --evaluate --checkpoint "$scratch/tiny$parts"
done
finish
