#pragma once
// The argument FILES of commands that show plans and their measurements: each a plan.json, a
// timings.json of one of the plans, or a folder of results.
#include <optional>
#include <string>
#include <vector>

#include "cli/options.hpp"
#include "model/plan/timings.hpp"

namespace stratplan {

struct TimingsFile {
  std::string file;
  std::string command;  ///< that made the file; empty if the file does not say
  Timings timings;
};

/// A plan with its machine and the measurements that were named beside it.
struct PlanFile {
  std::string file;
  std::string command;  ///< as of TimingsFile
  std::string name;     ///< the plan's name, followed by the file's if other plans share the name
  PlanAndNetwork planned;
  MachineProfile machine;
  std::vector<TimingsFile> timings;
};

enum class FolderContents { RecommendedPlan, AllPlans };

/// Reads the files. A folder stands for its plan.json and, if there is one, its timings.json; with
/// AllPlans also for those in the folders below its `plans`. The machine is that of the folder
/// (machine.json), unless `machine` names one; else as for read_machine_aloud(). Plans that equal
/// an earlier one on an equal machine are left out. Timings belong to a plan of their own folder,
/// else to the first equal one. Throws InputError if timings are of no plan.
std::vector<PlanFile> read_plan_files(const std::vector<std::string>& arguments,
                                      FolderContents contents, const std::string& machine);

/// Adds FILES, which is required.
void add_plan_files(CLI::App& command, std::vector<std::string>& files);

/// The commands that made the files, each once.
std::vector<std::string> commands_of(const std::vector<PlanFile>& files);

}  // namespace stratplan
