#!/bin/bash
# Makes a plan that fits into less memory than the fastest plan needs.
. "$(dirname "$0")/../example.bash"
network=(resnet18 -m lassen -n 4 -b 512)

# memory_of PLAN: prints the predicted bytes of the rank that needs most.
memory_of() { sed -n 's/^.*"memory_bytes": *\([0-9]*\).*$/\1/p' "$1"; }

show plan "${network[@]}" -o fastest.json
show plan "${network[@]}" --memory 2GiB -o fits.json
show diff fastest.json fits.json -m lassen
show plan "${network[@]}" --recompute all -o recomputed.json
show diff fastest.json recomputed.json -m lassen

(($(memory_of fits.json) <= 2 << 30)) || fail "the plan does not fit into 2 GiB"
(($(memory_of recomputed.json) < $(memory_of fastest.json))) || fail "recomputation saves no memory"

# Without these options no plan fits. The program names a remedy and ends with exit code 4.
code=0
show plan "${network[@]}" --memory 2GiB --recompute none --sharding 0 --accumulate 1 || code=$?
((code == 4)) || fail "expected exit code 4, found $code"
