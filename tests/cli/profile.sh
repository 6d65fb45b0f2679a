#!/bin/bash
# Each kernel is measured once per set of attributes that its time depends on. If a machine has
# become slower or faster, a few kernels are measured again and the profile stays.
. "$(dirname "$0")/expect.bash"
data=$(cd "$(dirname "$0")/data" && pwd)
export STRATPLAN_CACHE_DIR=$scratch/cache
machine=$scratch/cache/machine-1x1.json
network=(--backend reference -n 1)

# measured: prints the number of kernels that the last command measured, in all of its turns.
measured() { tr '\r' '\n' <"$scratch/stderr" | awk '$1 == "measuring" && $3 == "kernels" { sum += $2 } END { print sum + 0 }'; }
# kept: prints the number of kernels in the profile.
kept() { grep -c '^  "[^"]*": {$' <(sed -n '/^ "kernels": {/,/^ }/p' "$machine"); }

expect 0 "" sp profile "$data/bounded.json" "${network[@]}"
check "each kernel is measured once" test "$(measured)" = "$(kept)"
for key in "batch_norm_forward n2 c8 p64 sets2 group4" "local_response_forward rows128 c8 size3" "clip_forward e1024"; do
  check "$key" grep -q "\"$key\"" "$machine"
done
expect 0 "" sp profile "$data/bounded.json" "${network[@]}"
check "a second call measures none" test "$(measured)" = 0

# The profile of a machine that is sixty-four times as fast.
awk '/_seconds": / && kernels { n = split($0, part, ": "); comma = /,$/ ? "," : ""; $0 = part[1] ": " part[2] / 64 comma } /^ "kernels"/ { kernels = 1 } { print }' "$machine" >"$scratch/fast.json"
cp "$scratch/fast.json" "$machine"
# Without --fresh, autotune may keep earlier runs, and with them the drift that it found then.
for call in 1 2 3; do
  [ $call = 3 ] && fresh=() || fresh=(--fresh)
  expect 0 "" sp autotune "$data/bounded.json" "${network[@]}" --rounds 1 "${fresh[@]}" -o "$scratch/results"
  check "call $call: few kernels are measured again" test "$(measured)" -le 8
  check "call $call: the profile stays" cmp -s "$scratch/fast.json" "$machine"
  for place in stdout results/report.md; do
    check "call $call: $place says so" grep -qE "Kernels take [0-9.]+ times as long as when the machine was profiled \([1-8] kernels measured again, ratios from [0-9.]+ to [0-9.]+\): " "$scratch/$place"
  done
  check "call $call: it is recorded" grep -q '^ "drift": {$' "$scratch/results/machine.json"
done

# A disturbed run is repeated. All numbers of the report are of the repetition that counts.
for _ in $(seq "$(nproc)"); do (while kill -0 $$ 2>/dev/null; do :; done) & done
expect 0 "again: other processes used the machine" sp autotune "$data/bounded.json" "${network[@]}" --rounds 1 --fresh -o "$scratch/results"
kill $(jobs -p)
check "the iteration is the round's median" awk '/^Medians/ { ++plans; median = $5 } /^\| iteration / { ++found; split($0, cell, / *\| */); wrong += cell[4] != median } END { exit !plans || found != plans || wrong }' "$scratch/results/report.md"
check "one rank's gradients are the undivided run's" grep -q "No gradient differs, tolerance " "$scratch/results/report.md"
check "other repetitions are gone" test -z "$(find "$scratch/results" -name 'timings-*')"

# Malformed requests.
echo '{"ranks": 1}' >"$scratch/request.json"
expect 3 "^stratplan: .*request\.json: expected a key \"threads_per_rank\", found none$" sp profile --request "$scratch/request.json" -o "$scratch/machine.json"
echo '[' >"$scratch/request.json"
expect 3 "request\.json" sp profile --request "$scratch/request.json" -o "$scratch/machine.json"
finish
