#!/bin/bash
# ONNX models: imported, used in place of networks, and run forward.
. "$(dirname "$0")/expect.bash"
if ! sp doctor --json | grep -q '"onnx":{"built":true'; then
  expect 5 "built without ONNX models: .*STRATPLAN_WITH_ONNX=ON" sp import "$scratch/model.onnx"
  [ "$failures" = 0 ] && echo "skipped: built without ONNX" && exit 77
  finish
fi
proto=/usr/include/onnx/onnx.proto
command -v protoc >/dev/null && [ -f $proto ] || { echo "skipped: no protoc, or no $proto"; exit 77; }

# model FILE OPERATOR: writes a model with an open batch: x (N, 18, 16, 16) -> Conv -> OPERATOR ->
# GlobalAveragePool -> Flatten -> Gemm -> Softmax
model() {
  local weights='dims: 4 dims: 18 dims: 1 dims: 1 data_type: 1' matrix='dims: 3 dims: 4 data_type: 1'
  for i in $(seq 72); do weights+=" float_data: 0.$((i % 9))"; done
  for i in $(seq 12); do matrix+=" float_data: 0.$((i % 7))"; done
  protoc --encode=onnx.ModelProto --proto_path="$(dirname $proto)" onnx.proto >"$1" <<EOF
ir_version: 8 opset_import { version: 13 }
graph {
  input { name: "x" type { tensor_type { elem_type: 1 shape { dim { dim_param: "N" } dim { dim_value: 18 } dim { dim_value: 16 } dim { dim_value: 16 } } } } }
  initializer { name: "w" $weights } initializer { name: "m" $matrix }
  node { op_type: "Conv" name: "conv" input: "x" input: "w" output: "c" }
  node { op_type: "$2" name: "activation" input: "c" output: "r" }
  node { op_type: "GlobalAveragePool" name: "pool" input: "r" output: "p" }
  node { op_type: "Flatten" input: "p" output: "f" }
  node { op_type: "Gemm" name: "fc" input: "f" input: "m" output: "y" attribute { name: "transB" i: 1 type: INT } }
  node { op_type: "Softmax" name: "softmax" input: "y" output: "z" }
  output { name: "z" }
}
EOF
}

model "$scratch/model.onnx" Relu
expect 3 'the batch is left open \("N" of x\): set --batch' sp import "$scratch/model.onnx"
expect 0 "the softmax at the end, softmax, is part of the loss" sp import "$scratch/model.onnx" -b 4 -o "$scratch/model.json" --weights "$scratch/weights.safetensors"
check "what it became is printed" grep -q 'model: 6 layers, 84 parameters' "$scratch/stdout"
check "and its parameters are counted" grep -q '^trainable *2 *84' "$scratch/stdout"
expect 0 "" sp import "$scratch/model.onnx" -b 4 -o -
check "- is standard output" cmp -s "$scratch/stdout" "$scratch/model.json"
expect 0 "" sp import "$scratch/model.onnx" -b 4
check "without a file, import says how to write one" grep -q -- '-o net.json writes the network' "$scratch/stdout"
check "usual parameters are not listed" sh -c "! grep -q '^w ' '$scratch/stdout'"
expect 0 "" sp import "$scratch/model.onnx" -b 4 --verbose
check "but if asked" grep -q '^w *4x18x1x1x1 *trainable *weights of conv' "$scratch/stdout"

# What is trained, and over how many samples statistics go.
expect 0 "" sp import "$scratch/model.onnx" -b 4 --freeze 'w' --json
check "a frozen parameter" grep -q '"frozen":72' "$scratch/stdout"
expect 0 "" sp import "$scratch/model.onnx" -b 4 --constant 'w*' -o "$scratch/constant.json"
check "a constant" grep -q '^constant *1 *72' "$scratch/stdout"
expect 0 "" sp plan "$scratch/constant.json" -n 2
expect 3 "no tensor that a layer reads matches --freeze nothing" sp import "$scratch/model.onnx" -b 4 --freeze nothing
expect 3 "both match the tensor w" sp import "$scratch/model.onnx" -b 4 --freeze w --trainable '?'
expect 0 "" sp import "$scratch/model.onnx" -b 4 --statistics local
expect 2 "--statistics" sp import "$scratch/model.onnx" -b 4 --statistics 0
expect 0 "" sp import "$scratch/model.onnx" -b 4 --loss mse --json -o "$scratch/mse.json"
check "another loss keeps the softmax" grep -q '"layers":7' "$scratch/stdout"
expect 2 "--loss: expected one of auto, cross_entropy, .*, found 'hinge'" sp import "$scratch/model.onnx" --loss hinge
expect 2 "--loss: expected weight=VALUE, found 'delta=2'" sp import "$scratch/model.onnx" --loss mse:delta=2
expect 2 "--loss: expected label-smoothing=VALUE, ignore=VALUE, .*, found 'smoothing=1'" sp import "$scratch/model.onnx" --loss cross_entropy:smoothing=1
expect 2 "--loss: expected a number from 0 to 1 for label-smoothing, found '2'" sp import "$scratch/model.onnx" --loss cross_entropy:label-smoothing=2
expect 2 "--loss: expected an integer of 32 bits for ignore, found '1.5'" sp import "$scratch/model.onnx" --loss cross_entropy:ignore=1.5
expect 2 "--loss: expected numbers from 0 with / between them for weights, found '1/-2'" sp import "$scratch/model.onnx" --loss cross_entropy:weights=1/-2
expect 3 "expected 3 class weights, one for each channel of the input, found 2" sp import "$scratch/model.onnx" -b 4 --loss cross_entropy:weights=1/2
expect 0 "" sp import "$scratch/model.onnx" -b 4 --loss cross_entropy:weights=1/2/0.5,ignore=255,label-smoothing=0.1 -o "$scratch/weighted.json"
check "the report says the loss's settings" grep -q '^loss *softmax_cross_entropy (class_weights \[1.0,2.0,0.5\]) (ignore_index 255) (label_smoothing 0.1): --loss asks for it' "$scratch/stdout"
expect 0 "" sp plan "$scratch/weighted.json" -n 2 -o "$scratch/weighted.plan.json"
expect 0 "" sp run "$scratch/weighted.plan.json" --verify --steps 1
check "its steps equal an undivided run's" grep -q '^verify *passed' "$scratch/stdout"
expect 2 "--loss: expected batch or sample for sums, found 'all'" sp import "$scratch/model.onnx" --loss dice:sums=all
expect 0 "the softmax at the end" sp import "$scratch/model.onnx" -b 4 --loss dice_cross_entropy:sums=sample,dice-weight=0.5 -o "$scratch/samples.json"
expect 0 "" sp plan "$scratch/samples.json" -n 2 --accumulate 2 -o "$scratch/samples.plan.json"
expect 0 "" sp run "$scratch/samples.plan.json" --verify --steps 1
check "its steps equal an undivided run's" grep -q '^verify *passed' "$scratch/stdout"
expect 0 "" sp import "$scratch/model.onnx" -b 4 --loss z=mse,weight=0.5 --loss dice -o "$scratch/both.json"
check "two losses read one output" grep -qz '"name": "loss_z".*"weight": 0.5.*"name": "loss_z_2"' "$scratch/both.json"
check "the report lists both" grep -q '^loss  *dice_loss (loss_z_2): --loss asks for it' "$scratch/stdout"
expect 3 "--loss: the model has no output y \(did you mean \"z\"\?\); its outputs are z" sp import "$scratch/model.onnx" -b 4 --loss y=mse
expect 2 "--loss: expected a number above 0 for weight, found '0'" sp import "$scratch/model.onnx" -b 4 --loss mse,weight=0
expect 2 "--loss: expected one of auto, .*, found 'hinge'" sp import "$scratch/model.onnx" -b 4 --loss z=hinge:weight=2
expect 0 "" sp import "$scratch/model.onnx" -b 4 --loss z=huber:delta=0.5,weight=2 -o "$scratch/huber.json"
check "settings and weight of an output's loss" grep -qz '"kind": "huber_loss".*"delta": 0.5.*"weight": 2' "$scratch/huber.json"

# A name that is not valid UTF-8 is made valid in all files.
LC_ALL=C sed 's/conv/co\xff\x1b/' "$scratch/model.onnx" >"$scratch/bytes.onnx"
expect 0 "" sp import "$scratch/bytes.onnx" -b 4 --json -o "$scratch/bytes.json" --weights "$scratch/bytes.safetensors"
expect 0 "" sp plan "$scratch/bytes.json" -n 1
check "layers have a valid name" grep -qa $'co\xef\xbf\xbd_' "$scratch/bytes.json"
model "$scratch/unknown.onnx" ThresholdedRelu
expect 3 'a node that no layer computes: activation \(ThresholdedRelu, opset 13\)$' sp plan "$scratch/unknown.onnx" -n 2 -b 4
expect 0 "its time is about right" sp import -b 4 --treat-as-elementwise activation "$scratch/unknown.onnx" -o "$scratch/unknown.json"
expect 0 "" sp plan "$scratch/unknown.json" -n 2 -o "$scratch/unknown-plan.json"
for command in "run $scratch/unknown-plan.json" "predict $scratch/unknown-plan.json" "autotune $scratch/unknown.json -n 1"; do
  expect 3 "at /opaque/0: the layer activation stands for a node ThresholdedRelu that no layer computes" sp $command
done
expect 0 "" sp import --operators
check "operators are listed with their splits" grep -q "^Conv  *1  convolution (NCFDHW)$" "$scratch/stdout"
expect 0 "" sp import --operators --json
check "operators are listed as JSON" grep -q '"kind": "channel_shuffle"' "$scratch/stdout"
expect 2 "MODEL is required" sp import --json
model "$scratch/split.onnx" Split
expect 3 'activation \(Split, opset 13\): it splits the samples of the batch$' sp plan "$scratch/split.onnx" -n 2 -b 4
expect 3 "nowhere.onnx: can not be opened" sp plan nowhere.onnx -n 2

# A model is accepted wherever a network is.
expect 0 "model.onnx: the softmax at the end" sp plan "$scratch/model.onnx" -n 2 -b 4 --uniform H2 -o "$scratch/split.json"
expect 0 "" sp plan "$scratch/model.json" -n 1 -o "$scratch/one.json"
expect 0 "" sp predict "$scratch/split.json"
expect 0 "" sp launch "$scratch/split.json" --verify --steps 1

# Forward, with any plan, on a data set with labels or on samples alone.
expect 0 "" sp data mesh -o "$scratch/set" --samples 9 --size 16 --block 4
forward=(--forward --weights "$scratch/weights.safetensors")
expect 0 "leaves out 1 sample," sp run "$scratch/one.json" "${forward[@]}" --data "$scratch/set/x.npy" -o "$scratch/y.npy"
check "outputs are (8, 3)" grep -q 'outputs (8, 3)' "$scratch/stdout"
check "and so is the array" grep -qa "'shape': (8, 3)" "$scratch/y.npy"
expect 0 "" sp run "$scratch/one.json" "${forward[@]}" --backend reference --data "$scratch/set/x.npy" -o "$scratch/alone.npy"
expect 0 "" sp run "$scratch/one.json" "${forward[@]}" --backend reference --data "$scratch/set" -o "$scratch/set.npy" --json
check "labels do not matter" cmp -s "$scratch/alone.npy" "$scratch/set.npy"
expect 0 "" sp launch "$scratch/split.json" "${forward[@]}" --data "$scratch/set" -o "$scratch/two.npy" --probabilities
check "on two ranks, too" grep -qa "'shape': (8, 3)" "$scratch/two.npy"

# Training continues from the imported weights.
expect 0 "" sp run "$scratch/one.json" --weights "$scratch/weights.safetensors" --lr 0 --warmup 0 --steps 1 --checkpoint "$scratch/state"
expect 0 "after step 1" sp run "$scratch/one.json" --forward --checkpoint "$scratch/state" --backend reference --data "$scratch/set" -o "$scratch/same.npy"
check "which a rate of zero leaves as they are" cmp -s "$scratch/alone.npy" "$scratch/same.npy"
expect 0 "" sp run "$scratch/one.json" --evaluate --weights "$scratch/weights.safetensors"

expect 2 "--forward needs the --checkpoint folder to read from, or --weights" sp run "$scratch/one.json" --forward --data "$scratch/set" -o "$scratch/y.npy"
expect 2 "--forward needs --data" sp run "$scratch/one.json" "${forward[@]}" -o "$scratch/y.npy"
expect 2 "--probabilities is for" sp run "$scratch/one.json" --probabilities
expect 2 "not from --weights" sp run "$scratch/one.json" --weights "$scratch/weights.safetensors" --verify
expect 2 "forward" sp run "$scratch/one.json" "${forward[@]}" --evaluate
expect 3 "nothing.safetensors: can not be opened" sp run "$scratch/one.json" --forward --weights "$scratch/nothing.safetensors" --data "$scratch/set" -o "$scratch/y.npy"
finish
