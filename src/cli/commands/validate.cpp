// stratplan validate: predictions of listed cases beside measurements, and the record of errors.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <filesystem>
#include <map>

#include "cli/commands.hpp"
#include "cli/console.hpp"
#include "cli/options.hpp"
#include "cli/provenance.hpp"
#include "job/launcher.hpp"
#include "model/base/error.hpp"
#include "model/base/json/json.hpp"
#include "model/base/suggestion.hpp"
#include "model/base/system/cpu_time.hpp"
#include "model/base/text.hpp"
#include "report/ranges.hpp"
#include "report/validation.hpp"
#include "runtime/comm/mpi.hpp"
#include "session/training.hpp"

namespace stratplan {
namespace {

namespace fs = std::filesystem;

struct ValidateOptions {
  std::vector<std::string> files;
  std::vector<std::string> only;
  std::string link;
  std::string output = "stratplan_results/validation";
  std::string report;
  std::string backend = default_backend();
  int rounds = 3;
  bool fresh = false;
  bool list = false;
  bool json = false;
};

/// All shipped lists of cases, if the command line names none.
std::vector<std::string> files_of(const ValidateOptions& options) {
  if (!options.files.empty()) return options.files;
  std::vector<std::string> files;
  for (const std::string& name : shipped_files("validation"))
    files.push_back((data_folder("validation") / (name + ".json")).string());
  return files;
}

bool wanted(const ValidationCase& one, const ValidateOptions& options) {
  const auto matches = [&](const std::string& pattern) {
    return matches_pattern(one.name, pattern);
  };
  return options.only.empty() || std::ranges::any_of(options.only, matches);
}

/// The cases that the user asks for.
std::vector<ValidationCase> cases_of(const ValidateOptions& options) {
  std::vector<ValidationCase> cases;
  std::map<std::string, std::string> files;  // by name of a case, which names its results too
  for (const std::string& file : files_of(options))
    for (ValidationCase& one : read_validation_cases(file)) {
      if (const auto [other, fresh] = files.try_emplace(one.name, file); !fresh)
        throw InputError(file, "",
                         fmt::format("expected another name than {}, which a case of {} has",
                                     one.name, other->second));
      if (wanted(one, options)) cases.push_back(std::move(one));
    }
  if (cases.empty()) throw UsageError("--only: no case has such a name");
  return cases;
}

void list(const std::vector<ValidationCase>& cases) {
  for (const ValidationCase& one : cases)
    fmt::print("{}: {}, batch {}, {} on {}, {}\n", one.name, one.network, *one.overrides.batch,
               counted(one.ranks, "rank"), one.place_text(), one.plan_text());
}

Json to_json(const ValidationResult& result) {
  Json cases = Json::array();
  for (const ValidatedCase& one : result.cases) {
    Json item{{"name", one.of.name}};
    if (!one.has_result()) {
      item["failure"] = one.failure;
    } else {
      put_prediction(item, one.predicted());
      item.update({{"measured_step_seconds", one.measured.median.value},
                   {"error", one.error()},
                   {"within_range", one.within_range()},
                   {"repetitions", one.measured.repetitions}});
    }
    cases.push_back(std::move(item));
  }
  return {{"interrupted", result.interrupted}, {"cases", std::move(cases)}};
}

void print(const ValidationResult& result, const fs::path& report) {
  std::vector<const ValidatedCase*> done;
  for (const ValidatedCase& one : result.cases) {
    if (one.has_result()) {
      done.push_back(&one);
      fmt::print("{}: predicted {}, measured {} ms, {}{}\n", one.of.name,
                 step_text(one.predicted(), " ms"), milliseconds(one.measured.median),
                 signed_percent(one.error()), one.within_range() ? "" : ", outside of its range");
    } else {
      fmt::print("{}: {}\n", one.of.name, one.failure);
    }
  }
  if (done.empty()) return;
  const ValidationSummary all = summary_of(done);
  fmt::print("\n{}: mean absolute error {:.1f} %, worst {} ({}), {} in range\n{} has all figures\n",
             counted(static_cast<std::int64_t>(all.cases), "case"), 100 * all.mean_error,
             signed_percent(all.worst_error), all.worst, all.in_range,
             (report / "accuracy.md").string());
}

void validate_and_report(const ValidateOptions& options, const CommandLine& command_line) {
  if (launched_by_mpi())
    throw UsageError("validate starts its ranks itself: call it without mpirun");
  if (options.rounds % 2 == 0)
    throw UsageError(
        fmt::format("--rounds: expected an odd number, so that one is the middle one, found {}",
                    options.rounds));
  ValidationRequest request;
  request.cases = cases_of(options);
  if (options.list) return list(request.cases);
  request.backend = options.backend;
  request.link = options.link;
  request.rounds = options.rounds;
  request.folder = options.output;
  request.fresh = options.fresh;
  request.provenance = make_provenance(command_line);
  fs::create_directories(request.folder);
  const fs::path report = options.report.empty() ? request.folder : fs::path(options.report);
  check_writable(report / "accuracy.md");
  check_cache();
  Console console;
  const ValidationResult result = validate(request, console);
  if (result.elsewhere > 0)
    note(fmt::format("{} left out, because they run over other links than {}; --link names it",
                     counted(static_cast<std::int64_t>(result.elsewhere), "case"),
                     options.link.empty() ? "those of this machine" : options.link));
  write_file_atomically(report / "accuracy.md", validation_report(result));
  write_file_atomically(report / "accuracy.csv", validation_csv(result));
  write_file_atomically(report / "accuracy.svg", validation_chart(result));
  write_file_atomically(report / "accuracy-errors.svg", validation_error_chart(result));
  if (options.json)
    fmt::print("{}\n", to_json(result).dump());
  else
    print(result, report);
  if (result.interrupted) throw JobFailed{static_cast<int>(ExitCode::Checkpointed)};
}

constexpr const char* validate_footer =
    R"(Each case is predicted, and then run here, or compared with what others measured. A run
that other processes disturbed is repeated, and that is counted. Ctrl-C ends with the cases so far
and exit code 75; the same command goes on, without --fresh.
Examples:
  stratplan validate                                   all shipped cases
  stratplan validate my_cases.json -o results --report reports
  stratplan validate --only 'alexnet-*' --list)";

}  // namespace

void add_validate(CLI::App& program, const CommandLine& command_line) {
  auto options = std::make_shared<ValidateOptions>();
  CLI::App* command = program.add_subcommand(
      "validate", "Predict listed cases, run them, and report how far predictions are off");
  command->add_option("CASES", options->files, "lists of cases; default: all shipped ones");
  command
      ->add_option("--only", options->only,
                   "only cases whose name matches this pattern; the option may be given again")
      ->allow_extra_args(false);
  command->add_option("--link", options->link,
                      "what connects this machine's ranks now: local cases of other links are not "
                      "run, but kept results of them are reported");
  command->add_flag("--list", options->list, "print the cases, and do nothing");
  command->add_option("-o,--output", options->output, "folder for the results of each case")
      ->capture_default_str();
  command->add_option("--report", options->report,
                      "folder for accuracy.md, .csv and .svg; default: that of the results");
  command
      ->add_option("--backend", options->backend,
                   "backend that computes: cpu, reference, cuda or cuda:tf32")
      ->capture_default_str();
  command->add_option("--rounds", options->rounds, "runs of each local case, an odd number")
      ->check(positive())
      ->capture_default_str();
  command->add_flag("--fresh", options->fresh, "run cases again whose results are kept");
  add_json(*command, options->json);
  command->footer(validate_footer);
  command->callback([options, &command_line] { validate_and_report(*options, command_line); });
}

}  // namespace stratplan
