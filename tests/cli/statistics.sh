#!/bin/bash
# Batch normalization over sets of samples that lie on several ranks: plans tell the price, and
# --statistics replaces the network's value.
. "$(dirname "$0")/expect.bash"
data=$(cd "$(dirname "$0")/data" && pwd)
machine=$data/machine.json
told="summed over ranks: each set of 4 samples lies on up to 2 ranks; the sums add [0-9.]+ ms to the step"

expect 0 "" sp plan tiny -n 2 -b 4 -m "$machine" --uniform N2 -o "$scratch/shared.json"
check "the price is told" grep -qE "$told" "$scratch/stdout"
check "and the remedy" grep -q -- "--statistics local" "$scratch/stdout"
expect 0 "" sp plan tiny -n 2 -b 4 -m "$machine" --strategy sample --json
check "also as JSON" grep -q '"shared_statistics":{"samples":4,"ranks":2,"seconds":' "$scratch/stdout"
expect 0 "" sp scale tiny -n 1,2 -b 4 -m "$machine"
check "scale tells it, too" grep -qE "sample on 2 ranks: each set of 4 samples lies on up to 2 ranks" "$scratch/stdout"

for statistics in local 2; do
  expect 0 "" sp plan tiny -n 2 -b 4 -m "$machine" --uniform N2 --statistics $statistics -o "$scratch/$statistics.json"
  check "$statistics: nothing is summed" test -z "$(grep "summed over ranks" "$scratch/stdout")"
  check "$statistics: the plan records it" grep -qE "\"statistics_samples\": *\"?$statistics\"?" "$scratch/$statistics.json"
  expect 0 "" sp launch "$scratch/$statistics.json" --threads --backend reference --steps 1
done
expect 0 "" sp launch "$scratch/2.json" --threads --backend reference --verify --steps 1
expect 3 "numbers depend on the plan" sp launch "$scratch/local.json" --threads --backend reference --verify --steps 1
expect 3 "at /statistics_samples: autotune verifies all plans" sp autotune tiny -n 2 -b 4 --statistics local -o "$scratch/results"
sed 's/"statistics_samples": *2/"statistics_samples": 4/' "$scratch/2.json" >"$scratch/4.json"
expect 3 "4\.json: at /network/fingerprint" sp predict "$scratch/4.json"
expect 2 "--statistics: expected all, local or an integer from 1 to 2147483647, found none" sp plan tiny -n 2 --statistics none
finish
