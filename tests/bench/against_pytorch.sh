#!/bin/bash
# stratplan's recommended plan on 2 ranks against PyTorch's best on as many cores: the same network, batch, optimizer (SGD, momentum 0.9) and batch statistics, in
# interleaved rounds, minimum of medians. PyTorch's network is made from the same network.json; tests/torch/check_network.py holds the two against each other.
#
#   tests/bench/against_pytorch.sh NETWORK [--batch B] [--size D,H,W] [--rounds 5] [--steps 8] [--modes plain,ddp,...] [--sample] [--uniform N2] [--most 0.8]
#
# from the project's root, after a release build. Measures first what `stratplan profile` lacks of this machine. PYTHON: an interpreter with PyTorch; default
# /usr/bin/python3, with Debian's python3-torch and libopenblas0-pthread (on the reference BLAS that comes with it PyTorch is several times slower); one with a
# PyTorch 2 from PyPI is tried under torch.compile too. Prints every pair, the ratio to PyTorch's best, and the floor (floor.py). Fails if the ratio is above --most.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
stratplan=$root/build/release/stratplan
python=${PYTHON:-/usr/bin/python3}
"$python" -c 'import torch' 2>/dev/null || { echo "needs PyTorch: apt-get install python3-torch, or PYTHON=an interpreter that has it"; exit 5; }
if "$python" -c 'import sys, torch; sys.exit(not torch.__config__.show().count("BLAS_INFO=generic"))'; then
  ldconfig -p | grep libopenblas >/dev/null || {  # grep -q would end ldconfig by SIGPIPE, which pipefail calls a failure
    echo "needs a fast BLAS for PyTorch: apt-get install libopenblas0-pthread"; exit 5; }
fi
exec "$python" "$root/tests/bench/against_pytorch.py" --program "$stratplan" --python "$python" "$@"
