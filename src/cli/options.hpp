#pragma once
// Options that several subcommands share under the same names, and the parsing of their values.
#include <CLI/CLI.hpp>

#include <optional>
#include <string>
#include <vector>

#include "cli/optimizer_options.hpp"
#include "model/base/units.hpp"
#include "model/machine/machine_profile.hpp"
#include "model/network/network.hpp"
#include "model/partition/execution.hpp"
#include "model/plan/plan.hpp"

namespace stratplan {

/// The options NETWORK, --batch, --input-size, --statistics, and the options of training that
/// change a plan's memory (OptimizerOptions).
struct NetworkOptions {
  std::string source;
  std::int64_t batch = 0;
  std::string input_size;
  std::string statistics;
  std::vector<std::string> freeze;
  OptimizerOptions optimizer;

  /// Returns the option NETWORK, which is required.
  CLI::Option* add(CLI::App& command);
  NetworkOverrides overrides() const;
  /// The words of a command line that give these options, the network first.
  std::vector<std::string> words() const;
  /// Reads the network. Prints a note for each decision that was made in converting a file of
  /// another format, for example ONNX.
  /// `accepts_opaque`: see NetworkOverrides.
  Network read(bool accepts_opaque = false) const;
};

/// Accepts whole numbers from 1.
CLI::Validator positive();
/// Accepts whole numbers from 1 to the largest extent of networks.
CLI::Validator extent();
/// Accepts "all", "local" and whole numbers from 1 to the largest extent of networks.
CLI::Validator statistics_set();
/// Accepts finite numbers from 0.
CLI::Validator non_negative();
/// Accepts numbers of at least 0 and below 1.
CLI::Validator below_one();
void add_ranks(CLI::App& command, int& ranks, bool required);
void add_machine(CLI::App& command, std::string& machine);
/// The option --machine of a command that reads plans. Without the option, `machine` stays empty.
void add_plan_machine(CLI::App& command, std::string& machine);
/// The option --software. Its default is the plan's software if the command reads a plan, else
/// stratplan.
void add_software(CLI::App& command, std::string& software, bool reads_plan);
/// The option --ideal, for with_ideal_scaling().
void add_ideal(CLI::App& command, bool& ideal);
/// The software that a plan names. Throws InputError unless it is a shipped one.
Software software_of(const Plan& plan);
void add_json(CLI::App& command, bool& json);
void add_memory(CLI::App& command, std::string& memory);

/// Parses a size such as "16GiB", "500MB" or "1.5e9 B". Throws UsageError, also if the unit is
/// missing.
Bytes parse_bytes(const std::string& text);
/// Parses a duration such as "3min", "90s", "1.5h" or "500ms". Throws UsageError.
Seconds parse_duration(const std::string& text);
/// Parses two or three extents, such as "128,128" or "64x128x128". Throws UsageError.
std::vector<std::int64_t> parse_extents(const std::string& text);
/// Returns read_machine() for the threads per rank of `execution`, with unmeasured_workspace set.
/// Throws InputError also if the machine states no rate for the precision of `execution`.
MachineProfile read_machine_for(const std::string& source, int ranks, const Execution& execution,
                                const Software& software = {});
/// As read_machine_for(). Also prints notes if predictions will be estimates, or if the user's own
/// machine file is odd.
MachineProfile read_machine_aloud(const std::string& source, int ranks, const Execution& execution,
                                  const Software& software = {});
/// Returns one machine per number of ranks, in the order of `ranks`. Prints each note only once.
std::vector<MachineProfile> read_machines_aloud(const std::string& source,
                                                const std::vector<int>& ranks,
                                                const Execution& execution,
                                                const Software& software = {});
/// Reads the machine for which a plan is predicted. If `source` is empty, this is the shipped
/// machine that the plan was made for, else the local one. Prints a note if the plan was made for
/// another machine. If `software` is not empty and not the plan's own, the plan becomes one of
/// that software. Throws InfeasibleError if that software cannot run a layer's decomposition.
MachineProfile read_machine_aloud(const std::string& source, Plan& plan,
                                  const std::string& software = {});
/// Calls check_writable (model/base/system/output.hpp), unless `file` is empty.
void check_output(const std::string& file);
/// Makes the folder of cached measurements. Throws EnvironmentError if files cannot be written
/// there.
void check_cache();

}  // namespace stratplan
