// stratplan doctor: the parts that were built, the programs and files that were found on this
// machine, and the command that installs each missing one.
#include <fmt/format.h>
#include <unistd.h>
#include <CLI/CLI.hpp>

#include <map>

#include "cli/commands.hpp"
#include "cli/options.hpp"
#include "cli/provenance.hpp"
#include "job/launcher.hpp"
#include "job/rank.hpp"
#include "model/base/error.hpp"
#include "model/base/json/json.hpp"
#include "model/base/system/cpu_time.hpp"
#include "model/base/system/process.hpp"
#include "model/base/system/standard_streams.hpp"
#include "model/base/system/this_machine.hpp"
#include "model/base/text.hpp"
#include "model/machine/machine_profile.hpp"
#include "model/network/onnx.hpp"
#include "report/table.hpp"
#include "runtime/comm/mpi.hpp"
#include "runtime/device/backend.hpp"

namespace stratplan {
namespace {

/// One line of the diagnosis.
struct Finding {
  std::string what;
  bool good = false;
  bool required = false;  ///< a normal job cannot run without it
  std::string description;
  std::string remedy;  ///< what helps if `good` is false; usually a command
  std::map<std::string, std::string> versions{};  ///< versions of packages, by name
};

Finding part(const std::string& name, const PartInfo& info, bool required,
             const std::string& remedy) {
  return {name,   info.built,   required, info.built ? info.description : "not built",
          remedy, info.versions};
}

std::vector<Finding> what_was_built() {
  const std::string rebuild = " && cmake --preset release && cmake --build --preset release";
  return {{"reference", true, true, "plain loops, always built", ""},
          part("cpu", cpu_part(), true, "apt-get install libdnnl-dev" + rebuild),
          part("mpi", mpi_part(), true, "apt-get install libopenmpi-dev openmpi-bin" + rebuild),
          {"launch", true, false,
           "ranks without MPI: processes that talk over sockets, or threads of one process", ""},
          part("hdf5", hdf5_part(), false, "apt-get install libhdf5-dev" + rebuild),
          {"onnx", onnx_built(), false,
           onnx_built() ? "ONNX models can be used as networks; stratplan import converts them"
                        : "not built; configure with -DSTRATPLAN_WITH_ONNX=ON",
           "apt-get install protobuf-compiler libprotobuf-dev libonnx-dev" + rebuild},
          part("cuda", cuda_part(), false,
               "cmake --preset cuda (needs the CUDA toolkit, cuDNN and NCCL)")};
}

Finding cache() {
  const auto folder = cache_folder();
  try {
    check_cache();
    return {"cache", true, true, folder.string(), ""};
  } catch (const EnvironmentError& error) {
    return {"cache", false, true, error.what(),
            "set STRATPLAN_CACHE_DIR to a folder that can be written"};
  }
}

Finding local_profiles() {
  std::string list;
  for (int ranks = 1; ranks <= 4 * usable_cores(); ++ranks) {
    const auto file = local_machine_path(ranks);
    std::error_code ignored;  // cache() reports a cache that cannot be read
    if (!std::filesystem::exists(file, ignored)) continue;
    try {
      list += fmt::format("{}{} ({})", list.empty() ? "" : ", ", counted(ranks, "rank"),
                          counted(std::ssize(read_machine("local", ranks).kernels), "kernel"));
    } catch (const Error& damage) {
      return {"local profile", false, false, damage.what(), "rm " + file.string()};
    }
  }
  return {"local profile", !list.empty(), false,
          list.empty() ? "none measured yet, so predictions are estimates" : list,
          "stratplan profile NETWORK -n RANKS -b BATCH"};
}

/// Returns a remark on mpirun in a build with another MPI than Open MPI. Such a program does not
/// start mpirun, because the options of mpirun differ.
std::string remark_on_mpirun() {
  return mpi_part().built && !built_with_open_mpi() ? "; this program was built with another MPI "
                                                      "than Open MPI: call mpirun yourself, else "
                                                      "ranks communicate over sockets"
                                                    : "";
}

std::vector<Finding> what_was_found() {
  const auto mpirun = find_on_path("mpirun");
  const Bytes memory{static_cast<std::int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE)};
  const auto networks = shipped_files("networks"), machines = shipped_files("machines");
  return {{"cores", true, true, fmt::format("{} ({})", usable_cores(), cpu_model()), ""},
          {"memory", true, true, readable(memory), ""},
          {"mpirun", mpirun.has_value(), true, mpirun ? *mpirun + remark_on_mpirun() : "not found",
           "apt-get install openmpi-bin"},
          cache(),
          local_profiles(),
          {"networks", !networks.empty(), true, fmt::format("{}", fmt::join(networks, ", ")),
           "set STRATPLAN_DATA_DIR to the folder that holds networks/ and machines/"},
          {"machines", !machines.empty(), false, fmt::format("{}", fmt::join(machines, ", ")),
           "set STRATPLAN_DATA_DIR to the folder that holds networks/ and machines/"}};
}

Json to_json(const std::vector<Finding>& findings, const char* verdict) {
  Json document = Json::object();
  for (const Finding& finding : findings) {
    document[finding.what] = {{verdict, finding.good}, {"description", finding.description}};
    if (!finding.good) document[finding.what]["remedy"] = finding.remedy;
    if (!finding.versions.empty()) document[finding.what]["versions"] = finding.versions;
  }
  return document;
}

void print(const std::string& title, const std::vector<Finding>& findings) {
  fmt::print("{}\n", title);
  for (const Finding& finding : findings) {
    fmt::print("  {:<14} {:<8} {}\n", finding.what,
               finding.good       ? "ok"
               : finding.required ? "MISSING"
                                  : "-",
               finding.description);
    if (!finding.good) fmt::print("  {:<14} {:<8} -> {}\n", "", "", finding.remedy);
  }
}

void diagnose(bool json) {
  const auto built = what_was_built(), found = what_was_found();
  std::string missing;
  for (const auto* findings : {&built, &found})
    for (const Finding& finding : *findings)
      if (!finding.good && finding.required)
        missing += (missing.empty() ? "" : ", ") + finding.what;
  if (json) {
    fmt::print("{}\n", Json{{"version", version_text()},
                            {"ready", missing.empty()},
                            {"built", to_json(built, "built")},
                            {"found", to_json(found, "found")}}
                           .dump());
  } else {
    fmt::print("{}\n\n", version_text());
    print("built", built);
    print("found", found);
    if (missing.empty())
      fmt::print("\nready; for example, run stratplan autotune resnet50 --ranks 2 --batch 8\n");
  }
  flush_standard_output();
  if (!missing.empty()) throw EnvironmentError("not ready for a normal job; missing: " + missing);
}

}  // namespace

void add_doctor(CLI::App& program, const CommandLine&) {
  auto json = std::make_shared<bool>(false);
  CLI::App* command = program.add_subcommand(
      "doctor",
      "Show what is built, what this machine has, and what is missing, with the command that "
      "installs it");
  add_json(*command, *json);
  command->footer("Examples:\n  stratplan doctor\n  stratplan doctor --json");
  command->callback([json] { diagnose(*json); });
}

}  // namespace stratplan
