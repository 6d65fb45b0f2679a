# Sourced by each run.sh: finds the program, enters a folder with the example's files, and defines
# `show` and `fail`.
#
#   run.sh [STRATPLAN [FOLDER]]
#
# STRATPLAN defaults to the program in PATH, else to build/release/stratplan. FOLDER keeps the files
# that the example writes. Without FOLDER they go to a temporary folder, which is removed at the
# end.
set -euo pipefail
example=$(cd "$(dirname "$0")" && pwd)
program=${1:-$(command -v stratplan || echo "$example/../../build/release/stratplan")}
[[ -x $program ]] || {
  echo "$0: found no program $program; name it as the first argument" >&2
  exit 5
}
program=$(cd "$(dirname "$program")" && pwd)/$(basename "$program")

if [[ -n ${2:-} ]]; then
  mkdir -p "$2"
  cd "$2"
else
  folder=$(mktemp -d)
  trap 'rm -rf "$folder"' EXIT
  cd "$folder"
fi
for file in "$example"/*.json; do
  [[ ! -e $file ]] || cp "$file" .
done

# show ARGUMENTS: prints the command, and runs it.
show() {
  printf '\n$ stratplan %s\n' "$*"
  "$program" "$@"
}
fail() { echo "$0: $*" >&2; exit 1; }
