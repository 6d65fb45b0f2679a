#!/bin/bash
# Plans that contradict the files they are used with, and outputs that cannot be written: exit
# codes, messages, no partial file.
. "$(dirname "$0")/expect.bash"
data=$(cd "$(dirname "$0")/data" && pwd)
plan=$scratch/plan.json

expect 0 "" sp plan "$data/small.json" -n 2 --uniform H2 -o "$plan"
check "plan.json is written" test -s "$plan"
expect 0 "" sp predict "$plan"
expect 0 "published rates" sp predict "$plan" -m "$data/machine.json" --json

# A hand-written plan needs no more keys than these.
echo "{\"schema_version\": 1, \"network\": {\"source\": \"$data/small.json\"}, \"batch\": 2, \"ranks\": 2, \"decomposition\": \"N2\"}" >"$scratch/hand.json"
expect 0 "" sp predict "$scratch/hand.json"

# A plan records its input, and the commands that price it use that.
expect 0 "" sp plan "$data/small.json" -n 2 -m "$data/machine.json" --input 10kB/s -o "$scratch/input.json"
expect 0 "" sp bottleneck "$scratch/input.json" -m "$data/machine.json"
check "the slow input is named" grep -q "^bound by input (9[0-9.]* % of the step)" "$scratch/stdout"
check "what is read" grep -q "^input: .* from storage of 10kB/s, read in .*: the step waits for it" "$scratch/stdout"
expect 0 "" sp predict "$scratch/input.json" -m "$data/machine.json"
check "predict waits too" grep -q "^input  .*: the step waits for it" "$scratch/stdout"
expect 0 "" sp predict "$scratch/input.json" -m "$data/machine.json" --input none
check "none leaves it out" grep -q "^input  *not modelled" "$scratch/stdout"
expect 0 "" sp diff "$scratch/input.json" "$scratch/input.json" -m "$data/machine.json" --json
sed -i 's|"10kB/s"|"nvme"|' "$scratch/input.json"
expect 3 "input\.json: at /input: --input: the machine round numbers states no storage nvme" sp predict "$scratch/input.json" -m "$data/machine.json"

expect 2 "--input: the machine lassen states no storage nvme; give a rate such as 2GB/s" sp plan tiny -n 2 -m lassen --input nvme

# Errors in the number of ranks: in the grids, on the command line, and a number that no
# decomposition allows.
sed 's/"ranks": 2/"ranks": 3/' "$scratch/hand.json" >"$scratch/ranks.json"
expect 3 "ranks\.json.*(rank|N2)" sp predict "$scratch/ranks.json"
expect 3 "2 ranks" sp run "$plan" -n 3
sed 's/"decomposition": "N2"/"decomposition": "N2", "layers": {"conv": {"grid": "D2"}}/' "$scratch/hand.json" >"$scratch/illegal.json"
expect 3 "illegal\.json: at /layers/conv.*D2" sp predict "$scratch/illegal.json"
expect 4 "" sp plan "$data/small.json" -n 64 --uniform N64
expect 4 "memory|MiB|KiB" sp plan "$data/small.json" -n 2 --memory 1KiB
expect 4 "does not fit into 1 KiB per rank on 2 ranks: every plan needs at least [0-9.]+ KiB" sp plan tiny -n 2 -m "$data/machine.json" --memory 1KiB
expect 4 "does not fit into 40 B per rank on 16 ranks: every plan needs at least 18.5 MiB.*on all 17280 ranks of lassen" timeout 60 "$program" plan resnet50 -m lassen -n 16 -b 256 --memory 40B
expect 2 "^stratplan: 40 has no unit: write 40GiB" sp plan tiny -n 2 --memory 40

# Another batch, another network.
sed 's/"batch": 2/"batch": 4/' "$plan" >"$scratch/batch.json"
expect 3 "batch\.json.*(fingerprint|batch)" sp predict "$scratch/batch.json"
cp "$data/small.json" "$scratch/network.json"
expect 0 "" sp plan "$scratch/network.json" -n 2 --uniform H2 -o "$scratch/moved.json"
sed -i 's/"filters": 4, "kernel"/"filters": 8, "kernel"/' "$scratch/network.json"
expect 3 "moved\.json.*fingerprint" sp predict "$scratch/moved.json"
head -c 100 "$plan" >"$scratch/half.json"
expect 3 "half\.json" sp run "$scratch/half.json"
sed 's/{/{"frobnicate": 1, /' "$scratch/hand.json" >"$scratch/unknown.json"
expect 3 "unknown|frobnicate" sp predict - <"$scratch/unknown.json"

# A plan is priced for the arithmetic that it was made for.
expect 0 "" sp plan resnet18 -n 2 -b 32 -m dgx-a100:tf32 --uniform N2 -o "$scratch/tf32.json"
expect 0 "" sp predict "$scratch/tf32.json" -m dgx-a100:tf32
grep "^step" "$scratch/stdout" >"$scratch/stated"
expect 0 "" sp predict "$scratch/tf32.json"
check "without --machine, too" cmp -s "$scratch/stated" <(grep "^step" "$scratch/stdout")
expect 0 "made for dgx-a100:tf32, and is priced for dgx-a100;" sp predict "$scratch/tf32.json" -m dgx-a100
check "and else it is told" test "$(grep -c "^step" "$scratch/stdout")" = 1

# On a machine with several transports between devices, the plan says which transfer uses which.
# Processors have one transport, and the plan runs there all the same.
table='[{"bytes": 4, "median_seconds": 1e-6, "choice": "mpi", "others": {"nccl": 2e-5}}, {"bytes": 1024, "median_seconds": 2e-5, "choice": "nccl"}]'
sed "s/\"levels\"/\"one_way\": $table, \"both_ways\": $table, \"collectives\": {\"all_reduce f32 2\": $table}, \"levels\"/" "$data/machine.json" >"$scratch/ways.json"
expect 0 "" sp plan "$data/small.json" -n 2 -m "$data/machine.json" -o "$scratch/one_way.json"
expect 0 "" sp plan "$data/small.json" -n 2 -m "$scratch/ways.json" -o "$scratch/by_ways.json"
check "it is told, too" grep -qE "(messages|all_reduce f32 2) go by mpi from 0 bytes, nccl from 64 bytes" "$scratch/stdout"
check "small transfers by mpi, larger ones by nccl" grep -zqE '\[[^]]*"from_bytes": 0, *"way": "mpi"[^]]*"from_bytes": 64, *"way": "nccl"' <(tr -d '\n' <"$scratch/by_ways.json")
expect 0 "" sp predict "$scratch/by_ways.json" -m "$scratch/ways.json"
expect 0 "" sp launch "$scratch/by_ways.json" --threads --backend reference --verify --steps 1
expect 0 "" sp diff "$scratch/one_way.json" "$scratch/by_ways.json"
check "the difference is told" grep -q "chosen by run.*mpi from 0 bytes, nccl from 64 bytes" "$scratch/stdout"

# Machine files with numbers that no link has are refused; odd ones get a note.
# odd EDIT: writes machine.json after an edit to odd.json
odd() { sed "$1" "$data/machine.json" >"$scratch/odd.json"; }
plan_on_odd=(sp plan "$data/small.json" -n 2 -m "$scratch/odd.json")
odd 's/: 1e9}/: 25}/'
expect 3 'odd\.json: at /levels/0/bandwidth_bytes_per_s: expected a number >= 10000 in bytes per second \(25 GB/s is 2\.5e10\), found 25$' "${plan_on_odd[@]}"
odd 's/1e-5/4/'
expect 3 'odd\.json: at /levels/0/latency_seconds: expected a number from 0 to 1 in seconds \(4 us is 4e-6\), found 4$' "${plan_on_odd[@]}"
odd 's/1e-5/1e-7/; s/: 1e9}/: 1e11}/'
expect 0 'odd\.json: at /levels/0: node is faster than core, the level inside it' "${plan_on_odd[@]}"
check "hidden is asked for" grep -q 'odd\.json: the key "hidden" is missing' "$scratch/stderr"
odd 's/"levels"/"hidden": 0, "levels"/'
expect 0 "published rates" "${plan_on_odd[@]}"
check "and not if it is stated, be it 0" test "$(grep -c hidden "$scratch/stderr")" = 0

# Outputs that cannot be written are found before anything is measured.
touch "$scratch/file"
expect 5 "file/plan\.json|file" sp plan "$data/small.json" -n 2 -o "$scratch/file/plan.json"
expect 5 "file" sp autotune "$data/small.json" -n 2 -o "$scratch/file/results"
check "an unwritable folder is found before anything is planned or measured" test -z "$(grep -E "planning|measuring" "$scratch/stderr")"
check "nothing is left behind" test -z "$(find "$scratch" -name '*.tmp*')"
# Extents near the largest: kernels whose shapes the library does not support get an answer, too.
data=$(dirname "$0")/data
for ranks in 1 2; do
  expect 4 "does not fit into" sp plan "$data/many_filters.json" -n $ranks
  expect 4 "does not fit into" sp plan tiny -n $ranks --input-size 2147483645,8
done
finish
