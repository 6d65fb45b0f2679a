#!/bin/bash
# Installs the Debian packages of stratplan. Returns at once if all are installed; otherwise needs
# root or sudo.
#
#   scripts/install_packages.sh [tests] [checks] [compilers] [models] [pages]
#
# Without arguments it installs the packages that stratplan needs to be built and to run. `tests`
# adds what the tests are built with, and their judges. `checks` adds formatting, lint, coverage and
# the comparison of benchmarks. `compilers` adds another compiler and another MPI library. `models`
# adds libraries of models to import. `pages` adds a browser, which judges reports.
set -euo pipefail

packages=(
  build-essential g++ cmake ninja-build                      # tools
  nlohmann-json3-dev libvalijson-dev libfmt-dev libcli11-dev # files, text, command line
  libopenmpi-dev openmpi-bin                                 # ranks
  libdnnl-dev                                                # processor kernels
  ocl-icd-opencl-dev                                         # required by libdnnl's CMake package
  libhdf5-dev                                                # data sets
  protobuf-compiler libprotobuf-dev libonnx-dev              # ONNX models
)
tests=(
  libgtest-dev libgmock-dev librapidcheck-dev
  python3-torch python3-numpy # judge of layers, gradients and whole networks
  libonnx-testdata            # judge of operators, data only
  coinor-cbc                  # judge of the search: another solver
  iproute2 procps             # a slow link; the processes that outlive a killed job
  mkdocs                      # the site of the documents
)
checks=(
  clang-format clang-tidy git
  gcovr
  libbenchmark-dev libbenchmark-tools # libbenchmark-tools holds Google Benchmark's compare.py
  python3-numpy python3-scipy         # compare.py imports both
  jq                                  # removes machine names from reports
  libopenblas0-pthread                # a fast BLAS, for a fair comparison with PyTorch
)
compilers=(
  clang libomp-dev
  mpich libmpich-dev
)
models=(
  python3-torchvision python3-venv
)
pages=(
  chromium fonts-dejavu-core
  pngquant
)
for group in "$@"; do
  case $group in
    tests) packages+=("${tests[@]}") ;;
    checks) packages+=("${checks[@]}") ;;
    compilers) packages+=("${compilers[@]}") ;;
    models) packages+=("${models[@]}") ;;
    pages) packages+=("${pages[@]}") ;;
    *)
      echo "install_packages.sh: unknown group $group; expected tests, checks, compilers, models or pages" >&2
      exit 2 ;;
  esac
done

missing=()
for package in "${packages[@]}"; do
  status=$(dpkg-query --show --showformat='${db:Status-Status}' "$package" 2>/dev/null) || true
  [[ $status == installed ]] || missing+=("$package")
done
[[ ${#missing[@]} -eq 0 ]] && exit 0

as_root=()
if [[ $EUID -ne 0 ]]; then
  command -v sudo >/dev/null || {
    echo "install_packages.sh: needs root or sudo; run as root: apt-get install ${missing[*]}" >&2
    exit 5
  }
  as_root=(sudo)
fi
echo "installing ${missing[*]}" >&2
"${as_root[@]}" apt-get update -q >&2
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
  apt-get install -q -y --no-install-recommends "${missing[@]}" >&2
