#!/bin/bash
# Kills ranks at random steps. Every job ends and leaves no process behind. Training that continues
# after each kill ends bit for bit as training without a kill. KILLS=5 for a short run.
. "$(dirname "$0")/expect.bash"
needs_mpi
kills=${KILLS:-50}
steps=$((kills * 24)) every=5 folder=$scratch/killed curve=$scratch/curve.csv
expect 0 "" sp plan tiny -b 64 -n 2 --uniform "H2" -o "$scratch/plan.json"
run=("$program" run "$scratch/plan.json" --backend reference --warmup 0 -q --steps $steps)
expect 0 "" "${run[@]}" --checkpoint "$scratch/whole" --checkpoint-every 0

rows() { [ -s "$curve" ] && wc -l <"$curve" || echo 0; }
# ranks JOB: prints the processes that mpirun, the job's child, has started.
ranks() { for launcher in $(pgrep -P "$1"); do pgrep -P "$launcher"; done; }

RANDOM=20261121
clean=0 longest_ms=0
for ((kill = 1; kill <= kills; ++kill)); do
  rm -f "$curve"
  "${run[@]}" --checkpoint "$folder" --checkpoint-every $every --resume --loss-curve "$curve" >/dev/null 2>"$scratch/stderr" &
  job=$!
  target=$((1 + RANDOM % 16))
  while kill -0 $job 2>/dev/null && [ "$(rows)" -le $target ]; do sleep 0.01; done
  mapfile -t alive < <(ranks $job)
  if [ ${#alive[@]} -lt 2 ]; then
    check "kill $kill: the job runs when it is to be killed" false
    cat "$scratch/stderr"
    break
  fi
  begin=$(date +%s%3N)
  kill -KILL "${alive[RANDOM % ${#alive[@]}]}"
  wait $job
  status=$?
  took_ms=$(($(date +%s%3N) - begin))
  check "kill $kill: exit 6, not $status" test $status = 6
  check "kill $kill: one message" grep -qE "^stratplan: rank [01] on .* was killed by signal 9 .*step [0-9]+" "$scratch/stderr"
  left=0
  for rank in "${alive[@]}"; do gone "$rank" || left=1; done
  check "kill $kill: no rank is left" test $left = 0
  [ $status = 6 ] && [ $left = 0 ] && clean=$((clean + 1))
  [ $took_ms -gt $longest_ms ] && longest_ms=$took_ms
done
expect 0 "resuming after step" "${run[@]}" --checkpoint "$folder" --checkpoint-every $every --resume
last=step-$(printf %08d $steps).safetensors
check "weights and optimizer state are those of the uninterrupted run" cmp "$folder/$last" "$scratch/whole/$last"
echo "$clean of $kills clean ends, the slowest after $longest_ms ms; $steps steps, a checkpoint every $every"
finish
