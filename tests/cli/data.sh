#!/bin/bash
# Data sets that the program writes and trains on, and data sets that are refused.
. "$(dirname "$0")/expect.bash"
data=$(cd "$(dirname "$0")/data" && pwd)
expect 0 "" sp plan "$data/mesh16.json" -n 1 -o "$scratch/one.json"
expect 0 "" sp plan "$data/mesh16.json" -n 2 --uniform W2 -o "$scratch/two.json"

expect 0 "" sp data mesh -o "$scratch/mesh" --samples 9 --size 16 --block 4
check "the answer says what was made" grep -q '9 samples, x (18, 16, 16), y (16, 4, 4); [0-9.]* % of the cells are tangled' "$scratch/stdout"
check "no temporary file is left" test "$(ls "$scratch/mesh" | tr '\n' ' ')" = "x.npy y.npy "
expect 0 "" sp data cosmo -o "$scratch/cosmo" --samples 2 --size 8 --json
check "JSON" grep -q '"samples":2,"x":\[4,8,8,8\],"y":\[4\]' "$scratch/stdout"
expect 2 "multiple of --block 32" sp data mesh -o "$scratch/no" --size 40
expect 2 "power of two" sp data cosmo -o "$scratch/no" --size 40
expect 2 "" sp data
expect 5 "stdout: cannot be written" sp data mesh -o "$scratch/stdout" --size 32 --samples 1
cp "$scratch/mesh/x.npy" "$scratch/before.npy"
expect 0 "" sp data mesh -o "$scratch/mesh" --samples 9 --size 16 --block 4
check "the same seed makes the same set" cmp -s "$scratch/mesh/x.npy" "$scratch/before.npy"

expect 0 "each epoch leaves out 1 sample," sp run "$scratch/one.json" --data "$scratch/mesh" --steps 12 --verify -o "$scratch/timings.json"
check "the loss curve is drawn" grep -q '█' "$scratch/stdout"
check "the timings name the set" grep -q '"data": ' "$scratch/timings.json"
check "said once" test "$(grep -c 'leaves out' "$scratch/stderr")" = 1
expect 0 "" sp launch "$scratch/two.json" --threads --data "$scratch/mesh" --steps 2 --verify

expect 3 "cosmo/x\.npy: expected an array \(samples, 18, 16, 16\), found \(2, 4, 8, 8, 8\)" sp run "$scratch/one.json" --data "$scratch/cosmo" --steps 1
expect 3 "nowhere" sp run "$scratch/one.json" --data "$scratch/nowhere.npy" --steps 1
truncate -s -100 "$scratch/mesh/y.npy"
expect 3 "mesh/y\.npy: expected [0-9]+ bytes according to its header, found" sp run "$scratch/one.json" --data "$scratch/mesh" --steps 1

# 64-bit labels, one of which is a valid class only in its low 32 bits.
npy() { printf '\x93NUMPY\x01\x00\x76\x00%-117s\n' "{'descr': '$1', 'fortran_order': False, 'shape': ($2), }"; }
expect 0 "" sp plan "$data/small.json" -n 2 --uniform N2 -o "$scratch/small.json"
mkdir "$scratch/wide"
{ npy '<f4' '4, 3, 8, 8' && head -c 3072 /dev/zero; } >"$scratch/wide/x.npy"
{ npy '<i8' '4,' && head -c 28 /dev/zero && printf '\x01\0\0\0'; } >"$scratch/wide/y.npy"
for way in launch "launch --threads"; do
  expect 3 "wide/y\.npy: expected labels from 0 to 3, found 4294967296 at index 3" sp $way "$scratch/small.json" --backend reference --steps 1 --warmup 0 --data "$scratch/wide" --in-order
done

# changed WHAT REGEX COMMAND... -- ARGUMENT...: runs the command, which changes the data set of a
# very long training. The training ends with 3 and a message that matches REGEX.
changed() {
  local what=$1 regex=$2 change=() job status
  shift 2
  while [ "$1" != -- ]; do change+=("$1"); shift; done
  shift
  rm -f "$scratch/curve.csv"
  "$program" "$@" --steps 1000000 --warmup 0 -q --loss-curve "$scratch/curve.csv" >"$scratch/stdout" 2>"$scratch/stderr" &
  job=$!
  while kill -0 "$job" 2>/dev/null; do [ -s "$scratch/curve.csv" ] && [ "$(wc -l <"$scratch/curve.csv")" -gt 5 ] && break; sleep 0.1; done
  "${change[@]}"
  wait "$job"
  status=$?
  check "$what: exit 3, not $status" test "$status" = 3
  check "$what: the message" grep -qE "^stratplan: rank [01] on .* during loading .*: $regex" "$scratch/stderr" || cat "$scratch/stderr"
}
cut_short='changed while it was in use: it ends at byte 5000, and ended at byte [0-9]+ when it was opened$'
sp data mesh -o "$scratch/mesh" --samples 8 --size 16 --block 4 >"$scratch/stdout"
for way in launch "launch --threads" run; do
  plan=two
  [ "$way" = run ] && plan=one  # one rank needs no MPI
  cp -r "$scratch/mesh" "$scratch/cut"
  changed "$way, x.npy" "$scratch/cut/x\.npy: $cut_short" truncate -s 5000 "$scratch/cut/x.npy" -- $way "$scratch/$plan.json" --data "$scratch/cut"
  rm -r "$scratch/cut"
done

mkfifo "$scratch/fifo.npy"
expect 3 "fifo\.npy: expected a file, but this is a pipe" timeout 60 "$program" run "$scratch/one.json" --forward --weights none --data "$scratch/fifo.npy" -o "$scratch/out.npy"

if sp doctor --json | grep -q '"hdf5":{"built":true'; then
  expect 0 "" sp data mesh -o "$scratch/mesh.h5" --samples 8 --size 16 --block 4
  expect 0 "" sp launch "$scratch/two.json" --data "$scratch/mesh.h5" --steps 2 --verify
  for way in launch "launch --threads"; do
    cp "$scratch/mesh.h5" "$scratch/cut.h5"
    changed "$way, HDF5" "$scratch/cut\.h5: $cut_short" truncate -s 5000 "$scratch/cut.h5" -- $way "$scratch/two.json" --data "$scratch/cut.h5"
  done
  expect 3 "cut\.h5: expected an HDF5 file, but .*eof = 5000" sp run "$scratch/one.json" --data "$scratch/cut.h5" --steps 1
  echo "no HDF5" >"$scratch/text.h5"
  expect 3 "text\.h5: expected an HDF5 file" sp run "$scratch/one.json" --data "$scratch/text.h5" --steps 1
else
  expect 5 "STRATPLAN_WITH_HDF5" sp data mesh -o "$scratch/mesh.h5" --size 32
fi
finish
