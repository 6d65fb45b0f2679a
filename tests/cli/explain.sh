#!/bin/bash
# The commands that explain plans: explain, diff, bottleneck, scale. All numbers are estimates on a
# machine of round numbers.
. "$(dirname "$0")/expect.bash"
data=$(cd "$(dirname "$0")/data" && pwd)
machine=$data/machine.json a=$scratch/a.json b=$scratch/b.json
valid_json() { python3 -m json.tool "$1" >/dev/null; }

sp plan tiny -n 4 -m "$machine" -o "$a" >/dev/null 2>&1
sp plan tiny -n 4 -m "$machine" --uniform "H2 W2" -o "$b" >/dev/null 2>&1

expect 0 "published rates" sp explain "$a" -m "$machine"
check "every block is explained" grep -q "conv1 .. relu1" "$scratch/stdout"
expect 0 "" sp explain "$b" conv2 -m "$machine" --others 3
check "how many are left out" grep -qE "the table shows the chosen one and 3 of [0-9]+ others" "$scratch/stdout"
check "the chosen one comes first" grep -qE "^H2 W2 .* chosen" "$scratch/stdout"
check "three others follow" test "$(grep -cE ' ms: ' "$scratch/stdout")" = 3
expect 0 "" sp explain "$b" -m "$machine" --json -o "$scratch/why.json"
check "standard output is JSON" valid_json "$scratch/stdout"
check "so is the file" valid_json "$scratch/why.json"
expect 2 "no layer \"cnov1\" \(did you mean \"conv1\"\?\)" sp explain "$a" cnov1 -m "$machine"
expect 2 "has no alternatives for its input" sp explain "$a" data -m "$machine"
expect 3 "nowhere" sp explain "$scratch/nowhere.json" -m "$machine"

expect 0 "" sp diff "$a" "$b" -m "$machine"
check "layers that differ" grep -q "H2 W2" "$scratch/stdout"
check "both steps" grep -q "^step, ms" "$scratch/stdout"
expect 0 "" sp diff "$a" "$a" -m "$machine"
check "a plan is like itself" grep -q "all layers have the same decompositions" "$scratch/stdout"
expect 0 "" sp diff "$a" "$b" -m "$machine" --json
check "standard output is JSON" valid_json "$scratch/stdout"

expect 0 "" sp bottleneck "$b" -m "$machine"
check "the summary comes first" test "$(grep -nE '^step ' "$scratch/stdout" | cut -d: -f1)" -le 3
check "shares" grep -qE "^share +100.0 %" "$scratch/stdout"
check "what would help" grep -qE "^latency halved" "$scratch/stdout"
check "memory" grep -qE "^memory: .* of 1.00 GiB" "$scratch/stdout"
sp plan resnet50 -n 2 -b 4 -m "$machine" --uniform N2 --statistics 2 -o "$scratch/deep.json" >/dev/null 2>&1
rows() { grep -cE '^[a-z0-9.]*(conv|bn|relu|fc)' "$scratch/stdout"; }
expect 0 "" sp bottleneck "$scratch/deep.json" -m "$machine"
check "the heaviest layers" test "$(rows)" = 10
expect 0 "" sp bottleneck "$scratch/deep.json" -m "$machine" --per-layer
check "all layers" test "$(rows)" -gt 100
expect 0 "made for round numbers, and is priced for lassen" sp bottleneck "$scratch/deep.json" -m lassen
expect 0 "made for round numbers, and is priced for lassen" sp predict "$scratch/deep.json" -m lassen
expect 0 "made for round numbers, and is priced for lassen" sp explain "$scratch/deep.json" -m lassen
expect 0 "" sp bottleneck "$b" -m "$machine" --json -o "$scratch/bottleneck.json"
check "standard output is JSON" valid_json "$scratch/stdout"

expect 0 "" sp scale tiny -m "$machine" -n 1..4 -b 4 --weak 2 --per-layer -o "$scratch/s.svg" -o "$scratch/s.csv" -o "$scratch/s.json"
check "strong and weak" test "$(grep -cE '^(strong|weak) scaling of tiny' "$scratch/stdout")" = 2
check "the picture is XML" python3 -c "import sys, xml.dom.minidom; xml.dom.minidom.parse(sys.argv[1])" "$scratch/s.svg"
check "the CSV's lines are alike" python3 -c "import csv, sys; rows = list(csv.reader(open(sys.argv[1]))); assert len({len(r) for r in rows}) == 1 and len(rows) > 9" "$scratch/s.csv"
check "the file is JSON" valid_json "$scratch/s.json"
expect 0 "" sp scale -o "$scratch/t.csv" tiny -m "$machine" -n 1,2
check "what follows a file is the network" cmp -s <(head -1 "$scratch/s.csv") <(head -1 "$scratch/t.csv")
expect 0 "" sp scale tiny -n 1,2
check "one note on several numbers of ranks" grep -q "not been measured with 1, 2 ranks" "$scratch/stderr"
check "it is said once" test "$(grep -c 'not been measured' "$scratch/stderr")" = 1
expect 2 "must end in .csv" sp scale tiny -m "$machine" -n 1,2 -o "$scratch/s.png"
expect 2 "found \"0\"" sp scale tiny -m "$machine" -n 0
expect 5 "" sp scale tiny -m "$machine" -n 1 -o "/dev/null/s.csv"
finish
