#!/bin/bash
# Installs the Debian packages that stratplan is built with and runs on. Quick if all are there; else needs root or sudo.
set -euo pipefail

packages=(
  build-essential g++ cmake ninja-build                      # tools
  nlohmann-json3-dev libvalijson-dev libfmt-dev libcli11-dev # files, text, command line
  libopenmpi-dev openmpi-bin libhwloc-dev                    # ranks
  libdnnl-dev ocl-icd-opencl-dev                             # processor kernels, and what their CMake package insists on
  libhdf5-dev                                                # data sets
  protobuf-compiler libprotobuf-dev libonnx-dev              # ONNX models
  libgtest-dev libgmock-dev librapidcheck-dev libbenchmark-dev iproute2 # tests; iproute2 shapes a slow link
  libonnx-testdata                                           # operator cases: data alone
  coinor-cbc                                                 # another solver, which the tests hold the search against
)

missing=()
for package in "${packages[@]}"; do
  [[ $(dpkg-query --show --showformat='${db:Status-Status}' "$package" 2>/dev/null) == installed ]] || missing+=("$package")
done
[[ ${#missing[@]} -eq 0 ]] && exit 0

as_root=()
if [[ $EUID -ne 0 ]]; then
  command -v sudo >/dev/null || { echo "install_packages.sh: as root, please: apt-get install ${missing[*]}" >&2; exit 5; }
  as_root=(sudo)
fi
echo "installing ${missing[*]}" >&2
"${as_root[@]}" apt-get update -q >&2
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "${missing[@]}" >&2
