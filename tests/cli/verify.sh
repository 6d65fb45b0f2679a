#!/bin/bash
# Compares plans on real ranks, more of them than cores, with an undivided run: each decomposition
# alone, a plan that changes between layers, and one whose layers all differ.
. "$(dirname "$0")/expect.bash"
needs_mpi
plan=$scratch/plan.json

# verify WHAT: runs $plan with --verify. WHAT names the case in messages.
verify() {
  expect 0 "" sp run "$plan" --steps 1 --verify </dev/null  # mpirun would read the cases
  check "$1 is verified" grep -q "passed" "$scratch/stdout"
}

# network, input size, ranks and decomposition
while read -r network size ranks grid; do
  expect 0 "" sp plan "$network" -n "$ranks" -b 2 --input-size "$size" --uniform "$grid" -o "$plan"
  verify "$network on $ranks ranks with $grid"
done <<'CASES'
hepcnn 96,96 2 N2
hepcnn 96,96 2 H2
hepcnn 96,96 2 W2
hepcnn 96,96 2 C2
hepcnn 96,96 2 F2
hepcnn 96,96 2 R2
hepcnn 96,96 4 N2 H2
hepcnn 96,96 4 C2 F2
hepcnn 96,96 4 H2 W2
hepcnn 96,96 4 H2 R2
hepcnn 96,96 6 H3 W2
hepcnn 96,96 6 C3 F2
cosmoflow128 64,64,64 4 D2 H2
CASES

# regrid LAYER GRID: changes the layer's grid in $plan.
regrid() { sed -i "/\"$1\": {/,/}/ s/\"grid\": \"[^\"]*\"/\"grid\": \"$2\"/" "$plan"; }

expect 0 "" sp plan hepcnn -n 4 -b 2 --input-size 96,96 --uniform H4 -o "$plan"
for layer in conv2 relu2 pool2; do regrid $layer R4; done
check "the plan goes from H4 to R4 and back" test "$(grep -c '"grid": "R4"' "$plan")" -ge 3
verify "H4 -> R4 -> H4"

expect 0 "" sp plan hepcnn -n 4 -b 2 --input-size 96,96 --uniform "N2 R2" -o "$plan"
layers=(conv1 relu1 pool1 conv2 relu2 pool2 conv3 relu3 pool3 conv4 relu4)
grids=(H4 W4 "H2 W2" "N2 H2" "C2 H2" "C4" "F4" "C2 F2" "N2 C2" "H2 R2" "N2 W2")
for i in "${!layers[@]}"; do regrid "${layers[i]}" "${grids[i]}"; done
check "neighbours differ" test "$(grep -o '"grid": "[^"]*"' "$plan" | head -11 | uniq | wc -l)" = 11
verify "a plan whose layers all differ"

# Options that the planner chooses to save memory are written in the plan, and run.
while read -r network size limit keys; do
  expect 0 "" sp plan "$network" -m lassen -n 2 -b 8 --input-size "$size" --memory "$limit" -o "$plan" --json
  check "to fit $network into $limit is told" grep -q '"to_fit"' "$scratch/stdout"
  for key in $keys; do check "$network within $limit: $key" grep -q "\"$key\"" "$plan"; done
  verify "$network within $limit"
done <<'CASES'
hepcnn 96,96 40MiB micro_batches
resnet18 64,64 72MiB recompute
CASES

# Memory-saving options change no numbers.
while read -r network size ranks options; do
  expect 0 "" sp plan "$network" -n "$ranks" -b 4 --input-size "$size" $options -o "$plan"
  verify "$network on $ranks ranks with $options"
done <<'CASES'
tiny 8,8 2 --uniform N2 --sharding 1 --optimizer adam
tiny 8,8 4 --uniform N4 --sharding 3 --recompute all
resnet18 64,64 2 --uniform H2 --recompute all
resnet18 64,64 2 --uniform N2 --sharding 2
resnet18 64,64 4 --uniform N4 --sharding 3 --recompute all
CASES
finish
