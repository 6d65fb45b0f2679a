// Where machine profiles come from: files, shipped names, and this very machine.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "model/base/error.hpp"
#include "model/base/suggestion.hpp"
#include "model/cost/machine_profile.hpp"

namespace stratplan {
namespace {

namespace fs = std::filesystem;

/// Bare names of the shipped machines, ascending; none if the program's data cannot be found.
std::vector<std::string> shipped_machines() {
  std::vector<std::string> names;
  try {
    for (const fs::directory_entry& entry : fs::directory_iterator(data_folder("machines")))
      if (entry.path().extension() == ".json") names.push_back(entry.path().stem().string());
  } catch (const EnvironmentError&) {
  } catch (const fs::filesystem_error&) {
  }
  std::sort(names.begin(), names.end());
  return names;
}

bool looks_like_a_path(const std::string& source) { return source == "-" || source.find('/') != std::string::npos || fs::path(source).has_extension(); }

MachineProfile read_file(const std::string& path) { return machine_from_json(read_document(path, "machine"), path); }

[[noreturn]] void unknown(const std::string& source, std::vector<std::string> names) {
  names.insert(names.begin(), "local");
  std::string list;
  for (const std::string& name : names) list += (list.empty() ? "" : ", ") + name;
  throw InputError(source, "", "unknown machine" + suggestion(source, names) + "; expected a file or one of " + list);
}

}  // namespace

std::filesystem::path local_machine_path(int ranks, int threads_per_rank) {
  return cache_folder() / ("machine-" + std::to_string(ranks) + "x" + std::to_string(threads_per_rank) + ".json");
}

MachineProfile estimate_local_machine() {
  const int cores = std::max(1, static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN)));
  const std::int64_t memory = std::max<std::int64_t>(1, ::sysconf(_SC_PHYS_PAGES)) * ::sysconf(_SC_PAGESIZE);
  MachineProfile machine;
  machine.name = "local";
  machine.assumed = true;
  // What a core of a current server processor reaches at best, so that the estimates remain floors.
  machine.device = {1e11, 2e10, {2e-7}, {memory / cores}};
  machine.levels = {{"core", cores, {5e-7}, 1e10}};
  machine.provenance = {{"note", "generic rates, nothing measured yet: `stratplan profile` or `stratplan autotune` measure"}};
  return machine;
}

MachineProfile read_machine(const std::string& source, int ranks, int threads_per_rank) {
  if (source == "local") {
    const fs::path cached = local_machine_path(ranks, threads_per_rank);
    return fs::exists(cached) ? read_file(cached.string()) : estimate_local_machine();
  }
  if (looks_like_a_path(source) || fs::is_regular_file(source)) return read_file(source);
  const std::vector<std::string> names = shipped_machines();
  if (std::find(names.begin(), names.end(), source) == names.end()) unknown(source, names);
  return read_file((data_folder("machines") / (source + ".json")).string());
}

}  // namespace stratplan
