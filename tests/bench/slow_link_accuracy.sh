#!/bin/bash
# Checks predictions where communication matters, and that the link changes the plan: tunes a
# network over shared memory and over TCP at 1 Gbit/s.
#
#   tests/bench/slow_link_accuracy.sh [NETWORK [BATCH]]      default: alexnet 8
#
# Run it from the project's root, after a release build, as root. Prints for each link and plan:
# predicted and measured step, the share of communication, the error, and the error with
# communication priced at zero. Fails unless all of these hold:
#   1. over the slow link, every plan whose communication is at least 20 % of its predicted step is
#      within 15 %, and there is such a plan;
#   2. with communication priced at zero, some of these plans are not within 15 %;
#   3. the recommended plans differ between the links, and each is at most 5 % slower, as measured
#      on its link, than any other plan.
set -euo pipefail
network=${1:-alexnet} batch=${2:-8}
root=$(cd "$(dirname "$0")/../.." && pwd)
stratplan=$root/build/release/stratplan
folder=${STRATPLAN_RESULTS:-$(mktemp -d)}
mkdir -p "$folder"
"$stratplan" autotune "$network" --thorough --ranks 2 --batch "$batch" -o "$folder/shared-memory" >/dev/null
"$root/tests/support/slow_link.sh" "$stratplan" autotune "$network" --thorough --ranks 2 --batch "$batch" \
  -o "$folder/slow-link" >/dev/null
python3 "$root/tests/bench/slow_link_accuracy.py" "$stratplan" "$folder"
