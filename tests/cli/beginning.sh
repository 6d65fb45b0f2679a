#!/bin/bash
# Stops a rank before it has begun, or before it has joined the others. The job must end with exit
# code 6 and name the rank, and leave nothing behind. STOPS=10 for many stops.
. "$(dirname "$0")/expect.bash"
data=$(cd "$(dirname "$0")/data" && pwd)
plan=$scratch/plan.json
expect 0 "" sp plan "$data/small.json" -n 2 --uniform N2 -o "$plan"
host=$(uname -n)
stops=${STOPS:-2}
export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}verify_asan_link_order=0

ways=launch
(needs_mpi >/dev/null) && ways="run launch"

# children PROCESS: prints its children, whichever of its threads started them.
children() { cat /proc/"$1"/task/*/children 2>/dev/null; }
# rank_of PROCESS: prints the rank that the launcher gave the process; fails for other processes.
rank_of() { tr '\0' '\n' 2>/dev/null <"/proc/$1/environ" | sed -nE 's/^(STRATPLAN_RANK|OMPI_COMM_WORLD_RANK)=//p' | grep .; }
# no_process_left WHAT: all processes of the last job are gone. WHAT names the case in messages.
no_process_left() {
  local process
  for process in $others; do check "$1: process $process is gone" gone "$process"; done
}
# no_memory_left WHAT: no shared memory of Open MPI's ranks is left.
no_memory_left() {
  check "$1: no shared memory is left" test -z "$(ls /dev/shm/vader_segment.*."$job_id".* 2>/dev/null)"
}

# settled PROCESS: the process slept at ten checks in a row, so it has done what it was about to do.
settled() {
  local looks=0
  for _ in $(seq 600); do
    if grep -qs '^[^)]*) S' "/proc/$1/stat"; then looks=$((looks + 1)); else looks=0; fi
    [ "$looks" = 10 ] && return 0
    sleep 0.1
  done
  return 1
}

# no_folder_left WHAT: no folder of Open MPI is left, in which mpirun keeps temporary files.
no_folder_left() {
  local process
  for process in $others; do
    check "$1: no temporary file is left" test -z "$(ls -d "${TMPDIR:-/tmp}"/ompi.*/pid."$process" 2>/dev/null)"
  done
}
# nothing_left WHAT: no process, shared memory or folder of Open MPI is left.
nothing_left() {
  no_process_left "$1"
  no_memory_left "$1"
  no_folder_left "$1"
}

# start WAY [VARIABLE=VALUE...]: starts a job that would take minutes, with these variables set.
# Sets `rank` to the process of its rank 1, `others` to all its processes but the first.
start() {
  local way=$1 process
  shift
  env "$@" "$program" "$way" "$plan" --backend reference --warmup 0 -q --steps 1000000 --watchdog 3 >"$scratch/stdout" 2>"$scratch/stderr" &
  job=$! rank='' others=''
  for _ in $(seq 3000); do
    others="$(children $job) $(for process in $(children $job); do children "$process"; done)"
    for process in $others; do [ "$(rank_of "$process")" = 1 ] && rank=$process; done
    [ -n "$rank" ] && break
    sleep 0.01
  done
  check "$way has a rank 1" test -n "$rank"
  job_id=$(tr '\0' '\n' 2>/dev/null <"/proc/$rank/environ" | sed -n 's/^OMPI_MCA_ess_base_jobid=//p')
  [ -n "$job_id" ] && job_id=$(printf %x "$job_id") || job_id=none
}

# ends WHAT REGEX: the job ends with 6, a line of standard error matches REGEX (Open MPI's event
# loop may warn before it), and nothing of the job is left.
ends() {
  local status
  wait "$job"
  status=$?
  check "$1: exit 6, not $status" test "$status" = 6
  grep -qE "^stratplan: $2$" "$scratch/stderr" || { check "$1: the message" false; cat "$scratch/stderr"; }
  nothing_left "$1"
}

RANDOM=20261122
stops_itself=(STOP_RANK=1 LD_PRELOAD="$STOP_RANK_LIBRARY")
still="the job has stood still for 3 s, and process [0-9]+ is stopped"
for way in $ways; do
  start $way "${stops_itself[@]}"
  ends "$way, stopped before it begins" "rank 1 has not begun: $still"
  for ((stop = 1; stop <= stops; ++stop)); do
    delay_ms=$((10 + RANDOM % 391))
    start $way
    sleep "$(printf 0.%03d $delay_ms)"
    kill -STOP "$rank"
    ends "$way, stopped after $delay_ms ms" "rank 1 (has not begun|on $host hangs .*): $still"
  done

  # A launcher that is killed takes its processes with it, even stopped ones. Two limits of Open
  # MPI: it does not know a rank at the moment in which it starts the rank, so mpirun leaves that
  # rank if it is killed then. And when its launcher dies, a signal ends mpirun, which then does not
  # remove the shared memory of ranks that are still in MPI_Init: 4 MiB stay, and no process of ours
  # is alive to remove them.
  start $way "${stops_itself[@]}"
  for process in $(children "$job"); do
    [ "$process" = "$rank" ] || check "$way: process $process has settled" settled "$process"
  done
  kill -KILL "$job"
  wait "$job" 2>/dev/null
  no_process_left "$way, its launcher killed"
  rm -f /dev/shm/vader_segment.*."$job_id".*
done

if [ "$ways" != launch ]; then
  start run "${stops_itself[@]}" STOP_IN=MPI_Init
  ends "stopped in MPI_Init" "rank 1 on $host hangs while joining the other ranks: $still"

  start run
  mpirun=$(children "$job")
  kill -STOP $mpirun "$rank"
  ends "stopped with mpirun" ".*the job has stood still for 3 s, and process $((mpirun)) \(mpirun\) is stopped, and process $rank is stopped"

  # mpirun can then remove neither its folder nor the ranks' shared memory. The launcher removes the
  # folder.
  start run "${stops_itself[@]}"
  kill -KILL $(children "$job")
  wait "$job"
  status=$?
  check "mpirun killed: exit 6, not $status" test "$status" = 6
  no_process_left "mpirun killed"
  no_folder_left "mpirun killed"
  rm -f /dev/shm/vader_segment.*."$job_id".*

  # Without mpirun, `run` uses sockets.
  start run "${stops_itself[@]}" PATH=/nowhere
  ends "run without mpirun" "rank 1 has not begun: $still"
fi

# Inputs are checked before the program waits to read them.
mkfifo "$scratch/fifo"
for way in run launch; do
  expect 3 "^stratplan: .*fifo: expected a file, but this is a pipe" sp $way "$scratch/fifo" --steps 1
done
expect 3 "^stratplan: .*fifo: expected a file, but this is a pipe" sp launch "$plan" --threads --steps 1 --data "$scratch/fifo"
expect 3 "^stratplan: .*: expected a file, but this is a pipe" sp plan <(cat "$data/small.json") -n 2
expect 0 "" sp plan - -n 2 <"$data/small.json"
finish
