#pragma once
// The subcommands. Each file in cli/commands adds its subcommand to the program: options, help with
// examples, and a callback that runs after the whole command line has been parsed. A subcommand
// parses, calls the layers below and prints. It computes nothing itself.
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace stratplan {

using CommandLine = std::vector<std::string>;  ///< the program's name, then its arguments

void add_autotune(CLI::App& program, const CommandLine& command_line);
void add_profile(CLI::App& program, const CommandLine& command_line);
void add_plan(CLI::App& program, const CommandLine& command_line);
void add_predict(CLI::App& program, const CommandLine& command_line);
void add_ranks_command(CLI::App& program, const CommandLine& command_line);
void add_run(CLI::App& program, const CommandLine& command_line);
void add_launch(CLI::App& program, const CommandLine& command_line);
void add_calibrate(CLI::App& program, const CommandLine& command_line);
void add_compare(CLI::App& program, const CommandLine& command_line);
void add_solve(CLI::App& program, const CommandLine& command_line);
void add_data(CLI::App& program, const CommandLine& command_line);
void add_machines(CLI::App& program, const CommandLine& command_line);
void add_import(CLI::App& program, const CommandLine& command_line);
void add_export_weights(CLI::App& program, const CommandLine& command_line);
void add_explain(CLI::App& program, const CommandLine& command_line);
void add_diff(CLI::App& program, const CommandLine& command_line);
void add_bottleneck(CLI::App& program, const CommandLine& command_line);
void add_report(CLI::App& program, const CommandLine& command_line);
void add_trace(CLI::App& program, const CommandLine& command_line);
void add_validate(CLI::App& program, const CommandLine& command_line);
void add_scale(CLI::App& program, const CommandLine& command_line);
void add_doctor(CLI::App& program, const CommandLine& command_line);

/// Parses and executes the command line. Returns the documented exit code (model/base/error.hpp).
/// Never throws.
int run_program(const CommandLine& command_line);

}  // namespace stratplan
