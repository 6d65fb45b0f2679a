#!/bin/bash
# Plans that contradict what they are used with, and places that cannot be written: exit codes, messages, nothing half-written.
. "$(dirname "$0")/expect.bash"
data=$(cd "$(dirname "$0")/data" && pwd)
plan=$scratch/plan.json

expect 0 "" sp plan "$data/small.json" -n 2 --uniform H2 -o "$plan"
check "plan.json is written" test -s "$plan"
expect 0 "" sp predict "$plan"
expect 0 "published rates" sp predict "$plan" -m "$data/machine.json" --json

# A hand-written plan needs no more than this.
echo "{\"schema_version\": 1, \"network\": {\"source\": \"$data/small.json\"}, \"batch\": 2, \"ranks\": 2, \"decomposition\": \"N2\"}" >"$scratch/hand.json"
expect 0 "" sp predict "$scratch/hand.json"

# Ranks: of the grids, of the command line, and ranks that no decomposition allows.
sed 's/"ranks": 2/"ranks": 3/' "$scratch/hand.json" >"$scratch/ranks.json"
expect 3 "ranks\.json.*(rank|N2)" sp predict "$scratch/ranks.json"
expect 3 "2 ranks" sp run "$plan" -n 3
sed 's/"decomposition": "N2"/"decomposition": "N2", "layers": {"conv": {"grid": "D2"}}/' "$scratch/hand.json" >"$scratch/illegal.json"
expect 3 "illegal\.json: at /layers/conv.*D2" sp predict "$scratch/illegal.json"
expect 4 "" sp plan "$data/small.json" -n 64 --uniform N64
expect 4 "memory|MiB|KiB" sp plan "$data/small.json" -n 2 --memory 1KiB
expect 4 "the leanest plan needs 1 MiB; no power of two times as many would do" sp plan tiny -n 2 -m "$data/machine.json" --memory 1KiB

# Another batch, another network.
sed 's/"batch": 2/"batch": 4/' "$plan" >"$scratch/batch.json"
expect 3 "batch\.json.*(fingerprint|batch)" sp predict "$scratch/batch.json"
cp "$data/small.json" "$scratch/network.json"
expect 0 "" sp plan "$scratch/network.json" -n 2 --uniform H2 -o "$scratch/moved.json"
sed -i 's/"filters": 4, "kernel"/"filters": 8, "kernel"/' "$scratch/network.json"
expect 3 "moved\.json.*fingerprint" sp predict "$scratch/moved.json"
head -c 100 "$plan" >"$scratch/half.json"
expect 3 "half\.json" sp run "$scratch/half.json"
expect 3 "unknown|frobnicate" sp predict <(sed 's/{/{"frobnicate": 1, /' "$scratch/hand.json")

# Places that cannot be written: found before anything is measured.
touch "$scratch/file"
expect 5 "file/plan\.json|file" sp plan "$data/small.json" -n 2 -o "$scratch/file/plan.json"
started=$SECONDS
expect 5 "file" sp autotune "$data/small.json" -n 2 -o "$scratch/file/results"
check "an unwritable folder is found at once" test $((SECONDS - started)) -lt 10
check "nothing is left behind" test -z "$(find "$scratch" -name '*.tmp*')"
finish
