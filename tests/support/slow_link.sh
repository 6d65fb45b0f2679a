#!/bin/bash
# Runs a command over a slow network between two ranks of one machine: in a private network
# namespace whose loopback carries 1 Gbit/s (both directions together), with Open MPI on TCP over
# it. Needs root and iproute2. The token bucket is small, so that isolated and back-to-back messages
# cost the same.
#
#   tests/support/slow_link.sh [--rate 1gbit] COMMAND ...
#
# The cache is a folder of its own, slow-link-RATE in the usual one, so that measured profiles do
# not mix with those of shared memory.
set -euo pipefail
rate=1gbit
if [ "${1:-}" = --rate ]; then rate=$2; shift 2; fi
[ $# -gt 0 ] || { sed -n 2,10p "$0" | sed 's/^# \{0,1\}//'; exit 2; }
command -v tc >/dev/null || { echo "slow_link.sh: needs tc: apt-get install iproute2" >&2; exit 5; }
export OMPI_MCA_pml=ob1 OMPI_MCA_btl=tcp,self
export OMPI_MCA_btl_tcp_if_include=lo OMPI_MCA_oob_tcp_if_include=lo
usual_cache=${STRATPLAN_CACHE_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/stratplan}
export STRATPLAN_CACHE_DIR=$usual_cache/slow-link-$rate
exec unshare -n bash -c '
  set -e
  ip link set lo mtu 9000 up
  tc qdisc add dev lo root tbf rate "$1" burst 20kb latency 100ms
  shift
  exec "$@"' slow_link "$rate" "$@"
