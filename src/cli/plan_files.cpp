#include "cli/plan_files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <set>

#include "model/base/error.hpp"
#include "model/base/json/json.hpp"
#include "model/base/system/shell.hpp"

namespace stratplan {
namespace {

namespace fs = std::filesystem;

/// A file of the command line. `machine`: the source of the machine for plans.
struct Named {
  std::string file, machine;
};

void add_results(const fs::path& folder, const std::string& machine, std::vector<Named>& files) {
  files.push_back({(folder / "plan.json").string(), machine});
  if (fs::exists(folder / "timings.json"))
    files.push_back({(folder / "timings.json").string(), machine});
}

std::vector<Named> named_files(const std::vector<std::string>& arguments, FolderContents contents,
                               const std::string& machine) {
  std::vector<Named> files;
  for (const std::string& argument : arguments) {
    if (!fs::is_directory(argument)) {
      files.push_back({argument, machine});
      continue;
    }
    const fs::path folder = argument, own = folder / "machine.json";
    const std::string of_folder = machine.empty() && fs::exists(own) ? own.string() : machine;
    add_results(folder, of_folder, files);
    if (contents == FolderContents::RecommendedPlan || !fs::is_directory(folder / "plans"))
      continue;
    std::vector<fs::path> further;
    for (const auto& entry : fs::directory_iterator(folder / "plans"))
      if (fs::exists(entry.path() / "plan.json")) further.push_back(entry.path());
    std::ranges::sort(further);
    for (const fs::path& one : further) add_results(one, of_folder, files);
  }
  return files;
}

/// Plans of equal names get their files' names too.
void name_apart(std::vector<PlanFile>& files) {
  std::vector<std::string> names;
  for (const PlanFile& file : files) names.push_back(file.planned.plan.name);
  for (std::size_t i = 0; i < files.size(); ++i)
    files[i].name = std::ranges::count(names, names[i]) > 1 || names[i].empty()
                        ? fmt::format("{} ({})", names[i], files[i].file)
                        : names[i];
}

/// The command that made a file, by its provenance; empty if the file does not say.
std::string command_of(const Json& document) {
  const Json command = document.value("provenance", Json::object()).value("command", Json::array());
  if (!command.is_array()) return {};
  std::vector<std::string> words;
  for (const Json& word : command)
    if (word.is_string()) words.push_back(word.get<std::string>());
  if (!words.empty()) words.front() = fs::path(words.front()).filename().string();
  return shell_line(words);
}

}  // namespace

std::vector<PlanFile> read_plan_files(const std::vector<std::string>& arguments,
                                      FolderContents contents, const std::string& machine) {
  std::vector<PlanFile> plans;
  std::vector<TimingsFile> timings;
  std::set<std::array<std::string, 4>> known;  // plan, network and the machine that was asked for
  for (const auto& [file, of_plan] : named_files(arguments, contents, machine)) {
    const Json document = read_json_file(file);
    if (document.contains("step_seconds")) {
      timings.push_back({file, command_of(document), read_timings(file)});
      continue;
    }
    PlanAndNetwork planned = read_plan(file);
    const bool fresh = known
                           .insert({fingerprint(planned.plan), planned.network.fingerprint(),
                                    of_plan, planned.plan.machine_fingerprint})
                           .second;
    if (!fresh) continue;
    MachineProfile profile = read_machine_aloud(of_plan, planned.plan);
    plans.push_back({file, command_of(document), {}, std::move(planned), std::move(profile), {}});
  }
  for (TimingsFile& one : timings) {
    // The plan in the timings' own folder comes first, because equal plans may have other machines.
    const auto fits = [&](const PlanFile& file) {
      return fingerprint(file.planned.plan) == one.timings.plan_fingerprint &&
             file.planned.network.fingerprint() == one.timings.network_fingerprint;
    };
    const auto beside = [&](const PlanFile& file) {
      return fits(file) && fs::path(file.file).parent_path() == fs::path(one.file).parent_path();
    };
    auto plan = std::ranges::find_if(plans, beside);
    if (plan == plans.end()) plan = std::ranges::find_if(plans, fits);
    if (plan == plans.end())
      throw InputError(one.file, "/plan/fingerprint",
                       fmt::format("expected its plan {} (fingerprint {}) beside it on the command "
                                   "line",
                                   one.timings.plan_name, one.timings.plan_fingerprint));
    check_match(one.timings, one.file, plan->planned, plan->file);
    plan->timings.push_back(std::move(one));
  }
  name_apart(plans);
  return plans;
}

void add_plan_files(CLI::App& command, std::vector<std::string>& files) {
  command
      .add_option("FILES", files,
                  "each a plan.json, a timings.json of one of the plans, or a folder of results")
      ->required();
}

std::vector<std::string> commands_of(const std::vector<PlanFile>& files) {
  std::vector<std::string> commands;
  const auto add = [&](const std::string& command) {
    if (!command.empty() && std::ranges::find(commands, command) == commands.end())
      commands.push_back(command);
  };
  for (const PlanFile& plan : files) {
    add(plan.command);
    for (const TimingsFile& timings : plan.timings) add(timings.command);
  }
  return commands;
}

}  // namespace stratplan
