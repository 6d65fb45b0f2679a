#!/bin/bash
# A rank that is killed, hangs or throws ends the whole job within seconds. One message names the
# rank, and the last checkpoint stays whole.
. "$(dirname "$0")/expect.bash"
data=$(cd "$(dirname "$0")/data" && pwd)
plan=$scratch/plan.json
expect 0 "" sp plan "$data/small.json" -n 2 --uniform N2 -o "$plan"
steps=(--backend reference --warmup 0 -q --steps)
host=$(uname -n) place="(in step [0-9]+ during .+|after step [0-9]+.*)"

# start WAY [OPTION...]: starts a training that takes minutes, and waits until it runs. Sets `ranks`
# to its processes, ascending by rank.
start() {
  local way=$1 parent command=("$program" "$1")
  [ "$way" = mpirun ] && command=(mpirun -n 2 "$program" run)
  shift
  rm -f "$scratch/curve.csv"
  "${command[@]}" "$plan" "${steps[@]}" 100000 --watchdog "${patience_s:-2}" --loss-curve "$scratch/curve.csv" "$@" >"$scratch/stdout" 2>"$scratch/stderr" &
  job=$!
  while kill -0 "$job" 2>/dev/null; do [ -s "$scratch/curve.csv" ] && [ "$(wc -l <"$scratch/curve.csv")" -gt 25 ] && break; sleep 0.1; done
  parent=$job
  [ "$way" = run ] && parent=$(pgrep -P "$job")
  mapfile -t ranks < <(pgrep -P "$parent")
  check "$way has two ranks" test ${#ranks[@]} = 2
}

# ends WHAT REGEX: the failing job ends with 6, and its first line of standard error matches REGEX.
ends() {
  local status rank
  wait "$job"
  status=$?
  check "$1: exit 6, not $status" test "$status" = 6
  head -1 "$scratch/stderr" | grep -qE "^stratplan: $2" || { check "$1: the message" false; cat "$scratch/stderr"; }
  check "$1: it is said once, and nothing else" test "$(grep -vc '^  rank ' "$scratch/stderr")" = 1
  for rank in "${ranks[@]}"; do check "$1: rank $rank is gone" gone "$rank"; done
}

# goes_on WAY: training continues from the last checkpoint.
goes_on() {
  local last
  last=$(sed 's/step-0*\([0-9]*\).*/\1/' "$scratch/state/latest")
  expect 0 "resuming after step $last" sp "$1" "$plan" "${steps[@]}" $((last + 2)) --checkpoint "$scratch/state" --resume
  rm -r "$scratch/state"
}

ways=launch
(needs_mpi >/dev/null) && ways="run launch"
for way in $ways; do
  start $way
  kill -KILL "${ranks[1]}"
  ends "$way, killed" "rank 1 on $host was killed by signal 9 \(Killed\) $place$"

  start $way --checkpoint "$scratch/state" --checkpoint-every 10
  kill -KILL "${ranks[0]}"
  ends "$way with checkpoints, killed" "rank 0 on $host was killed by signal 9 \(Killed\) $place$"
  goes_on $way

  start $way --checkpoint "$scratch/state" --checkpoint-every 10
  kill -STOP "${ranks[1]}"
  ends "$way, stopped" "rank 1 on $host hangs $place: the job has stood still for 2 s, and process ${ranks[1]} is stopped$"
  check "$way, stopped: where the others are" grep -qE "^  rank 0 waits $place" "$scratch/stderr"
  goes_on $way

  patience_s=0 start $way
  kill -STOP "${ranks[1]}"
  sleep 3
  check "$way: without a watchdog it waits" kill -0 "$job"
  kill -CONT "${ranks[1]}"
  kill -ABRT "${ranks[1]}"
  ends "$way, aborted" "rank 1 on $host was killed by signal 6 \(Aborted\) $place$"
done

# Without stratplan's launcher, mpirun reports which rank was killed.
if [ "$ways" != launch ]; then
  start mpirun --checkpoint "$scratch/state" --checkpoint-every 10
  kill -KILL "${ranks[1]}"
  wait "$job"
  check "mpirun alone: the job fails" test $? != 0
  check "mpirun alone: rank, host and signal" grep -qE "rank 1 with PID [0-9]+ on node $host exited on signal 9" "$scratch/stderr"
  goes_on run
fi

# An illegal label among the labels that only rank 1 checks before the first step.
npy() { printf '\x93NUMPY\x01\x00\x76\x00%-117s\n' "{'descr': '$1', 'fortran_order': False, 'shape': ($2), }"; }
for set in data other; do
  mkdir "$scratch/$set"
  { npy '<f4' '8, 3, 8, 8' && head -c 6144 /dev/zero; } >"$scratch/$set/x.npy"
done
{ npy '<i4' '8,' && head -c 28 /dev/zero && printf '\x09\0\0\0'; } >"$scratch/data/y.npy"
for way in $ways "launch --threads"; do
  expect 3 "^stratplan: .*y\.npy: expected labels from 0 to 3, found 9 at index 7$" sp $way "$plan" "${steps[@]}" 4 --data "$scratch/data" --in-order
  check "$way: a rank that throws says so, alone" test "$(wc -l <"$scratch/stderr")" -le 2
done
# Nodes may hold different copies. Rank 1's copy has an illegal label among those that rank 0
# checks, and rank 1 reads it in the second step.
{ npy '<i4' '8,' && head -c 12 /dev/zero && printf '\x09\0\0\0' && head -c 16 /dev/zero; } >"$scratch/other/y.npy"
{ npy '<i4' '8,' && head -c 32 /dev/zero; } >"$scratch/data/y.npy"
rank=("$program" run "$plan" "${steps[@]}" 4 --in-order --data)
[ "$ways" = launch ] ||
  expect 3 "^stratplan: rank 1 on $host failed in step 2 during loading .*y\.npy: expected labels from 0 to 3, found 9 at index 3$" mpirun -n 1 "${rank[@]}" "$scratch/data" : -n 1 "${rank[@]}" "$scratch/other"
finish
