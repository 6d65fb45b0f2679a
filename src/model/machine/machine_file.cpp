// Reads machine profiles from their sources: files, shipped machines, and the local machine.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "model/base/error.hpp"
#include "model/base/json/json.hpp"
#include "model/base/suggestion.hpp"
#include "model/base/system/cpu_time.hpp"
#include "model/machine/machine_parts.hpp"
#include "model/machine/machine_profile.hpp"

namespace stratplan {
namespace {

namespace fs = std::filesystem;

bool looks_like_a_path(const std::string& source) {
  return source == "-" || source.find('/') != std::string::npos || fs::path(source).has_extension();
}

[[noreturn]] void unknown(const std::string& source, std::vector<std::string> names) {
  names.insert(names.begin(), "local");
  throw InputError(source, "",
                   fmt::format("unknown machine{}; expected a file or one of {}",
                               suggestion(source, names), fmt::join(names, ", ")));
}

/// The file of a machine other than "local".
std::string file_of(const std::string& source) {
  if (looks_like_a_path(source) || fs::is_regular_file(source)) return source;
  const std::vector<std::string> names = shipped_machines();
  if (std::find(names.begin(), names.end(), source) == names.end()) unknown(source, names);
  return (data_folder("machines") / (source + ".json")).string();
}

}  // namespace

std::vector<std::string> shipped_machines() { return shipped_files("machines"); }

Json read_machine_document(const std::string& source) {
  const std::string file = file_of(source);
  return with_parts(read_document(file, "machine"), file);
}

std::filesystem::path local_machine_path(int ranks, int threads_per_rank) {
  return cache_folder() /
         ("machine-" + std::to_string(ranks) + "x" + std::to_string(threads_per_rank) + ".json");
}

MachineProfile estimate_local_machine() {
  const int cores = online_cores();
  const std::int64_t memory =
      std::max<std::int64_t>(1, ::sysconf(_SC_PHYS_PAGES)) * ::sysconf(_SC_PAGESIZE);
  MachineProfile machine;
  machine.name = "local";
  machine.assumed = true;
  // The rates are the best that a core of a current server processor reaches, so that estimated
  // times remain lower bounds.
  machine.device = {1e11, 2e10, {2e-7}, {memory / cores}};
  machine.levels = {{"core", cores, {5e-7}, 1e10}};
  machine.provenance.set("note",
                         "the rates are generic, since nothing is measured yet; to measure, run "
                         "`stratplan profile` or `stratplan autotune`");
  return machine;
}

namespace {

/// A source such as "lassen:fp16", split into the machine and the arithmetic of its contractions.
struct Wanted {
  std::string source;
  std::optional<Math> math;
};

Wanted parse(const std::string& text) {
  const std::size_t colon = text.rfind(':');
  for (int i = 0; colon != std::string::npos && i < math_count; ++i)
    if (text.substr(colon + 1) == name_of(static_cast<Math>(i)))
      return {text.substr(0, colon), static_cast<Math>(i)};
  return {text, {}};
}

/// Requires that the text behind the last colon, if there is a colon, names no arithmetic. Throws
/// InputError if the text before that colon names a machine, unless the whole text names a file.
void check_arithmetic(const std::string& text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string::npos || fs::is_regular_file(text)) return;
  std::vector<std::string> machines = shipped_machines();
  machines.push_back("local");
  const std::string machine = text.substr(0, colon), suffix = text.substr(colon + 1);
  if (std::find(machines.begin(), machines.end(), machine) == machines.end() &&
      !fs::is_regular_file(machine))
    return;
  std::vector<std::string> names;
  for (int i = 0; i < math_count; ++i) names.emplace_back(name_of(static_cast<Math>(i)));
  throw InputError(machine, "",
                   fmt::format("unknown arithmetic \"{}\" behind the colon{}; expected one of {}",
                               suffix, suggestion(suffix, names), fmt::join(names, ", ")));
}

/// Borrows the kernels of this machine's profiles of other numbers of ranks, the nearest numbers
/// first. A damaged profile lends nothing: whoever uses it is told.
void borrow_kernels(MachineProfile& machine, int threads_per_rank) {
  const auto times = [](const MachineProfile& profile) {
    BorrowedKernels::Times result;
    for (const auto& [key, measured] : profile.kernels)
      result.emplace(key, measured.mean() / measured.drift);
    return result;
  };
  const auto same = [&](const MachineProfile& other, const char* what) {
    return other.provenance.text(what) == machine.provenance.text(what);
  };
  std::vector<int> others;
  std::error_code ignored;
  for (int ranks = 1; ranks <= 4 * usable_cores(); ++ranks)
    if (ranks != machine.measured_ranks &&
        fs::exists(local_machine_path(ranks, threads_per_rank), ignored))
      others.push_back(ranks);
  std::ranges::stable_sort(others, {}, [&](int ranks) {
    return std::abs(std::log(static_cast<double>(ranks) / machine.measured_ranks));
  });
  const BorrowedKernels::Times mine = times(machine);
  for (const int ranks : others) try {
      const std::string file = local_machine_path(ranks, threads_per_rank).string();
      const MachineProfile other = machine_from_json(read_machine_document(file), file);
      if (same(other, "backend") && same(other, "device")) machine.borrowed.add(mine, times(other));
    } catch (const InputError&) {
      continue;
    }
}

MachineProfile read_stored(const std::string& source, int ranks, int threads_per_rank) {
  if (source != "local") return machine_from_json(read_machine_document(source), file_of(source));
  const std::string cached = local_machine_path(ranks, threads_per_rank).string();
  std::error_code error;
  if (!fs::exists(cached, error) && !error) return estimate_local_machine();
  try {
    MachineProfile machine = machine_from_json(read_machine_document(cached), cached);
    if (machine.measured_ranks > 0) borrow_kernels(machine, threads_per_rank);
    return machine;
  } catch (const InputError& damage) {
    throw Error(ExitCode::BadInput,
                fmt::format("{}; the file holds cached measurements of this machine; delete it and "
                            "measure again with stratplan profile or autotune",
                            damage.what()));
  }
}

}  // namespace

std::string MachineProfile::full_name() const {
  return selected_math ? fmt::format("{}:{}", name, name_of(*selected_math)) : name;
}

std::string without_arithmetic(const std::string& source) { return parse(source).source; }

MachineProfile read_machine(const std::string& text, int ranks, int threads_per_rank,
                            const Software& software) {
  const Wanted wanted = parse(text);
  if (!wanted.math) check_arithmetic(text);
  MachineProfile machine =
      with_software(read_stored(wanted.source, ranks, threads_per_rank), software);
  if (!wanted.math) return machine;
  if (*wanted.math != Math::Fp32 &&
      machine.device.math_flops_per_s[static_cast<std::size_t>(*wanted.math)] == 0)
    throw InputError(text, "",
                     fmt::format("no {} rate is stated for the device of {}", name_of(*wanted.math),
                                 machine.name));
  machine.device.math = *wanted.math;
  machine.selected_math = wanted.math;
  return machine;
}

}  // namespace stratplan
