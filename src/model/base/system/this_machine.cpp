#include "model/base/system/this_machine.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "model/base/system/cpu_time.hpp"

namespace stratplan {

std::string cpu_model() {
  std::ifstream cpus("/proc/cpuinfo");
  for (std::string line; std::getline(cpus, line);) {
    if (line.rfind("model name", 0) == 0) return line.substr(line.find(':') + 2);
  }
  return "unknown";
}

std::string this_machine() { return fmt::format("{}, {} cores", cpu_model(), online_cores()); }

Bytes last_level_cache() {
  const long size = std::max({::sysconf(_SC_LEVEL4_CACHE_SIZE), ::sysconf(_SC_LEVEL3_CACHE_SIZE),
                              ::sysconf(_SC_LEVEL2_CACHE_SIZE)});
  return {std::max(0L, size)};
}

}  // namespace stratplan
