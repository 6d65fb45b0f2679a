#!/bin/bash
# Weights of a checkpoint under the model's names, and back again.
. "$(dirname "$0")/expect.bash"
cat >"$scratch/model.json" <<'EOF'
{"schema_version": 2, "name": "model", "batch": 2, "running_momentum": 0.1, "layers": [
 {"name": "x", "kind": "input", "channels": 3, "size": [4, 4]},
 {"name": "conv", "kind": "convolution", "filters": 4, "kernel": 3, "padding": 1, "parameters": {"weights": "features.0.weight"}},
 {"name": "bn", "kind": "batch_norm", "parameters": {"scale": "features.1.weight", "shift": "features.1.bias", "running_mean": "features.1.running_mean", "running_var": "features.1.running_var"}},
 {"name": "relu", "kind": "relu"},
 {"name": "fc", "kind": "fully_connected", "filters": 2, "parameters": {"weights": "W"}},
 {"name": "loss", "kind": "softmax_cross_entropy"}],
 "parameters": [
 {"name": "features.0.weight", "trainable": false, "stored": {"shape": [4, 3, 3, 3]}},
 {"name": "features.1.weight", "stored": {"shape": [4]}}, {"name": "features.1.bias", "stored": {"shape": [4]}},
 {"name": "W", "stored": {"shape": [64, 2], "transposed": true}}],
 "buffers": [{"name": "mean", "shape": [1, 3], "value": [1, 2, 3]}]}
EOF
expect 0 "" sp plan "$scratch/model.json" -n 1 -o "$scratch/one.json"
one=(sp run "$scratch/one.json" --backend reference --warmup 0 -q)
expect 0 "" "${one[@]}" --steps 2 --checkpoint "$scratch/state" --checkpoint-every 1
model=$scratch/model.safetensors

# ---------------------------------------------------------------- export
expect 0 "" sp export-weights "$scratch/state"
check "what there is" grep -qE '^model after step 2: 7 tensors, 255 numbers$' "$scratch/stdout"
check "is listed" grep -qE '^W +64x2$' "$scratch/stdout"
check "and nothing is written" grep -q -- '-o model.safetensors writes them' "$scratch/stdout"
expect 0 "" sp export-weights "$scratch/state" -o "$model"
check "the file is named" grep -qF "$model: model after step 2" "$scratch/stdout"
check "buffers are in the file" grep -qaF '"mean":{"dtype":"F32","shape":[1,3],' "$model"
expect 0 "" sp export-weights "$scratch/state/step-00000001.safetensors" --json -o "$scratch/first.safetensors"
check "one checkpoint of several" grep -q '"step":1,' "$scratch/stdout"
check "is another" sh -c "! cmp -s '$model' '$scratch/first.safetensors'"

# ---------------------------------------------------------------- wrong input
expect 2 "is the checkpoint itself" sp export-weights "$scratch/state" -o "$scratch/state/step-00000002.safetensors"
expect 2 "--output - is not possible: a safetensors file needs a name" sp export-weights "$scratch/state" -o -
expect 3 "nowhere: can not be opened" sp export-weights "$scratch/nowhere"
expect 3 "state: expected a safetensors file, found a folder" "${one[@]}" --steps 1 --weights "$scratch/state"
mkdir "$scratch/empty"
expect 3 "empty: expected a checkpoint, or a folder of checkpoints" sp export-weights "$scratch/empty"
expect 3 "at /__metadata__/format: expected \"stratplan checkpoint 1\"" sp export-weights "$model"
expect 5 "cannot be written" sp export-weights "$scratch/state" -o "$scratch/nowhere/model.safetensors"
cp -r "$scratch/state" "$scratch/damaged"
sed -i 's/\[64,2\],/[32,4],/' "$scratch/damaged/step-00000002.safetensors"
cp "$model" "$scratch/before.safetensors"
expect 3 "at /__metadata__/model_tensors: the text does not match its checksum" \
  sp export-weights "$scratch/damaged/step-00000002.safetensors" -o "$model"
check "the file stays as it was" cmp -s "$model" "$scratch/before.safetensors"
expect 0 "skipping a damaged checkpoint: .*step-00000002" sp export-weights "$scratch/damaged" -o "$model"
check "the newest whole one is taken" cmp -s "$model" "$scratch/first.safetensors"

# ---------------------------------------------------------------- and back
expect 0 "" "${one[@]}" --weights "$scratch/before.safetensors" --lr 0 --steps 1 --checkpoint "$scratch/again"
expect 0 "" sp export-weights "$scratch/again" -o "$scratch/again.safetensors"
value() { sp run "$scratch/one.json" --evaluate --backend reference --weights "$1" | grep loss; }
check "the loss is the same" test "$(value "$scratch/before.safetensors")" = "$(value "$scratch/state/step-00000002.safetensors")"

# A network with another last layer begins with the weights that it shares.
sed 's/"W"/"V"/; s/\[64, 2\]/[64, 5]/; s/"filters": 2/"filters": 5/' "$scratch/model.json" | sed 's/"W"/"V"/' >"$scratch/tuned.json"
expect 0 "" sp plan "$scratch/tuned.json" -n 2 --uniform N2 -o "$scratch/tuned_plan.json"
tuned=(sp launch "$scratch/tuned_plan.json" --threads --backend reference --warmup 0 -q --steps 1)
expect 3 "before.safetensors: this file has no tensor V; --allow-missing trains from initial values" "${tuned[@]}" --weights "$scratch/before.safetensors"
expect 0 "the file lacks these tensors, which keep their initial values: V" "${tuned[@]}" --weights "$scratch/before.safetensors" --allow-missing
check "tensors that are not read are said, too" grep -q "does not have these tensors, which are not read: W" "$scratch/stderr"
check "once" test "$(grep -c "are not read" "$scratch/stderr")" = 1
expect 2 "--allow-missing needs the --weights file" "${tuned[@]}" --allow-missing
expect 2 "excludes" sp run "$scratch/one.json" --evaluate --weights "$scratch/before.safetensors" --allow-missing
sed 's/64, 2/64, 5/; s/"filters": 2/"filters": 5/' "$scratch/model.json" >"$scratch/wide.json"
expect 0 "" sp plan "$scratch/wide.json" -n 1 -o "$scratch/wide_plan.json"
expect 3 "at /W: expected the shape .64, 5., found .64, 2." \
  sp run "$scratch/wide_plan.json" --weights "$scratch/before.safetensors" --allow-missing
finish
