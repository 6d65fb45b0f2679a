#!/bin/bash
# Compares stratplan's recommended plan on 2 ranks with PyTorch's best mode on as many cores: same
# network, batch, optimizer (SGD, momentum 0.9) and batch statistics, in interleaved rounds, minimum
# of medians. PyTorch's network is made from the same network.json; tests/torch/check_network.py
# compares the two networks.
#
#   tests/bench/against_pytorch.sh NETWORK [--batch B] [--size D,H,W] [--rounds 5] [--steps 8]
#                                  [--modes plain,ddp,...] [--sample] [--uniform N2] [--most 0.8]
#
# Run it from the project's root, after a release build. It first measures what `stratplan profile`
# lacks of this machine. PYTHON names an interpreter with PyTorch. The default is /usr/bin/python3,
# with Debian's python3-torch and libopenblas0-pthread. (On the reference BLAS that python3-torch
# installs, PyTorch is several times slower.) An interpreter with PyTorch 2 from PyPI is tried with
# torch.compile too. Prints every pair, the ratio to PyTorch's best, and the floor (floor.py). Fails
# if the ratio is above --most.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
stratplan=$root/build/release/stratplan
python=${PYTHON:-/usr/bin/python3}
"$python" -c 'import torch' 2>/dev/null || {
  echo "against_pytorch.sh: needs PyTorch: apt-get install python3-torch," \
    "or set PYTHON to an interpreter that has it"
  exit 5
}
generic_blas='import sys, torch; sys.exit(not torch.__config__.show().count("BLAS_INFO=generic"))'
if "$python" -c "$generic_blas"; then
  # grep -q would end ldconfig by SIGPIPE, which counts as a failure under pipefail.
  ldconfig -p | grep libopenblas >/dev/null || {
    echo "against_pytorch.sh: needs a fast BLAS: apt-get install libopenblas0-pthread"
    exit 5
  }
fi
exec "$python" "$root/tests/bench/against_pytorch.py" --program "$stratplan" --python "$python" "$@"
