#!/bin/bash
# Outputs to files, links, FIFOs and devices, and to standard output and error that are closed, full
# or without a reader. Device files are made on a file system in a mount namespace of this test,
# never among the machine's own.
if [ -z "${STRATPLAN_OWN_NAMESPACE-}" ] && unshare -m true 2>/dev/null; then
  STRATPLAN_OWN_NAMESPACE=1 exec unshare -m "$0" "$@"
fi
. "$(dirname "$0")/expect.bash"
data=$(cd "$(dirname "$0")/data" && pwd)
export STRATPLAN_CACHE_DIR=$scratch/cache
cd "$scratch" || exit 1

is() { check "$1" test "${@:2}"; }
plan() { sp plan tiny -n 2 -m "$data/machine.json" "$@"; }
is_plan() { check "$1 holds a plan" grep -q '"schema_version"' "$1"; }

# ---------------------------------------------------------------- links and folders
echo old >target
ln -s target link
ln -s new dangling
expect 0 "" plan -o link
expect 0 "" plan -o dangling
is_plan target
is_plan new
is "a link stays" -L link -a -L dangling
echo mine >out.probe
expect 0 "" plan -o out
is "the user's own file stays" "$(cat out.probe)" = mine
mkdir folder
expect 5 "^stratplan: folder: cannot be written: Is a directory$" plan -o folder
expect 5 "^stratplan: typo/out: cannot be written: there is no folder typo$" plan -o typo/out
expect 5 "^stratplan: typo/state: cannot be written: there is no folder typo$" sp run out --checkpoint typo/state
expect 5 "^stratplan: typo/results: cannot be written: there is no folder typo$" sp autotune tiny -n 2 -o typo/results
expect 5 "^stratplan: typo/set: cannot be written: there is no folder typo$" sp data mesh -o typo/set --samples 1 --size 32
is "no tree grows out of a typo" ! -e typo

# ---------------------------------------------------------------- FIFOs
mkfifo fifo
expect 5 "^stratplan: fifo: cannot be written: no process reads from it$" timeout 60 "$program" plan tiny -n 2 -m "$data/machine.json" -o fifo
exec 6<>fifo # a reader from the beginning
cat fifo 6<&- >received &
expect 0 "" plan -o fifo
exec 6<&-
wait $!
is_plan received
is "a FIFO stays" -p fifo

# ---------------------------------------------------------------- data sets and loss curves
limited() { (ulimit -f 1 && "$@"); }
echo victim >victim
mkdir set
ln -s ../victim set/x.npy.tmp
expect 0 "" sp data mesh -o set --samples 1 --size 32
if sp doctor --json 2>/dev/null | grep -q '"hdf5":{"built":true'; then
  ln -s victim set.h5.tmp
  expect 0 "" sp data mesh -o set.h5 --samples 1 --size 32
  mkfifo fifo.h5
  expect 5 "^stratplan: fifo.h5: cannot be written: no process reads from it$" sp data mesh -o fifo.h5 --samples 1 --size 32
  expect 5 "^stratplan: large.h5: cannot be written" limited sp data mesh -o large.h5 --samples 4 --size 32
fi
is "no link that lay in wait is followed" "$(cat victim)" = victim
expect 5 "^stratplan: large/x.npy: cannot be written: File too large$" limited sp data mesh -o large --samples 4 --size 32
check "nothing half-written is left" test -z "$(find . -name 'large*.tmp')"
expect 0 "" sp plan tiny -n 1 -m "$data/machine.json" -o one.json
ln -s curve.csv curve
expect 0 "" sp run one.json --steps 3 --warmup 0 --loss-curve curve
is "a curve has a heading and a row for each step" "$(wc -l <curve.csv)" = 4 -a -L curve

# ---------------------------------------------------------------- names out of documents
mkdir -p deep/below
sed 's|"name": *"bounded"|"name": "../../../escaped"|' "$data/bounded.json" >evil.json
below() { (cd deep/below && "$@"); }
expect 5 "4096 ranks on" below "$program" autotune "$scratch/evil.json" -n 4096
is "what is refused leaves no folder" ! -e deep/below/stratplan_results
expect 0 "^stratplan: results go to stratplan_results/escaped-[0-9a-f]{8}-1x[0-9]+$" \
  below "$program" autotune "$scratch/evil.json" --backend reference -n 1 --rounds 1
is "results lie where they should" -d deep/below/stratplan_results
check "and nowhere else" test -z "$(find . -name '*escaped*' -not -path './deep/below/stratplan_results/*')"

# -------------------------------------------------- closed descriptors, pipes without readers
mkfifo pipe
exec 4<>pipe 5>pipe 4<&- # 5: nobody will read it
without() { local descriptor=$1; shift; eval '"$@"' "$descriptor>&-"; }
unread() { "$@" >&5; }
unheard() { "$@" 2>&5; }
for descriptor in 0 1 2; do
  expect 0 "" without $descriptor plan
  expect 0 "" without $descriptor sp launch out --steps 3
done
nothing_open() { "$@" 0<&- 1>&- 2>&-; }
expect 0 "" nothing_open sp launch out --steps 3 -o closed.json
check "timings of it" grep -q '"losses"' closed.json
mpi=() # a job whose ranks mpirun starts
(needs_mpi >/dev/null 2>&1) && mpi=("run out --steps 1")
for command in "${mpi[@]}" "plan tiny -n 2" "plan tiny -n 2 --json" "--help" "machines --json" "run one.json --steps 1" "launch out --steps 1"; do
  # shellcheck disable=SC2086
  expect 141 "" unread sp $command
  check "a closed pipe ends '$command' without a word" test -z "$(grep -E "standard output|signal|internal error" stderr)"
done
expect 0 "" unheard sp plan tiny -n 2
expect 0 "" unheard sp run one.json --steps 1
expect 0 "" unheard sp launch out --steps 3
expect 3 "" unheard sp plan nowhere -n 2

# ---------------------------------------------------------------- the cache of measurements
echo '{' >cache/machine-2x1.json
expect 3 "machine-2x1.json: .*delete it and measure again" sp plan tiny -n 2
expect 0 "" sp doctor
check "doctor tells it" grep -q -- "-> rm .*machine-2x1.json" stdout
rm cache/machine-2x1.json
exec 7>cache/measuring.lock
flock 7
sp profile tiny -n 1 -b 2 >profiled 2>waiting 7>&- &
profiling=$!
for _ in $(seq 600); do grep -q "waiting until another" waiting && break; sleep 0.1; done
check "measuring takes turns" grep -q "waiting until another stratplan process has measured this machine" waiting
exec 7>&-
wait $profiling
check "the turn comes" grep -q "kernels" profiled

# ---------------------------------------------------------------- devices
mkdir dev
if [ -z "${STRATPLAN_OWN_NAMESPACE-}" ] || ! mount -t tmpfs tmpfs dev || ! mknod dev/null c 1 3 || ! mknod dev/full c 1 7 || ! : >dev/null; then
  echo "devices not tried: no mount namespace with device files of its own"
  finish
fi
ln -s /proc/self/fd/1 dev/stdout
expect 0 "" plan -o dev/null
expect 5 "^stratplan: dev/full: cannot be written: No space left on device$" plan -o dev/full
expect 0 "" plan -o dev/stdout
is_plan stdout
expect 0 "" sp run one.json --steps 2 -o dev/null --dump dev/null --loss-curve dev/null
expect 5 "^stratplan: dev/full: cannot be written: No space left on device$" sp run one.json --steps 2 --loss-curve dev/full
is "devices and the link stay" -c dev/null -a -c dev/full -a -L dev/stdout
is "nothing lies beside them" "$(ls dev | wc -l)" = 3

full_out() { "$@" >dev/full; }
full_error() { "$@" 2>dev/full; }
for command in "${mpi[@]}" "plan tiny -n 2 --json" "plan tiny -n 2" "scale tiny -n 1,2" "predict out --json" "explain out" "diff out out" "bottleneck out" \
               "profile --job slurm" "run one.json --steps 1 --json" "launch out --steps 1 --json" "machines" "doctor" "--help" "--version" ""; do
  # shellcheck disable=SC2086
  expect 5 "^stratplan: standard output: cannot be written: No space left on device$" full_out sp $command
  is "'$command' says so once" "$(grep -c 'standard output' stderr)" = 1
done
expect 0 "" full_error sp plan tiny -n 2
expect 0 "" full_error sp run one.json --steps 1
expect 0 "" full_error sp launch out --steps 3
expect 3 "" full_error sp plan nowhere -n 2
finish
