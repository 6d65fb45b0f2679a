#include "model/base/system/cpu_time.hpp"

#include <fmt/format.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <set>
#include <string>

namespace stratplan {
namespace {

Seconds seconds(const timeval& time) {
  return {static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec)};
}

Seconds used_by(int whom) {
  rusage usage{};
  ::getrusage(whom, &usage);
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

/// Returns the machine's busy time from the first line of /proc/stat (proc(5)), which counts ticks:
/// cpu user nice system idle iowait irq softirq steal ...
Seconds busy_time() {
  std::ifstream file("/proc/stat");
  std::string cpu;
  double user = 0, nice = 0, system = 0, idle = 0, waiting = 0, interrupts = 0, soft_interrupts = 0,
         stolen = 0;
  file >> cpu >> user >> nice >> system >> idle >> waiting >> interrupts >> soft_interrupts >>
      stolen;
  if (!file) return {};
  return {(user + nice + system + interrupts + soft_interrupts + stolen) /
          static_cast<double>(::sysconf(_SC_CLK_TCK))};
}

}  // namespace

CpuReading read_cpu() {
  return {busy_time(), used_by(RUSAGE_SELF), steady_time(), used_by(RUSAGE_CHILDREN)};
}

Seconds steady_time() {
  return {
      std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count()};
}

double foreign_share(const CpuReading& before, const CpuReading& after, Seconds own, int cores) {
  const Seconds capacity = (after.wall - before.wall) * cores;
  if (capacity <= Seconds{}) return 0;
  return std::clamp(((after.busy - before.busy) - own) / capacity, 0.0, 1.0);
}

int online_cores() { return std::max(1, static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN))); }

int usable_cores() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return online_cores();
  std::set<std::string> cores;
  for (int i = 0; i < CPU_SETSIZE; ++i) {
    if (!CPU_ISSET(i, &allowed)) continue;
    std::ifstream siblings(
        fmt::format("/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list", i));
    std::string hardware_threads;
    cores.insert(std::getline(siblings, hardware_threads) ? hardware_threads : std::to_string(i));
  }
  return std::max(1, static_cast<int>(cores.size()));
}

}  // namespace stratplan
