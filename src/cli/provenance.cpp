#include "cli/provenance.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sys/utsname.h>

#include <ctime>

#include "build_info.hpp"
#include "model/base/json/json.hpp"
#include "model/base/system/cpu_time.hpp"
#include "model/base/system/this_machine.hpp"
#include "runtime/device/backend.hpp"

namespace stratplan {

std::string version_text() {
  return fmt::format("stratplan {} ({}, {})", build_info::version, build_info::build_type,
                     build_info::compiler);
}

Provenance make_provenance(const std::vector<std::string>& command_line) {
  utsname system{};
  uname(&system);
  Json libraries = Json::object();
  for (const auto& [name, part] : {std::pair{"cpu", cpu_part()}, std::pair{"mpi", mpi_part()},
                                   std::pair{"cuda", cuda_part()}}) {
    if (part.built) libraries[name] = part.description;
  }
  return Provenance({
      {"program", "stratplan"},
      {"version", build_info::version},
      {"compiler", build_info::compiler},
      {"build_type", build_info::build_type},
      {"command", command_line},
      {"date", fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)))},
      {"host", system.nodename},
      {"system", fmt::format("{} {}", system.sysname, system.release)},
      {"device", cpu_model()},
      {"libraries", libraries},
  });
}

}  // namespace stratplan
