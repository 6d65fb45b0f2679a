#include "profile/measure/load_guard.hpp"

#include <algorithm>

namespace stratplan {

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
