#!/bin/bash
# Networks with several inputs and losses: data by name, and what is told of each loss.
. "$(dirname "$0")/expect.bash"
network=$(cd "$(dirname "$0")/../golden" && pwd)/several_ends.json
expect 0 "" sp plan "$network" -n 1 -o "$scratch/one.json"
expect 0 "" sp plan "$network" -n 2 --uniform H2 -o "$scratch/two.json"
run=(sp run "$scratch/one.json" --backend reference)

# Synthetic data.
expect 0 "" "${run[@]}" --verify --steps 3 --loss-curve "$scratch/curve.csv"
check "the curve has a column for each loss" grep -q '^step,learning_rate,loss,coarse,difference,main,again$' "$scratch/curve.csv"
weighted() { awk -F, 'NR > 1 { s = 0.4 * $4 + 0.25 * $5 + $6 + 2 * $7; if (s - $3 > 1e-6 * s || $3 - s > 1e-6 * s || NF != 7) exit 1 } END { exit NR < 4 }' "$1"; }
check "the loss is their weighted sum" weighted "$scratch/curve.csv"
expect 0 "" sp launch "$scratch/two.json" --threads --verify --steps 1
check "two ranks compute the same" grep -q 'verify  passed' "$scratch/stdout"

# A set of arrays by name, or a file for each: the same numbers.
python=$(command -v python3 || true)
if [ -z "$python" ]; then finish; fi
"$python" - "$scratch/data" <<'EOF'
import os, random, struct, sys
folder = sys.argv[1]
os.makedirs(folder)
random.seed(1)
def write(name, extents, kind):
    count = 1
    for extent in extents: count *= extent
    values = [random.randrange(3) if kind == "<i4" else random.uniform(-1, 1) for _ in range(count)]
    header = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {extents}, }}".encode()
    header += b" " * (-(len(header) + 11) % 64) + b"\n"
    with open(f"{folder}/{name}.npy", "wb") as f:
        f.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header)
        f.write(struct.pack("<%d%s" % (count, "i" if kind == "<i4" else "f"), *values))
write("image", (9, 3, 8, 8), "<f4")
write("vector", (9, 5), "<f4")
write("coarse", (9, 8, 8), "<i4")
write("difference", (9, 4, 8, 8), "<f4")
write("main", (9,), "<i4")
write("again", (9, 4), "<f4")
EOF
expect 0 "leaves out 1 sample" "${run[@]}" --data "$scratch/data" --warmup 0 --steps 5 --checkpoint "$scratch/state" --loss-curve "$scratch/all.csv"
check "the loss is the weighted sum" weighted "$scratch/all.csv"
files=()
for name in image vector coarse difference main again; do files+=(--data "$name=$scratch/data/$name.npy"); done
expect 0 "" "${run[@]}" "${files[@]}" --warmup 0 --steps 5 --loss-curve "$scratch/each.csv"
check "the order of samples is one" cmp -s "$scratch/all.csv" "$scratch/each.csv"
expect 0 "" "${run[@]}" --data "$scratch/data" --warmup 0 --steps 7 --loss-curve "$scratch/whole.csv"
expect 0 "resuming after step 5" "${run[@]}" --data "$scratch/data" --warmup 0 --steps 7 --checkpoint "$scratch/state" --resume --loss-curve "$scratch/all.csv"
check "a training that goes on gives the same losses" cmp -s "$scratch/all.csv" "$scratch/whole.csv"

expect 0 "" sp run "$scratch/one.json" --evaluate --checkpoint "$scratch/state" --data "$scratch/data"
check "losses are told apart" grep -qzE 'loss +[0-9.e-]+ over 8 samples.*coarse: loss [0-9.e-]+, accuracy [0-9.]+ %.difference: loss [0-9.e-]+.main: loss [0-9.e-]+, accuracy [0-9.]+ %.again: loss' "$scratch/stdout"
expect 0 "" sp run "$scratch/one.json" --evaluate --checkpoint "$scratch/state" --data "$scratch/data" --json
check "and as data" grep -qE '"losses":\[\{"name":"coarse","loss":[0-9.e-]+,"accuracy":[0-9.]+\},\{"name":"difference","loss":[0-9.e-]+\},' "$scratch/stdout"

# Outputs need the inputs alone.
expect 0 "" sp run "$scratch/one.json" --forward --checkpoint "$scratch/state" --data "image=$scratch/data/image.npy" --data "vector=$scratch/data/vector.npy" -o "$scratch/outputs"
check "each loss's input is a file" test "$(ls "$scratch/outputs" | tr '\n' ' ')" = "again.npy coarse.npy difference.npy main.npy "
check "with its own extents" grep -qa "'shape': (8, 3, 8, 8)" "$scratch/outputs/coarse.npy"
expect 0 "" sp launch "$scratch/two.json" --forward --checkpoint "$scratch/state" --data "$scratch/data" -o "$scratch/split"
check "and on two ranks" grep -qa "'shape': (8, 4)" "$scratch/split/main.npy"
expect 2 "several outputs, so -o names a folder of .npy files, not .*y.npy" sp run "$scratch/one.json" --forward --checkpoint "$scratch/state" --data "$scratch/data" -o "$scratch/y.npy"

# Mistakes.
expect 2 "has no input or loss imag \(did you mean \"image\"\?\)" "${run[@]}" --data "imag=$scratch/data/image.npy"
expect 2 "--data lacks vector: name its file as vector=FILE" "${run[@]}" --data "image=$scratch/data/image.npy"
expect 3 "vector.npy: can not be opened" "${run[@]}" --data "$scratch/data" --data "vector=$scratch/vector.npy"
expect 3 "image.npy: expected an array \(samples, 5, 1, 1\), found \(9, 3, 8, 8\)" "${run[@]}" --data "$scratch/data" --data "vector=$scratch/data/image.npy"
expect 3 "folder that holds image.npy, vector.npy, coarse.npy, difference.npy, main.npy and again.npy" "${run[@]}" --data "$scratch/data/image.npy"
finish
