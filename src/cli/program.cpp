// The program as a whole: its help, its subcommands, and the exit code of each error.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <exception>
#include <sstream>

#include "cli/commands.hpp"
#include "cli/console.hpp"
#include "cli/options.hpp"
#include "cli/provenance.hpp"
#include "job/rank.hpp"
#include "model/base/error.hpp"
#include "model/base/suggestion.hpp"
#include "model/base/system/standard_streams.hpp"

namespace stratplan {
namespace {

constexpr const char* short_help =
    R"(stratplan chooses how each layer of a convolutional network is split over the ranks of a
machine, predicts the time of a training step, and runs it for real.

  stratplan autotune resnet50 --ranks 2 --batch 8  measure, plan, run plan and baselines, report
  stratplan plan resnet50 -n 2 -b 8 -o plan.json   recommend a plan for this machine
  stratplan run plan.json -n 2 --verify            train with it and compare with an undivided run
  stratplan doctor                                 show what is built, found and missing

stratplan --help lists all commands; stratplan COMMAND --help shows options and examples.
)";

constexpr const char* program_footer =
    R"(A network or a machine is a file, or the name of one that is shipped. The folder of an output
must exist. Exit codes: 0 ok, 2 usage, 3 bad input, 4 infeasible, 5 environment, 6 communication (a
rank died or hung), 7 validation failed, 75 stopped early, call again.)";

std::vector<std::string> command_names(const CLI::App& program) {
  std::vector<std::string> names;
  for (const auto* command : program.get_subcommands({})) names.push_back(command->get_name());
  return names;
}

/// Throws UsageError if the first word is no command. The message suggests a command of a similar
/// name, which CLI11's message does not.
void check_command(const CLI::App& program, const CommandLine& command_line) {
  if (command_line.size() < 2 || command_line[1].starts_with("-")) return;
  const auto known = command_names(program);
  if (std::find(known.begin(), known.end(), command_line[1]) != known.end()) return;
  throw UsageError(fmt::format("there is no command \"{}\"{}; stratplan --help lists the commands",
                               command_line[1], suggestion(command_line[1], known)));
}

void parse_and_execute(const CommandLine& command_line) {
  CLI::App program(
      "Plans how each layer of a convolutional network is split over ranks, predicts the time of a "
      "training step, and trains with the plan.",
      "stratplan");
  program.footer(program_footer);
  program.require_subcommand(0, 1);
  program.set_version_flag("-V,--version", version_text());
  for (const auto add : {add_autotune, add_plan,           add_predict,   add_explain,
                         add_diff,     add_bottleneck,     add_scale,     add_run,
                         add_launch,   add_ranks_command,  add_compare,   add_report,
                         add_trace,    add_profile,        add_calibrate, add_solve,
                         add_import,   add_export_weights, add_data,      add_machines,
                         add_validate, add_doctor})
    add(program, command_line);
  if (command_line.size() < 2) {
    fmt::print("{}", short_help);
    return;
  }
  check_command(program, command_line);
  try {
    program.parse(CommandLine(command_line.rbegin(), command_line.rend() - 1));
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success)) {
      std::ostringstream text;  // --help, --version
      program.exit(error, text, text);
      if (speaks()) fmt::print("{}", text.str());
      return;
    }
    const auto used = program.get_subcommands();
    throw UsageError(fmt::format("{}; see stratplan {}--help", error.what(),
                                 used.empty() ? "" : used.front()->get_name() + " "));
  }
}

}  // namespace

int run_program(const CommandLine& command_line) {
  try {
    parse_and_execute(command_line);
    flush_standard_output();
    return static_cast<int>(ExitCode::Ok);
  } catch (const JobFailed& failure) {
    return failure.exit_code;
  } catch (...) {
    return report_failure(std::current_exception());
  }
}

}  // namespace stratplan
