#!/bin/bash
# Plans in bf16 and fp16: they need less memory, are faster by the stated rates, are trained and
# verified by the reference backend, and are refused by the backend that cannot run them.
. "$(dirname "$0")/expect.bash"
data=$(cd "$(dirname "$0")/data" && pwd)
bytes_of() { sp predict "$1" -m "$data/machine.json" --json 2>/dev/null | grep -oE '"memory_bytes":[0-9]+' | head -1 | cut -d: -f2; }

for precision in fp32 bf16 fp16; do
  plan=$scratch/$precision.json
  expect 0 "" sp plan tiny -n 2 -m "$data/machine.json" --uniform H2 --precision $precision -o "$plan"
  expect 0 "" sp launch "$plan" --threads --backend reference --verify --steps 2 --loss-scale 256 --quiet --json
  check "$precision is verified" grep -q '"passed":true' "$scratch/stdout"
  check "$precision has a finite loss" grep -qE '"losses":\[[0-9.]+,[0-9.]+' "$scratch/stdout"
done
check "bf16 takes less memory than fp32" test "$(bytes_of "$scratch/bf16.json")" -lt "$(bytes_of "$scratch/fp32.json")"

# Sums of gradients in 16 bits run on every backend, and are part of the plan.
for sums in bf16 fp16; do
  for grid in N2 "N2 R2" "H2 W2"; do
    expect 0 "" sp plan tiny -n 4 -m "$data/machine.json" --uniform "$grid" --gradient-sums $sums -o "$scratch/sums.json"
    check "the plan says $sums" grep -q "\"gradient_sums\": \"${sums/fp/f}\"" "$scratch/sums.json"
    expect 0 "" sp launch "$scratch/sums.json" --threads --verify --steps 1 --quiet --json
    check "$grid with sums in $sums is verified" grep -q '"passed":true' "$scratch/stdout"
  done
done
expect 2 "gradient-sums" sp plan tiny -n 2 --gradient-sums fp8

# A loss scale at which all gradients overflow: an error where gradients are compared, otherwise
# training continues.
expect 7 "gradients of the first step overflowed at a loss scale of 1[0-9]+: a smaller --loss-scale" \
  sp launch "$scratch/fp16.json" --threads --backend reference --verify --steps 1 --loss-scale 1e12 --quiet
expect 0 "" sp launch "$scratch/fp16.json" --threads --backend reference --steps 2 --loss-scale 1e12 --quiet --json
check "a step that overflows is left out" grep -qE '"losses":\[([0-9.]+),' "$scratch/stdout"

# A checkpoint keeps the loss scale.
expect 0 "" sp launch "$scratch/fp16.json" --threads --backend reference --steps 3 --warmup 0 --loss-scale 1e12 --quiet --checkpoint "$scratch/state"
check "the scale is kept" grep -q '"loss_scale":"125000000000 0"' "$scratch/state/step-00000003.safetensors"

if sp doctor --json | grep -q '"cpu":{"built":true'; then
  expect 5 "the cpu backend computes in fp32 alone, not in bf16" sp launch "$scratch/bf16.json" --threads --backend cpu --quiet
fi
finish
