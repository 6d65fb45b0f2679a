#!/bin/bash
# Runs a command in a private network namespace whose loopback carries 1 Gbit/s (both directions together), with Open MPI on TCP over it: a slow network
# between two ranks of one machine. Needs root and iproute2. The token bucket is kept small, so that isolated and back-to-back messages cost the same.
#
#   tests/support/slow_link.sh [--rate 1gbit] COMMAND ...
#
# Measured profiles must not mix with those of shared memory: the cache is a folder of its own, slow-link-RATE within the usual one.
set -euo pipefail
rate=1gbit
if [ "${1:-}" = --rate ]; then rate=$2; shift 2; fi
[ $# -gt 0 ] || { sed -n 2,8p "$0" | sed 's/^# \{0,1\}//'; exit 2; }
command -v tc >/dev/null || { echo "slow_link.sh: needs tc: apt-get install iproute2" >&2; exit 5; }
export OMPI_MCA_pml=ob1 OMPI_MCA_btl=tcp,self OMPI_MCA_btl_tcp_if_include=lo OMPI_MCA_oob_tcp_if_include=lo
export STRATPLAN_CACHE_DIR=${STRATPLAN_CACHE_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/stratplan}/slow-link-$rate
exec unshare -n bash -c '
  set -e
  ip link set lo mtu 9000 up
  tc qdisc add dev lo root tbf rate "$1" burst 20kb latency 100ms
  shift
  exec "$@"' slow_link "$rate" "$@"
