# Sourced by the scripts that write reports/. Functions that name the commit and the machine.

# The last commit that changed anything but reports/, so that committing a report does not make it
# stale. A "+" at the end means uncommitted changes.
source_commit() {
  local changes
  changes=$(git status --porcelain -- . ':(exclude)reports')
  echo "$(git log -1 --format=%h -- . ':(exclude)reports')${changes:++}"
}

# For example "2 cores of AMD EPYC, 23.5 GiB, Debian GNU/Linux 12 (bookworm), g++ 12.2.0". No host
# name.
machine_text() {
  local model memory system
  model=$(sed -n 's/^model name[[:space:]]*: //p' /proc/cpuinfo | head -1)
  memory=$(awk '/^MemTotal/ {printf "%.1f GiB", $2 / 1048576}' /proc/meminfo)
  system=$(. /etc/os-release && echo "$PRETTY_NAME")
  echo "$(nproc) cores of ${model:-an unnamed processor}, $memory, $system," \
    "g++ $(g++ -dumpfullversion)"
}

# How many times slower one core is now than an idle Zen 5 core, which takes 0.18 s; at least 1.
pace() {
  python3 -c '
import time
best = 9e9
for _ in range(3):
    start, total = time.perf_counter(), 0
    for i in range(2_000_000): total += i * i
    best = min(best, time.perf_counter() - start)
print(round(max(1, best / 0.18), 2))'
}
