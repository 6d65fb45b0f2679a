#!/bin/bash
# How well predictions hold where communication matters, and whether the link decides: tunes a network over shared memory and over TCP at 1 Gbit/s.
#
#   tests/bench/slow_link_accuracy.sh [NETWORK [BATCH]]      from the project's root, after a release build, as root; default: alexnet 8
#
# Prints for each link and plan: predicted and measured step, the share of communication, the error, and the error with communication priced at zero. Fails
# unless, over the slow link, (1) every plan that communicates for at least 20 % of its predicted step is within 15 %, and there is one; (2) with communication
# priced at zero some would not be; (3) recommended plans differ between the links, and each is at most 5 % slower, as measured there, than any other plan.
set -euo pipefail
network=${1:-alexnet} batch=${2:-8}
root=$(cd "$(dirname "$0")/../.." && pwd)
stratplan=$root/build/release/stratplan
folder=${STRATPLAN_RESULTS:-$(mktemp -d)}
mkdir -p "$folder"
"$stratplan" autotune "$network" --ranks 2 --batch "$batch" -o "$folder/shared-memory" >/dev/null
"$root/tests/support/slow_link.sh" "$stratplan" autotune "$network" --ranks 2 --batch "$batch" -o "$folder/slow-link" >/dev/null
python3 "$root/tests/bench/slow_link_accuracy.py" "$stratplan" "$folder"
