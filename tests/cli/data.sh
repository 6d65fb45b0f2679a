#!/bin/bash
# Sets made by the program, trained on by the program; and sets that are no good.
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

expect 0 "each epoch leaves out 1 of the samples" sp run "$scratch/one.json" --data "$scratch/mesh" --steps 12 --verify -o "$scratch/timings.json"
check "the loss curve is drawn" grep -q '█' "$scratch/stdout"
check "the timings name the set" grep -q '"data": ' "$scratch/timings.json"
check "said once" test "$(grep -c 'leaves out' "$scratch/stderr")" = 1
expect 0 "" sp launch "$scratch/two.json" --threads --data "$scratch/mesh" --steps 2 --verify

expect 3 "cosmo/x\.npy: expected an array \(samples, 18, 16, 16\), found \(2, 4, 8, 8, 8\)" sp run "$scratch/one.json" --data "$scratch/cosmo" --steps 1
expect 3 "nowhere" sp run "$scratch/one.json" --data "$scratch/nowhere.npy" --steps 1
truncate -s -100 "$scratch/mesh/y.npy"
expect 3 "mesh/y\.npy: expected [0-9]+ bytes by its header, found" sp run "$scratch/one.json" --data "$scratch/mesh" --steps 1

if sp doctor --json | grep -q '"hdf5":{"built":true'; then
  expect 0 "" sp data mesh -o "$scratch/mesh.h5" --samples 8 --size 16 --block 4
  expect 0 "" sp launch "$scratch/two.json" --data "$scratch/mesh.h5" --steps 2 --verify
  echo "no HDF5" >"$scratch/text.h5"
  expect 3 "text\.h5: expected an HDF5 file" sp run "$scratch/one.json" --data "$scratch/text.h5" --steps 1
else
  expect 5 "STRATPLAN_WITH_HDF5" sp data mesh -o "$scratch/mesh.h5" --size 32
fi
finish
