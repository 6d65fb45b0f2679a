#include "profile/load_guard.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string>

namespace stratplan {
namespace {

Seconds seconds(const timeval& time) {
  return {static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec)};
}

/// The first line of /proc/stat: cpu user nice system idle iowait irq softirq steal ..., in ticks.
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
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return {busy_time(), seconds(usage.ru_utime) + seconds(usage.ru_stime), SteadyClock{}.now()};
}

int online_cores() { return std::max(1, static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN))); }

double foreign_share(const CpuReading& before, const CpuReading& after, Seconds own, int cores) {
  const Seconds capacity = (after.wall - before.wall) * cores;
  if (capacity <= Seconds{}) return 0;
  return std::clamp(((after.busy - before.busy) - own) / capacity, 0.0, 1.0);
}

double LoadGuard::foreign() const {
  const CpuReading after = read_cpu();
  const Seconds own{team_.sum((after.own - before_.own).value)};
  return team_.greatest(foreign_share(before_, after, own, online_cores()));
}

double ClockWatch::read() {
  const double clock = backend_.clock();
  highest_ = std::max(highest_, clock);
  return clock;
}

double ClockWatch::share(double before, double after) const {
  if (highest_ == 0) return 1;
  return 1 - team_.greatest(1 - std::min(before, after) / highest_);
}

}  // namespace stratplan
