#!/bin/bash
# Runs all checks that take too long for CI, in parts of at most 30 minutes each.
#
#   scripts/thorough.sh              the parts that have not passed on this commit, so it continues
#                                    after an interruption
#   scripts/thorough.sh PART...      these parts, whether they have passed or not
#   scripts/thorough.sh --list       the parts, a line each
#   scripts/thorough.sh --sample     for CI: a few minutes of tests from the dev build, no report
#
# Result, figure, commit and date of each part go to reports/thorough.md, its output to
# build/thorough/PART.log. A part that passed with uncommitted changes does not count as passed.
set -uo pipefail
cd "$(dirname "$0")/.."
. scripts/report_context.sh

limit_s=1800
report=reports/thorough.md
declare -A about=(
  [tidy-1]="clang-tidy of all sources, first third"
  [tidy-2]="clang-tidy of all sources, second third"
  [tidy-3]="clang-tidy of all sources, last third"
  [clang]="all tests but slow ones, compiled by clang"
  [mpich]="all tests but slow ones, over MPICH"
  [tests]="scripts/test.sh: all tests but slow ones, under sanitizers"
  [guards]="every legal decomposition of every kind of layer, under sanitizers"
  [sweeps]="the other slow tests, under sanitizers"
  [torch]="deep networks against PyTorch, under sanitizers"
  [kills]="ranks killed and stopped at random points"
  [golden]="the whole golden record, release build"
  [benchmarks]="one build's benchmarks, run twice: median distance of the ratio from 1"
  [imports-1]="training of imported models against PyTorch in double precision, first half"
  [imports-2]="training of imported models against PyTorch in double precision, second half"
  [zoo-torchvision]="10 models of torchvision, imported and verified"
  [zoo-timm]="10 models of timm, imported and verified"
  [zoo-monai]="10 models of MONAI, imported and verified"
  [further]="60 further models of timm, MONAI and segmentation_models_pytorch, verified"
  [builders-1]="convolutional builders of torchvision, imported and planned, first half"
  [builders-2]="convolutional builders of torchvision, imported and planned, second half"
  [families-1]="torchvision's smallest models against PyTorch and ONNX Runtime, first third"
  [families-2]="torchvision's smallest models against PyTorch and ONNX Runtime, second third"
  [families-3]="torchvision's smallest models against PyTorch and ONNX Runtime, last third"
  [slow-input]="steps that wait for throttled reads, predicted against measured"
  [memory-rows]="published device memory of ResNet-50 against predictions for PyTorch"
  [anchored-steps]="PyTorch's steps on this processor, predicted from those of two networks"
  [coverage]="lines of src that the tests run, without slow ones"
)
parts=(tidy-1 tidy-2 tidy-3 clang mpich tests guards sweeps torch kills golden benchmarks imports-1 imports-2
  zoo-torchvision zoo-timm zoo-monai further builders-1 builders-2 families-1 families-2 families-3
  slow-input memory-rows anchored-steps coverage)

dev() { cmake --preset dev && cmake --build --preset dev; }
bench() {
  scripts/install_packages.sh tests checks &&
    cmake --preset bench && cmake --build --preset bench
}
# passed CTEST-ARGUMENT...: runs ctest; the last line printed is like "27 of 27 tests passed, 0
# skipped".
passed() {
  local log status
  log=$(mktemp)
  ctest -j2 --output-on-failure "$@" | tee "$log"
  status=${PIPESTATUS[0]}
  sed -n 's/^[0-9]*% tests passed, \([0-9]*\) tests failed out of \([0-9]*\)/\1 \2/p' "$log" |
    awk -v skipped="$(grep -c '\*\*\*Skipped' "$log")" \
      '{printf "%d of %d tests passed, %d skipped\n", $2 - $1 - skipped, $2, skipped}'
  rm "$log"
  return "$status"
}
tidy_part() { scripts/install_packages.sh tests checks && scripts/lint.sh --part "$1/3"; }
# other FOLDER CMAKE-ARGUMENT...: all but slow tests with another compiler or MPI library, without
# CUDA.
other() {
  cmake -B "build/$1" -G Ninja -DCMAKE_BUILD_TYPE=Debug "-DCMAKE_CXX_FLAGS_DEBUG=-O1 -g0" \
    -DSTRATPLAN_WITH_CUDA=OFF "${@:2}" &&
    cmake --build "build/$1" && passed --test-dir "build/$1" -LE slow
}

release() { cmake --preset release && cmake --build --preset release; }
# All checks of imports stop before the limit, and go on in the next run on the same commit.
imports() {
  scripts/install_packages.sh tests && release &&
    tests/imports/check_models.py build/release/stratplan --part "$1/2" --seconds 1200
}
zoo() {
  local python
  release && python=$(scripts/python_models.sh "${XDG_CACHE_HOME:-$HOME/.cache}/stratplan-python") &&
    "$python" tests/imports/check_zoo.py build/release/stratplan "$1" --seconds "${2:-900}"
}
torchvision() {
  local python
  scripts/install_packages.sh tests models && release &&
    python=$(scripts/python_models.sh --debian \
      "${XDG_CACHE_HOME:-$HOME/.cache}/stratplan-torchvision") &&
    "$python" tests/imports/check_torchvision.py build/release/stratplan "$@" --seconds 1200
}

run_part() {
  case $1 in
    tidy-*) tidy_part "${1#tidy-}" ;;
    clang) scripts/install_packages.sh tests compilers &&
      other clang -DCMAKE_CXX_COMPILER=clang++ ;;
    mpich) scripts/install_packages.sh tests compilers &&
      other mpich -DMPI_CXX_COMPILER=mpicxx.mpich -DMPIEXEC_EXECUTABLE=/usr/bin/mpiexec.mpich ;;
    tests) scripts/install_packages.sh tests && dev && passed --preset dev -LE slow ;;
    guards) dev && passed --preset dev -L slow -R GuardSweep ;;
    sweeps) dev && passed --preset dev -L slow -E 'GuardSweep|^torch/|kill|stop|beginning' ;;
    torch) scripts/install_packages.sh tests && dev && passed --preset dev -L slow -R '^torch/' ;;
    kills) dev && passed --preset dev -L slow -R 'kill|stop|beginning' ;;
    golden) bench && scripts/golden.sh build/bench compare ;;
    benchmarks) bench && tests/bench/compare_builds.py build/bench/stratplan_benchmarks \
      build/bench/stratplan_benchmarks --rounds 1 --most 0.05 ;;
    imports-*) imports "${1#imports-}" ;;
    zoo-*) zoo "${1#zoo-}" ;;
    further) zoo further 1400 ;;
    builders-*) torchvision builders --part "${1#builders-}/2" ;;
    families-*) torchvision families --part "${1#families-}/3" ;;
    slow-input) release && tests/bench/slow_input.py build/release/stratplan ;;
    memory-rows) release && memory_rows ;;
    anchored-steps)
      scripts/install_packages.sh models && release &&
        python3 tests/bench/anchored_steps.py build/release/stratplan
      ;;
    coverage) coverage ;;
    *) echo "unknown part $1; scripts/thorough.sh --list prints all parts" ; return 2 ;;
  esac
}

memory_rows() {
  local table=../shared/calibration/memory.csv
  if [[ ! -f $table ]]; then
    echo "skipped: $table is not here"
    return
  fi
  python3 tests/bench/memory_rows.py build/release/stratplan "$table"
}

# libgcov's complaints about killed ranks go to /dev/null: some tests count the lines that ranks
# print.
coverage() {
  scripts/install_packages.sh tests checks || return
  cmake -B build/coverage -G Ninja -DCMAKE_BUILD_TYPE=Debug \
    "-DCMAKE_CXX_FLAGS=--coverage -fprofile-update=atomic" &&
    cmake --build build/coverage || return
  find build/coverage -name '*.gcda' -delete
  GCOV_ERROR_FILE=/dev/null passed --test-dir build/coverage -LE slow
  local status=$?
  gcovr --root . --filter src/ --gcov-ignore-parse-errors -j 2 build/coverage |
    tee build/coverage/lines.txt |
    sed -n 's/^TOTAL *\([0-9]*\) *\([0-9]*\) *\([0-9]*%\).*/\3 of \1 lines/p'
  return "$status"
}

rows() {
  [[ -f $report ]] && sed -n 's/^| \([a-z0-9-]*\) | \(.*\) |$/\1 | \2/p' "$report" |
    grep -v '^part |' | grep -v '^--' || true
}
# write_report PART ROW: writes the table anew, with ROW in place of the part's old row.
write_report() {
  local part old
  old=$(rows)
  {
    printf '# All checks, as they were last run\n\n'
    printf 'Written by `scripts/thorough.sh`. On %s.\n\n' "$(machine_text)"
    printf '| part | checks | result | figure | commit | date | took |\n'
    printf '| --- | --- | --- | --- | --- | --- | --- |\n'
    for part in "${parts[@]}"; do
      if [[ $part == "$1" ]]; then
        echo "| $part | ${about[$part]} | $2 |"
      else
        sed -n "s/^$part | .*/| & |/p" <<<"$old"
      fi
    done
  } >"$report.tmp"
  mv "$report.tmp" "$report"
}

do_part() {
  local part=$1 began=$SECONDS status result figure commit log=build/thorough/$1.log
  mkdir -p build/thorough reports
  commit=$(source_commit)
  echo "$part: ${about[$part]}"
  timeout -k 10 $limit_s "$0" --inside "$part" >"$log" 2>&1 </dev/null
  status=$?
  figure=$(tail -1 "$log" | tr -d '|' | cut -c1-120)
  case $status in
    0) result=passed ;;
    124 | 137) result="stopped after $limit_s s" ;;
    *) result="FAILED ($status)" ;;
  esac
  write_report "$part" "$result | $figure | $commit | $(date -u +%F) | $((SECONDS - began)) s"
  echo "$part: $result in $((SECONDS - began)) s: $figure"
  return $status
}

# Kills a job, and runs one sweep, another one each day.
sample() {
  local sweeps
  mapfile -t sweeps < <(ctest --preset dev -N -L slow -R GuardSweep |
    sed -n 's/^ *Test *#[0-9]*: \([^ ]*\).*/\1/p')
  ((${#sweeps[@]} > 0)) || { echo "the dev build has no test GuardSweep"; return 1; }
  cmake --build --preset dev --target stratplan_benchmarks || return
  KILLS=3 ctest --preset dev -j2 \
    -R "^cli/random_kills\$|^${sweeps[10#$(date +%j) % ${#sweeps[@]}]}( |\$)"
}

case ${1:-} in
  --inside) run_part "$2"; exit ;;
  --sample) sample; exit ;;
  --list) for part in "${parts[@]}"; do echo "$part: ${about[$part]}"; done; exit ;;
esac
for part in "$@"; do
  [[ -n ${about[$part]:-} ]] || {
    echo "unknown part $part; scripts/thorough.sh --list prints all parts" >&2
    exit 2
  }
done
status=0
if [[ $# -gt 0 ]]; then
  for part in "$@"; do do_part "$part" || status=1; done
else
  commit=$(source_commit)
  for part in "${parts[@]}"; do
    rows | grep -q "^$part | .* | passed | .* | $commit | " && {
      echo "$part: passed on $commit"
      continue
    }
    do_part "$part" || status=1
  done
fi
exit $status
