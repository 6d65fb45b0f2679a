#!/bin/bash
# Pages of plans, runs and scalings, by the rules of check_page.py.
. "$(dirname "$0")/expect.bash"
here=$(cd "$(dirname "$0")" && pwd)

# page DESCRIPTION FIGURES [FILE]: the page is right, and has at least so many figures.
page() {
  local text
  text=$("$here/check_page.py" "${3:-$scratch/report.html}" "$2" 2>&1) || {
    echo "FAILED: $1: $text"
    failures=$((failures + 1))
  }
}
says() { grep -qE -- "$1" "$scratch/report.html" || { echo "FAILED: the page does not say $1"; failures=$((failures + 1)); }; }

# A plan that ran, beside two others of the same network.
expect 0 "" sp plan tiny -n 4 -b 4 --uniform "H2 W2" -o "$scratch/a.json"
expect 0 "" sp plan tiny -n 4 -b 4 --uniform "N2 F2" -o "$scratch/b.json"
expect 0 "" sp plan tiny -n 4 -b 4 -o "$scratch/c.json"
expect 0 "" sp launch "$scratch/a.json" --steps 6 -o "$scratch/timings.json"
expect 0 "" sp report "$scratch/a.json" "$scratch/b.json" "$scratch/c.json" "$scratch/timings.json" -o "$scratch/report.html" --figures "$scratch/figures"
page "three plans" 10
says "tiny on 4 ranks of local, batch 4"
says "and [0-9.]+ ms as measured"
says "beside"
says "Predicted against measured"
says "stratplan plan tiny -n 4 -b 4 --uniform"
for figure in steps kinds network memory traffic tensor-1; do
  check "$figure.svg" test -s "$scratch/figures/$figure.svg"
  check "$figure.csv has numbers" test "$(wc -l <"$scratch/figures/$figure.csv")" -ge 2
done

# Figures are the same for the same numbers.
expect 0 "" sp report "$scratch/a.json" -o "$scratch/report.html" --figures "$scratch/once"
expect 0 "" sp report "$scratch/a.json" -o "$scratch/report.html" --figures "$scratch/twice"
check "the same figures" diff -r "$scratch/once" "$scratch/twice"

# Names with characters of HTML, a 3-D network, many ranks.
python3 - "$scratch" <<'PYTHON'
import json, sys
layers = [{"name": "in<put>", "kind": "input", "channels": 2, "size": [16, 16, 16]}]
for i in range(12):
    layers.append({"name": f"conv & \"{i}\" " + "long " * 12, "kind": "convolution", "filters": 8, "kernel": 3, "padding": 1})
layers.append({"name": "fc", "kind": "fully_connected", "filters": 10})
layers.append({"name": "loss", "kind": "softmax_cross_entropy"})
json.dump({"schema_version": 1, "name": "odd <b>names</b>", "batch": 4, "layers": layers}, open(sys.argv[1] + "/odd.json", "w"))
PYTHON
expect 0 "" sp plan "$scratch/odd.json" -n 1024 -b 512 -m lassen --uniform "N512 H2" -o "$scratch/many.json"
expect 0 "" sp report "$scratch/many.json" -m lassen -o "$scratch/report.html"
page "1024 ranks" 4
check "no tag of the names" sh -c "! grep -q '<b>names' '$scratch/report.html'"
expect 0 "" sp plan tiny -n 1 -o "$scratch/one.json"
expect 0 "" sp report "$scratch/one.json" -o "$scratch/report.html"
page "1 rank" 4

# Scaling, with the knee.
expect 0 "" sp scale tiny -n 1,2,4,8 -b 16 --weak 4 -m lassen -o "$scratch/report.html"
page "scaling" 4
says "[Kk]nee of strong scaling|no knee of strong scaling"

# Equal plans on two machines are two plans.
sp plan tiny -n 2 -b 4 --uniform H2 -m lassen -o "$scratch/here.json" >/dev/null 2>&1
sp plan tiny -n 2 -b 4 --uniform H2 -m abci -o "$scratch/there.json" >/dev/null 2>&1
expect 0 "" sp report "$scratch/here.json" "$scratch/there.json" "$scratch/here.json" -o "$scratch/both.html"
check "both are shown, once" test "$(grep -c "<section class=\"plan\">" "$scratch/both.html")" = 2

# A plan from standard input.
expect 0 "" sp report - -o "$scratch/piped.html" <"$scratch/a.json"
expect 0 "" sp report "$scratch/a.json" -o "$scratch/same.html"
# timeless FILE: the page but for its own name and its second of writing.
timeless() { sed -E 's/-o [^ ]*//; s/[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]+Z//g' "$1"; }
check "the same page" cmp <(timeless "$scratch/piped.html") <(timeless "$scratch/same.html")

# Wrong inputs leave no page.
rm "$scratch/report.html"
expect 3 "timings\.json: at /plan/fingerprint: expected its plan" sp report "$scratch/b.json" "$scratch/timings.json" -o "$scratch/report.html"
expect 3 "missing\.json" sp report "$scratch/missing.json" -o "$scratch/report.html"
mkdir "$scratch/empty"
expect 3 "empty/plan\.json" sp report "$scratch/empty" -o "$scratch/report.html"
expect 2 "--output is required" sp report "$scratch/a.json"
expect 5 "no/folder" sp report "$scratch/a.json" -o "$scratch/no/folder/report.html"
check "nothing half-written" test ! -e "$scratch/report.html"
finish
