#!/bin/bash
# Everything that needs a GPU, in one go: builds, tests, trains and verifies, profiles, predicts and compares with PyTorch; leaves JSON files and report.md.
#
#   scripts/gpu-check.sh --bundle FOLDER            on a machine with Debian's packages: lays down what the other machine lacks (headers, under 64 MiB)
#   scripts/gpu-check.sh [--with FOLDER] [-o OUT]   on the machine with the GPU, from the project's root: no network and no MPI are needed
#
# There it takes the CUDA toolkit on the PATH or in CUDA_HOME, and cuDNN and NCCL from it or from the wheels that came with a PyTorch. Meant to take under ten minutes.
# One of the files is the machine as it was measured, named after the device (h200.json): copied to machines/ it is a machine that `plan -m` knows, for one rank.
# BATCHES: of ResNet-50 for the prediction check, default "64 128". Exit code 1 if any part failed; the table at the end says which.
set -uo pipefail
cd "$(dirname "$0")/.."

bundle() {
  local folder=$1 packages
  mkdir -p "$folder"
  folder=$(cd "$folder" && pwd)
  packages=$(mktemp -d)
  (cd "$packages" && apt-get download -qq nlohmann-json3-dev libvalijson-dev libfmt-dev libfmt9 libcli11-dev libgtest-dev libgmock-dev googletest librapidcheck-dev) || exit 5
  for package in "$packages"/*.deb; do dpkg -x "$package" "$folder"; done
  rm -r "$packages" "$folder"/usr/share/doc
  du -sh "$folder"
}

with="" out=gpu_check
while [[ $# -gt 0 ]]; do
  case $1 in
    --bundle) bundle "$2"; exit ;;
    --with) with=$(cd "$2" && pwd); shift 2 ;;
    -o) out=$2; shift 2 ;;
    *) echo "unknown argument: $1" >&2; exit 2 ;;
  esac
done
mkdir -p "$out"
out=$(cd "$out" && pwd)
export STRATPLAN_CACHE_DIR=$out/cache  # what was measured another time does not count
rm -rf "$STRATPLAN_CACHE_DIR"
failed=0
rows=()

# run_part NAME FILE COMMAND...: its output goes to FILE; a row of the table either way.
run_part() {
  local name=$1 file=$2 start=$SECONDS
  shift 2
  if "$@" >"$out/$file" 2>&1; then rows+=("| $name | ok | $((SECONDS - start)) s | $file |")
  else rows+=("| $name | FAILED ($?) | $((SECONDS - start)) s | $file |"); failed=1; fi
}

build() {
  local prefix=${with:+$with/usr} wheels
  wheels=$(python3 -c 'import nvidia, pathlib; print(";".join(str(p) for root in nvidia.__path__ for p in pathlib.Path(root).iterdir()))' 2>/dev/null)
  cmake -B build/gpu -G Ninja -DCMAKE_BUILD_TYPE=Release -DSTRATPLAN_WITH_CUDA=ON -DSTRATPLAN_WITH_MPI=OFF -DSTRATPLAN_WITH_HDF5=OFF \
    -DSTRATPLAN_WITH_ONNX=OFF -DSTRATPLAN_WITH_DNNL=OFF -DCMAKE_PREFIX_PATH="$prefix;$wheels" &&
    cmake --build build/gpu --target stratplan test_cuda test_nccl_ranks
}

program=build/gpu/stratplan
# verify NETWORK RANKS BATCH: the searched plan, its ranks threads of one process on this device, against an undivided run.
verify() {
  $program plan "$1" -m dgx-h200 -n "$2" -b "$3" -o "$out/plan_$1_$2.json" && $program run "$out/plan_$1_$2.json" --backend cuda --verify
}
# graphs NETWORK RANKS BATCH STEPS ARGUMENT...: the same training with each step launched and with steps replayed. Losses must be equal; prints the times of both.
graphs() {
  local network=$1 ranks=$2 batch=$3 steps=$4 mode files=()
  shift 4
  $program plan "$network" -m dgx-h200 -n "$ranks" -b "$batch" -o "$out/plan_graph_$network.json" || return 1
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
# The machine as measured: rates, what emulated communication takes from kernels, and the kernels of ResNet-50 in two precisions and, if there is time, of a U-Net.
machine=$(nvidia-smi --query-gpu=name --format=csv,noheader 2>/dev/null | head -1 | sed 's/^NVIDIA //' | tr 'A-Z ' 'a-z-')
machine=${machine:-gpu}
measure() {
  local file=$out/$machine.json network batch precision
  while read -r network batch precision; do
    if [[ $network == unet3d ]] && ((SECONDS > 330)); then
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
for key in "flops_per_s", "fp16_flops_per_s", "bf16_flops_per_s", "bytes_per_s":
    if key in device: print(f"{key}: {device[key]:.4g}")
print(f"launch_seconds: {device['launch_seconds']:.3g}, step_overhead: {machine['step_overhead']['median_seconds']:.3g} s, {len(machine['kernels'])} kernels")
for key in "clock_hz_highest", "clock_share_worst", "foreign_load_worst", "hidden":
    if key in provenance: print(f"{key}: {provenance[key]}")
for row in machine.get("interference", {}).get("rows", []):
    print(f"emulated, {row['blocks']} blocks copying {row['copied_bytes_per_s']:.4g} of {row['bytes_per_s']:.4g} bytes/s:", row["slowdowns"])
EOF
}
predict() {
  local batch
  for batch in ${BATCHES:-64 128}; do
    $program autotune resnet50 -n 1 -b "$batch" --backend cuda --rounds 2 -o "$out/resnet50_$batch" || return 1
  done
}
pytorch() {
  local mode
  for mode in cuda+channels_last cuda+channels_last+tf32 cuda+channels_last+bf16 cuda+channels_last+bf16+graph cuda+channels_last+bf16+compile; do
    echo "$mode $(python3 tests/bench/pytorch_steps.py networks/resnet50.json --batch 128 --mode "$mode" --steps 20)"
  done
}

run_part "device" device.txt nvidia-smi --query-gpu=name,driver_version,clocks.sm,clocks.max.sm,ecc.mode.current,mig.mode.current --format=csv
run_part "build" build.log build
run_part "what was built" doctor.json $program doctor --json
run_part "tests" tests.log build/gpu/test_cuda --gtest_output=json:"$out/tests.json"
for case in "tiny 2 4" "tiny 4 4" "resnet18 4 8" "mesh128 4 2" "cosmoflow128 2 2"; do
  read -r network ranks batch <<<"$case"
  run_part "verify $case" "verify_${network}_$ranks.log" verify "$network" "$ranks" "$batch"
done
run_part "NCCL between 2 processes" nccl_2.log build/gpu/test_nccl_ranks launch 2
run_part "CUDA graph, ResNet-50 of batch 128" graph_resnet50.log graphs resnet50 1 128 20
run_part "CUDA graphs, 2 processes by NCCL" graph_nccl.log graphs tiny 2 4 3 --communicator nccl --communication-timeout 60
run_part "CUDA graphs, 2 threads by way of the host" graph_staged.log graphs resnet18 2 8 5 --communicator staged --threads
run_part "profile: $machine.json" machine.log measure
run_part "prediction, ResNet-50" prediction.log predict
run_part "PyTorch, ResNet-50 of batch 128" pytorch.log pytorch
{
  echo "# GPU check"
  echo
  cat "$out/device.txt"
  echo
  printf '%s\n' "| part | result | took | output |" "| --- | --- | --- | --- |" "${rows[@]}"
  [[ -f $out/machine.log ]] && { printf '\n## The machine as measured: %s.json\n\n' "$machine"; sed 's/^/    /' "$out/machine.log"; }
  for report in "$out"/resnet50_*/report.md; do [[ -f $report ]] && { echo; cat "$report"; }; done
  for log in "$out"/graph_*.log; do [[ -f $log ]] && { printf '\n## %s\n\n' "$(basename "$log" .log)"; sed 's/^/    /' "$log"; }; done
  [[ -f $out/pytorch.log ]] && { printf '\n## PyTorch\n\n'; sed 's/^/    /' "$out/pytorch.log"; }
} >"$out/report.md"
printf '%s\n' "| part | result | took | output |" "${rows[@]}"
echo "report: $out/report.md"
exit $failed
