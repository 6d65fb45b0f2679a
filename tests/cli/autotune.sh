#!/bin/bash
# autotune is an anytime job: it says what is best so far, streams events, ends at a request to stop
# with whole files and exit code 75, and goes on when it is called again.
. "$(dirname "$0")/expect.bash"
export STRATPLAN_CACHE_DIR=$scratch/cache
results=$scratch/results
tune=("$program" autotune tiny -b 4 -n 1 --backend reference -o "$results")

# whole FOLDER: all JSON documents of the results are whole, and the plan can be predicted.
whole() {
  local file
  for file in "$results"/*.json "$results"/plans/*/*.json "$scratch"/cache/machine-*.json; do
    [ ! -e "$file" ] || python3 -m json.tool "$file" >/dev/null || { echo "damaged: $file"; return 1; }
  done
  "$program" predict "$results/plan.json" -m "$results/machine.json" >/dev/null 2>&1
}

expect 0 "best so far: .* ms, [0-9.]+-[0-9.]+ \(after" "${tune[@]}" --rounds 1 --events "$scratch/events"
check "events are objects" python3 - "$scratch/events" <<'P'
import json, sys
events = [json.loads(line) for line in open(sys.argv[1])]
kinds = [event["event"] for event in events]
assert kinds[0] == "recommendation" and kinds[-1] == "end", kinds
assert {"measured", "decided", "ran"} <= set(kinds), kinds
times = [event["after_seconds"] for event in events]
assert times == sorted(times), times
first = events[0]["predicted_step_seconds_range"]
assert first["low"] < events[0]["predicted_step_seconds"] < first["high"]
P
check "the log says why" grep -q "measured .* kernels in .* s, \|measuring ended: " "$results/log"
check "all is whole" whole
check "one plan is to be used" cmp -s "$results/plan.json" "$results/plans/recommended/plan.json"

cp "$results/report.md" "$scratch/first.md"
expect 0 "" "${tune[@]}" --rounds 1 --json
# Disturbed runs are run again, after a look at a few kernels.
if ! grep -q "Other processes used" "$scratch/first.md"; then
  check "nothing is measured again" test -z "$(grep -E "^measuring .* kernels" "$scratch/stderr")"
  check "nothing runs again" grep -q '"reused":true' "$scratch/stdout"
fi
expect 2 "'soon' is no duration; write for example 3min" sp autotune tiny --time-limit soon -n 1
expect 2 "standard output is taken by --json" sp autotune tiny -n 1 --json --events -

# A request to stop, at several moments. INTERRUPTIONS=10 for many. Shells ignore SIGINT for
# background jobs, unless they are told not to. A job may end before it is asked, but not each time.
interruptions=${INTERRUPTIONS:-3}
RANDOM=20261127
stopped=0
for ((i = 1; i <= interruptions; ++i)); do
  rm -rf "$STRATPLAN_CACHE_DIR" "$results"
  env --default-signal=INT "${tune[@]}" >"$scratch/stdout" 2>"$scratch/stderr" &
  job=$!
  until [ -s "$results/log" ] || ! kill -0 $job 2>/dev/null; do sleep 0.01; done
  sleep "$(awk -v r=$RANDOM 'BEGIN { print r / 32768 * 1.5 }')"
  kill -INT $job 2>/dev/null && asked=1 || asked=0
  wait $job
  code=$?
  if [ $code = 75 ]; then
    stopped=$((stopped + 1))
    check "interruption $i: it says so" grep -q "this is the best answer so far" "$scratch/stdout"
  else
    check "interruption $i: exit code $code, asked $asked" test $code = 0
  fi
  check "interruption $i: all is whole" whole
  expect 0 "" "${tune[@]}" --rounds 1
  check "interruption $i: the job went on to its end" test -z "$(grep "best answer so far" "$scratch/stdout")"
  check "interruption $i: all is whole in the end" whole
done
check "$stopped of $interruptions jobs were stopped" test "$stopped" -ge 1

finish
