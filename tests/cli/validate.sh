#!/bin/bash
# validate: local and published cases, an interruption, a second call, and bad lists.
. "$(dirname "$0")/expect.bash"
export STRATPLAN_CACHE_DIR=$scratch/cache
mkdir "$STRATPLAN_CACHE_DIR"

cat >"$scratch/cases.json" <<'JSON'
{"schema_version": 1, "cases": [
  {"name": "split", "network": "tiny", "batch": 4, "ranks": 2, "plan": "H2"},
  {"name": "mixed", "network": "tiny", "batch": 4, "ranks": 2, "plan": {"conv1": "H2", "fc*": "F2", "*": "N2"}},
  {"name": "best", "network": "tiny", "batch": 4, "ranks": 2, "plan": "recommended"},
  {"name": "slow", "network": "tiny", "batch": 4, "ranks": 2, "plan": "N2", "link": "1gbit"},
  {"name": "of-others", "network": "vgg16", "batch": 32, "ranks": 4, "machine": "lassen", "plan": "sample", "measured_step_seconds": 0.5, "source": "a table"},
  {"name": "impossible", "network": "tiny", "batch": 2, "ranks": 512, "machine": "lassen", "plan": "N512", "measured_step_seconds": 0.5, "source": "a table"}
]}
JSON
# An interruption leaves whole files, and the next call goes on. Shells ignore SIGINT for background
# jobs, unless they are told not to.
env --default-signal=INT "$program" validate "$scratch/cases.json" -o "$scratch/results" --rounds 1 >/dev/null 2>&1 &
process=$!
until [ -e "$scratch/results/split/measurements.json" ] || ! kill -0 $process; do sleep 0.1; done
kill -INT $process
wait $process
status=$?
check "exit code 75 ($status)" test $status = 75
check "the report says so" grep -q "was interrupted" "$scratch/results/accuracy.md"
touch "$scratch/before"
expect 0 "1 case left out, because they run over other links" sp validate "$scratch/cases.json" -o "$scratch/results" --rounds 1
check "the finished case is kept" test "$scratch/results/split/round-1/timings.json" -ot "$scratch/before"
check "five cases" test "$(grep -c '^[a-z-]*: ' "$scratch/stdout")" = 5
check "the failure is told" grep -q "^impossible: .*N512" "$scratch/stdout"
report=$scratch/results/accuracy.md
check "both parts" grep -q "^## Measured by others" "$report"
check "local part" grep -q "^## Run on this machine" "$report"
check "regret" grep -q "^Regret: " "$report"
check "kinds of ops" grep -q "^| compute | [1-3] |" "$report"
check "the command for one case" grep -q "stratplan validate .*cases.json --only mixed" "$report"
check "a line per case" test "$(wc -l <"$scratch/results/accuracy.csv")" = 5
check "a chart" grep -q "predicted [0-9.]* ms, measured" "$scratch/results/accuracy.svg"
check "errors as a chart" grep -q "of-others: .* %, .* range" "$scratch/results/accuracy-errors.svg"
check "predicted before it ran" test "$scratch/results/split/round-1/plan.json" -ot "$scratch/results/split/round-1/timings.json"

# A second call runs nothing again, and gives the same figures.
cp "$scratch/results/accuracy.csv" "$scratch/first.csv"
touch "$scratch/before"
expect 0 "" sp validate "$scratch/cases.json" -o "$scratch/results" --rounds 1 --report "$scratch"
check "nothing ran again" test "$scratch/results/best/round-1/timings.json" -ot "$scratch/before"
check "the same figures" cmp "$scratch/first.csv" "$scratch/accuracy.csv"
touch "$scratch/results/split/mine"
expect 0 "" sp validate "$scratch/cases.json" -o "$scratch/results" --rounds 1 --only split --fresh --json
check "files of the user stay" test -e "$scratch/results/split/mine"
check "--fresh runs again" test "$scratch/results/split/round-1/timings.json" -nt "$scratch/before"
check "JSON" python3 -c "
import json, sys
one, = json.load(open('$scratch/stdout'))['cases']
assert one['name'] == 'split' and one['error'] == one['predicted_step_seconds'] / one['measured_step_seconds'] - 1"
expect 0 "" sp validate "$scratch/cases.json" --list --only "[sm][pi]*"
check "a list" test "$(cat "$scratch/stdout")" = "split: tiny, batch 4, 2 ranks on local, H2
mixed: tiny, batch 4, 2 ranks on local, conv1: H2, fc*: F2, *: N2"

# Results over another link are kept, and reported with the others.
expect 0 "" sp validate "$scratch/cases.json" -o "$scratch/results" --rounds 1 --only slow --link 1gbit
touch "$scratch/before"
expect 0 "" sp validate "$scratch/cases.json" -o "$scratch/results" --rounds 1 --only "s*"
check "both links" grep -q "^slow: predicted" "$scratch/stdout"
check "its command says where" grep -q -- "--only slow --fresh --link 1gbit\` where 1gbit" "$scratch/results/accuracy.md"
check "the other link is not run" test "$scratch/results/slow/round-1/timings.json" -ot "$scratch/before"

# Files beside the list, and 16 bits.
mkdir "$scratch/lists"
cp "$scratch/cases.json" "$scratch/lists"
cp "$(dirname "$0")/../../machines/lassen.json" "$scratch/lists/mine.json"
echo '{"schema_version": 1, "cases": [{"name": "half", "network": "resnet18", "batch": 32, "ranks": 4, "machine": "./mine.json", "precision": "fp16", "plan": "sample", "measured_step_seconds": 0.1, "source": "a table"}]}' >"$scratch/lists/half.json"
expect 0 "" sp validate "$scratch/lists/half.json" -o "$scratch/half" --json
half=$(python3 -c "import json; print(json.load(open('$scratch/stdout'))['cases'][0]['predicted_step_seconds'])")
sed -i 's/"fp16"/"fp32"/' "$scratch/lists/half.json"
expect 0 "" sp validate "$scratch/lists/half.json" -o "$scratch/half" --json
check "16 bits are faster" python3 -c "import json; assert $half < json.load(open('$scratch/stdout'))['cases'][0]['predicted_step_seconds']"

# Bad lists.
cp "$scratch/cases.json" "$scratch/twin.json"
bad() { # DESCRIPTION EXIT REGEX SED-SCRIPT
  sed "$4" "$scratch/cases.json" >"$scratch/bad.json"
  expect "$2" "$3" sp validate "$scratch/bad.json" -o "$scratch/bad" --only "${5:-*}"
}
bad "two names" 3 "bad\.json: at /cases/1/name: expected another name than split" 's/"mixed"/"split"/'
bad "no source" 3 "bad\.json: at /cases/4/source: expected where" 's/, "source": "a table"//'
bad "no measurement" 3 "bad\.json: at /cases/4/machine: expected \"local\"" 's/"measured_step_seconds": 0.5, //'
bad "16 bits here" 3 "bad\.json: at /cases/0/precision: expected fp32" 's/"plan": "H2"/"plan": "H2", "precision": "fp16"/'
bad "a word" 3 "bad\.json: at /cases/0.*frobnicate" 's/"plan": "H2"/"plan": "H2", "frobnicate": 1/'
bad "a name with a slash" 3 "bad\.json: at /cases/0/name" 's/"split"/"..\/split"/'
bad "another number of ranks" 0 "case split: .*expected 2 ranks, found 4" 's/"plan": "H2"/"plan": "H4"/' split
bad "an unknown plan" 0 "case split: .*found \"H\"" 's/"plan": "H2"/"plan": "H"/' split
bad "only repeated" 0 "" 's/"plan": "H2"/"plan": "R2"/' split
bad "no pattern" 0 "case mixed: .*no pattern of the plan matches the layer" 's/, "\*": "N2"//' mixed
expect 3 "twin\.json: expected another name than split, which a case of .*cases\.json has" sp validate "$scratch/cases.json" "$scratch/twin.json" --list
expect 2 "odd number" sp validate "$scratch/cases.json" --rounds 2
rm "$scratch/results/best/round-1/plan.json"
touch "$scratch/before"
expect 0 "" sp validate "$scratch/cases.json" -o "$scratch/results" --rounds 1 --only best
check "an incomplete result is made again" test "$scratch/results/best/round-1/plan.json" -nt "$scratch/before"
expect 2 "no case has such a name" sp validate "$scratch/cases.json" --only nothing
expect 3 "missing\.json" sp validate "$scratch/missing.json"
finish
