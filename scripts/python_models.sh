#!/bin/bash
# Installs PyTorch and libraries of models, as tests/imports/requirements.txt pins them, into a
# virtual environment.
#
#   scripts/python_models.sh [--debian] FOLDER [PIP-OPTION...]
#
# With --debian, the environment holds ONNX Runtime beside Debian's PyTorch and torchvision, which
# scripts/install_packages.sh models installs. Returns at once if FOLDER holds these versions
# already. It needs 5.6 GB with PyPI's PyTorch, which brings CUDA's libraries. Where there is an index of
# builds without CUDA, --extra-index-url names it. Prints the path of the environment's python.
set -euo pipefail
pins=$(dirname "$0")/../tests/imports/requirements.txt
python=(python3 -m venv)
if [[ ${1:-} == --debian ]]; then
  pins=$(dirname "$pins")/requirements-debian.txt
  python=(/usr/bin/python3 -m venv --system-site-packages)
  shift
fi
[[ $# -ge 1 ]] || {
  echo "usage: scripts/python_models.sh [--debian] FOLDER [PIP-OPTION...]" >&2
  exit 2
}
folder=$1
shift
if ! cmp -s "$pins" "$folder/requirements.txt"; then
  [[ -x $folder/bin/pip ]] || "${python[@]}" "$folder" >&2
  "$folder/bin/pip" install -q --disable-pip-version-check "$@" -r "$pins" >&2
  cp "$pins" "$folder/requirements.txt"
fi
echo "$folder/bin/python"
