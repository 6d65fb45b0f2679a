#!/bin/bash
# Ranks without MPI: processes over sockets, threads of one process.
. "$(dirname "$0")/expect.bash"
data=$(cd "$(dirname "$0")/data" && pwd)
plan=$scratch/plan.json
expect 0 "" sp plan "$data/small.json" -n 4 --uniform "H2 W2" -o "$plan"

expect 0 "" env PATH=/nowhere "$program" launch "$plan" -n 4 --steps 2 --verify -o "$scratch/timings.json"
check "the result is printed once" test "$(grep -c '^step ' "$scratch/stdout")" = 1
check "timings are written" test -s "$scratch/timings.json"
expect 0 "" env PATH=/nowhere "$program" launch "$plan" --threads --steps 2 --verify --json
check "standard output is JSON alone" grep -q '^{.*"step_seconds".*}$' "$scratch/stdout"
expect 3 "for 4 ranks, but --ranks says 3" sp launch "$plan" -n 3 --steps 1

# The numbers do not depend on how the ranks communicate.
expect 0 "" sp launch "$plan" --steps 1 --backend reference --dump "$scratch/processes.safetensors"
expect 0 "" sp launch "$plan" --threads --steps 1 --backend reference --dump "$scratch/threads.safetensors"
check "threads and processes agree bit by bit" cmp -s "$scratch/processes.safetensors" "$scratch/threads.safetensors"

# An error that all ranks see is reported once.
cp "$data/small.json" "$scratch/network.json"
expect 5 "cannot be written" sp launch "$plan" --steps 1 -o "$scratch/stdout/timings.json"
expect 3 "nowhere" sp launch "$plan" --steps 1 --data "$scratch/nowhere.npy"
check "the error is said once" test "$(grep -c nowhere.npy "$scratch/stderr")" = 1

# A rank that is killed ends all ranks at once, with one message.
"$program" launch "$plan" --steps 1000000 --quiet >"$scratch/killed.out" 2>"$scratch/killed.err" &
launcher=$!
rank=
while kill -0 "$launcher" 2>/dev/null; do
  rank=$(awk '{print $NF}' "/proc/$launcher/task/$launcher/children")
  [ -n "$rank" ] && break
  sleep 0.1
done
sleep 1
kill -KILL "$rank"
wait "$launcher"
check "a killed rank is a failure of communication" test $? = 6
check "one message names rank and signal" grep -qE '^stratplan: rank [0-3] on .* was killed by signal 9' "$scratch/killed.err"
check "nothing else is said" test "$(wc -l <"$scratch/killed.err")" -le 2
finish
