#!/bin/bash
# Runs everything that needs a GPU: builds, tests, trains and verifies, profiles, predicts and
# compares with PyTorch. Leaves JSON files and report.md.
#
#   scripts/gpu-check.sh --bundle FOLDER
#       On a machine with Debian's packages: puts headers (under 64 MiB) that the machine with the
#       GPU lacks into FOLDER.
#   scripts/gpu-check.sh [--with FOLDER] [-o OUT] [--only REGEX]
#       On the machine with the GPU, from the project's root. Needs no network and no MPI. Takes the
#       CUDA toolkit on the PATH or in CUDA_HOME. Takes cuDNN and NCCL from there, or from the
#       wheels that PyTorch installed.
#
# LIMIT: seconds for all parts together, default 570. Each part also has a limit of its own.
# report.md is written anew after each part. For the parts without time left, start another run:
# --only takes the parts whose names match.
# BATCHES: batches of ResNet-50 for the prediction check, default "64 128".
# SIZES: additional image sizes of ResNet-50 for it, default none. "112,224 56,224 28,224" are the
# shapes that 2, 4 and 8 ranks compute if they split the rows.
# The measured machine is a file named after the device (h200.json). Copied to machines/ it is a
# machine for one rank that `plan -m` knows.
# Exit code 1 if any part failed; the table at the end says which.
set -uo pipefail
cd "$(dirname "$0")/.."

bundle() {
  local folder=$1 packages
  mkdir -p "$folder"
  folder=$(cd "$folder" && pwd)
  packages=$(mktemp -d)
  (cd "$packages" && apt-get download -qq nlohmann-json3-dev libvalijson-dev libfmt-dev libfmt9 libcli11-dev libgtest-dev libgmock-dev librapidcheck-dev) || exit 5
  for package in "$packages"/*.deb; do dpkg -x "$package" "$folder"; done
  rm -r "$packages" "$folder"/usr/share/doc "$folder"/usr/src
  # Files replace links, because links may be lost on the way to the other machine.
  find "$folder" -xtype f -type l | while read -r link; do cp --remove-destination "$(readlink -f "$link")" "$link"; done
  du -sh "$folder"
}

export with="" out=gpu_check program=build/gpu/stratplan began
only=. limit=${LIMIT:-570} began=$(date +%s)
while [[ $# -gt 0 ]]; do
  case $1 in
    --bundle) bundle "$2"; exit ;;
    --with) with=$(cd "$2" && pwd); shift 2 ;;
    -o) out=$2; shift 2 ;;
    --only) only=$2; shift 2 ;;
    *) echo "unknown argument: $1" >&2; exit 2 ;;
  esac
done
mkdir -p "$out"
out=$(cd "$out" && pwd)
export STRATPLAN_CACHE_DIR=$out/cache  # earlier measurements do not count
rm -rf "$STRATPLAN_CACHE_DIR"
failed=0
rows=()

# run_part NAME SECONDS FILE COMMAND...: runs a function or program for at most SECONDS. Its output
# goes to FILE, and the table gets a row in any case.
run_part() {
  local name=$1 most=$2 file=$3 start=$SECONDS left=$((limit - SECONDS)) result
  shift 3
  [[ $name =~ $only ]] || return
  if ((left < 3)); then
    result="NO TIME" failed=1
  elif timeout -k 5 $((most < left ? most : left)) bash -c 'set -uo pipefail; "$@"' part "$@" >"$out/$file" 2>&1 </dev/null; then
    result=ok
  else
    result="FAILED ($?)" failed=1  # 124 or 137: its time was up
  fi
  rows+=("| $name | $result | $((SECONDS - start)) s | $file |")
  echo "${rows[-1]}"
  report >"$out/report.md"
}

report() {
  local log
  echo "# GPU check"
  echo
  [[ -f $out/device.txt ]] && cat "$out/device.txt"
  echo
  printf '%s\n' "| part | result | took | output |" "| --- | --- | --- | --- |" "${rows[@]}"
  [[ -f $out/machine.log ]] && { printf '\n## The machine as measured: %s.json\n\n' "$machine"; sed 's/^/    /' "$out/machine.log"; }
  for log in "$out"/resnet50_*/report.md; do [[ -f $log ]] && { echo; cat "$log"; }; done
  for log in "$out"/graph_*.log; do [[ -f $log ]] && { printf '\n## %s\n\n' "$(basename "$log" .log)"; sed 's/^/    /' "$log"; }; done
  [[ -f $out/pytorch.log ]] && { printf '\n## PyTorch\n\n'; sed 's/^/    /' "$out/pytorch.log"; }
}

build() {
  local prefix=${with:+$with/usr} wheels
  PATH=${CUDA_HOME:+$CUDA_HOME/bin:}$PATH:/usr/local/cuda/bin
  wheels=$(python3 -c 'import nvidia, pathlib; print(";".join(str(p) for root in nvidia.__path__ for p in pathlib.Path(root).iterdir()))' 2>/dev/null)
  cmake -B build/gpu -G Ninja -DCMAKE_BUILD_TYPE=Release -DSTRATPLAN_WITH_CUDA=ON -DSTRATPLAN_WITH_MPI=OFF -DSTRATPLAN_WITH_HDF5=OFF \
    -DSTRATPLAN_WITH_ONNX=OFF -DSTRATPLAN_WITH_DNNL=OFF -DCMAKE_PREFIX_PATH="$prefix;$wheels" &&
    cmake --build build/gpu --target stratplan test_cuda test_nccl_ranks
}

# Runs the tests in as many processes as half the cores, because each test compiles and checks
# kernels on one core. Leaves out the sweep over the networks, which takes long and needs no device.
tests() {
  local shards=$(($(nproc) / 2)) shard failed=0 pids=()
  ((shards > 0)) || shards=1
  for ((shard = 0; shard < shards; ++shard)); do
    GTEST_TOTAL_SHARDS=$shards GTEST_SHARD_INDEX=$shard build/gpu/test_cuda --gtest_filter='-*Sweep*' \
      --gtest_output=json:"$out/tests_$shard.json" &
    pids+=($!)
  done
  for shard in "${pids[@]}"; do wait "$shard" || failed=1; done
  return $failed
}

# What is missing for jobs without a GPU (exit code 5) does not count.
doctor() { $program doctor --json || [[ $? == 5 ]]; }
# verify NETWORK RANKS BATCH [LAYOUT]: runs a plan and verifies it against an undivided run. The
# plan has LAYOUT for all layers, or is the search's, which leaves small networks on one rank. Its
# ranks are threads of one process on this device.
verify() {
  local plan
  plan=$out/plan_$(basename "$1" .json)_$2.json
  $program plan "$1" -m dgx-h200 -n "$2" -b "$3" ${4:+--uniform "$4"} -o "$plan" && $program run "$plan" --backend cuda --verify
}
# Networks that have each kind of layer and loss, split along the rows.
verify_kinds() {
  local network failed=0
  for network in tests/golden/*.json; do
    echo "== $network"
    verify "$network" 2 4 H2 || failed=1
  done
  return $failed
}
# graphs NETWORK RANKS BATCH LAYOUT STEPS ARGUMENT...: trains twice, with each op launched and with
# ops replayed as CUDA graphs. Losses must be equal. Prints the times of both.
graphs() {
  local network=$1 ranks=$2 batch=$3 layout=$4 steps=$5 mode files=()
  shift 5
  $program plan "$network" -m dgx-h200 -n "$ranks" -b "$batch" ${layout:+--uniform "$layout"} -o "$out/plan_graph_$network.json" || return 1
  for mode in off on; do
    files+=("$out/graph_${network}_$mode.json")
    $program launch "$out/plan_graph_$network.json" --backend cuda --cuda-graph $mode --steps "$steps" --quiet --json "$@" >"${files[-1]}" || return 1
  done
  python3 - "${files[@]}" <<'EOF'
import json, sys
off, on = (json.load(open(file)) for file in sys.argv[1:])
for name, run in ("launched", off), ("replayed", on):
    print(f"{name}: {run['step_seconds']['median'] * 1e3:.3f} ms a step, {run['cuda_graphs']}")
if on["cuda_graphs"]["graphs"] == 0: sys.exit("nothing was replayed")
if on["losses"] != off["losses"]: sys.exit(f"losses differ: {off['losses']} launched, {on['losses']} replayed")
EOF
}
# Measures the machine: rates, slowdown of kernels by emulated communication, and the kernels of
# ResNet-50 in two precisions and, if there is time, of a U-Net.
export machine
machine=$(nvidia-smi --query-gpu=name --format=csv,noheader 2>/dev/null | head -1 | sed 's/^NVIDIA //' | tr 'A-Z ' 'a-z-')
machine=${machine:-gpu}
measure() {
  local file=$out/$machine.json network batch precision
  while read -r network batch precision; do
    if [[ $network == unet3d ]] && (($(date +%s) - began > 330)); then
      echo "no time for $network"
      continue
    fi
    $program profile "$network" -n 1 -b "$batch" --precision "$precision" --backend cuda --name "$machine" -o "$file" </dev/null || return 1
  done <<<"resnet50 128 fp32
resnet50 128 bf16
unet3d 1 bf16"
  $program plan resnet50 -m "$file" -n 1 -b 128 -o "$out/plan_on_$machine.json" || return 1
  python3 - "$file" <<'EOF'
import json, sys
machine = json.load(open(sys.argv[1]))
device, provenance = machine["device"], machine["provenance"]
for key in "flops_per_s", "fp16_flops_per_s", "bf16_flops_per_s", "bytes_per_s", "host_bytes_per_s":
    if key in device: print(f"{key}: {device[key]:.4g}")
print(f"launch_seconds: {device['launch_seconds']:.3g}, step_overhead: {machine['step_overhead']['median_seconds']:.3g} s, {len(machine['kernels'])} kernels")
for key in "clock_hz_highest", "clock_share_worst", "foreign_load_worst", "hidden":
    if key in provenance: print(f"{key}: {provenance[key]}")
for row in machine.get("interference", {}).get("rows", []):
    print(f"emulated, {row['blocks']} blocks copying {row['copied_bytes_per_s']:.4g} of {row['bytes_per_s']:.4g} bytes/s:", row["slowdowns"])
EOF
}
predict() {
  local batch size
  for batch in ${BATCHES:-64 128}; do
    $program autotune resnet50 --thorough -n 1 -b "$batch" --backend cuda --rounds 2 -o "$out/resnet50_$batch" || return 1
  done
  for size in ${SIZES:-}; do
    $program autotune resnet50 --thorough -n 1 -b 32 --input-size "$size" --backend cuda --rounds 2 -o "$out/resnet50_32_${size/,/x}" || return 1
  done
}
pytorch() {
  local mode failed=0
  for mode in cuda+channels_last+bf16 cuda+channels_last+bf16+graph cuda+channels_last+tf32 cuda+channels_last cuda+channels_last+bf16+compile; do
    echo -n "$mode "
    # In the foreground: the limit of the whole part ends it, too.
    timeout --foreground -k 5 100 python3 tests/bench/pytorch_steps.py networks/resnet50.json --batch 128 --mode "$mode" --steps 20 || { echo "failed ($?)"; failed=1; }
  done
  return $failed
}
export -f build tests doctor verify verify_kinds graphs measure predict pytorch

run_part "device" 20 device.txt nvidia-smi --query-gpu=name,driver_version,clocks.sm,clocks.max.sm,ecc.mode.current,mig.mode.current --format=csv
run_part "build" 300 build.log build
run_part "what was built" 30 doctor.json doctor
run_part "tests" 150 tests.log tests
for case in "tiny 2 4 H2" "tiny 4 4 H2 W2" "resnet18 4 8" "resnet18 4 8 F4" "resnet18 4 8 C2 F2" "mesh128 4 2" "cosmoflow128 2 2"; do
  read -r network ranks batch layout <<<"$case"
  run_part "verify $case" 40 "verify_${case// /_}.log" verify "$network" "$ranks" "$batch" "$layout"
done
run_part "verify each kind of layer and loss" 90 verify_kinds.log verify_kinds
run_part "NCCL between 2 processes" 60 nccl_2.log build/gpu/test_nccl_ranks launch 2
run_part "CUDA graph, ResNet-50 of batch 128" 60 graph_resnet50.log graphs resnet50 1 128 '' 20
run_part "CUDA graphs, 2 processes by NCCL" 120 graph_nccl.log graphs tiny 2 4 H2 3 --communicator nccl --communication-timeout 60
run_part "CUDA graphs, 2 threads by way of the host" 40 graph_staged.log graphs resnet18 2 8 '' 5 --communicator staged --threads
run_part "profile: $machine.json" 240 machine.log measure
run_part "prediction, ResNet-50" 150 prediction.log predict
run_part "PyTorch, ResNet-50 of batch 128" 240 pytorch.log pytorch
echo "report: $out/report.md"
exit $failed
