#!/bin/bash
# Checks all C++ and CUDA files against .clang-format, and sources against .clang-tidy.
#
#   scripts/lint.sh --format                 checks the format of all files, nothing else
#   scripts/lint.sh --since COMMIT           runs clang-tidy on sources changed since COMMIT
#                                            (default HEAD~1)
#   scripts/lint.sh --part K/N               runs clang-tidy on every N-th source, from the K-th on
#
# clang-tidy reads the compile commands of build/lint. They compile each source on its own, so
# missing includes of headers show. A changed header is checked through a source that includes it.
# `--seconds S` starts no new check after S seconds, and lists the sources that are left.
set -euo pipefail
cd "$(dirname "$0")/.."

since=HEAD~1 part="" seconds=0
while [[ $# -gt 0 ]]; do
  case $1 in
    --format)
      git ls-files '*.cpp' '*.hpp' '*.cu' '*.cuh' | xargs clang-format --dry-run --Werror
      exit ;;
    --since) since=$2; shift 2 ;;
    --part) part=$2; shift 2 ;;
    --seconds) seconds=$2; shift 2 ;;
    *) echo "lint.sh: unknown argument $1" >&2; exit 2 ;;
  esac
done
mkdir -p build
{ cmake --preset lint && cmake --build build/lint --target generated_sources; } \
  >build/lint.log 2>&1 || { cat build/lint.log; exit 5; }

# The sources that are compiled here. Optional parts whose packages are missing are absent.
compiled=$(mktemp)
trap 'rm -f "$compiled"' EXIT
sed -n "s|^ *\"file\": \"$PWD/\(src/.*\.cpp\)\".*|\1|p" build/lint/compile_commands.json |
  sort -u >"$compiled"

# source_of FILE: the source to check: FILE itself, or for a header its own source, else the first
# source that includes it.
source_of() {
  case $1 in
    *.cpp) echo "$1" ;;
    *.hpp)
      if [[ -f ${1%.hpp}.cpp ]]; then
        echo "${1%.hpp}.cpp"
      else
        grep -rl --include='*.cpp' "\"${1#src/}\"" src | sort | head -1
      fi ;;
  esac
}

if [[ -n $part ]]; then
  sources=$(awk -v k="${part%/*}" -v n="${part#*/}" 'NR % n == k % n' "$compiled")
else
  sources=$(git diff --name-only --diff-filter=d "$since" -- 'src/*.cpp' 'src/*.hpp' |
    while read -r file; do source_of "$file"; done |
    sort -u | grep -Fxf - "$compiled" || true)
fi
[[ -n $sources ]] || { echo "clang-tidy: no source to check"; exit 0; }

left=$(mktemp)
trap 'rm -f "$compiled" "$left"' EXIT
tidy() {
  if ((END > 0 && $(date +%s) >= END)); then
    echo "$1" >>"$LEFT"
  elif ! clang-tidy -p build/lint --quiet --warnings-as-errors='*' \
    --extra-arg=-Wno-unused-command-line-argument --extra-arg=-Wno-unknown-pragmas \
    --extra-arg=-Wno-unknown-warning-option "$1" 2>/dev/null; then
    echo "$1: clang-tidy found faults"
    return 1
  fi
}
export -f tidy
export LEFT=$left END=$((seconds > 0 ? $(date +%s) + seconds : 0))
status=0
xargs -P 2 -I{} bash -c 'tidy {}' <<<"$sources" || status=1
total=$(wc -l <<<"$sources") unseen=$(wc -l <"$left")
((unseen == 0)) ||
  echo "not checked within $seconds s, left to scripts/thorough.sh:" $(cat "$left")
echo "clang-tidy: $((total - unseen)) of $total sources checked"
exit $status
