#!/bin/bash
# Trains for 20 steps, then continues with another plan, as if training had never stopped.
. "$(dirname "$0")/../example.bash"

show plan tiny -n 2 --uniform N2 -o samples.json
show plan tiny -n 2 --uniform H2 -o halves.json

show run samples.json --steps 20 --warmup 0 -q --checkpoint state
show run halves.json --steps 40 --warmup 0 -q --checkpoint state --resume \
  --loss-curve resumed.csv
show run samples.json --steps 40 --warmup 0 -q --loss-curve whole.csv

# A line of the curve is step, learning rate, loss.
resumed=$(tail -n 1 resumed.csv | cut -d, -f3)
whole=$(tail -n 1 whole.csv | cut -d, -f3)
printf '\nloss of the last step: %s after the change of plans, %s without a stop\n' \
  "$resumed" "$whole"
awk -v a="$resumed" -v b="$whole" 'BEGIN { exit !((a - b) ^ 2 <= (1e-3 * b) ^ 2) }' ||
  fail "the losses differ by more than rounding"
