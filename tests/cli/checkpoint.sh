#!/bin/bash
# Training that is stopped by a signal and continued, on one rank and on several, with the same plan
# and with another.
. "$(dirname "$0")/expect.bash"
data=$(cd "$(dirname "$0")/data" && pwd)
expect 0 "" sp plan "$data/small.json" -n 1 -o "$scratch/one.json"
one=("$program" run "$scratch/one.json" --backend reference --warmup 0 -q)

# start STEPS CURVE COMMAND...: starts the command as process $job, in a process group of its own,
# and waits until the curve has STEPS lines.
start() {
  local lines=$1 curve=$2
  shift 2
  set -m
  "$@" >"$scratch/stdout" 2>"$scratch/stderr" &
  job=$!
  set +m
  while kill -0 "$job" 2>/dev/null; do [ -s "$curve" ] && [ "$(wc -l <"$curve")" -ge "$lines" ] && break; sleep 0.05; done
}
# stop SIGNAL CURVE COMMAND...: starts the command, sends it the signal after a few steps, and
# returns its exit code. SIGINT goes to the whole process group, as a terminal sends it.
stop() {
  local signal=$1
  shift
  start 6 "$@"
  if [ "$signal" = INT ]; then kill -INT -- -"$job"; else kill -"$signal" "$job"; fi
  wait "$job"
}
# stop_twice CURVE COMMAND...: starts a command of long steps and interrupts it in its second step,
# twice. Returns its exit code.
stop_twice() {
  start 2 "$@"
  kill -INT -- -"$job"
  while kill -0 "$job" 2>/dev/null; do grep -q "another Ctrl-C ends the job at once" "$scratch/stderr" && break; sleep 0.05; done
  kill -INT -- -"$job"
  wait "$job"
}
# steps FILE COUNT: the loss curve holds steps 0 to COUNT - 1, each once and in order.
steps() { [ "$(tail -n +2 "$1" | cut -d, -f1 | sort -n | uniq | wc -l)" = "$2" ] && tail -n +2 "$1" | cut -d, -f1 | sort -nc; }

# ---------------------------------------------------------------- the options
expect 0 "" "${one[@]}" --steps 12 --checkpoint "$scratch/whole" --checkpoint-every 5 --keep 2 --loss-curve "$scratch/whole.csv" \
  --optimizer adamw --lr 1e-3 --schedule cosine --warmup-steps 3 --weight-decay 0.01
check "checkpoints of steps 10 and 12 are kept" test "$(ls "$scratch/whole")" = "latest
step-00000010.safetensors
step-00000012.safetensors"
check "the loss curve has 12 steps" steps "$scratch/whole.csv" 12
check "warm-up is a third of the rate at first" grep -q '^0,0.000333333333,' "$scratch/whole.csv"
expect 2 "holds checkpoints already" "${one[@]}" --steps 2 --checkpoint "$scratch/whole"
expect 2 "needs the --checkpoint folder" "${one[@]}" --steps 2 --resume
expect 2 "first step" "${one[@]}" --steps 2 --resume --checkpoint "$scratch/whole" --verify
expect 2 "nesterov needs a --momentum" "${one[@]}" --steps 2 --nesterov --momentum 0
expect 3 "checkpoint has optimizer adamw, this run has momentum" "${one[@]}" --steps 20 --resume --checkpoint "$scratch/whole"
expect 3 "checkpoint has seed 1, this run has 5" "${one[@]}" --steps 20 --optimizer adamw --seed 5 --resume --checkpoint "$scratch/whole"
expect 0 "nothing left to do" "${one[@]}" --steps 12 --resume --checkpoint "$scratch/whole" --optimizer adamw
expect 3 "does not divide into 3 micro-batches" "${one[@]}" --steps 1 --accumulate 3
expect 0 "" "${one[@]}" --steps 1 --accumulate 2 --verify
check "one rank differs in nothing" grep -q "gradients by at most 0.0e+00 (none differs)" "$scratch/stdout"

# -------------------------------------------------- one rank, stopped by any of the signals
for signal in TERM USR1 INT; do
  folder=$scratch/$signal curve=$scratch/$signal.csv
  stop $signal "$curve" "${one[@]}" --steps 20000 --checkpoint "$folder" --checkpoint-every 0 --loss-curve "$curve"
  check "$signal ends it with 75" test $? = 75
  check "and says so" grep -q "stopped after step .* continue with --resume" "$scratch/stderr"
  done_steps=$(($(wc -l <"$curve") - 1))
  expect 0 "resuming after step $done_steps" "${one[@]}" --steps $((done_steps + 3)) --checkpoint "$folder" --resume --loss-curve "$curve"
  check "the curve goes on without a gap" steps "$curve" $((done_steps + 3))
  expect 0 "" "${one[@]}" --steps $((done_steps + 3)) --checkpoint "$scratch/through$signal" --checkpoint-every 0
  check "and ends where it would have" cmp "$folder/$(cat "$folder/latest")" "$scratch/through$signal/$(cat "$folder/latest")"
done

# One Ctrl-C ends a run without checkpoints, two end any run. The steps of `long` take seconds.
stop INT "$scratch/plainINT1.csv" "${one[@]}" --steps 20000 --loss-curve "$scratch/plainINT1.csv"
check "one rank: SIGINT without checkpoints" test $? = 130
sed 's/"small"/"long"/; s/8, 8/400, 400/' "$data/small.json" >"$scratch/long.json"
for ranks in 1 2; do
  expect 0 "" sp plan "$scratch/long.json" -n $ranks -b 8 --uniform N$ranks -o "$scratch/long$ranks.json"
done
# ends_at_once NAME COMMAND... PLAN: two interruptions end the command, without a checkpoint.
ends_at_once() {
  local name=${1// /} curve="$scratch/twice.${1// /}.csv" status
  shift
  stop_twice "$curve" "$@" --backend reference --warmup 0 -q --steps 20000 --checkpoint "$scratch/twice.$name" --checkpoint-every 0 --loss-curve "$curve"
  status=$?
  check "$name: two SIGINT end it with 130, not $status" test $status = 130
  [ "$name" = mpirun ] && return  # it gives ranks two seconds, in which the step may end
  check "$name: without a checkpoint" test "$(ls -d "$scratch/twice.$name" "$scratch/twice.$name"/*)" = "$scratch/twice.$name"
  check "$name: said once" test "$(wc -l <"$scratch/stderr")" = 1
}
ends_at_once "one rank" "$program" run "$scratch/long1.json"

# ---------------------------------------------------------------- checkpoints that are not written
expect 5 "small.json: cannot be written: Not a directory" "${one[@]}" --steps 100000 --checkpoint "$data/small.json"
expect 7 "^stratplan: rank 0 on .* failed after step [0-9]+: the loss is -?(nan|inf): training has diverged" \
  "${one[@]}" --steps 40 --lr 1e30 --checkpoint "$scratch/diverged" --checkpoint-every 1
failed=$(grep -oE "after step [0-9]+" "$scratch/stderr" | grep -oE "[0-9]+")
check "no checkpoint is made of it" test "$(cat "$scratch/diverged/latest")" = "step-$(printf %08d $((failed - 1))).safetensors"
expect 0 "after step [0-9]+ the loss is -?(nan|inf): training has diverged" "${one[@]}" --steps 40 --lr 1e30
check "that is said once" test "$(grep -c diverged "$scratch/stderr")" = 1

# ---------------------------------------------------------------- ranks without MPI
expect 0 "" sp plan "$data/small.json" -n 2 --uniform H2 -o "$scratch/two.json"
for way in launch "launch --threads"; do
  for signal in TERM USR1 INT; do
    folder=$scratch/$signal.${way// /} curve=$scratch/$signal.${way// /}.csv
    launched=("$program" $way "$scratch/two.json" --backend reference --warmup 0 -q)
    stop $signal "$curve" "${launched[@]}" --steps 20000 --checkpoint "$folder" --checkpoint-every 0 --loss-curve "$curve"
    check "$way: $signal ends it with 75" test $? = 75
    check "$way: said once" test "$(grep -c "stopped after step" "$scratch/stderr")" = 1
    expect 0 "resuming after step" "${launched[@]}" --steps $(($(wc -l <"$curve") + 1)) --checkpoint "$folder" --resume
    check "$way: going on is said once" test "$(grep -c "resuming after" "$scratch/stderr")" = 1
  done
  ends_at_once "$way" "$program" $way "$scratch/long2.json"
done

# ---------------------------------------------------------------- ranks
needs_mpi
two=("$program" run "$scratch/two.json" --backend reference --warmup 0 -q)
for signal in TERM USR1 INT; do
  folder=$scratch/two$signal curve=$scratch/two$signal.csv
  stop $signal "$curve" "${two[@]}" --steps 20000 --checkpoint "$folder" --checkpoint-every 0 --loss-curve "$curve"
  check "$signal to the launcher ends both ranks with 75" test $? = 75
  done_steps=$(($(wc -l <"$curve") - 1))
  expect 0 "resuming after step $done_steps" "${two[@]}" --steps $((done_steps + 2)) --checkpoint "$folder" --resume
  expect 0 "" "${two[@]}" --steps $((done_steps + 2)) --checkpoint "$scratch/two$signal.through" --checkpoint-every 0
  check "and ends where it would have" cmp "$folder/$(cat "$folder/latest")" "$scratch/two$signal.through/$(cat "$folder/latest")"
done
expect 0 "resuming after step" "${one[@]}" --steps $((done_steps + 4)) --checkpoint "$folder" --resume
check "another number of ranks goes on" grep -q "step-$(printf %08d $((done_steps + 4)))" "$folder/latest"

ends_at_once mpirun "$program" run "$scratch/long2.json"
folder=$scratch/sockets curve=$scratch/sockets.csv
stop INT "$curve" env PATH=/nowhere "${two[@]}" --steps 20000 --checkpoint "$folder" --checkpoint-every 0 --loss-curve "$curve"
check "without mpirun: SIGINT ends it with 75" test $? = 75
ends_at_once "without mpirun" env PATH=/nowhere "$program" run "$scratch/long2.json"

# Without checkpoints the signal itself ends the job.
for signal in TERM INT; do
  stop $signal "$scratch/plain$signal.csv" "${two[@]}" --steps 20000 --loss-curve "$scratch/plain$signal.csv"
  check "SIG$signal without checkpoints" test $? = $((128 + $(kill -l $signal)))
done
finish
