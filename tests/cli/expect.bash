# Sourced by the scripts of this folder, with their two arguments: the program, and a scratch folder
# of their own, which is emptied first.
set -uo pipefail
program=$1 scratch=$2
rm -rf "$scratch" && mkdir -p "$scratch"
failures=0

# expect CODE REGEX COMMAND...: the command ends with CODE, and REGEX matches its standard error. An
# empty REGEX matches anything.
expect() {
  local code=$1 regex=$2 status
  shift 2
  "$@" >"$scratch/stdout" 2>"$scratch/stderr"
  status=$?
  if [ "$status" != "$code" ] || { [ -n "$regex" ] && ! grep -qE -- "$regex" "$scratch/stderr"; }; then
    echo "FAILED: $*"
    echo "  exit $status, expected $code; stderr, expected to match '$regex':"
    sed 's/^/  | /' "$scratch/stderr"
    failures=$((failures + 1))
  fi
}

# check DESCRIPTION COMMAND...: the command succeeds.
check() {
  local description=$1
  shift
  "$@" || { echo "FAILED: $description"; failures=$((failures + 1)); }
}

# gone PROCESS: the process ends within a minute, or has ended. mpirun does not wait for ranks that
# it has killed, and not every process 1 reaps them.
gone() {
  for _ in $(seq 600); do
    grep -qsv '^[^)]*) Z' "/proc/$1/stat" || return 0
    sleep 0.1
  done
  return 1
}

sp() { "$program" "$@"; }

# needs_mpi: ends the script as skipped if the program starts no ranks under mpirun.
needs_mpi() {
  if ! command -v mpirun >/dev/null; then
    echo "skipped: no mpirun"
    exit 77
  fi
  if ! sp doctor --json | grep -q '"mpi":{"built":true,"description":"Open MPI'; then
    echo "skipped: built without Open MPI"
    exit 77
  fi
}

finish() { [ "$failures" = 0 ] && echo "all as expected"; exit $((failures > 0)); }
