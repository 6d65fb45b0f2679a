#!/bin/bash
# Networks at the largest allowed numbers, and beyond: the result is a plan, or one line and the
# documented exit code (docs/reference/exit-codes.md), never a signal.
. "$(dirname "$0")/expect.bash"
tiny=$(cd "$(dirname "$0")/../../networks" && pwd)/tiny.json
filters() { sed "s/\"filters\": 4,/\"filters\": $1,/" "$tiny"; }

# says CODE REGEX RANKS NETWORK [OPTION ...]: `plan` ends with CODE. If REGEX is not empty, one line
# matches it. Sanitizers find nothing.
says() {
  local code=$1 regex=$2 ranks=$3 network=$4
  shift 4
  expect "$code" "$regex" sp plan "$network" -n "$ranks" "$@"
  [ -z "$regex" ] || check "one line: plan $network -n $ranks $*" test "$(grep -cE -- "$regex" "$scratch/stderr")" = 1
  check "nothing overflows: plan $network -n $ranks $*" test -z "$(grep -E 'runtime error|Sanitizer' "$scratch/stderr")"
}

filters 2147483648 >"$scratch/beyond.json"
filters 2147483647 >"$scratch/largest.json"
filters 1073741824 >"$scratch/half.json"
sed 's/"channels": 2,/"channels": 2147483647,/; s/"kernel": 3, "padding": 1/"kernel": 7, "padding": 3/' "$tiny" >"$scratch/channels.json"
for ranks in 1 2; do
  says 3 "beyond\.json: at /layers/1/filters: expected an integer from 1 to 2147483647, found 2147483648" $ranks "$scratch/beyond.json"
  for network in largest channels; do  # one decomposition: a search asks for the memory of hundreds
    says 4 "N$ranks needs [0-9.]+ TiB per rank, more than --memory 1GiB" $ranks "$scratch/$network.json" --memory 1GiB --uniform N$ranks
  done
  says 4 "does not fit into 1 GiB per rank" $ranks "$scratch/half.json" --memory 1GiB
  says 4 "does not fit into 1 GiB per rank" $ranks tiny -b 2147483647 --memory 1GiB
  says 2 "--batch: expected an integer from 1 to 2147483647, found 2147483648" $ranks tiny -b 2147483648
done
says 2 "each from 1 to 2147483647" 2 tiny --input-size 8,2147483648
# With enough memory these networks are planned.
says 0 "" 1 "$scratch/largest.json" --memory 1048576TiB
finish
