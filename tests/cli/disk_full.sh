#!/bin/bash
# A full disk: exit code 5, the old file stays whole, and no partial file is left. Needs a small
# file system of its own.
. "$(dirname "$0")/expect.bash"
data=$(cd "$(dirname "$0")/data" && pwd)
mkdir -p "$scratch/disk"
if ! mount -t tmpfs -o size=8k tmpfs "$scratch/disk" 2>/dev/null; then
  echo "skipped: mounting a small tmpfs needs root"
  exit 77
fi
trap 'umount "$scratch/disk"' EXIT

echo old >"$scratch/disk/plan.json"
head -c 65536 /dev/zero >"$scratch/disk/filler" 2>/dev/null
expect 5 "plan\.json|disk|space" sp plan "$data/small.json" -n 2 -o "$scratch/disk/plan.json"
check "the old file is whole" test "$(cat "$scratch/disk/plan.json")" = old
check "nothing is left behind" test "$(ls "$scratch/disk" | wc -l)" = 2
finish
