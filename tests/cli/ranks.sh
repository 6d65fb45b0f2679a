#!/bin/bash
# Real ranks under mpirun, started by the program and around it.
. "$(dirname "$0")/expect.bash"
data=$(cd "$(dirname "$0")/data" && pwd)
needs_mpi
plan=$scratch/plan.json
expect 0 "" sp plan "$data/small.json" -n 2 --uniform H2 -o "$plan"

# The launcher.
expect 0 "" sp run "$plan" -n 2 --steps 2 --backend reference -o "$scratch/timings.json" --dump "$scratch/h2.safetensors"
check "timings are written" test -s "$scratch/timings.json"
check "the dump is written" test -s "$scratch/h2.safetensors"
expect 0 "" sp run "$plan" --steps 1 --verify
expect 0 "" sp run "$plan" --steps 2 --json
check "standard output is JSON alone" grep -q '"step_seconds"' "$scratch/stdout"
expect 0 "" sp compare "$plan" "$scratch/timings.json"
check "the report shows the loss" grep -q "^loss .* in the first step" "$scratch/stdout"

# One rank needs no mpirun.
expect 0 "" sp plan "$data/small.json" -n 1 -o "$scratch/one.json"
expect 0 "" env PATH=/nowhere "$program" run "$scratch/one.json" --steps 1
# Several ranks need no mpirun either: without it they use sockets.
expect 0 "" env PATH=/nowhere "$program" run "$plan" --steps 1 --verify
expect 3 "no_such.h5" env PATH=/nowhere "$program" run "$plan" --steps 1 --data "$scratch/no_such.h5"
check "the error is said once" test "$(grep -c '^stratplan: ' "$scratch/stderr")" = 1

# The program under mpirun, with the right and with a wrong number of ranks. The message is printed
# once.
expect 0 "" mpirun -n 2 "$program" run "$plan" --steps 1
expect 3 "for 2 ranks.*3" mpirun -q -n 3 "$program" run "$plan" --steps 1
check "the error is said once" test "$(grep -c '^stratplan: ' "$scratch/stderr")" = 1
expect 0 "" sp plan "$data/small.json" -n 2 --uniform W2 -o "$scratch/other.json"
expect 3 "rank 1 runs another plan" mpirun -q -n 1 "$program" run "$plan" --steps 1 : -n 1 "$program" run "$scratch/other.json" --steps 1
expect 5 "stdout/timings\.json" sp run "$plan" --steps 1 -o "$scratch/stdout/timings.json"

# Measures the links of a cluster in which two consecutive ranks form a node. The file is a machine
# to plan for.
expect 0 "" mpirun -n 4 "$program" profile --links --ranks-per-node 2 --largest 64KiB -o "$scratch/links.json"
check "collectives of one rank per node" grep -q '"all_reduce f32 2x1"' "$scratch/links.json"
check "pairs across nodes" grep -q '"2 pairs per node across"' "$scratch/links.json"
expect 0 "" sp plan "$data/small.json" -n 4 -m "$scratch/links.json"
# A few nodes are measured with a network's kernels, and the plan is for many.
expect 0 "about .* s on 2 nodes, .* node hours; then kernels" mpirun -n 2 "$program" profile tiny -b 8 --links --cluster-nodes 32 --largest 64KiB -o "$scratch/cluster.json"
expect 0 "" sp plan tiny -m "$scratch/cluster.json" -n 32 -b 64 -o "$scratch/many.json"
check "families correct the estimates" grep -q kernel_speeds "$scratch/cluster.json"
check "no kernel is kept" python3 -c 'import json, sys; sys.exit(len(json.load(open(sys.argv[1]))["kernels"]))' "$scratch/cluster.json"
expect 2 "--cluster-nodes needs links between at least 2 nodes" sp profile --job slurm --nodes 1 --cluster-nodes 8
expect 2 "--links needs ranks" sp profile --links -o "$scratch/links.json"
expect 2 "needs --output" mpirun -q -n 2 "$program" profile --links
finish
