#!/bin/bash
# Writes reports/: the program's output when it was validated, each file with command, commit and
# machine. Nothing in reports/ is written by hand. The machine should be idle; `pace` in each file
# says how fast it was.
#
#   scripts/make_reports.sh [PART...]      parts: quickstart, planning-times, against-pytorch,
#                                          benchmarks, pages; default: all
#
# On two cores quickstart takes about 3 minutes, against-pytorch 15, benchmarks 10, planning-times 5
# and pages 2.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/report_context.sh
mkdir -p reports

release() {
  scripts/install_packages.sh && cmake --preset release >&2 && cmake --build --preset release >&2
}

# report PART TITLE COMMAND...: writes reports/PART.md with the context and the command's standard
# output. A command that fails is reported with its exit code.
report() {
  local part=$1 title=$2 output status=0
  shift 2
  output=$(mktemp)
  local before
  before=$(pace)
  "$@" >"$output" || status=$?
  {
    printf '# %s\n\nWritten by `scripts/make_reports.sh %s`.\n\n' "$title" "$part"
    printf -- '- command: `%s`\n- exit code: %d\n' "$*" "$status"
    printf -- '- commit: %s\n- date: %s\n' "$(source_commit)" "$(date -u +%F)"
    printf -- '- machine: %s\n' "$(machine_text)"
    printf -- '- pace: %s before, %s after; 1 is an idle reference core\n\n' "$before" "$(pace)"
    printf '```\n%s\n```\n' "$(cat "$output")"
  } >"reports/$part.md"
  rm "$output"
  echo "reports/$part.md: exit code $status"
  return "$status"
}

# Starts from an empty cache, so that it measures the same as a newcomer's first run.
quickstart() {
  local cache
  cache=$(mktemp -d)
  STRATPLAN_CACHE_DIR=$cache report quickstart "The quickstart" scripts/quickstart.sh
  rm -r "$cache"
}
planning_times() {
  release && report planning-times "Planning times" \
    tests/bench/planning.py build/release/stratplan
}
against_pytorch() {
  scripts/install_packages.sh tests checks && release &&
    report against-pytorch "ResNet-50 against PyTorch" \
      tests/bench/against_pytorch.sh resnet50 --batch 8 --rounds 3
}
benchmarks() {
  scripts/install_packages.sh tests checks &&
    cmake --preset bench >&2 && cmake --build --preset bench >&2 || return
  local run before
  run=$(mktemp) before=$(pace)
  build/bench/stratplan_benchmarks --benchmark_out="$run" >&2 || return
  jq --arg command "build/bench/stratplan_benchmarks" --arg commit "$(source_commit)" \
    --arg machine "$(machine_text)" --arg pace "$before" \
    '.context |= (del(.host_name, .executable, .load_avg)
                  + {$command, $commit, $machine, $pace})' "$run" >reports/benchmarks.json ||
    return
  rm "$run"
  echo reports/benchmarks.json
}

pages() {
  scripts/install_packages.sh pages && release &&
    report pages "Pages of stratplan report in a browser" \
      scripts/draw_pages.py --keep reports
}

[[ $# -gt 0 ]] || set -- planning-times benchmarks against-pytorch quickstart pages
status=0  # if a part fails, the others still run
for part in "$@"; do
  case $part in
    quickstart | benchmarks | pages) "$part" || status=1 ;;
    planning-times) planning_times || status=1 ;;
    against-pytorch) against_pytorch || status=1 ;;
    *)
      echo "make_reports.sh: unknown part $part; expected quickstart, planning-times," \
        "against-pytorch, benchmarks or pages" >&2
      exit 2 ;;
  esac
done
exit $status
